"""The course of a run: its numbers are those of the diagnosis, and its shares those of the definition."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math

import numpy as np
import pytest

from polariscope.analysis.course import (
    Course,
    LayerCourse,
    LayerSimilarity,
    Snapshot,
    snapshot,
    thinned,
)
from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.regime import polarised_until_the_end
from polariscope.analysis.representation import Representation, draw_sampled
from polariscope.core.errors import InputError


def codes(seed: int, noise: float = 0.01) -> Representation:
    """Four latents: two active ones, one passive whose mean follows the first, one in between."""
    draw = np.random.default_rng(seed)
    active = draw.normal(size=(800, 2))
    mean = np.column_stack([active, 0.01 * (active[:, 0] + 0.3 * draw.normal(size=800)), active[:, 1] ** 2])
    variance = np.tile([noise, 0.02, 1.0, 0.4], (800, 1))
    return Representation(mean, variance, draw_sampled(mean, variance, seed))


@pytest.fixture(scope="module")
def course() -> Course:
    snapshots = tuple(snapshot(codes(step), step) for step in (10, 20, 30))
    return Course("run", snapshots, latent=0, n_samples=800, seed=0, alpha=0.1)


def test_a_snapshot_has_the_numbers_of_the_diagnosis() -> None:
    found, regime = snapshot(codes(0), 7), diagnose(codes(0), n_bootstrap=1)
    assert found.step == 7
    assert list(found.types) == regime.types
    assert found.polarisation == regime.polarisation
    for name in ("kl", "mean_of_variance", "std_of_mean"):
        own = {"kl": found.kl, "mean_of_variance": found.variance, "std_of_mean": found.std}[name]
        np.testing.assert_array_equal(own, [getattr(latent, name) for latent in regime.latents])
    for own, structure in ((found.mean, regime.mean), (found.sampled, regime.sampled)):
        assert own.total_correlation == structure.total_correlation
        assert own.averaged_mutual_information == structure.averaged_mutual_information


def test_a_snapshot_comes_back_from_json_in_every_bit() -> None:
    before = Course("run", (snapshot(codes(0), 7),), latent=1, n_samples=800, seed=0, alpha=0.1)
    after = Course.from_dict(json.loads(json.dumps(before.to_dict())))
    assert after.to_dict() == before.to_dict()
    np.testing.assert_array_equal(after.snapshots[0].correlation, before.snapshots[0].correlation)


@pytest.mark.parametrize(
    ("deltas", "share", "at_most", "since"),
    [
        ([0.01, 0.01, 0.01, 0.01], 0.75, 1.0, 10),
        ([0.2, 0.01, 0.01, 0.01], 0.5, 0.75, 20),
        ([0.01, 0.2, 0.01, 0.01], 0.25, 0.5, 30),
        ([0.01, 0.01, 0.01, 0.2], 0.0, 0.0, None),
        ([0.01, 0.01, None, 0.01], 0.0, 0.25, 40),  # not defined is not below
        ([0.2, 0.03, 0.01, 0.01], 0.25, 0.5, 30),  # 3 % itself is not below 3 %
    ],
)
def test_the_share_of_the_training_that_is_polarised_to_the_end(
    deltas: list[float | None], share: float, at_most: float, since: int | None
) -> None:
    found = polarised_until_the_end([10, 20, 30, 40], deltas)
    assert (found.share, found.at_most, found.since) == (share, at_most, since)


def test_the_share_tends_to_the_true_one_as_steps_become_dense() -> None:
    """Δ(t) = exp(−t/100) falls below 0.03 at t = 100 log(1/0.03); looked at every step, to the step."""
    steps = list(range(1, 1001))
    found = polarised_until_the_end(steps, [math.exp(-t / 100) for t in steps])
    truth = 1 - 100 * math.log(1 / 0.03) / 1000
    assert found.share <= truth <= found.at_most
    assert found.at_most - found.share == pytest.approx(1 / 1000)


def test_no_steps_or_not_as_many_are_refused() -> None:
    with pytest.raises(InputError, match="have the same length, at least 1, got 2 and 1"):
        polarised_until_the_end([1, 2], [0.1])


def test_correlations_are_counted_by_steps_and_by_pairs() -> None:
    """Three steps of three latents: 0 with 1 in all, 0 with 2 in one, 0.2 itself is not large."""
    base = snapshot(codes(0), 1)
    tables = [
        [[1.0, -0.5, 0.2], [-0.5, 1.0, 0.0], [0.2, 0.0, 1.0]],
        [[1.0, 0.3, 0.21], [0.3, 1.0, 0.1], [0.21, 0.1, 1.0]],
        [[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ]
    three = {
        "types": ("active",) * 3,
        "kl": np.ones(3),
        "variance": np.ones(3),
        "std": np.ones(3),
    }
    snapshots = tuple(
        dataclasses.replace(base, step=step, correlation=np.array(table), **three)
        for step, table in enumerate(tables, start=1)
    )
    found = Course("run", snapshots, latent=2, n_samples=800, seed=0, alpha=0.1)
    assert found.correlated_steps.tolist() == [3, 3, 1]
    assert found.correlated_pairs.tolist() == [4, 3, 1]
    assert found.correlations()[:, 0].tolist() == [0.2, 0.21, 0.0]
    assert found.correlations(0)[:, 1].tolist() == [-0.5, 0.3, 0.9]
    with pytest.raises(InputError, match="latent must be a number from 0 to 2, got 3"):
        found.correlations(3)


def test_the_passive_mean_that_follows_an_active_one_is_correlated_at_every_step(course: Course) -> None:
    assert course.types == ("active", "active", "passive", "mixed")
    assert course.correlated_steps[2] == 3
    expected = 1 / math.sqrt(1 + 0.3**2)
    assert course.correlations()[:, 2] == pytest.approx(
        [expected] * 3, abs=0.02
    )  # s.e. (1 − r²)/√800 = 0.003
    assert {kind: counts.tolist() for kind, counts in course.counts.items()} == {
        "active": [2, 2, 2],
        "mixed": [1, 1, 1],
        "passive": [1, 1, 1],
    }


def test_the_table_has_a_row_for_each_step_and_empty_cells_for_what_is_not_defined(course: Course) -> None:
    layers = LayerCourse(
        names=("input", "mean"),
        n_samples=50,
        k=20,
        dimension=np.array([[4.0, np.nan]] * 3),
        low=np.array([[3.0, np.nan]] * 3),
        high=np.array([[5.0, np.nan]] * 3),
        similarities=(LayerSimilarity("itself at step 30", "cka", "CKA", np.array([[1.0, 0.5]] * 3)),),
    )
    followed = dataclasses.replace(course, layers=layers)
    rows = list(csv.DictReader(io.StringIO(followed.to_csv())))
    assert [row["step"] for row in rows] == ["10", "20", "30"]
    first, one = rows[0], course.snapshots[0]
    assert float(first["kl"]) == pytest.approx(one.kl.sum(), rel=1e-15)
    assert float(first["trace"]) == pytest.approx(0.01 + 0.02 + 1.0 + 0.4)
    assert float(first["delta_kl"]) == one.polarisation.delta
    assert float(first["tc_sampled"]) == one.sampled.total_correlation
    assert first["type.2"] == "passive"
    assert int(first["correlated.2"]) == int(course.is_large[0, 2].sum())
    assert float(first["r.0.2"]) == one.correlation[0, 2]
    assert (first["dimension.input"], first["dimension.mean"]) == ("4.0", "")
    assert first["cka(itself at step 30).mean"] == "0.5"
    back = Course.from_dict(json.loads(json.dumps(followed.to_dict())))
    assert back.to_csv() == followed.to_csv()
    text = str(followed)
    assert "CKA with itself at step 30" in text
    assert "Intrinsic dimension (k = 20, 50 samples)" in text


def test_a_point_has_no_delta_and_an_infinite_kl() -> None:
    mean = np.random.default_rng(0).normal(size=(100, 2))
    found = snapshot(Representation(mean, np.zeros_like(mean), mean), 5)
    course = Course("ae", (found,), latent=0, n_samples=100, seed=0, alpha=0.1)
    assert np.isnan(course.delta_kl).all()
    assert course.polarised.since is None
    assert course.to_rows()[0]["delta_kl"] is None
    assert "–" in str(course)
    assert Course.from_dict(json.loads(json.dumps(course.to_dict()))).kl.tolist() == [[math.inf, math.inf]]


def test_some_of_many_steps_are_shown_from_the_first_to_the_last(course: Course) -> None:
    many = tuple(dataclasses.replace(course.snapshots[0], step=step) for step in range(1, 301))
    text = str(dataclasses.replace(course, snapshots=many))
    assert "300 steps from 1 to 300, 12 of them shown" in text
    assert thinned(300)[0] == 0
    assert thinned(300)[-1] == 299
    assert len(thinned(300)) == 12
    assert isinstance(many[0], Snapshot)
