"""Contract of every similarity measure."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from polariscope.analysis.similarity import CHANGES, similarity
from polariscope.core.errors import InputError
from polariscope.core.options import options_of
from polariscope.core.references import keys_in
from polariscope.testing.contract import AbstractContract
from polariscope.testing.manifolds import random_rotation

# Sums of 40 × 40 products in float64; square roots lose half of the digits only in measures that use them.
ROUNDING = 1e-9


def pair(n: int = 40, p: int = 6, q: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return two representations that share two directions, in different units."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 2)) * [2.0, 1.0]
    x = np.hstack([shared, rng.normal(size=(n, p - 2))])
    y = np.hstack([shared @ random_rotation(2, seed), rng.normal(size=(n, q - 2))])
    return 3 * x + 1, 0.2 * y - 5


def changed(kind: str, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n, p = x.shape
    rng = np.random.default_rng(7)
    if kind == "sample_order":
        order = rng.permutation(n)
        return x[order], y[order]
    return {
        "rotation": lambda: x @ random_rotation(p, 1),
        "scale": lambda: 1e-3 * x,
        "shift": lambda: x + 10 * rng.normal(size=p),
        "linear_map": lambda: x @ (random_rotation(p, 2) * np.geomspace(1, 30, p)),
    }[kind](), y


class SimilarityContract(AbstractContract):
    """Contract of every similarity measure."""

    @pytest.fixture
    def measure(self, name: str) -> Callable[..., float]:
        return similarity[name]

    def test_it_is_documented_with_its_equation_and_reference(self, name: str) -> None:
        text = inspect.getdoc(similarity[name]) or ""
        assert ".. math::" in text
        assert keys_in(text)
        assert similarity.summary(name)
        assert all(not option.required for option in options_of(similarity[name]).values())

    def test_it_says_of_every_change_whether_it_matters(self, name: str) -> None:
        traits = similarity.traits(name)
        assert traits["invariant_to"] | traits["varies_with"] == set(CHANGES)
        assert not traits["invariant_to"] & traits["varies_with"]

    @pytest.mark.parametrize("shape", [(40, 6, 4), (40, 100, 4), (40, 100, 70)], ids=str)
    @pytest.mark.parametrize("kind", CHANGES)
    def test_what_it_declares_invariant_is_and_what_varies_does(
        self, name: str, kind: str, shape: tuple[int, int, int]
    ) -> None:
        x, y = pair(*shape)
        before, after = similarity[name](x, y), similarity[name](*changed(kind, x, y))
        if kind in similarity.traits(name)["invariant_to"]:
            assert after == pytest.approx(before, abs=ROUNDING)
        elif shape[1] < shape[0]:  # otherwise the first principal components contain everything
            assert abs(after - before) > 1e-3

    def test_it_is_symmetric_if_it_says_so(self, name: str, measure: Callable[..., float]) -> None:
        x, y = pair()
        difference = abs(measure(x, y) - measure(y, x))
        assert (difference < ROUNDING) == similarity.traits(name)["symmetric"]

    def test_a_copy_scores_the_upper_bound_and_others_lie_within(
        self, name: str, measure: Callable[..., float]
    ) -> None:
        low, high = similarity.traits(name)["bounds"]
        for seed in range(20):
            x, y = pair(n=14, seed=seed)
            assert low <= measure(x, y) <= high
            assert low <= measure(np.random.default_rng(seed).normal(size=(14, 30)), y) <= high
        x, _ = pair()
        assert measure(x, x) == pytest.approx(high, abs=ROUNDING)

    def test_a_noisier_copy_is_less_alike(self, measure: Callable[..., float]) -> None:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(200, 3))
        noise = rng.normal(size=(200, 3))
        scores = [measure(x, x + scale * noise) for scale in (0.0, 0.3, 1.0, 5.0)]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] - scores[-1] > 0.3

    @pytest.mark.parametrize("shape", [(30, 5, 3), (30, 80, 3), (30, 80, 60)], ids=str)
    def test_compressed_layers_give_the_same_score(
        self, name: str, measure: Callable[..., float], shape: tuple[int, int, int]
    ) -> None:
        x, y = pair(*shape)
        form = similarity.traits(name)["form"]
        one, other = form.compress(x), form.compress(y)
        direct = measure(x, y)
        assert form.score(one, other) == pytest.approx(direct, abs=1e-10)
        table = form.score_all([one, other, one])
        assert table.shape == (3, 3)
        np.testing.assert_allclose(table, table.T, atol=1e-12)
        assert table[0, 1] == pytest.approx(direct, abs=1e-10)
        assert table[0, 0] == pytest.approx(similarity.traits(name)["bounds"][1], abs=1e-10)
        rounded = form.score_all([layer.astype(form.stored_as) for layer in (one, other)])
        assert rounded[0, 1] == pytest.approx(direct, abs=1e-6)

    def test_activations_in_float32_lose_no_more_than_their_rounding(
        self, measure: Callable[..., float]
    ) -> None:
        x, y = pair(n=60)
        rounded = measure(x.astype(np.float32), y.astype(np.float32))
        assert rounded == pytest.approx(measure(x, y), abs=1e-5)

    def test_it_is_the_same_in_tiny_and_in_huge_units(self, measure: Callable[..., float]) -> None:
        x, y = pair()
        assert measure(1e-160 * x, 1e150 * y) == pytest.approx(measure(x, y), abs=ROUNDING)

    @pytest.mark.parametrize("shape", [(40, 6, 4), (40, 100, 70)], ids=str)
    @pytest.mark.parametrize(
        ("kind", "exponent"), [("f4", 127), ("f4", -140), ("f8", 1023), ("f8", -1060)], ids=str
    )
    def test_near_the_ends_of_its_type_it_is_the_same(
        self, name: str, measure: Callable[..., float], kind: str, exponent: int, shape: tuple[int, int, int]
    ) -> None:
        """Check from a few digits above 0 up to half of the largest number, where sums and ranges overflow.

        Numbers near 0 lose digits, so the expected score is that of the rounded numbers, scaled back exactly.
        """
        x, y = pair(*shape)
        x -= (x.max(axis=0) + x.min(axis=0)) / 2
        scaled = np.ldexp(x / np.abs(x).max(), exponent).astype(kind)
        assert np.isfinite(scaled).all()
        back = np.ldexp(scaled.astype(np.float64), -exponent)
        # float32 is multiplied in float32 if layers are compressed.
        rounding = ROUNDING if kind == "f8" else 1e-6
        assert measure(scaled, y) == pytest.approx(measure(back, y), abs=ROUNDING)
        form = similarity.traits(name)["form"]
        assert form.measure(scaled, y) == pytest.approx(measure(back, y), abs=rounding)
        assert measure(y, scaled) == pytest.approx(measure(y, back), abs=ROUNDING)

    def test_a_constant_feature_hides_none_that_varies_by_little(self, measure: Callable[..., float]) -> None:
        x, y = pair()
        padded = np.hstack([1e-300 * x, np.full((len(x), 1), 1e300)])
        assert measure(padded, y) == pytest.approx(measure(x, y), abs=ROUNDING)

    def test_features_that_never_vary_change_nothing(self, measure: Callable[..., float]) -> None:
        x, y = pair()
        padded = np.hstack([x, np.full((len(x), 3), 0.1)])
        assert measure(padded, y) == pytest.approx(measure(x, y), abs=ROUNDING)

    @pytest.mark.parametrize(
        ("broken", "message"),
        [
            (lambda x: np.full_like(x, 0.1), "the same for all 40 samples"),
            (lambda x: np.where(x == x.max(), np.nan, x), "must be finite"),
            (lambda x: np.where(x == x.max(), np.inf, x), "must be finite"),
            (lambda x: x[:1], "at least . samples for this measure, got 1"),
            (lambda x: x[:, :0], "numbers of shape"),
        ],
        ids=["constant", "nan", "infinite", "one sample", "no feature"],
    )
    def test_what_cannot_be_compared_is_refused_in_words(
        self,
        name: str,
        measure: Callable[..., float],
        broken: Callable[[np.ndarray], np.ndarray],
        message: str,
    ) -> None:
        x, y = pair()
        with pytest.raises(InputError, match=f"x .*{message}"):
            measure(broken(x), y)
        with pytest.raises(InputError, match=f"y .*{message}"):
            measure(x, broken(y))
        with pytest.raises(InputError, match=message):
            similarity.traits(name)["form"].compress(broken(x))

    def test_different_numbers_of_samples_are_refused(self, measure: Callable[..., float]) -> None:
        x, y = pair()
        with pytest.raises(InputError, match="same samples, got 40 and 39 rows"):
            measure(x, y[:-1])

    def test_its_form_takes_its_options(self, name: str, measure: Callable[..., Any]) -> None:
        """An option of the measure that its form lacks would be lost when layers are compared."""
        form = similarity.traits(name)["form"]
        options = {key: (option.annotation, option.default) for key, option in options_of(measure).items()}
        assert options == {key: (o.annotation, o.default) for key, o in options_of(form.compress).items()}
        defaults: list[Any] = [option.default for option in options_of(measure).values()]
        assert all(map(math.isfinite, defaults))
