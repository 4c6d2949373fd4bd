"""Sizing by name, on disk, with several seeds, and what is refused."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from annotated_types import Ge

import polariscope as ps
from forked import Forks
from long_training import unchecked
from polariscope.analysis.convergence import TrainingState
from polariscope.analysis.verdict import Verdict
from polariscope.cli import main
from polariscope.core.deprecation import DeprecatedWarning
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.progress import ProgressEvent
from polariscope.core.seeds import generator
from polariscope.sizing.bisection import CapError
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.checks import BOUNDS, make_goal, used_by
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import family
from polariscope.sizing.result import (
    DIFFERENT,
    FEWER_COORDINATES,
    MORE_COORDINATES,
    Basis,
    DataDimension,
    SeedResult,
    Size,
)
from polariscope.sizing.size import dimension_of, read_size
from polariscope.sizing.trained import TrainedCandidates
from polariscope.sizing.trial import Trial
from polariscope.storage.search_folder import SearchFolder, SeedFolder

LINEAR: dict[str, Any] = {
    **{"net": "linear", "likelihood": "gaussian", "variance": 0.05, "keep_units": True},
    **{"learning_rate": 0.01, "cap": 32, "threshold": 0.5},
}
"""A passive latent adds 1 and Adam's noise takes some of it away; half of that is a threshold far from both."""


def rows(n_samples: int = 600, n_active: int = 2, width: int = 5) -> np.ndarray:
    """A few directions of large variance in a few more of almost none."""
    draw = generator(0, "rows")
    scales = np.where(np.arange(width) < n_active, 2.0, 0.01)
    return (draw.standard_normal((n_samples, width)) * scales).astype(np.float32)


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Size, list[tuple[int, int, int, float]]]:
    """One search that several tests look at: its folder, its answer and its progress."""
    told: list[tuple[int, int, int, float]] = []
    folder = tmp_path_factory.mktemp("sized") / "s"
    with unchecked():
        return folder, ps.size(rows(), out=folder, progress=lambda *line: told.append(line), **LINEAR), told


def test_arrays_are_sized_and_the_answer_is_kept(sized: Any) -> None:
    folder, found, told = sized
    assert found.n_latents == 2
    assert read_size(folder) == found
    assert found.n_steps == sum({trial.n_latents: trial.steps for trial in found.trials}.values())
    assert told[0][0] == 0
    assert told[-1][3] > 0
    text = str(found)
    assert text.startswith(f"{found.state}\n2 latents (1–3) by fondue")
    assert "too many" in text


@pytest.mark.parametrize(
    ("eigenvalues", "answer"),
    [
        (
            [50, 40, 30, 20, 10, 0.1, 0.1, 0.1],
            5,
        ),  # g(5) = 0.23, g(6) = 1.23: the sixth is learned before it is pruned
        ([1.8, 1.5, 0.1], 1),  # g(1) = 0.56, g(2) = 1.22: no latent ever falls below one half
    ],
)
@unchecked()
def test_the_answer_of_trained_models_is_that_of_the_theory(eigenvalues: list[float], answer: int) -> None:
    traces = np.cumsum(np.minimum(1, 1 / np.array(eigenvalues)))
    assert (traces <= 1).sum() == answer
    data = ps.load_dataset("gaussian", eigenvalues=tuple(map(float, eigenvalues)))
    found = ps.size(data, steps=1500, variance=1.0, keep_units=True)
    assert found.n_latents == answer
    assert found.interval[0] <= answer <= found.interval[1]


def test_what_is_kept_of_the_question_can_be_asked_again(sized: Any) -> None:
    settings = json.loads((sized[0] / "size.json").read_text(encoding="utf-8"))["about"]["settings"]
    assert set(settings["goal"]) <= set(inspect.signature(ps.size).parameters)


