"""Curves over the number of latents: against the closed form of linear VAEs, kept, resumed and refused."""

from __future__ import annotations

import csv
import io
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polariscope as ps
from long_training import unchecked
from polariscope.analysis.theory import linear_vae
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.seeds import generator
from polariscope.numerics.intervals import t_interval
from polariscope.sizing.candidates import Losses
from polariscope.sizing.curve import read_curve
from polariscope.sizing.curve_point import measure_point
from polariscope.sizing.curve_result import CurvePoint, SizeCurve
from polariscope.sizing.result import Size
from polariscope.storage.search_folder import SearchFolder
from polariscope.testing.linear_candidates import LinearCandidates

EIGENVALUES = np.array([60.0, 50.0, 2.0, 1e-4, 1e-4])
RECIPE: dict[str, Any] = {
    **{"net": "linear", "likelihood": "gaussian", "variance": 1.0, "keep_units": True},
    **{"learning_rate": 0.04, "threads": 1},
}
FIXED: dict[str, Any] = {"seeds": 2, "steps": 1000, "methods": ("id",), **RECIPE}


def rows(n_samples: int = 600) -> np.ndarray:
    """λ = 9, 4 and almost nothing."""
    draw = generator(0, "curve")
    return (draw.standard_normal((n_samples, 4)) * np.array([3.0, 2.0, 0.01, 0.01])).astype(np.float32)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_a_point_has_the_numbers_of_the_closed_form(n: int) -> None:
    """σ² = min(1, 1/λ), Var[μ] = 1 − σ², KL = ½ log max(1, λ); λ = 2 gives σ² = ½, which is neither."""
    exact = linear_vae(EIGENVALUES, n)
    point = measure_point(LinearCandidates(EIGENVALUES, n_samples=2000), n, 1000)
    assert point.loss == pytest.approx(exact.loss)
    assert point.rate == pytest.approx(exact.rate)
    assert point.loss == pytest.approx(point.reconstruction + point.rate)
    assert point.trace == pytest.approx(np.minimum(1, 1 / EIGENVALUES)[:n].sum() + max(0, n - 5))
    assert (point.active, point.mixed, point.passive) == (min(n, 2), int(n > 2), max(0, n - 3))
    # Variances of 2,000 normal samples have a standard error of √(2/2,000) = 0.032 each; four of them.
    assert point.trace_mean == pytest.approx(exact.mean_variances.sum(), abs=4 * 0.0316 * np.sqrt(n))
    assert point.trace_sampled == pytest.approx(n, abs=4 * 0.0316 * np.sqrt(n))
    # μ has as many directions as latents are in use, z has all of them; 12 % as the estimator declares, and 5 % low.
    assert point.dimension_mean == pytest.approx(min(n, 3), rel=0.17)
    assert point.dimension_sampled == pytest.approx(n, rel=0.17)


def test_what_a_deterministic_encoder_has_not_is_left_out() -> None:
    class Deterministic(LinearCandidates):
        def losses(self, n_latents: int, steps: int, **changes: Any) -> Losses:
            return Losses(1.0, 1.0, None)

    point = measure_point(Deterministic(EIGENVALUES), 3, 1000)
    absent = ("rate", "trace_sampled", "trace", "dimension_sampled", "active", "mixed", "passive")
    assert all(getattr(point, name) is None for name in absent)
    assert point.trace_mean > 0


def point(n: int, seed: int, **cells: Any) -> CurvePoint:
    empty = dict.fromkeys(
        (
            "rate",
            "probe",
            "trace_sampled",
            "trace",
            "dimension_mean",
            "dimension_sampled",
            "active",
            "mixed",
            "passive",
        )
    )
    return CurvePoint(
        n, seed, 400, **{"loss": 1.0, "reconstruction": 1.0, "trace_mean": 1.0, **empty, **cells}
    )


def curve(*points: CurvePoint, answers: tuple[Size, ...] = ()) -> SizeCurve:
    return SizeCurve(points, answers, "vae", 400, 5.0, 100)


def test_bands_are_means_over_seeds_with_intervals_by_student() -> None:
    values = {(2, 0): 3.0, (2, 1): 5.0, (2, 2): 10.0, (4, 0): 1.0}
    found = curve(*(point(n, seed, rate=value) for (n, seed), value in values.items()), point(4, 1))
    two, four = found.bands("rate")
    assert (two.n_latents, two.n, two.mean, two.sd) == (2, 3, 6.0, pytest.approx(np.sqrt(13)))
    assert (two.low, two.high) == t_interval(np.array([3.0, 5.0, 10.0]), bounds=(0, np.inf))
    assert two.low == 0  # a rate is not negative
    assert (four.n, four.mean, four.sd, four.low, four.high) == (1, 1.0, None, None, None)
    assert found.bands("probe") == []
    assert found.quantities == ("loss", "reconstruction", "rate", "trace_mean")
    with pytest.raises(InputError, match=r"quantity must be one of loss, .* got 'kl'"):
        found.bands("kl")


