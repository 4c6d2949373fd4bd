"""Explicitness against scikit-learn, and on representations with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from analysis.metrics.known import grid, noise, rotated
from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics.explicitness import (
    area_under_curve,
    explicitness,
    logistic_regressions,
    worth,
)
from polariscope.core.errors import InputError
from polariscope.numerics.intervals import wilson_interval


def test_the_regressions_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=300)
    x = labels[:, None] * rng.normal(size=3) + rng.normal(size=(300, 3))
    found = logistic_regressions(x, labels[:, None] == np.arange(4))
    for k in range(4):
        model = LogisticRegression(class_weight="balanced", solver="newton-cholesky", tol=1e-10).fit(
            x, labels == k
        )
        np.testing.assert_allclose(found[:, k], [*model.coef_[0], model.intercept_[0]], atol=1e-6)


def test_the_area_is_that_of_scikit_learn_with_ties() -> None:
    rng = np.random.default_rng(0)
    decisions, truth = rng.integers(5, size=60).astype(float), rng.random(60) < 0.3
    area, influence = area_under_curve(decisions, truth)
    assert area == pytest.approx(roc_auc_score(truth, decisions), abs=1e-12)
    assert influence.mean() == pytest.approx(0, abs=1e-12)


def test_the_influences_give_the_spread_of_the_area() -> None:
    rng = np.random.default_rng(0)
    areas, errors = [], []
    for _ in range(300):
        truth = rng.random(200) < 0.3
        area, influence = area_under_curve(rng.normal(size=200) + truth, truth)
        areas.append(area)
        errors.append(np.sqrt((influence**2).sum()) / 200)
    # 300 draws tell a standard deviation to 4 %.
    assert np.mean(errors) == pytest.approx(np.std(areas), rel=0.2)


def test_the_score_is_the_mean_area_over_classes_and_factors() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers([2, 4], size=(300, 2))
    codes = factors @ rng.normal(size=(2, 3)) + rng.normal(size=(300, 3))
    shared = Table(codes, factors)
    (train, test), x = shared.split(), shared.standardised
    expected = []
    for w, n in zip(factors.T, (2, 4), strict=True):
        models = [
            LogisticRegression(class_weight="balanced", tol=1e-8).fit(x[train], w[train] == c)
            for c in range(n)
        ]
        areas = [roc_auc_score(w[test] == c, m.decision_function(x[test])) for c, m in enumerate(models)]
        expected.append(np.mean(areas))
    assert explicitness(codes, factors).per_factor == pytest.approx(expected, abs=1e-3)


def test_two_classes_are_read_off_rotated_and_duplicated_codes_alike() -> None:
    factors = grid(2, 2, repeats=30)
    codes = factors - 0.5
    for known in (codes, rotated(codes), np.hstack([codes, codes])):
        score = explicitness(known, factors)
        assert score.value == 1
        low, high = score.interval
        assert high == 1
        assert 0.88 < low < 40 / (40 + 1.96**2)  # 40 test samples, a little less as their classes are uneven


def test_a_line_does_not_single_out_the_middle_of_an_ordered_factor() -> None:
    factors = grid(3, repeats=100)
    score = explicitness(factors.astype(float), factors)
    # Two ends with area 1; the middle class is ranked above one end and below the other.
    assert score.value == pytest.approx((1 + 1 + 0.5) / 3, abs=0.05)


@pytest.mark.parametrize(("variant", "chance"), [("auc", 0.5), ("normalised", 0.0)])
def test_constants_and_noise_score_chance(variant: str, chance: float) -> None:
    factors = np.random.default_rng(1).integers(2, size=(3000, 2))
    assert explicitness(np.ones((3000, 2)), factors, variant=variant).value == chance
    score = explicitness(noise(3000, 3), factors, variant=variant)
    error = 2 * np.sqrt(1 / (12 * 500) + 1 / (12 * 500))  # of an area with 500 samples of each class
    assert abs(score.value - chance) < 5 * error
    assert abs(score.chance - chance) < 5 * error  # type: ignore[operator]


def test_normalised_areas_have_the_stretched_interval_and_chance_of_areas() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers([2, 3], size=(150, 2))
    for scale in (1.0, 0.0):  # codes that know something, and noise, of which what is below 0 is cut off
        codes = scale * factors + rng.normal(size=(150, 2))
        area, stretched = explicitness(codes, factors), explicitness(codes, factors, variant="normalised")
        per_factor = np.maximum(2 * area.per_factor - 1, 0)
        assert stretched.per_factor == pytest.approx(per_factor)
        assert stretched.value == pytest.approx(per_factor.mean())
        shuffled = explicitness(Table(codes, factors).permuted().codes, factors)
        assert area.chance == pytest.approx(shuffled.value)
        assert stretched.chance == pytest.approx(np.maximum(2 * shuffled.per_factor - 1, 0).mean())
        if (area.per_factor > 0.5).all():
            low, high = area.interval
            assert stretched.interval == pytest.approx((max(2 * low - 1, 0), 2 * high - 1))


def test_the_interval_is_wilsons_of_the_averaged_influences_of_the_test_samples() -> None:
    rng = np.random.default_rng(0)
    factors = np.minimum(rng.integers([2, 5], size=(120, 2)), [1, 2])  # a class that is more frequent
    codes = factors + rng.normal(size=(120, 2))
    table = Table(codes, factors)
    train, test = table.split()
    x, influences, answers = table.standardised, [], []
    for w in factors.T:
        truth = w[:, None] == np.unique(w)
        weights = logistic_regressions(x[train], truth[train])
        decisions = x[test] @ weights[:-1]
        found = [area_under_curve(d, t)[1] for d, t in zip(decisions.T, truth[test].T, strict=True)]
        influences.append(np.mean(found, axis=0))
        answers.append(worth(truth[test].sum(axis=0), len(test)))
    variance = (np.mean(influences, axis=0) ** 2).mean() / len(test)
    score = explicitness(codes, factors)
    expected = wilson_interval(score.value, variance, 2 / (1 / answers[0] + 1 / answers[1]))
    assert score.interval == pytest.approx(expected)


def test_a_class_that_is_missing_from_a_part_is_left_out_and_said_so() -> None:
    factors = grid(2, repeats=100)
    codes = factors + noise(200, 1)
    factors[7] = 2
    score = explicitness(codes, factors)
    assert score.notes[-1].startswith("1 classes are missing")
    assert np.isfinite(score.value)


def test_too_few_samples_for_a_split_are_refused() -> None:
    with pytest.raises(InputError, match="no two classes that occur in both parts"):
        explicitness(noise(4, 2), np.array([[0], [0], [0], [1]]))


def test_a_factor_with_a_single_class_in_a_part_of_the_split_is_refused() -> None:
    for part in Table(noise(30, 2)).split():
        factors = np.zeros((30, 1), dtype=int)
        factors[part[:2]] = 1
        with pytest.raises(InputError, match=r"factor '0' has no two classes .*20 and 10 samples"):
            explicitness(noise(30, 2), factors)


@pytest.mark.parametrize(("n_positive", "n"), [(10, 20), (3, 50), (40, 45)])
def test_a_class_is_worth_what_hanley_and_mcneil_say_near_one(n_positive: int, n: int) -> None:
    area, m, others = 1 - 1e-6, n_positive, n - n_positive
    # Their equation with the mean of both Q terms, as Newcombe has it, so that classes can be exchanged.
    terms = (n / 2 - 1) * ((1 - area) / (2 - area) + area / (1 + area))
    variance = area * (1 - area) * (1 + terms) / (m * others)
    assert area * (1 - area) / variance == pytest.approx(worth(np.array([m, others]), n), rel=1e-5)


@pytest.mark.parametrize("n", [60, 150])
def test_the_interval_covers_where_nearly_all_pairs_are_ranked_right(n: int) -> None:
    """Codes f ± 1 + 0.55 e: the best area is Φ(2 / (0.55 √2)) = 0.99494."""
    covered = []
    for seed in range(60):
        draw = np.random.default_rng(seed)
        factors = draw.integers(2, size=(n, 1))
        score = explicitness(factors * 2 - 1 + 0.55 * draw.normal(size=(n, 1)), factors)
        low, high = score.interval
        assert low < high
        covered.append(low <= norm.cdf(2 / (0.55 * np.sqrt(2))) <= high)
    assert np.mean(covered) == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / 60))