@unchecked()
def test_ten_equal_directions_need_ten_latents() -> None:
    """By theory σ² = γ/λ = 1/16 for each of ten latents, and 1 for the eleventh: g(10) = 0.6, g(11) = 1.6."""
    draw = generator(0, "ten")
    basis = np.linalg.qr(draw.standard_normal((20, 20)))[0][:10]
    data = (4 * draw.standard_normal((2000, 10)) @ basis).astype(np.float32)
    assert ps.size(data, n_init=11, variance=1.0, keep_units=True).n_latents == 10


@pytest.mark.parametrize(("shape", "rates"), [((1, 8, 8), {"0.0002"}), ((64,), {"0.001"})])
def test_images_are_sized_with_smaller_steps_than_tables(
    tmp_path: Path, shape: tuple[int, ...], rates: set[str]
) -> None:
    data = generator(0, "pixels").random((300, *shape), dtype=np.float32)
    ps.size(data, steps=400, cap=20, net="mlp", out=tmp_path)
    assert {run.name.rpartition("-")[2] for run in (tmp_path / "seed-0").glob("n-*")} == rates


def test_nothing_is_trained_twice(sized: Any) -> None:
    folder, first, _ = sized
    steps: list[int] = []
    again = ps.size(rows(), out=folder, progress=lambda *line: steps.append(line[2]), **LINEAR)
    assert again == first
    assert steps == []


@unchecked()
def test_an_interrupted_search_goes_on_to_the_same_answer(tmp_path: Path, sized: Any) -> None:
    _, whole, _ = sized

    def stop(seed: int, n: int, step: int, trace: float) -> None:
        if n < 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ps.size(rows(), out=tmp_path / "s", progress=stop, **LINEAR)
    assert ps.size(rows(), out=tmp_path / "s", **LINEAR) == whole


def test_a_candidate_that_is_continued_is_the_one_trained_at_once(tmp_path: Path) -> None:
    recipe = {"net": "linear", "likelihood": "gaussian"}
    data = ps.from_arrays(rows())
    pieces = TrainedCandidates(data, tmp_path / "pieces", 0, recipe)
    for steps in (100, 150, 300):
        curves = pieces.watch(3, steps)
    whole = TrainedCandidates(data, tmp_path / "whole", 0, recipe).watch(3, 300)
    np.testing.assert_array_equal(curves.steps, whole.steps)
    np.testing.assert_array_equal(curves.variances, whole.variances)
    assert pieces.n_steps == 300


def test_threads_are_those_of_the_models_and_no_part_of_the_recipe(tmp_path: Path) -> None:
    recipe = {"net": "linear", "likelihood": "gaussian"}
    data = ps.from_arrays(rows())
    for steps, threads in ((1, None), (2, 2), (3, None)):  # the same folder is taken each time
        TrainedCandidates(data, tmp_path, 0, {**recipe, "threads": threads}).model(3, steps)
        (made,) = SeedFolder(tmp_path).models()
        assert made.settings["environment"]["threads"] == (1 if steps == 1 else 2)


def test_what_candidates_show_fits_together(tmp_path: Path) -> None:
    data = ps.from_arrays(rows())
    candidates = TrainedCandidates(data, tmp_path, 0, {"net": "linear", "likelihood": "gaussian"})
    representation = candidates.representation(3, 100)
    inputs, outputs = candidates.reconstructions(3, 100)
    assert representation.n_latents == 3
    assert inputs.shape == outputs.shape == (600, 5)
    np.testing.assert_array_equal(inputs, data.values(representation.indices))
    assert candidates.observations().shape == (600, 5)
    assert candidates.reconstruction_loss(3, 100) > 0
    assert candidates.steps_per_epoch == 540 // 64


@unchecked()
def test_several_seeds_are_several_searches() -> None:
    found = ps.size(rows(), "fondue-published", seeds=2, steps=400, n_init=3, **LINEAR)
    assert len(found.per_seed) == 2
    assert {trial.seed for trial in found.trials} == {0, 1}
    assert "2 seeds" in found.meaning_of_interval


