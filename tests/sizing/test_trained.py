"""Candidates that begin with the latents of wider ones."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.sizing.trained import TrainedCandidates

EIGENVALUES = (9.0, 4.0, 0.01, 0.01, 0.01, 0.01)
RECIPE = {"net": "linear", "batch_size": 64, "log_every": 25, "variance": 0.1}


def candidates_in(folder: Path) -> TrainedCandidates:
    data = ps.load_dataset("gaussian", eigenvalues=EIGENVALUES, n_samples=500)
    return TrainedCandidates(data, folder, 0, RECIPE)


def test_a_pruned_model_begins_with_the_latents_that_say_most(tmp_path: Path) -> None:
    candidates = candidates_in(tmp_path)
    wide = candidates.watch(4, 400, learning_rate=1e-2).variances[-1]
    curves = candidates.watch(2, 50, learning_rate=1e-2, pruned_from=(4, 400))
    np.testing.assert_allclose(np.sort(curves.variances[0]), np.sort(wide)[:2], atol=0.1)  # 25 steps later
    fresh = candidates.watch(2, 50, learning_rate=1e-2)
    assert fresh.variances[0].min() > 2 * curves.variances[0].max()
    assert candidates.n_watched(2, learning_rate=1e-2, pruned_from=(4, 400)) == 50
    assert candidates.n_watched(4, learning_rate=1e-2) == 400
    assert candidates.n_watched(3) == 0
    assert candidates.n_steps == 400 + 50 + 50


def test_one_that_was_interrupted_goes_on_to_the_same_curves(tmp_path: Path) -> None:
    whole, parts = candidates_in(tmp_path / "whole"), candidates_in(tmp_path / "parts")
    for candidates in (whole, parts):
        candidates.watch(4, 200, learning_rate=1e-2)
    parts.watch(2, 50, learning_rate=1e-2, pruned_from=(4, 200))
    again = candidates_in(tmp_path / "parts")  # as after a kill: the search asks for the same again
    again.watch(4, 200, learning_rate=1e-2)
    expected = whole.watch(2, 100, learning_rate=1e-2, pruned_from=(4, 200))
    found = again.watch(2, 100, learning_rate=1e-2, pruned_from=(4, 200))
    np.testing.assert_array_equal(found.variances, expected.variances)


def test_two_that_are_watched_together_have_the_curves_they_have_alone(tmp_path: Path) -> None:
    turns, beside = candidates_in(tmp_path / "turns"), candidates_in(tmp_path / "beside")
    for candidates in (turns, beside):
        candidates.watch(4, 200, learning_rate=1e-2)
    expected = [turns.watch(n, 100, learning_rate=1e-2, pruned_from=(4, 200)) for n in (2, 3)]
    beside.watch_together((2, 3), 100, learning_rate=1e-2, pruned_from=(4, 200))
    assert beside.n_steps == turns.n_steps == 200 + 100 + 100
    for n, alone in zip((2, 3), expected, strict=True):
        found = beside.watch(n, 100, learning_rate=1e-2, pruned_from=(4, 200))
        np.testing.assert_array_equal(found.variances, alone.variances)


def test_one_that_begins_with_a_wide_model_of_more_steps_is_another(tmp_path: Path) -> None:
    candidates = candidates_in(tmp_path)
    candidates.watch(4, 100, learning_rate=1e-2)
    early = candidates.watch(2, 50, learning_rate=1e-2, pruned_from=(4, 100))
    wide = candidates.watch(4, 400, learning_rate=1e-2)
    late = candidates.watch(2, 50, learning_rate=1e-2, pruned_from=(4, 400))
    np.testing.assert_allclose(np.sort(late.variances[0]), np.sort(wide.variances[-1])[:2], atol=0.1)
    assert early.variances[0].sum() > 1.5 * late.variances[0].sum()
    again = candidates.watch(2, 50, learning_rate=1e-2, pruned_from=(4, 100))
    np.testing.assert_array_equal(again.variances, early.variances)


def test_a_search_that_is_repeated_finds_its_narrow_models_though_the_wide_one_went_on(
    tmp_path: Path,
) -> None:
    candidates = candidates_in(tmp_path)
    candidates.watch(4, 100, learning_rate=1e-2)
    expected = candidates.watch(2, 50, learning_rate=1e-2, pruned_from=(4, 100))
    for steps in (200, 300, 400):  # as where it has one latent more than the answer, and decides
        candidates.watch(4, steps, learning_rate=1e-2)
    again = candidates_in(tmp_path)
    assert again.has_gone_beyond(4, 100, learning_rate=1e-2)
    assert again.nearest_steps(4, 100, learning_rate=1e-2) == 100
    found = again.watch(2, 50, learning_rate=1e-2, pruned_from=(4, 100))
    np.testing.assert_array_equal(found.variances, expected.variances)


def test_a_wide_model_that_is_no_longer_as_it_was_is_taken_as_it_is(tmp_path: Path) -> None:
    candidates = candidates_in(tmp_path)
    candidates.watch(4, 400, learning_rate=1e-2)
    later = candidates_in(tmp_path)  # another search, of fewer steps
    later.watch(4, 100, learning_rate=1e-2)
    assert later.nearest_steps(4, 100, learning_rate=1e-2) == 400
    assert later.nearest_steps(4, 400, learning_rate=1e-2) == 400
    assert later.nearest_steps(3, 100, learning_rate=1e-2) == 100  # which has not begun
    curves = later.watch(2, 50, learning_rate=1e-2, pruned_from=(4, 100))
    expected = candidates.watch(2, 50, learning_rate=1e-2, pruned_from=(4, 400))
    np.testing.assert_array_equal(curves.variances, expected.variances)


@pytest.mark.parametrize(
    ("size", "cores", "threads", "gains"),
    [(32, 2, None, True), (32, 1, None, False), (32, 2, 2, False), (0, 2, None, False)],
)
def test_nets_with_enough_to_compute_gain_by_company_where_there_are_cores(
    size: int, cores: int, threads: int | None, gains: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in ("sizing.trained", "training.session"):
        monkeypatch.setattr(
            importlib.import_module(f"polariscope.{module}"), "available_cores", lambda: cores
        )
    data = ps.load_dataset("sprites", image_size=size) if size else ps.load_dataset("gaussian", n_samples=100)
    assert TrainedCandidates(data, tmp_path, 0, {"threads": threads}).benefits_from_parallel == gains


def test_it_is_never_taken_for_a_model_that_was_trained_afresh(tmp_path: Path) -> None:
    candidates = candidates_in(tmp_path / "search" / "seed-0")
    candidates.watch(4, 100, learning_rate=1e-2)
    candidates.watch(2, 100, learning_rate=1e-2, pruned_from=(4, 100))
    # A model that began with latents of a wider one is not among those that were trained from scratch.
    names = [[run.path.name[:5] for run in candidates.folder.models()]]
    candidates.watch(2, 50, learning_rate=1e-2)
    names.append([run.path.name[:5] for run in candidates.folder.models()])
    assert names == [["n-004"], ["n-002", "n-004"]]


def test_models_have_the_threads_of_the_rule_of_training_or_those_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = ps.load_dataset("sprites", image_size=64)
    for cores, expected in ((1, 1), (2, 2), (8, 6)):
        monkeypatch.setattr("polariscope.training.session.available_cores", lambda cores=cores: cores)
        assert TrainedCandidates(images, tmp_path / f"{cores}", 0, {"net": "conv"}).threads == expected
        assert candidates_in(tmp_path / f"table-{cores}").threads == 1
    asked = TrainedCandidates(images, tmp_path / "asked", 0, {"net": "conv", "threads": 5})
    assert asked.threads == 5


def test_models_of_a_search_that_goes_on_have_the_threads_of_those_before(tmp_path: Path) -> None:
    data = ps.load_dataset("gaussian", eigenvalues=EIGENVALUES, n_samples=500)
    TrainedCandidates(data, tmp_path, 0, {**RECIPE, "threads": 2}).watch(4, 25, learning_rate=1e-2)
    again = TrainedCandidates(data, tmp_path, 0, RECIPE)
    again.watch(2, 25, learning_rate=1e-2)
    recorded = [run.settings["environment"]["threads"] for run in again.folder.models()]
    assert recorded == [2, 2]
    assert TrainedCandidates(data, tmp_path, 0, {**RECIPE, "threads": 1}).threads == 1


def test_features_that_do_not_vary_are_no_directions_to_ask_for(tmp_path: Path) -> None:
    table = np.random.default_rng(0).standard_normal((500, 6)).astype(np.float32)
    table[:, 4] = 0.3
    table[:-1, 5] = 0.0  # one row of the last varies
    assert TrainedCandidates(ps.from_arrays(table), tmp_path / "table", 0).max_latents == 4
    assert TrainedCandidates(ps.from_arrays(table[:3]), tmp_path / "rows", 0).max_latents == 2


def test_curves_have_the_loss_on_held_out_observations_where_it_was_measured(tmp_path: Path) -> None:
    candidates = candidates_in(tmp_path)
    candidates.watch(2, 100, objective="beta", beta=4.0)
    curves = candidates.watch(2, 200, objective="beta", beta=4.0)
    assert [step for step, _, _ in curves.held_out] == [100, 200]
    assert curves.held_out[-1][1] == candidates.losses(2, 200, objective="beta", beta=4.0).total
    assert curves.held_out[-1][1] < curves.held_out[0][1]
    assert curves.held_out[-1][2] == pytest.approx(
        curves.held_out[-1][1], rel=0.2
    )  # in training, much the same


def test_a_folder_of_an_earlier_version_is_resumed_though_it_stored_numbers_as_text(
    tmp_path: Path,
) -> None:
    """The command line of 0.2.0 stored options of models as they were typed."""
    data = ps.load_dataset("gaussian", eigenvalues=EIGENVALUES, n_samples=500)
    typed = {**RECIPE, "objective": "beta", "objective_beta": "2"}
    TrainedCandidates(data, tmp_path, 0, typed)
    TrainedCandidates(data, tmp_path, 0, {**typed, "objective_beta": 2.0})
    for other in ({"objective_beta": 3.0}, {"batch_size": 5}):
        with pytest.raises(InputError, match="models of other data or other settings"):
            TrainedCandidates(data, tmp_path, 0, {**typed, **other})


@pytest.mark.parametrize(
    "file", ["settings.json", "log.jsonl", "checkpoints/step-50/state.safetensors", "gone"]
)
def test_a_damaged_model_of_a_search_is_trained_again_and_the_others_are_kept(
    tmp_path: Path, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    candidates = candidates_in(tmp_path)
    expected = [candidates.watch(n, 50, learning_rate=1e-2).variances for n in (2, 3)]
    damaged, whole = (tmp_path / f"n-00{n}-learning_rate-0.01" for n in (2, 3))
    before = (whole / "model.safetensors").stat().st_mtime_ns
    if file == "gone":
        (damaged / "settings.json").unlink()
    else:
        (damaged / file).write_bytes(b"{}")
    again = candidates_in(tmp_path)
    assert "The run is trained again; the old files are in" in caplog.text
    for n, variances in zip((2, 3), expected, strict=True):
        np.testing.assert_array_equal(again.watch(n, 50, learning_rate=1e-2).variances, variances)
    assert (whole / "model.safetensors").stat().st_mtime_ns == before
    assert (damaged / ".damaged-1" / "log.jsonl").exists()
