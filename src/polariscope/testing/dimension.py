"""Contract of every estimator of intrinsic dimension."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np
import pytest

from polariscope.analysis.dimension import SHAPE_ONLY, Dimension, estimator
from polariscope.core.errors import InputError
from polariscope.core.options import options_of
from polariscope.numerics.neighbours import NeighbourTable, neighbours
from polariscope.testing.contract import AbstractContract
from polariscope.testing.manifolds import cube, gaussian, sphere, swiss_roll

N = 2000

KNOWN = {
    "sphere": (functools.partial(sphere, N, 4), 4),
    "cube": (functools.partial(cube, N, 3, 10), 3),
    "roll": (functools.partial(swiss_roll, N), 2),
    "gaussian": (functools.partial(gaussian, N, 5, 20), 5),
}


@functools.cache
def table(which: str) -> NeighbourTable:
    return neighbours(KNOWN[which][0](), k=100)


@functools.cache
def points() -> np.ndarray:
    return cube(250, 3, 6, seed=3)


def small(name: str) -> dict[str, Any]:
    """Return options that are suitable for 250 points."""
    return {"k": 30} if "k" in options_of(estimator[name]) else {}


TRANSFORMS = {
    "rotation": lambda x: x @ np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0],
    "scale": lambda x: 1234.5 * x,
    "shift": lambda x: x + np.arange(6.0) * 100,
    "permutation": lambda x: x[np.random.default_rng(0).permutation(len(x))][:, ::-1],
    "empty_column": lambda x: np.column_stack([x, np.full(len(x), 7.0)]),
    "duplicates": lambda x: np.concatenate([x, x[:50], x[:50]]),
    "stretch": lambda x: x * [1, 1, 10, 1, 0.1, 1],
}


class DimensionContract(AbstractContract):
    """Contract of every estimator of intrinsic dimension."""

    count_directions: ClassVar[Collection[str]] = ()
    """Names of members that count the directions of k neighbours, and so accept points that are all equally far
    apart."""

    @pytest.mark.parametrize("transform", TRANSFORMS)
    def test_it_changes_with_what_it_says_and_with_nothing_else(self, name: str, transform: str) -> None:
        traits = estimator.traits(name)
        assert traits["invariant_to"] | traits["varies_with"] == set(TRANSFORMS)
        assert traits["invariant_to"] <= SHAPE_ONLY
        before = estimator[name](points(), **small(name)).value
        after = estimator[name](TRANSFORMS[transform](points()), **small(name)).value
        if transform in traits["invariant_to"]:
            assert after == pytest.approx(before, rel=1e-9)
        else:
            assert abs(after / before - 1) > 1e-3

    @pytest.mark.parametrize("which", KNOWN)
    def test_its_error_on_known_manifolds_is_what_it_states(self, name: str, which: str) -> None:
        estimate = estimator[name](table(which))
        error = abs(estimate.value / KNOWN[which][1] - 1)
        assert error <= estimator.traits(name)["relative_error"]

    def test_a_little_noise_in_many_directions_does_not_hide_the_manifold(self, name: str) -> None:
        clean = np.pad(sphere(N, 4), ((0, 0), (0, 15)))
        # The 20th neighbour is at about 0.3; noise of norm 0.003 √20 = 0.013 is far below it, and below the second's.
        noisy = clean + 0.003 * np.random.default_rng(9).normal(size=clean.shape)
        estimate = estimator[name](noisy)
        assert abs(estimate.value / 4 - 1) <= estimator.traits(name)["relative_error"]

    def test_a_table_gives_what_its_samples_give(self, name: str) -> None:
        one = estimator[name](points(), **small(name))
        assert estimator[name](neighbours(points(), k=40), **small(name)) == one

    def test_the_result_has_the_number_its_interval_and_the_evidence(self, name: str) -> None:
        x = np.concatenate([points(), points()[:10]])
        estimate = estimator[name](np.column_stack([x, np.zeros((260, 2))]), **small(name))
        assert isinstance(estimate, Dimension)
        low, high = estimate.interval
        assert 0 < low <= estimate.value <= high < math.inf
        assert (estimate.estimator, estimate.level) == (name, 0.95)
        assert (estimate.n_points, estimate.n_duplicates, estimate.n_features, estimate.n_constant) == (
            250,
            10,
            8,
            2,
        )
        assert "10 of 260 samples were duplicates" in str(estimate)
        assert "2 of 8 features are constant" in str(estimate)
        assert str(estimate).startswith(
            f"{estimate.value:.2f} ({low:.2f}–{high:.2f}, 95% interval): {name}, "
        )
        stored = json.loads(json.dumps(estimate.to_dict(), allow_nan=False))
        assert Dimension.from_dict(stored) == estimate
        assert stored["value"] == estimate.value

    def test_a_lower_level_gives_a_narrower_interval_around_the_same_value(self, name: str) -> None:
        wide, narrow = (estimator[name](points(), level=level, **small(name)) for level in (0.99, 0.5))
        assert wide.value == narrow.value
        assert wide.interval[0] <= narrow.interval[0] <= narrow.interval[1] <= wide.interval[1]
        assert wide.interval != narrow.interval or wide.interval[0] == wide.interval[1]

    def test_the_seed_moves_the_interval_and_not_the_value(self, name: str) -> None:
        def run(seed: int) -> Dimension:
            x = swiss_roll(250)  # local estimates of lpca differ here, unlike on a flat manifold
            return estimator[name](x, seed=seed, **small(name))

        assert run(0) == run(0)
        assert run(0).value == run(1).value
        assert run(0).interval != run(1).interval

    @pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float32, bool])
    def test_numbers_of_any_kind_are_taken_as_they_are(self, name: str, dtype: type) -> None:
        rng = np.random.default_rng(0)
        x = rng.integers(2 if dtype is bool else 100, size=(250, 40))
        options = small(name)
        expected = estimator[name](x.astype(np.float64), **options)
        assert estimator[name](x.astype(dtype), **options).value == pytest.approx(expected.value, rel=1e-12)

    @pytest.mark.parametrize(
        ("x", "complaint"),
        [
            (np.arange(30.0), r"x must have two axes, \(sample, feature\), got shape \(30,\)"),
            (np.zeros((30, 2, 2)), "flatten images with"),
            (np.full((30, 2), "a"), "x must be an array of real numbers, got an array of <U1"),
            (np.ones((30, 2), dtype=complex), "real numbers"),
            ([[1, 2], [3]], "x must be an array of numbers, got list"),
            (np.ones((200, 3)), "x must vary, but its 200 samples are all equal"),
            (np.tile(np.eye(2), (100, 1)), r"require at least \d+ different samples, got 2 \(198 duplicates"),
            (np.random.default_rng(0).random((3, 4))[:1], "at least 3 samples"),
            (
                np.where(np.eye(20) == 1, np.nan, 1.0),
                "x must be finite, got 20 values that are not, the first in row 0",
            ),
            (np.array([[1.0], [np.inf], [2.0]]), "x must be finite"),
            (np.eye(5) * 1e200, "must lie between 1e-150 and 1e"),
        ],
    )
    def test_bad_samples_are_refused_in_words(self, name: str, x: Any, complaint: str) -> None:
        with pytest.raises(InputError, match=complaint):
            estimator[name](x)

    def test_too_few_neighbours_are_refused(self, name: str) -> None:
        least = estimator.traits(name)["least_k"]
        tiny = np.random.default_rng(0).random((least, 3)) if least >= 3 else np.eye(3)[:, :2]
        options = {"k": least} if "k" in options_of(estimator[name]) else {}
        if len(tiny) <= least:
            with pytest.raises(InputError, match="different samples"):
                estimator[name](tiny, **options)
        with pytest.raises(
            InputError, match=r"the table has 1 neighbours, but k = \d+; compute it with neighbours"
        ):
            estimator[name](neighbours(points(), k=1), **options)
        if options:
            with pytest.raises(InputError, match=f"k must be at least {least} neighbours"):
                estimator[name](points(), k=least - 1)

    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            ({"level": 1.0}, "level must lie between 0 and 1"),
            ({"n_bootstrap": 0}, "n_bootstrap must be at least 20"),
        ],
    )
    def test_impossible_options_of_the_interval_are_refused(
        self, name: str, options: dict, complaint: str
    ) -> None:
        with pytest.raises(InputError, match=complaint):
            estimator[name](points(), **small(name), **options)

    def test_points_that_are_all_equally_far_from_each_other_are_refused_or_counted_as_directions(
        self,
        name: str,
    ) -> None:
        corners = 0.3 * np.eye(40)
        options = {"k": 30} if "k" in options_of(estimator[name]) else {}
        if name in self.count_directions:
            assert estimator[name](corners, **options).value == pytest.approx(
                29
            )  # the maximum that 30 neighbours can show
        else:
            with pytest.raises(InputError, match="if x is a grid"):
                estimator[name](corners, **options)