@unchecked()
def test_the_largest_beta_is_found_by_training() -> None:
    # Two directions of variance 4 in the data, γ = 0.8: Σ = 2 βγ/4 ≤ ½ up to β = 1.25.
    data = rows()
    recipe = {**LINEAR, "variance": 0.8}
    del recipe["cap"]
    found = ps.size(data, target="beta", n_latents=2, steps=1200, **recipe)
    low, high = found.interval
    exact = 0.5 / (0.8 / data[:, :2].var(axis=0)).sum()
    assert found.target == "beta"
    assert low / 1.3 <= exact <= high * 1.3  # what is open after 1,200 steps counts where it stands
    assert found.answer.startswith("β = ")
    assert found.n_latents == 2


@unchecked()
def test_methods_are_compared_and_a_method_without_answer_says_why(tmp_path: Path) -> None:
    flat = generator(1, "flat").standard_normal((300, 3)).astype(np.float32) * 0.05
    stages: set[str] = set()

    def listen(event: ProgressEvent) -> None:
        stages.add(event.stage)

    recipe = {**LINEAR, "cap": 8}
    answers = ps.compare_sizes(flat, ["id", "elbow"], steps=400, out=tmp_path, progress=listen, **recipe)
    assert stages == {"elbow"}  # the other method trains no model
    kept = json.loads((tmp_path / "sizes.json").read_text())["content"]
    assert tuple(Size.from_dict(record) for record in kept) == answers
    assert [answer.method for answer in answers] == ["id", "elbow"]
    assert answers[0].value == 3
    assert answers[1].value is None
    assert answers[1].answer == "no answer"
    assert "no knee" in answers[1].notes[0]
    assert answers[1].n_steps == 400 * len(answers[1].trials)
    assert answers[1].threshold is None
    with pytest.raises(PolariscopeError, match="elbow has no answer"):
        _ = answers[1].n_latents


def test_a_damaged_answer_is_named(tmp_path: Path) -> None:
    ps.size(rows(), "id", out=tmp_path)
    file = tmp_path / "size.json"
    record = json.loads(file.read_text())
    record["content"]["value"] = 77
    file.write_text(json.dumps(record))
    with pytest.raises(PolariscopeError, match="does not match its hash"):
        read_size(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "fondu"}, r"Did you mean 'fondue'"),
        ({"threshold": float("nan")}, "threshold must be a finite number"),
        ({"threshold": -1.0}, "threshold must be positive"),
        ({"threshold": 600.0, "cap": 64}, "threshold must be below 64"),
        ({"seeds": 0}, "seeds must be an integer from 1, got 0"),
        ({"n_init": 40, "cap": 20}, "n_init must be at most cap, got 40 and 20"),
        ({"steps": 100}, "steps must be at least 400, got 100"),
        ({"cap": True}, "cap must be an integer, got True"),
        ({"steps": 500, "epochs": 2}, "use one of them"),
        (
            {"dimension": "mle"},
            "dimension is an option of method 'id', and the method is 'fondue'; leave it out",
        ),
        (
            {"method": "id", "dimension": {"k": 5}},
            r"dimension requires a 'name' if it is a mapping, got \['k'\]",
        ),
        ({"method": "id", "dimension": {"name": "mle", "kk": 5}}, "Did you mean 'k'"),
        ({"target": "gamma"}, "target must be 'latents' or 'beta'"),
        ({"target": "beta"}, "target='beta' requires n_latents"),
        ({"n_latents": 5}, "n_latents is the result of the search"),
        ({"target": "beta", "n_latents": 3, "beta": 2.0}, "beta is the result of the search"),
        (
            {"objective": "ae"},
            "deterministic encoder does not have; .* a method that does not: elbow, id, linear, probe-elbow",
        ),
        ({"method": "ard", "objective": "ae"}, "method 'ard' requires posterior variances"),
        ({"prior": "student-t"}, r"with the prior N\(0, I\)"),
        ({"methd": 3}, "no option named 'methd'"),
        ({"schedule": "cosine"}, "requires the number of steps in advance; leave schedule out"),
        ({"method": "id", "threshold": 2.0}, "threshold is not used by method 'id'; leave it out"),
        ({"method": "id", "steps": 500}, "steps is not used by method 'id'"),
        ({"method": "elbow", "n_init": 4}, "n_init is not used by method 'elbow'"),
        ({"epochs": 2}, "epochs is not used by method 'fondue'"),
        ({"target": "beta", "n_latents": 3, "cap": 20}, "cap is not used by target 'beta'"),
        (
            {"method": "elbow", "cap": 5},
            "cap must be at least 6 for an elbow, which requires 5 widths, got 5",
        ),
        ({"method": "id", "device": "gpu"}, "device must be auto, or one of cpu, cuda, mps"),
    ],
)
def test_impossible_calls_are_refused_before_anything_is_trained(
    options: dict[str, Any], message: str
) -> None:
    told: list[Any] = []
    with pytest.raises(InputError, match=message):
        ps.size(rows(), progress=lambda *line: told.append(line), **options)
    assert told == []