def test_the_tables_have_every_number_that_is_drawn_and_every_model() -> None:
    answers = (Size(3, (2, 4), "fondue", per_seed=(3, 3)), Size(None, None, "elbow", notes=("no knee.",)))
    found = curve(point(2, 0, rate=1.5), point(2, 1, rate=2.5), point(3, 0, rate=4.0), answers=answers)
    drawn = list(csv.DictReader(io.StringIO(found.to_csv())))
    rate = [row for row in drawn if row["quantity"] == "rate"]
    assert [(row["n_latents"], row["mean"]) for row in rate] == [("2", "2.0"), ("3", "4.0")]
    assert [row["mean"] for row in drawn if row["quantity"] == "answer of fondue"] == ["3"]
    assert [row["mean"] for row in drawn if row["quantity"] == "answer of elbow"] == [""]
    models = list(csv.DictReader(io.StringIO(found.models_csv())))
    assert [(row["n_latents"], row["seed"], row["rate"], row["active"]) for row in models] == [
        ("2", "0", "1.5", ""),
        ("2", "1", "2.5", ""),
        ("3", "0", "4.0", ""),
    ]
    text = str(found)
    assert "3 models of 400 gradient steps each (5 passes over the training data)" in text
    assert "fondue: 3 latents (2–4)." in text
    assert "elbow: no answer." in text
    assert SizeCurve.from_dict(found.to_dict()) == found


@pytest.fixture(scope="module")
def curved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SizeCurve]:
    """One set of curves that several tests look at, and its folder."""
    folder = tmp_path_factory.mktemp("curved") / "c"
    with unchecked():
        return folder, ps.size_curve(rows(), (1, 2, 3), **FIXED, out=folder)


def test_trained_models_are_those_of_the_theory(curved: Any) -> None:
    """λ = 9 and 4 with γ = 1: Σ E[σ²] is 1/9, 1/9 + 1/4 and, with a third latent that is passive, 1 more."""
    found = curved[1]
    assert found.n_latents == (1, 2, 3)
    assert found.n_seeds == 2
    data = rows()
    ratios = 1 / np.linalg.eigvalsh(np.cov(data.T, ddof=0))[::-1][:2]
    expected = np.array([ratios[0], ratios.sum(), ratios.sum() + 1])
    traces = [band.mean for band in found.bands("trace")]
    # Adam's noise takes some of a passive latent's 1 away, and leaves active ones a little noisy.
    np.testing.assert_allclose(traces, expected, atol=0.1)
    passive = [band.mean for band in found.bands("passive")]
    assert passive[:2] == [0, 0]
    assert passive[2] in (0.5, 1)
    (answer,) = found.answers
    assert answer.method == "id"
    assert answer.value == 2
    assert len(answer.per_seed) == 2
    for one in found.points:
        # One draw of z; 600 samples: three standard errors of Σ σ² ε² + 2 Σ μ σ ε.
        assert one.trace_sampled - one.trace_mean == pytest.approx(one.trace, abs=0.35)
        assert one.loss == pytest.approx(one.reconstruction + one.rate)
    assert found.notes == ("Probe accuracy is left out: the data have no known factors.",)


def test_everything_is_kept_and_nothing_is_trained_twice(curved: Any) -> None:
    folder, found = curved
    assert read_curve(folder) == found
    assert (folder / "curve.csv").read_text() == found.to_csv()
    assert (folder / "curve-models.csv").read_text() == found.models_csv()
    told: list[Any] = []
    listen = lambda *line: told.append(line)  # noqa: E731
    again = ps.size_curve(rows(), (1, 2, 3), **FIXED, out=folder, progress=listen)
    assert again == found
    assert told == []


@unchecked()
def test_an_interrupted_curve_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    options = {"seeds": 2, "steps": 400, "methods": (), **RECIPE}
    whole = ps.size_curve(rows(), (1, 3), out=tmp_path / "whole", **options)
    steps = itertools.count()

    def stop(seed: int, n: int, step: int, trace: float) -> None:
        if next(steps) == 23:  # in the middle of the second model
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ps.size_curve(rows(), (1, 3), out=tmp_path / "parts", progress=stop, **options)
    kept = SearchFolder(tmp_path / "parts").seed(0).points()
    assert [key.partition(",")[0] for key in kept] == ["1 latents"]
    told: list[int] = []
    found = ps.size_curve(
        rows(), (1, 3), out=tmp_path / "parts", progress=lambda seed, n, *_: told.append((seed, n)), **options
    )
    assert found == whole
    assert (0, 1) not in told


@unchecked()
def test_models_of_a_search_in_the_same_folder_are_those_of_the_curves(tmp_path: Path) -> None:
    sized = ps.size(rows(), "elbow", steps=400, cap=6, out=tmp_path, **RECIPE)
    told: list[Any] = []
    found = ps.size_curve(
        rows(),
        (2, 3, 6),
        seeds=1,
        steps=400,
        methods=(),
        out=tmp_path,
        progress=lambda *line: told.append(line),
        **RECIPE,
    )
    assert told == []
    losses = {trial.n_latents: trial.statistic for trial in sized.trials}
    assert [one.reconstruction for one in found.points] == [losses[n] for n in (2, 3, 6)]


