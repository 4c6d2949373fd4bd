"""DCI where it is known: of importance matrices in closed form, of codes by construction."""

from __future__ import annotations

import importlib
import math
from unittest import mock

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LassoCV
from sklearn.metrics import r2_score

from analysis.metrics.known import grid, noise, rotated
from oracles import STANDARD_ERRORS
from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics.dci import _unpredicted, dci, disentanglement
from polariscope.analysis.metrics.support import importance as _importance
from polariscope.analysis.metrics.support.importance import Importance, Job, _informativeness, importances
from polariscope.core.errors import InputError
from polariscope.numerics.classifiers import QUICK_BINS, boosted_trees
from polariscope.numerics.intervals import interval_from_halves


@pytest.fixture
def factors() -> np.ndarray:
    return grid(3, 4, 5, repeats=5)


def parts(score: object) -> tuple[float, float, float]:
    details = score.details  # type: ignore[attr-defined]
    return score.value, details["completeness"], details["informativeness"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (np.eye(3), 1.0),
        (np.full((3, 3), 1 / 3), 0.0),
        (np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]]), 1.0),
        (np.array([[1.0, 1.0]]), 0.0),
        (np.zeros((2, 2)), 0.0),
        (np.array([[1.0], [0.0]]), 1.0),
        # A row shared by two of four factors has 1 − log 2 / log 4 = ½; it weighs 2 of 4.
        (np.array([[1.0, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]]), 0.75),
    ],
)
def test_the_weighted_entropy_of_a_matrix_is_the_closed_form(matrix: np.ndarray, expected: float) -> None:
    assert disentanglement(matrix)[0] == pytest.approx(expected, abs=1e-12)
    shuffled = matrix[::-1][:, ::-1]
    assert disentanglement(7 * shuffled)[0] == pytest.approx(expected, abs=1e-12)


def test_a_number_is_informed_by_its_share_of_the_variance_and_a_class_by_its_accuracy() -> None:
    truth, predicted = np.array([1.0, 2.0, 4.0, 5.5]), np.array([1.5, 1.5, 4.0, 5.0])
    assert _informativeness(truth, predicted, True) == pytest.approx(r2_score(truth, predicted))
    assert _informativeness(0.1 * truth, 0.1 * predicted, True) == pytest.approx(r2_score(truth, predicted))
    assert _informativeness(np.full(4, 3.0), predicted, True) == 0
    assert _informativeness(np.array([0, 1, 2, 2]), np.array([0, 1, 1, 2]), False) == 0.75


@pytest.mark.parametrize("predictor", ["boosted", "lasso"])
def test_every_factor_of_every_job_is_predicted_as_its_kind_says(predictor: str) -> None:
    draw = np.random.default_rng(0)
    values = np.stack([draw.integers(3, size=90), draw.integers(2, size=90), draw.normal(size=90)], axis=1)
    codes = values * [1.0, 2.0, 3.0] + draw.normal(size=(90, 3))
    table = Table(codes, values, factor_kinds=["categorical", "ordinal", "continuous"])
    jobs = [
        Job(codes, np.arange(60), np.arange(60, 90), n_trees=5),
        Job(codes[::-1], np.arange(40), np.arange(40, 90), n_trees=3, n_bins=16),
    ]
    for job, found in zip(jobs, importances(table, jobs, predictor), strict=True):
        for k, n_classes in enumerate((3, 2, None) if predictor == "boosted" else (None, None, None)):
            w = (
                values[:, k].astype(int)
                if n_classes
                else (values[:, k] - values[:, k].mean()) / values[:, k].std()
            )
            learnt, asked, truth = job.codes[job.train], job.codes[job.test], w[job.test]
            if predictor == "boosted":
                options = {"n_classes": n_classes, "n_trees": job.n_trees, "n_bins": job.n_bins}
                expected, predicted = boosted_trees(learnt, w[job.train], asked, **options)
            else:
                model = LassoCV(cv=5, alphas=10.0 ** np.linspace(0, -4, 20)).fit(learnt, w[job.train])
                weights, predicted = np.abs(model.coef_), model.predict(asked)
                expected = weights / weights.sum() if weights.any() else weights
            np.testing.assert_allclose(found.matrix[:, k], expected)
            constant = np.bincount(w[job.train]).argmax() if n_classes else w[job.train].mean()
            score = (lambda a, b: (a == b).mean()) if n_classes else r2_score
            assert found.informativeness[k] == pytest.approx(score(truth, predicted))
            assert found.baseline[k] == pytest.approx(score(truth, np.full(len(truth), constant)))


