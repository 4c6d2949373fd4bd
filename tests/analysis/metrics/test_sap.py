"""Separated attribute predictability: the exact classifier against liblinear, and known representations."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.svm import LinearSVC

from analysis.metrics.known import grid, noise, rotated, standardised
from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics.sap import _hits, sap, support_vectors
from polariscope.core.errors import InputError
from polariscope.numerics.intervals import recentred_interval


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("strength", [0.01, 10.0])
def test_the_classifiers_are_those_of_liblinear(n_classes: int, strength: float) -> None:
    rng = np.random.default_rng(n_classes)
    classes = np.minimum(rng.integers(n_classes + 2, size=300), n_classes - 1)  # the last is more frequent
    x = classes + rng.normal(size=300) + 3
    weight, intercept = support_vectors(x, classes, strength)
    model = LinearSVC(C=strength, class_weight="balanced", dual=False, tol=1e-12, max_iter=100_000)
    model.fit(x[:, None], classes)
    np.testing.assert_allclose(weight, model.coef_[:, 0], atol=1e-6)
    np.testing.assert_allclose(intercept, model.intercept_, atol=1e-6)


def test_the_accuracies_are_those_of_liblinear() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers([2, 5], size=(600, 2))
    codes = factors @ rng.normal(size=(2, 3)) + rng.normal(size=(600, 3))
    train, test = Table(codes, factors).split()
    expected = np.array(
        [
            [
                LinearSVC(C=0.01, class_weight="balanced", dual=False, tol=1e-10)
                .fit(z[train, None], w[train])
                .score(z[test, None], w[test])
                for w in factors.T
            ]
            for z in codes.T
        ]
    )
    score = sap(codes, factors)
    np.testing.assert_allclose(score.matrix, expected, atol=1e-12)
    ordered = np.sort(expected, axis=0)
    assert score.value == pytest.approx((ordered[-1] - ordered[-2]).mean())


def test_two_classes_in_a_latent_of_their_own_leave_only_the_guesses_of_the_others() -> None:
    factors = grid(2, 2, repeats=300)
    codes = np.hstack([standardised(factors), np.zeros((1200, 1))])
    score = sap(codes, factors)
    assert score.matrix[[0, 1], [0, 1]].tolist() == [1, 1]  # type: ignore[index]
    # The second best guesses: right half of the time, in 400 test samples.
    assert score.value == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(400))


def test_squared_correlation_is_that_of_a_regression() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(6, size=(100, 2))
    codes = factors @ rng.normal(size=(2, 3)) + rng.normal(size=(100, 3))
    expected = [
        [LinearRegression().fit(z[:, None], w).score(z[:, None], w) for w in factors.T] for z in codes.T
    ]
    np.testing.assert_allclose(sap(codes, factors, variant="r2").matrix, expected, atol=1e-12)


@pytest.mark.parametrize("n", [6, 60])
@pytest.mark.parametrize("variant", ["svm", "r2"])
def test_interval_and_chance_are_those_of_resampled_and_shuffled_samples(variant: str, n: int) -> None:
    # Of the two test samples of six, some resamples have none: their gap is 0.
    rng = np.random.default_rng(0)
    factors = np.stack([np.arange(n) % 2, np.arange(n) % 3], axis=1)
    codes = factors @ rng.normal(size=(2, 3)) + 0.5 * rng.normal(size=(n, 3))
    table, score = Table(codes, factors), sap(codes, factors, variant=variant, strength=1.0)
    test = table.split()[1]
    hits = {of: _hits(of, 1.0) for of in (table, table.permuted())} if variant == "svm" else {}

    def predictability(rows: np.ndarray, of: Table) -> np.ndarray:
        if variant == "svm":
            chosen = [place for row in rows for place in np.flatnonzero(test == row)]
            return hits[of][chosen].mean(axis=0) if chosen else np.zeros((3, 2))
        x, y = of.codes[rows], of.factors[rows]
        varies = (np.ptp(x, axis=0) > 0)[:, None] & (np.ptp(y, axis=0) > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(varies, np.corrcoef(x.T, y.T)[:3, 3:] ** 2, 0.0)

    def by_definition(rows: np.ndarray, of: Table) -> float:
        ordered = np.sort(predictability(rows, of), axis=0)
        return float((ordered[-1] - ordered[-2]).mean())

    everything = np.arange(n)
    np.testing.assert_allclose(score.matrix, predictability(everything, table), atol=1e-12)
    rows = [np.repeat(everything, times) for times in table.resamples]
    assert n == 60 or not all(np.isin(test, each).any() for each in rows)
    replicates = np.array([by_definition(each, table) for each in rows])
    assert score.interval == pytest.approx(recentred_interval(score.value, replicates, (0, 1)))
    shuffled = [table.permuted(index) for index in range(1 if variant == "svm" else 10)]
    assert score.chance == pytest.approx(np.mean([by_definition(everything, each) for each in shuffled]))
    order = np.argsort(-score.matrix, axis=0, kind="stable")  # type: ignore[operator]
    assert score.details["best_latent"].tolist() == order[0].tolist()
    assert score.details["second_latent"].tolist() == order[1].tolist()


def test_of_two_classes_that_a_latent_cannot_tell_apart_the_first_is_guessed() -> None:
    factors = grid(2, 2, repeats=10)
    table = Table(np.zeros((40, 2)), factors)
    train, test = table.split()
    hits = _hits(table, 0.01)[:, 0, 0]
    # Both classes weigh the same whatever their number, so the intercept is 0 and the decision none.
    weight, intercept = support_vectors(np.zeros(len(train)), factors[train, 0], 0.01)
    assert (weight, intercept) == (0, 0)
    assert hits.tolist() == (factors[test, 0] == 0).tolist()


def test_known_values_of_the_squared_correlation_form() -> None:
    factors = grid(5, 5)
    codes = factors.astype(float)
    assert sap(codes, factors, variant="r2").value == pytest.approx(1, abs=1e-12)
    assert sap(np.hstack([codes, -codes]), factors, variant="r2").value == pytest.approx(0, abs=1e-12)
    assert sap(rotated(codes), factors, variant="r2").value == pytest.approx(0, abs=1e-12)
    both = np.stack([codes.sum(axis=1), np.zeros(25)], axis=1)
    assert sap(both, factors, variant="r2").value == pytest.approx(0.5)
    assert sap(np.ones((25, 2)), factors, variant="r2").value == 0


def test_noise_scores_its_chance_level() -> None:
    factors = np.random.default_rng(1).integers(3, size=(3000, 2))
    for variant in ("svm", "r2"):
        score = sap(noise(3000, 4), factors, variant=variant)
        # Accuracies of 1000 test samples spread by √(⅓ ⅔ / 1000) = 0.015, squared correlations by 1/3000.
        assert abs(score.value - score.chance) < 5 * 0.015  # type: ignore[operator]
        assert score.value < 0.05


def test_duplicates_leave_no_gap() -> None:
    factors = grid(2, 3, repeats=20)
    codes = factors.astype(float)
    assert sap(np.hstack([codes, codes]), factors).value == 0


def test_a_strength_of_zero_and_a_class_that_is_never_trained_on_are_refused() -> None:
    with pytest.raises(InputError, match="strength must be positive, got 0"):
        sap(noise(12, 2), grid(3, 4), strength=0.0)
    rare = np.zeros((300, 1), dtype=int)
    _, test = Table(noise(300, 2), grid(3, repeats=100)).split()
    rare[test[0]] = 1
    with pytest.raises(InputError, match="has a single class in the 200 training samples"):
        sap(noise(300, 2), rare)