@unchecked()
def test_models_that_went_on_are_trained_again_beside_them(tmp_path: Path) -> None:
    """Of the same number of steps a model is there; of fewer it has to be trained again, under another name."""
    options = {"seeds": 1, "methods": (), **RECIPE}
    longer = ps.size_curve(rows(), (2,), out=tmp_path, steps=800, **options)
    told: list[int] = []
    shorter = ps.size_curve(
        rows(), (2,), out=tmp_path, steps=400, progress=lambda *line: told.append(line[2]), **options
    )
    assert told[-1] == 400
    assert shorter.points[0].loss != longer.points[0].loss
    fresh = ps.size_curve(rows(), (2,), steps=400, **options)
    assert shorter.points == fresh.points
    more = ps.size_curve(rows(), (2,), out=tmp_path, steps=1200, **options)
    assert more.points[0].steps == 1200
    names = sorted(model.path.name for model in SearchFolder(tmp_path).seed(0).models())
    assert names == ["n-002-checkpoint_every-400-learning_rate-0.04", "n-002-learning_rate-0.04"]


@unchecked()
def test_autoencoders_have_curves_without_what_is_sampled_and_the_answer_of_vaes(tmp_path: Path) -> None:
    factors = (np.arange(600) // 300).astype(
        np.int64
    )  # sorted: the probe must not be fitted on the first alone
    data = ps.from_arrays(rows() + np.float32(6) * factors[:, None].astype(np.float32), factors)
    found = ps.size_curve(data, (1, 2), objective="ae", seeds=1, steps=400, out=tmp_path, cap=8, **RECIPE)
    assert found.objective == "ae"
    assert found.quantities == ("loss", "reconstruction", "probe", "trace_mean", "dimension_mean")
    assert all(one.probe > 0.9 for one in found.points)
    assert found.points[1].reconstruction < found.points[0].reconstruction
    assert found.answers[0].value is not None
    assert any("the encoder is deterministic" in note for note in found.notes)
    assert any(
        "fondue requires posterior variances, so its answer is for the VAE" in note for note in found.notes
    )
    assert SearchFolder(tmp_path / "vae").seeds()


@pytest.mark.parametrize(
    ("n_latents", "options", "message"),
    [
        ((), {}, "n_latents must be integers from 1, as in"),
        ((0, 3), {}, r"n_latents must be integers from 1, .* got \(0, 3\)"),
        ((2, True), {}, "n_latents must be integers from 1"),
        ((2.5,), {}, "n_latents must be integers from 1"),
        ((3, 2), {}, r"n_latents must be in ascending order, without repetition, got \(3, 2\)"),
        ((2, 2), {}, "n_latents must be in ascending order, without repetition"),
        ((2, 40), {"cap": 20}, "n_latents must be at most cap, got 40 and 20; raise the cap"),
        (
            (2, 4),
            {"likelihood": "gaussian"},
            "n_latents must be at most 3: γ is learned, and with more latents it cannot be estimated from 4 features",
        ),
        ((2,), {"seeds": 0}, "seeds must be an integer from 1, got 0"),
        ((2,), {"steps": 100}, "steps must be at least 400"),
        ((2,), {"steps": 500, "epochs": 2}, "use one of them"),
        ((2,), {"methods": ("fondu",)}, "Did you mean 'fondue'"),
        ((2,), {"methods": ("probe-elbow",)}, "method 'probe-elbow' requires data with known factors"),
        ((2,), {"methods": (), "threshold": 2.0}, "threshold is not used by curves without a method"),
        ((2,), {"methods": ("id",), "n_init": 3}, "n_init is not used by the methods id"),
        ((2,), {"objective": "classifier"}, "needs labels|does not train a decoder|factor"),
        ((2,), {"part": "tests"}, "did you mean 'test'"),
        ((2,), {"schedule": "cosine"}, "leave schedule out"),
        ((2,), {"device": "gpu"}, "device must be auto"),
        ((2,), {"bta": 2}, "no option named 'bta'"),
    ],
)
@pytest.mark.usefixtures("unannotated")
def test_impossible_calls_are_refused_before_anything_is_trained(
    n_latents: Any, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    given = {"net": "linear", "variance": 1.0, **options}
    if "likelihood" in options or "device" in options or options.get("objective") == "classifier":
        given.pop("variance")
    if "device" in options:
        n_latents = (1,)
    with pytest.raises(InputError, match=message):
        ps.size_curve(rows(50), n_latents, out=tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


@unchecked()
def test_a_method_without_an_answer_is_shown_as_such() -> None:
    """Two latents are in use, so a search up to 2 finds no model that has too many."""
    found = ps.size_curve(rows(), (1,), seeds=1, steps=400, cap=2, **RECIPE)
    (answer,) = found.answers
    assert answer.value is None
    assert "even 2 latents have no surplus" in answer.notes[0]
    assert "fondue: no answer." in str(found)


def test_a_folder_without_curves_is_named(tmp_path: Path) -> None:
    with pytest.raises(PolariscopeError, match=r"has no curve\.json; measure the curves first"):
        read_curve(tmp_path)