@pytest.mark.parametrize("variant", ["boosted", "lasso", "reference"])
@pytest.mark.parametrize("part", ["disentanglement", "completeness", "informativeness"])
@pytest.mark.parametrize("n_trees", [1, 9])
def test_halves_and_shuffled_codes_give_the_interval_and_the_chance(
    variant: str, part: str, n_trees: int
) -> None:
    draw = np.random.default_rng(0)
    codes, factors = draw.normal(size=(60, 3)), draw.integers(3, size=(60, 2))
    table = Table(codes, factors)
    train, test = table.split()
    n_chances = {"boosted": 1, "lasso": 10, "reference": 0}[variant]
    n_jobs = 1 if variant == "reference" else 1 + 6 + n_chances
    known = [Importance(draw.random((3, 2)), draw.random(2), draw.random(2)) for _ in range(n_jobs)]
    module = importlib.import_module("polariscope.analysis.metrics.dci")
    with mock.patch.object(module, "importances", return_value=known) as asked:
        score = dci(codes, factors, variant=variant, part=part, n_trees=n_trees)
    (_, jobs, predictor), _ = asked.call_args
    assert predictor == variant
    assert len(jobs) == n_jobs
    assert (jobs[0].n_trees, jobs[0].train.tolist(), jobs[0].test.tolist()) == (
        n_trees,
        train.tolist(),
        test.tolist(),
    )
    for job in jobs[1:7]:
        assert (job.n_trees, job.n_bins, len(job.train)) == (max(1, n_trees // 2), QUICK_BINS, 20)
        assert set(job.train) < set(train)
    for job, order in zip(jobs[7:], table.permutations, strict=False):
        assert (job.n_trees, job.n_bins, len(job.train)) == (n_trees, QUICK_BINS, 40)
        np.testing.assert_array_equal(job.codes, table.standardised[order])
    assert all(len(job.test) == (20 if part == "informativeness" else 1) for job in jobs[1:])
    values = [
        float(each.informativeness.mean())
        if part == "informativeness"
        else disentanglement(each.matrix if part == "disentanglement" else each.matrix.T)[0]
        for each in known
    ]
    assert score.value == pytest.approx(values[0])
    if variant == "reference":
        assert (score.interval, score.chance) == (None, None)
        return
    assert score.interval == pytest.approx(interval_from_halves(values[0], values[1:7]))
    assert score.chance == pytest.approx(np.mean(values[7:]))


def test_a_single_tree_has_halves_too(factors: np.ndarray) -> None:
    assert dci(factors.astype(float), factors, n_trees=1).interval is not None


def test_numbers_that_are_predicted_worse_than_by_a_constant_have_informativeness_0() -> None:
    draw = np.random.default_rng(0)
    values = draw.normal(size=(150, 2))
    kinds = ("continuous", "continuous")
    score = dci(noise(150, 2, 1), values, factor_kinds=kinds, part="informativeness", n_trees=20)
    assert score.details["informativeness"] < 0
    assert (score.value, score.chance) == (0, 0)


def test_factors_within_two_standard_errors_of_a_constant_are_said_to_be_noise() -> None:
    table = Table(noise(24, 2), grid(2, 3, 2, repeats=2), factor_names=("a", "b", "c"))
    baseline = np.full(3, 0.5)

    def said(*informativeness: float) -> str:
        matrix = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])  # no latent is used for the last
        return " ".join(_unpredicted(table, Importance(matrix, np.array(informativeness), baseline), 100))

    assert said(0.61, 0.7, 0.0) == ""
    assert said(0.6, 0.7, 0.0).startswith("Factor 'a': predicted no better than by a constant")
    assert said(0.2, 0.59, 0.0).startswith("Factors 'a', 'b': ")