def test_models_without_a_decoder_are_refused() -> None:
    labelled = ps.from_arrays(rows(), np.arange(600) % 3)
    with pytest.raises(InputError, match="objective 'classifier' does not train a decoder"):
        ps.size(labelled, "elbow", objective="classifier")


@pytest.mark.parametrize("method", ["elbow", "probe-elbow"])
@unchecked()
def test_elbows_need_no_variances_and_size_autoencoders(method: str) -> None:
    """A linear autoencoder is PCA: more latents than the data's directions rebuild and predict no better."""
    draw = generator(0, "autoencoder")
    factors = draw.standard_normal((600, 3))
    basis = np.linalg.qr(draw.standard_normal((8, 8)))[0][:3]
    data = ps.from_arrays((2 * factors @ basis).astype(np.float32), factors)
    recipe = {**LINEAR, "objective": "ae", "steps": 400, "cap": 8}
    del recipe["threshold"]
    found = ps.size(data, method, **recipe)
    assert found.n_latents == 3
    below, at, above = (
        next(trial.statistic for trial in found.trials if trial.n_latents == n) for n in (2, 3, 4)
    )
    assert abs(below - at) > 10 * abs(at - above)


@unchecked()
def test_a_search_that_hits_its_cap_says_so_instead_of_answering() -> None:
    with pytest.raises(CapError, match="even 2 latents have no surplus, and cap is 2"):
        ps.size(rows(n_active=5), **{**LINEAR, "cap": 2, "steps": 1500})


@pytest.mark.parametrize("method", ["fondue", "id"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.full((100, 4), np.nan, dtype=np.float32), "NaN|finite"),
        (np.zeros((0, 4), dtype=np.float32), "empty|at least|samples|observation"),
    ],
)
def test_bad_data_are_refused(data: np.ndarray, message: str, method: str) -> None:
    with pytest.raises(InputError, match=message):
        ps.size(data, method, net="linear")


@pytest.mark.parametrize("method", ["fondue", "id"])
def test_constant_data_are_refused(method: str) -> None:
    with pytest.raises(InputError, match="data must vary"):
        ps.size(np.ones((100, 4), dtype=np.float32), method)


@pytest.mark.parametrize("data", [30 * rows(), rows() + 1e6])
def test_units_in_which_networks_diverge_are_refused(data: np.ndarray) -> None:
    with pytest.raises(
        InputError, match="in units in which values are near 1, got a column whose values are about"
    ):
        ps.size(data, keep_units=True)
    with pytest.raises(
        InputError, match="leave keep_units out, or rescale each column to mean 0 and standard deviation 1"
    ):
        ps.compare_sizes(data, ["id", "fondue"], keep_units=True)
    assert ps.size(data, "id").value in (2, 3, 4, 5)  # where nothing is trained, units do not matter


def test_a_table_is_standardised_or_scaled_before_it_is_sized(tmp_path: Path) -> None:
    data = 30 * rows()
    found = ps.size(data, "id", standardise=True, out=tmp_path / "size")
    assert found.value == ps.size(ps.apply_variants(data, "standardised"), "id").value
    settings = SearchFolder(tmp_path / "size").read_answer()[1]
    assert [each["name"] for each in settings["data"]["variants"]] == ["standardised"]
    both = ps.compare_sizes(data, ["id"], variants=["subset:n=200"], scale=True)
    assert both[0].value == ps.size(data, "id", variants=["subset:n=200"], scale=True).value


