"""A run followed through its checkpoints: each encoded once, everything kept, nothing repeated."""

from __future__ import annotations

import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polariscope as ps
from long_training import unchecked
from polariscope.analysis.course import Course
from polariscope.analysis.similarity.cka import cka
from polariscope.core.errors import InputError
from polariscope.models.model import Model
from polariscope.runs import follow_course as module
from polariscope.runs.results import NotCachedError
from polariscope.runs.run import Run
from polariscope.storage.inspection import inspect_folder

STEPS = (50, 100, 150, 200, 250, 300)
FEW: Any = {"n_samples": 400, "n_layer_samples": 80}


def make(path: Path, **more: Any) -> Path:
    settings: dict[str, Any] = {"net": "linear", "seed": 0, "n_latents": 3, "likelihood_variance": 0.05}
    ps.train(
        ps.load_dataset("gaussian", eigenvalues=(8.0, 4.0), width=4, n_samples=1000),
        keep_checkpoints="all",
        out=path,
        **{
            **settings,
            "steps": 300,
            "validate_every": 300,
            "learning_rate": 0.02,
            "log_every": 50,
            "checkpoint_every": 50,
            **more,
        },
    )
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make(folder / "run")
    make(folder / "other", seed=1)
    return folder


@pytest.fixture
def path(runs: Path, tmp_path: Path) -> Path:
    return shutil.copytree(runs / "run", tmp_path / "run")


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Steps of the models that were loaded, in order."""
    found: list[int] = []
    load = Run.model

    def model(self: Run, step: int | None = None, device: str = "cpu") -> Model:
        loaded = load(self, step, device)
        assert loaded.step is not None
        found.append(loaded.step)
        return loaded

    monkeypatch.setattr(Run, "model", model)
    return found


def test_each_step_is_what_the_run_says_of_its_checkpoint(path: Path, encoded: list[int]) -> None:
    course = ps.open_run(path).course(n_samples=400, seed=2)
    assert encoded == list(STEPS)
    assert course.steps == STEPS
    for one in course.snapshots[::5]:
        regime = ps.open_run(path).regime(n_samples=400, seed=2, step=one.step)
        assert list(one.types) == regime.types
        assert one.polarisation == regime.polarisation
        np.testing.assert_allclose(one.kl, [latent.kl for latent in regime.latents], rtol=1e-12)
    assert course.latent == int(np.argmax(course.snapshots[-1].kl))
    assert course.layers is None


def test_asked_again_nothing_is_loaded(path: Path, encoded: list[int]) -> None:
    first = ps.open_run(path).course(layers=True, **FEW)
    encoded.clear()
    again = ps.open_run(path).course(layers=True, **FEW)
    assert encoded == []
    assert again.to_dict() == first.to_dict()
    assert ps.open_run(path).course(1, **FEW).latent == 1  # another latent, the same measurements
    assert encoded == []
    quiet = Run(path, read_only=True)
    assert quiet.course(layers=True, **FEW).to_dict() == first.to_dict()
    with pytest.raises(NotCachedError, match="no course with these settings"):
        quiet.course(n_samples=399)


def test_interrupted_anywhere_it_goes_on_where_it_was(path: Path, encoded: list[int]) -> None:
    whole = ps.open_run(shutil.copytree(path, path.with_name("whole"))).course(**FEW)

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    encoded.clear()
    with pytest.raises(KeyboardInterrupt):
        ps.open_run(path).course(progress=stop, **FEW)
    assert encoded == [50, 100]
    told: list[tuple[int, int]] = []
    resumed = ps.open_run(path).course(progress=lambda done, total: told.append((done, total)), **FEW)
    assert encoded == list(STEPS)  # each once
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert resumed.snapshots[3].kl.tolist() == whole.snapshots[3].kl.tolist()
    assert {finding.state for finding in inspect_folder(path)} == {"whole"}


def test_layers_that_were_interrupted_are_those_of_a_whole_course(path: Path, encoded: list[int]) -> None:
    """The last state, which others are compared with, is measured first; resumed, only its layers are seen again."""
    whole = ps.open_run(shutil.copytree(path, path.with_name("whole"))).course(layers=True, **FEW)

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ps.open_run(path).course(layers=True, progress=stop, **FEW)
    encoded.clear()
    resumed = ps.open_run(path).course(layers=True, **FEW)
    assert encoded == [300, 100, 150, 200, 250]
    assert resumed.layers is not None
    assert whole.layers is not None
    np.testing.assert_array_equal(resumed.layers.dimension, whole.layers.dimension)
    np.testing.assert_allclose(
        resumed.layers.similarities[0].values, whole.layers.similarities[0].values, atol=1e-6
    )


def test_steps_with_the_same_weights_are_encoded_once(tmp_path: Path, encoded: list[int]) -> None:
    run = make(tmp_path / "still", steps=150, learning_rate=1e-60)  # 0 as a float32
    course = ps.open_run(run).course(layers=True, **FEW)
    assert encoded == [150]
    assert course.steps == (50, 100, 150)
    assert course.kl[0].tolist() == course.kl[2].tolist()
    assert course.layers is not None
    np.testing.assert_allclose(course.layers.similarities[0].values, 1, atol=1e-6)


def test_a_line_that_a_kill_cut_is_measured_again_alone(path: Path, encoded: list[int]) -> None:
    first = ps.open_run(path).course(**FEW)
    (journal,) = path.glob("course-*.jsonl")
    journal.write_bytes(journal.read_bytes()[:-30])
    (artefact,) = path.glob("course-*.json")
    artefact.unlink()
    encoded.clear()
    assert ps.open_run(path).course(**FEW).to_dict() == first.to_dict()
    assert encoded == [300]


def test_more_training_measures_the_new_checkpoints_only(
    tmp_path: Path, encoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make(tmp_path / "run", steps=100)
    ps.open_run(run).course(**FEW)
    make(run, steps=200)
    encoded.clear()
    assert ps.open_run(run).course(**FEW).steps == (50, 100, 150, 200)
    assert encoded == [150, 200]


def test_layers_beside_codes_are_one_pass(
    path: Path, encoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    values = type(ps.open_run(path).data()).values

    def counted(self: Any, indices: np.ndarray) -> np.ndarray:
        read.append(len(indices))
        return values(self, indices)

    monkeypatch.setattr(type(ps.open_run(path).data()), "values", counted)
    ps.open_run(path).course(layers=True, **FEW)
    assert encoded == [300, *STEPS[:-1]]  # the last first: others are compared with it
    assert sum(read) == 400 * len(STEPS)


def layers_of(model: Model, x: np.ndarray) -> dict[str, np.ndarray]:
    with torch.inference_mode():
        given = model.activations(torch.from_numpy(x), torch.zeros(len(x), model.n_latents))
        return {name: activation.flatten(1).double().numpy() for name, activation in given}


def test_similarities_and_dimensions_are_those_of_the_layers_themselves(runs: Path, path: Path) -> None:
    run, other = ps.open_run(path), ps.open_run(runs / "other")
    course = run.course(against=runs / "other", **FEW)
    assert course.layers is not None
    names = course.layers.names
    assert names == run.model().layer_names
    chosen = np.sort(module.generator(0, "course", "layers").permutation(400)[:80])
    indices = run.representation(400).indices[chosen]
    x = run.data().values(indices)
    final, theirs = layers_of(run.model(), x), layers_of(other.model(), x)
    for place, step in ((0, 50), (3, 200)):
        own = layers_of(run.model(step), x)
        for reference, found in zip((final, theirs), course.layers.similarities, strict=True):
            for name in ("mean", "encoder/1"):
                if name in names:
                    expected = cka(own[name], reference[name])
                    assert found.values[place, names.index(name)] == pytest.approx(expected, abs=1e-5)
        dimension = ps.dimension.mle(own["mean"].astype(np.float32), k=20, normaliser="k-1").value
        assert course.layers.dimension[place, names.index("mean")] == pytest.approx(dimension, rel=1e-4)
    ours, against = course.layers.similarities
    assert (ours.reference, against.reference) == ("itself at step 300", "other")
    np.testing.assert_allclose(ours.values[-1], 1, atol=1e-6)  # the sampled layer too: the same noise
    inputs = course.layers.dimension[:, names.index("input")]
    assert (inputs == inputs[0]).all()


def test_a_layer_that_never_varies_has_no_similarity_and_no_dimension(tmp_path: Path) -> None:
    """The posterior of an autoencoder is a point: its variance is 0 for every input."""
    run = make(tmp_path / "point", objective="ae", steps=100, likelihood_variance=1.0)
    course = ps.open_run(run).course(layers=True, **FEW)
    assert course.layers is not None
    place = course.layers.names.index("variance")
    assert np.isnan(course.layers.dimension[:, place]).all()
    assert np.isnan(course.layers.similarities[0].values[:, place]).all()
    assert any("Layer variance has no dimension at some steps" in note for note in course.notes)
    assert course.polarised.since is None


def test_layers_that_another_run_does_not_have_are_named(path: Path, tmp_path: Path) -> None:
    deep = make(tmp_path / "deep", net="mlp", encoder_widths=(8,), decoder_widths=(8,), steps=100)
    course = ps.open_run(deep).course(against=path, **FEW)
    assert course.layers is not None
    values = dict(zip(course.layers.names, course.layers.similarities[1].values.T, strict=True))
    alone = [name for name, column in values.items() if np.isnan(column).all()]
    assert alone
    assert np.isfinite(values["mean"]).all()
    assert any(f"Not compared with run: {', '.join(alone)}." in note for note in course.notes)


def test_codes_that_are_kept_already_are_not_encoded_again(path: Path, encoded: list[int]) -> None:
    run = ps.open_run(path)
    run.representation(400)
    encoded.clear()
    run.course(n_samples=400)
    assert encoded == list(STEPS[:-1])


def test_some_steps_of_a_run(path: Path, encoded: list[int]) -> None:
    course = ps.open_run(path).course(steps=[200, 100], **FEW)
    assert course.steps == (100, 200)
    assert any("Only two checkpoints were used" in note for note in course.notes)
    with pytest.raises(InputError, match="no model of step 120"):
        ps.open_run(path).course(steps=[120])


def test_memory_is_that_of_one_checkpoint(path: Path) -> None:
    """Three times the checkpoints need no more memory at the peak than a tenth above that of two."""
    peaks = []
    for number, steps in enumerate((STEPS[:2], STEPS)):
        run = ps.open_run(shutil.copytree(path, path.with_name(f"copy{number}")))
        run.data().values(np.arange(2))
        tracemalloc.start()
        run.course(steps=steps, layers=True, n_samples=1000, n_layer_samples=400)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] + 200_000  # records of six snapshots are a few kilobytes each


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"latent": 3}, "latent must be a number from 0 to 2, got 3"),
        ({"alpha": 0.7}, "alpha must lie between 0 and 0.5"),
        ({"measure": "ckaa"}, "Did you mean 'cka'"),
        (
            {"layers": True, "n_layer_samples": 20},
            "n_layer_samples must be more than 20, the number of neighbours",
        ),
        ({"layers": True, "n_samples": 20}, "n_layer_samples must be more than 20, .*got 20"),
        ({"n_samples": 1}, "n_samples must be at least 2, got 1"),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_encoded(
    path: Path, encoded: list[int], call: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        ps.open_run(path).course(**call)
    assert encoded == []


def test_a_run_of_one_model_has_no_course(tmp_path: Path) -> None:
    run = make(tmp_path / "short", steps=50)
    with pytest.raises(
        InputError,
        match=r"only the model of step 50.*keep_checkpoints='all' and, for example, checkpoint_every=100",
    ):
        ps.open_run(run).course(**FEW)
    assert ps.open_run(run).course(steps=[50], **FEW).steps == (50,)  # asked for by its number
    begun = make(tmp_path / "begun", steps=50)
    shutil.rmtree(begun / "checkpoints")
    (begun / "model.safetensors").unlink()
    with pytest.raises(InputError, match="has no model yet"):
        ps.open_run(begun).course(**FEW)


def test_runs_of_other_data_are_not_compared(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    data = ps.load_dataset("gaussian", eigenvalues=(8.0, 4.0), width=4, n_samples=500)
    ps.train(data, net="linear", n_latents=3, steps=2, log_every=2, validate_every=2, out=other)
    with pytest.raises(InputError, match="be trained on the same data"):
        ps.open_run(path).course(against=other, **FEW)


def test_delta_of_a_linear_model_falls_to_its_closed_form(tmp_path: Path) -> None:
    """λ = 8 and 4, γ = 0.2: σ² tends to γ/λ and KL to ½ Σ log λ/γ, and Δ leaves out σ²/2: Δ = Σ γ/λ / Σ log λ/γ.

    Along the way both latents are in use, so Δ = ½ Σ E[σ²] / KL at every step, and E[σ²] falls towards γ/λ.
    """
    more: dict[str, Any] = {"n_latents": 2, "likelihood_variance": 0.2, "steps": 1500, "schedule": "cosine"}
    more |= {"keep_units": True}
    with unchecked():
        run = make(tmp_path / "long", learning_rate=0.05, checkpoint_every=100, log_every=300, **more)
    course: Course = ps.open_run(run).course(n_samples=None)
    eigenvalues, noise = np.array([8.0, 4.0]), 0.2
    limit = (noise / eigenvalues).sum() / np.log(eigenvalues / noise).sum()
    np.testing.assert_allclose(
        course.delta_kl, course.variance.sum(axis=1) / 2 / course.kl.sum(axis=1), rtol=1e-5
    )
    assert limit < course.delta_kl[-1] < 1.35 * limit  # 1,500 steps come within a third
    first = next(step for step, delta in zip(course.steps, course.delta_kl, strict=True) if delta < 0.03)
    assert first > 100
    assert course.polarised.since == first
    assert course.polarised.share == (1500 - first) / 1500
    assert course.polarised.at_most == (1500 - first + 100) / 1500


def test_a_checkpoint_that_is_deleted_meanwhile_is_left_out_with_a_note(path: Path) -> None:
    def prune(done: int, total: int) -> None:
        if done == 1:
            shutil.rmtree(path / "checkpoints" / f"step-{STEPS[2]}")

    course = ps.open_run(path).course(progress=prune, **FEW)
    assert [snapshot.step for snapshot in course.snapshots] == [*STEPS[:2], *STEPS[3:]]
    assert f"step {STEPS[2]}" in " ".join(course.notes)