@pytest.mark.parametrize("variant", ["boosted", "forest", "lasso", "reference"])
def test_factors_as_codes_are_disentangled_complete_and_informative(
    variant: str, factors: np.ndarray
) -> None:
    """Trees of one latent leave nothing for others to gain; a forest's must split on what they are shown."""
    codes = (factors * [1.0, -30.0, 0.01])[:, [2, 0, 1]]
    score = dci(codes, factors, variant=variant, n_trees=10)
    exact = variant in ("boosted", "reference")
    least = {"boosted": 1.0, "reference": 1.0, "lasso": 0.9, "forest": 0.4}[variant]
    assert min(parts(score)[:2]) >= least - 1e-12
    assert parts(score)[2] == pytest.approx(1, abs=1e-9 if exact else 0.1)
    assert np.argmax(score.matrix, axis=0).tolist() == [1, 2, 0]
    assert score.matrix.sum(axis=0) == pytest.approx(np.ones(3))


def test_one_latent_that_codes_two_factors_is_complete_but_not_disentangled() -> None:
    factors = grid(3, 3, repeats=20)
    score = dci(factors @ np.array([[3.0], [1.0]]), factors)
    assert parts(score) == (pytest.approx(0, abs=1e-12), 1, 1)
    beside_noise = dci(np.hstack([factors @ np.array([[3.0], [1.0]]), noise(180, 1)]), factors)
    assert beside_noise.value < 0.1
    assert beside_noise.details["completeness"] > 0.9


def test_a_factor_in_two_latents_is_disentangled_but_not_complete() -> None:
    """Row and column of a 3 × 3 grid tell a factor of nine values between them: C = 1 − log 2 / log 2 = 0 at best.

    Where the first splits fall, and so the exact shares, is the trees' business; both latents are needed.
    """
    halves = grid(3, 3, repeats=20)
    factors = np.stack([halves @ [3, 1], np.tile([0, 1], 90)], axis=1)
    codes = np.hstack([halves, factors[:, 1:]]).astype(float)
    score = dci(codes, factors)
    assert score.value == pytest.approx(1, abs=1e-9)
    assert score.per_factor[0] < 0.6
    assert score.per_factor[1] == pytest.approx(1, abs=1e-9)
    assert score.details["informativeness"] == 1


def test_trees_use_the_first_of_two_equal_latents(factors: np.ndarray) -> None:
    score = dci(np.hstack([factors, factors]).astype(float), factors, n_trees=10)
    assert parts(score) == (1, 1, 1)
    assert (score.matrix[3:] == 0).all()


@pytest.mark.parametrize("variant", ["boosted", "forest", "lasso"])
def test_constant_codes_have_no_importance_and_say_so(variant: str, factors: np.ndarray) -> None:
    score = dci(np.zeros((300, 2)), factors, variant=variant, n_trees=10)
    assert parts(score)[:2] == (0, 0)
    assert (score.matrix == 0).all()
    assert score.details["informativeness"] == pytest.approx(
        score.details["informativeness_of_a_constant"].mean(), abs=1e-12
    )
    assert "No latent helps to predict 0, 1, 2" in " ".join(score.notes)
    assert "predicted no better than by a constant" not in " ".join(score.notes)


def test_noise_serves_all_factors_alike() -> None:
    factors = np.random.default_rng(0).integers(4, size=(600, 2))
    score = dci(noise(600, 4), factors)
    assert score.value < 0.05
    assert score.chance < 0.05
    # 200 test samples, two factors: the share of right guesses of one in four.
    error = STANDARD_ERRORS * math.sqrt(0.25 * 0.75 / 400)
    assert score.details["informativeness"] == pytest.approx(1 / 4, abs=error)