def test_a_folder_of_other_data_or_settings_is_refused(sized: Any) -> None:
    folder, _, _ = sized
    with pytest.raises(InputError, match="contains models of other data or other settings"):
        ps.size(rows(n_active=3), out=folder, **LINEAR)
    with pytest.raises(InputError, match="contains models of other data or other settings"):
        ps.size(rows(), out=folder, **{**LINEAR, "learning_rate": 0.02})


def test_every_method_is_listed_with_what_it_measures() -> None:
    assert {"fondue", "fondue-published", "elbow", "active-units", "ard", "id"} <= set(family)


WRONG_TYPES = """
import numpy as np, polariscope as ps
x = np.random.default_rng(0).normal(size=(100, 3))
for call in (
    lambda: ps.dimension["mle"](x, k=5.5),
    lambda: ps.dimension["mle"](x, k="automatic"),
    lambda: ps.size(x, learning_rate="a"),
    lambda: ps.size(x, learning_rate=-1.0),
    lambda: ps.size(x, ["id"]),
    lambda: ps.size(x, "id", seeds=np.int64(1), seed=0).value,
):
    try:
        print(call())
    except ps.InputError as error:
        print(error)
"""


def test_values_of_the_wrong_type_are_refused_in_words(forks: Forks) -> None:
    # In a process of its own: the type checker of the tests would be first to refuse them.
    done = forks.run(WRONG_TYPES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "k must be an integer number of neighbours, got 5.5.",
        "k must be an integer number of neighbours, got 'automatic'.",
        "option learning_rate of the search must be a number, above 0, or none, got 'a'.",
        "learning_rate must be positive, got -1.0 (the search).",
        "method must be one name, got ['id']; compare_sizes runs several.",
        "3",
    ]


def test_the_dimension_is_estimated_as_asked() -> None:
    """On a flat square of 2 dimensions in 5; the estimator's own answer, rounded."""
    x = np.zeros((400, 5), dtype=np.float32)
    x[:, :2] = generator(0, "square").random((400, 2))
    for name, options in (("mle", {"k": 10}), ("twonn", {})):
        expected = ps.dimension[name](x, seed=0, **options)
        found = ps.size(x, "id", dimension={"name": name, **options})
        assert found.value == expected.rounded
        assert found.interval == tuple(map(round, expected.interval))
    assert ps.size(x, "id", dimension="mle").value == ps.dimension["mle"](x).rounded


@pytest.mark.parametrize("name", list(BOUNDS))
def test_an_option_of_the_goal_is_an_argument_of_size_with_its_default_and_of_some_method(name: str) -> None:
    assert inspect.signature(ps.size).parameters[name].default == getattr(Goal, name)
    assert any(name in used_by(method) for method in family)


def guess(
    candidates: AbstractCandidates, goal: Goal, *, guess_number: Annotated[int, Ge(2)] = 7
) -> SeedResult:
    """Answers what it is told.

    :param guess_number: (default 7) the answer
    """
    return SeedResult(guess_number, (goal.cap, goal.cap))


@pytest.fixture
def guess_method() -> Iterator[None]:
    """A further method of sizing, with an option of its own."""
    traits = {"statistic": "nothing", "trains": False, "needs_variances": False, "threshold": None}
    family("guess", **traits, interval="nothing", uses=("cap",))(guess)
    yield
    del family._members["guess"], family._traits["guess"]


@pytest.mark.usefixtures("guess_method")
def test_an_option_of_a_new_method_needs_no_other_edit(capsys: pytest.CaptureFixture[str]) -> None:
    """It is taken and checked by the function, by the comparison and by the command line, and has a help text."""
    assert ps.size(rows(), "guess").value == 7
    assert ps.size(rows(), "guess", guess_number=4, cap=9).interval == (9, 9)
    with pytest.raises(InputError, match="guess_number must be at least 2, got 1"):
        ps.size(rows(), "guess", guess_number=1)
    with pytest.raises(
        InputError, match="guess_number is an option of method 'guess', and the method is 'id'"
    ):
        ps.size(rows(), "id", guess_number=4)
    with pytest.raises(InputError, match="steps is not used by method 'guess'"):
        ps.size(rows(), "guess", steps=500)
    both = ps.compare_sizes(rows(), ["guess", "id"], guess_number=5, dimension="mle")
    assert both[0].value == 5
    assert both[1].value == ps.dimension["mle"](rows()).rounded
    capsys.readouterr()
    assert main(["size", "--help-all"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "Options of method guess: --guess-number The answer [default: 7]" in words
    assert main(["size", "gaussian", "--method", "guess", "--guess-number", "3", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("3 latents")


def test_wrong_options_are_refused_also_by_methods_that_train_nothing():
    rows = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
    for wrong in ({"treshold": 1}, {"objective": "nonsense"}, {"beta": 4}, {"batch_size": -1}):
        with pytest.raises(InputError):
            ps.size(rows, "id", **wrong)
        with pytest.raises(InputError):
            ps.compare_sizes(rows, ["id"], **wrong)
    assert ps.size(rows, "id", objective="beta", beta=4).value is not None  # some others would use them


def fitted(n_latents: int, n_in_use: int) -> Verdict:
    """The verdict on a converged model that uses some of its latents."""
    training = TrainingState("converged", 2000)
    return Verdict(n_latents, tuple(range(n_in_use)), (n_in_use, n_in_use), training)


@pytest.mark.parametrize(
    ("answer", "n_in_use", "dimension", "differs"),
    [(7, 7, 4.2, True), (8, 8, 6.1, True), (7, 6, 7.3, True), (4, 4, 3.8, False), (4, 4, None, False)],
)
def test_the_sentence_about_different_numbers_follows_from_the_fields(
    answer: int, n_in_use: int, dimension: float | None, differs: bool
) -> None:
    interval = None if dimension is None else (dimension - 0.2, dimension + 0.2)
    about_data = DataDimension(dimension, interval, 500, "too few samples" if dimension is None else "")
    size = Size(answer, (answer, answer), "fondue", verdict=fitted(answer, n_in_use), dimension=about_data)
    assert size.differs is differs
    assert bool(size.about_differences) is differs
    assert (FEWER_COORDINATES in size.about_differences) is (
        dimension is not None and round(dimension) < answer
    )
    assert size.numbers == (
        ("answer", f"{answer} latents ({answer})"),
        ("in use in the fit", f"{n_in_use} of {answer}"),
        ("intrinsic dimension of the data", about_data.in_words),
    )
    assert str(size).startswith("Training has converged.\n")
    assert (DIFFERENT in str(size)) is differs
    assert Size.from_dict(size.to_dict()) == size
    assert not dataclasses.replace(size, target="beta").differs
    noisy = dataclasses.replace(size, dimension=DataDimension(9.0, (8.8, 9.2), 500))
    assert MORE_COORDINATES in noisy.about_differences
    unfitted = dataclasses.replace(size, verdict=None)
    assert unfitted.numbers[1] == (
        "in use in the fit",
        "not measured, because no model of this size was trained",
    )


def test_answers_of_earlier_versions_have_no_fit_and_no_dimension() -> None:
    stored = Size(3, (2, 4), "fondue").to_dict()
    for name in ("verdict", "dimension", "basis"):
        del stored[name]
    size = Size.from_dict(stored)
    assert (size.verdict, size.dimension, size.basis) == (None, None, Basis())
    assert size.numbers == (("answer", "3 latents (2–4)"),)


def test_the_fit_and_the_dimension_of_the_data_come_with_the_answer(sized: Any) -> None:
    folder, found, _ = sized
    assert found.verdict.n_latents == found.value == 2
    assert found.verdict.n_in_use == 2
    assert found.verdict.evidence == "decoder"
    (run,) = (folder / "seed-0").glob("from-*-n-002-*")
    assert found.verdict.training == ps.open_run(run).training()
    assert found.dimension.rounded == 2  # noise of a hundredth cannot be seen with 600 samples


def waves(n_samples: int) -> np.ndarray:
    """Waves with amplitude, frequency, phase and slope, at 30 times, with noise."""
    draw, times = generator(0, "waves"), np.linspace(0, 1, 30)
    low, high = np.array([[0.5, 1, 0, -1], [1.5, 2, np.pi, 1]])
    amplitude, frequency, phase, slope = draw.uniform(low, high, (n_samples, 4)).T[:, :, None]
    values = amplitude * np.sin(2 * np.pi * frequency * times + phase) + slope * times
    return (values + 0.05 * draw.standard_normal(values.shape)).astype(np.float32)


def bent(n_samples: int) -> np.ndarray:
    """A curved surface of six dimensions in eight directions of a table."""
    draw = generator(0, "bent")
    z = draw.uniform(-1, 1, (n_samples, 6))
    x = np.hstack([z, z[:, :1] ** 2, np.sin(2 * z[:, 1:2])]) @ draw.standard_normal((8, 20))
    return (x + 0.01 * draw.standard_normal(x.shape)).astype(np.float32)


@pytest.mark.parametrize(("rows", "n_coordinates"), [(waves(400), 4), (bent(800), 6)])
@unchecked()
def test_a_net_needs_more_latents_than_curved_data_have_coordinates(
    rows: np.ndarray, n_coordinates: int
) -> None:
    size = ps.size(rows, steps=900, threads=1)
    # So few samples lie near the edge in some coordinate: the estimate is up to one too small.
    assert size.dimension.rounded in (n_coordinates - 1, n_coordinates)
    assert size.n_latents > n_coordinates
    assert size.differs


def test_a_dimension_that_cannot_be_estimated_has_a_reason() -> None:
    found = dimension_of(np.repeat(np.eye(3), 20, axis=0), seed=0)
    assert found.value is None
    assert found.rounded is None
    assert found.in_words == f"not estimated: {found.problem}"
    assert found.problem


def test_the_answer_says_what_it_means_and_what_it_depends_on() -> None:
    trials = (Trial(3, 0, 0.4, "fits", 900), Trial(4, 0, 1.2, "undecided", 2500))
    size = Size(3, (3, 4), "fondue", threshold=1.0, per_seed=(3,), trials=trials)
    for part in (
        "uses 3 latents; with 4, about one",
        "up to 2,500 steps",
        "threshold (1)",
        "1 seed tried",
        "1 of 2 models is undecided",
    ):
        assert part in size.in_words
        assert part in str(size)
    forecast = dataclasses.replace(size, trials=(Trial(16, 0, 9.2, "too many", 500),))  # out of time
    assert forecast.in_words.startswith(
        "A model uses 3 latents, as wider models predict (none of this size was trained); a model with 4 was not"
    )
    assert Size(2.0, (1, 3), "fondue", target="beta", threshold=1.0).in_words == ""
    assert Size(7, (6, 8), "id", statistic="dimension").in_words == ""


@pytest.mark.parametrize(("net", "rate"), [("linear", 1e-2), ("mlp", 1e-3)])
def test_the_rate_is_that_of_the_net_unless_it_is_given(net: str, rate: float) -> None:
    data = ps.load_dataset("gaussian")
    assert make_goal({}, data, {"net": net}).careful_rate() == rate
    assert make_goal({"learning_rate": 5e-3}, data, {"net": net}).careful_rate() == 5e-3
    assert make_goal({}, ps.load_dataset("sprites", image_size=16), {}).careful_rate() == 2e-4


def test_the_function_of_0_2_for_stages_is_still_called() -> None:
    rows = generator(1, "flat").standard_normal((300, 3)).astype(np.float32)
    stages: list[str] = []
    with pytest.warns(DeprecatedWarning, match="begin is deprecated since 0.3"):
        ps.compare_sizes(rows, ["id", "linear"], begin=stages.append)
    assert stages == ["id", "linear"]