def weakly_known(seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    factors = draw.integers((3, 6, 2), size=(600, 3))
    return np.hstack([factors * [0.9, 0.35, 1.2], np.zeros((600, 1))]) + draw.normal(size=(600, 4)), factors


def test_chance_is_the_score_of_shuffled_rows_by_as_many_trees() -> None:
    codes, factors = weakly_known(0)
    shared = Table(codes, factors)
    train, z = shared.split()[0], shared.standardised[shared.permutations[0]]

    def by(n_bins: int) -> float:
        columns = [
            boosted_trees(z[train], w[train], z[:1], n_classes=n, n_bins=n_bins)[0]
            for w, n in zip(factors.T, (3, 6, 2), strict=True)
        ]
        return disentanglement(np.stack(columns, axis=1))[0]

    assert dci(codes, factors).chance == pytest.approx(by(63))
    assert by(1023) == pytest.approx(by(63), abs=0.003)  # that many bins make no difference for noise


def test_weak_knowledge_is_beyond_chance_and_the_interval_as_wide_as_draws_differ() -> None:
    """Over 40 draws D has standard deviation 0.0165; Student's t of 6 halves is 2.57 times one of theirs.

    Those of 10 trees, where D is 0.38 instead of 0.09, spread thrice as much.
    """
    scores = [dci(*weakly_known(seed)) for seed in range(4)]
    assert all(score.interval[0] > score.chance for score in scores)
    width = np.mean([np.ptp(score.interval) / 2 for score in scores])
    assert width == pytest.approx(2.57 * 0.0165, rel=0.45)  # four spreads of six: within 3 / √(2 · 4 · 5)


def test_noise_can_score_high_by_lasso_and_its_chance_level_says_so() -> None:
    factors = np.random.default_rng(0).integers(4, size=(300, 2))
    scores = [dci(noise(300, 4, seed), factors, variant="lasso") for seed in range(4)]
    chance = np.mean([score.chance for score in scores])
    values = [score.value for score in scores]
    assert chance > 0.2
    assert chance == pytest.approx(np.mean(values), abs=STANDARD_ERRORS * np.std(values) / math.sqrt(4))


def test_a_rotation_by_45_degrees_serves_both_factors_by_both_latents() -> None:
    score = dci(rotated(grid(5, 5, repeats=20).astype(float)), grid(5, 5, repeats=20))
    assert score.value < 0.1
    assert score.details["completeness"] < 0.1


def test_a_continuous_factor_is_regressed() -> None:
    values = np.random.default_rng(0).normal(size=(500, 2))
    score = dci(values, values, factor_kinds=("continuous", "continuous"))
    assert score.value > 0.9
    assert 0.95 < score.details["informativeness"] <= 1
    assert score.details["informativeness_of_a_constant"] == pytest.approx([0, 0], abs=0.05)


def test_boosting_agrees_with_exact_boosting() -> None:
    """Same trees, depth and rate; bins and the second-order gain differ: importances within a few hundredths."""
    draw = np.random.default_rng(0)
    labels = draw.integers(3, size=600)
    codes = labels[:, None] * [1.0, 0.5, 0.0] + draw.normal(size=(600, 3)) * [0.5, 0.5, 1.0]
    own, predicted = boosted_trees(codes[:400], labels[:400], codes[400:], n_classes=3)
    exact = GradientBoostingClassifier(random_state=0).fit(codes[:400], labels[:400])
    assert own == pytest.approx(exact.feature_importances_, abs=0.1)
    accuracy, reference = (predicted == labels[400:]).mean(), exact.score(codes[400:], labels[400:])
    assert accuracy == pytest.approx(reference, abs=STANDARD_ERRORS * math.sqrt(0.25 / 200))


@pytest.mark.parametrize("n_classes", [2, 3, None])
def test_predictions_brought_along_are_those_of_the_finished_model(n_classes: int | None) -> None:
    import lightgbm

    draw = np.random.default_rng(0)
    codes = draw.normal(size=(300, 2))
    target = codes[:, 0] if n_classes is None else np.digitize(codes[:, 0], [-0.5, 0.5][: n_classes - 1])
    train = lightgbm.train
    with mock.patch.object(lightgbm, "train", side_effect=train) as spy:
        models = []
        spy.side_effect = lambda *a, **k: models.append(train(*a, **k)) or models[-1]
        _, predicted = boosted_trees(codes[:200], target[:200], codes[200:], n_classes=n_classes, n_trees=20)
    raw = models[0].predict(codes[200:])
    expected = raw if n_classes is None else raw > 0.5 if n_classes == 2 else raw.argmax(axis=1)
    assert predicted == pytest.approx(np.asarray(expected, dtype=float), abs=1e-12)


def test_the_number_of_threads_changes_nothing(factors: np.ndarray) -> None:
    codes = factors + noise(300, 3)
    together = dci(codes, factors, n_trees=20).to_dict()
    with mock.patch.object(_importance, "in_threads", lambda function, items: [function(i) for i in items]):
        assert dci(codes, factors, n_trees=20).to_dict() == together


def test_the_interval_holds_the_value_and_narrows_with_samples() -> None:
    def width(n: int) -> float:
        factors = np.random.default_rng(0).integers(3, size=(n, 2))
        low, high = dci(factors @ [[1, 0.4], [0.4, 1]] + noise(n, 2), factors, n_trees=10).interval
        return high - low

    assert width(3_000) < width(200)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"factors": np.zeros((300, 1), dtype=int)}, "has a single value in these 300 samples"),
        ({"factors": np.zeros((299, 1), dtype=int)}, "a row for each sample, got 300 and 299"),
        ({"codes": np.full((300, 2), np.nan)}, "codes must be finite"),
        ({"factors": np.arange(300)[:, None]}, "has 300 classes in 300 samples"),
        ({"n_trees": 0}, "n_trees must be at least 1, got 0"),
    ],
)
def test_bad_input_is_refused_in_words(factors: np.ndarray, change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        dci(**{"codes": factors.astype(float), "factors": factors, **change})


def test_codes_that_are_nearly_the_factors_are_nearly_perfect() -> None:
    """Noise gives every sample a value of its own, so that bins fall between classes (few bins scored 0.87 here)."""
    draw = np.random.default_rng(0)
    factors = np.stack([draw.integers(k, size=1200) for k in (3, 6, 12)], axis=1)
    score = dci(factors + 0.01 * draw.normal(size=factors.shape), factors)
    assert score.value > 0.95
    assert score.details["informativeness"] > 0.98


def test_a_factor_that_nothing_predicts_is_named() -> None:
    draw = np.random.default_rng(1)
    factors = draw.integers(4, size=(600, 3))
    score = dci(factors[:, :2].astype(float), factors, factor_names=("a", "b", "noise"))
    assert any("'noise'" in note and "predicted no better than by a constant" in note for note in score.notes)


def test_each_part_can_be_the_value_and_a_single_factor_has_no_disentanglement() -> None:
    draw = np.random.default_rng(0)
    factors = draw.integers(3, size=(300, 2))
    codes = factors @ draw.normal(size=(2, 3)) + 0.3 * draw.normal(size=(300, 3))
    whole = dci(codes, factors, n_trees=20)
    for part in ("disentanglement", "completeness", "informativeness"):
        found = dci(codes, factors, n_trees=20, part=part)
        assert found.value == whole.details[part]
        assert found.interval[0] <= found.value <= found.interval[1]  # type: ignore[index]
        assert found.chance < found.value  # type: ignore[operator]
        others = [name for name in ("disentanglement", "completeness", "informativeness") if name != part]
        assert found.notes[0] == f"The value is the {part}; {' and '.join(others)} are in the details."
    with pytest.raises(
        InputError, match=r"with a single one.*set the option part of dci to \"completeness\""
    ):
        dci(codes, factors[:, :1], n_trees=20)
    alone = dci(codes, factors[:, :1], n_trees=20, part="informativeness")
    assert alone.value > 0.8
    assert alone.chance == pytest.approx(
        1 / 3, abs=5 * np.sqrt(2 / 9 / 100)
    )  # 100 test samples, three classes
