"""Unsupervised disentanglement ranking against its definition, scipy's and scikit-learn's relations."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr
from sklearn.linear_model import Lasso

from analysis.metrics.known import grid, noise, rotated, standardised
from polariscope.analysis.metrics.udr import udr
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.numerics.intervals import jackknife_interval


def related_models(n_models: int = 4, n_samples: int = 300) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    source = rng.normal(size=(n_samples, 3))
    return [
        source @ rng.normal(size=(3, 2 + i % 3)) + rng.normal(size=(n_samples, 2 + i % 3))
        for i in range(n_models)
    ]


def by_definition(models: list[np.ndarray], variant: str, pooling: str) -> np.ndarray:
    scores = np.zeros((len(models), len(models)))
    for i, x in enumerate(models):
        for j, y in enumerate(models):
            if i == j:
                continue
            if variant == "spearman":
                relation = np.array([[abs(spearmanr(a, b)[0]) for b in y.T] for a in x.T])
            else:
                model = Lasso(alpha=0.1, tol=1e-12, max_iter=100_000).fit(standardised(x), standardised(y))
                relation = np.abs(model.coef_.T)
            parts = [
                np.array([r.max() ** 2 / r.sum() if r.sum() else 0.0 for r in part])
                for part in (relation, relation.T)
            ]
            means = [part.mean() for part in parts]
            scores[i, j] = np.concatenate(parts).mean() if pooling == "pooled" else np.mean(means)
    return scores


@pytest.mark.parametrize("variant", ["spearman", "lasso"])
@pytest.mark.parametrize("pooling", ["both-ways", "pooled"])
def test_it_is_the_definition_pair_by_pair(variant: str, pooling: str) -> None:
    models = related_models()
    expected = by_definition(models, variant, pooling)
    score = udr(models, variant=variant, pooling=pooling)
    np.testing.assert_allclose(score.matrix, expected, atol=1e-8)
    medians = [np.median(np.delete(row, i)) for i, row in enumerate(expected)]
    np.testing.assert_allclose(score.details["per_model"], medians, atol=1e-8)
    assert score.value == pytest.approx(np.mean(medians))


@pytest.mark.parametrize("variant", ["spearman", "lasso"])
@pytest.mark.parametrize("n", [12, 50])
def test_the_interval_leaves_out_one_of_twenty_blocks_at_a_time(variant: str, n: int) -> None:
    models = related_models(3, n)
    columns = [standardised(rankdata(x, axis=0) if variant == "spearman" else x) for x in models]
    left_out = []
    for block in np.array_split(np.arange(n), min(20, n)):
        rest = np.setdiff1d(np.arange(n), block)
        scores = np.zeros((3, 3))
        for i, j in itertools.permutations(range(3), 2):
            x, y = columns[i][rest], columns[j][rest]
            if variant == "spearman":  # the ranks are those of all
                relation = np.abs(x.T @ y) / np.sqrt(np.outer((x**2).sum(axis=0), (y**2).sum(axis=0)))
            else:
                fit = Lasso(alpha=0.1, tol=1e-12, max_iter=100_000, fit_intercept=False).fit(x, y)
                relation = np.abs(fit.coef_.T)
            parts = [
                part.max(axis=1) ** 2 / np.maximum(part.sum(axis=1), 1e-300)
                for part in (relation, relation.T)
            ]
            scores[i, j] = (parts[0].mean() + parts[1].mean()) / 2
        left_out.append(np.mean([np.median(np.delete(row, i)) for i, row in enumerate(scores)]))
    score = udr(models, variant=variant)
    expected = jackknife_interval(score.value, np.array(left_out), (0.0, 1.0))
    assert score.interval == pytest.approx(expected, abs=1e-7)


def test_the_best_model_is_the_one_that_the_others_agree_with() -> None:
    codes = noise(500, 2)
    assert udr([noise(500, 2, 1), codes, rotated(codes), -codes]).details["best_model"] in (1, 3)


def test_models_that_agree_up_to_order_sign_and_monotone_maps_score_one() -> None:
    codes = grid(3, 4, repeats=2).astype(float)
    assert udr([codes, -codes[:, ::-1], np.exp(codes)]).value == pytest.approx(1, abs=1e-12)


def test_the_lasso_shrinks_a_perfect_match_by_its_penalty() -> None:
    codes = grid(3, 4, repeats=2).astype(float)
    # Uncorrelated standardised latents: coefficients 1 − α on the diagonal and 0 elsewhere, max²/sum = 1 − α.
    assert udr([codes, -codes[:, ::-1]], variant="lasso").value == pytest.approx(0.9)


def test_a_rotated_model_is_found_out() -> None:
    codes = noise(2000, 2)
    score = udr([codes, -codes, codes * 2, rotated(codes)])
    # Correlations of ½√2 with both latents: max²/sum = ½/√2.
    assert score.details["per_model"][3] == pytest.approx(np.sqrt(0.5) / 2, abs=0.05)
    assert score.details["per_model"][:3] == pytest.approx(np.ones(3), abs=0.05)


def test_unrelated_models_score_chance() -> None:
    score = udr([noise(1000, 5, seed) for seed in range(4)])
    assert score.value == pytest.approx(score.chance, abs=0.02)
    assert score.value < 0.05


def test_duplicated_latents_are_penalised() -> None:
    codes = grid(3, 4, repeats=2).astype(float)
    # Each row of R is (1, 1, 0, 0): max²/sum = ½.
    twice = np.hstack([codes, codes])[:, [0, 2, 1, 3]]
    assert udr([twice, twice]).value == pytest.approx(0.5)


def test_passive_latents_count_only_without_variances() -> None:
    active = noise(1000, 2)
    models = [np.hstack([active, 0.01 * noise(1000, 3, seed)]) for seed in (1, 2, 3)]
    variances = [np.tile([0.05, 0.05, 1.0, 1.0, 1.0], (1000, 1))] * 3
    with_them, without = udr(models, variance=variances), udr(models)
    assert with_them.value == pytest.approx(1, abs=0.06)
    assert with_them.details["n_latents_used"] == [2, 2, 2]
    assert without.value < 0.6
    assert "every latent that varies counts" in without.notes[0]


@pytest.mark.parametrize("variant", ["spearman", "lasso"])
def test_a_model_without_latents_in_use_scores_zero(variant: str) -> None:
    score = udr([noise(50, 2), np.ones((50, 2)), noise(50, 2)], variant=variant)
    assert score.details["per_model"][1] == 0
    assert "Model 1 has no latent in use" in score.notes[-1]


def test_the_jackknife_gives_the_spread_over_draws() -> None:
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(2, 3, 3))
    values, halves = [], []
    for _ in range(25):
        source = rng.normal(size=(300, 3))
        score = udr([source @ m + rng.normal(size=(300, 3)) for m in mixing])
        values.append(score.value)
        halves.append((score.interval[1] - score.interval[0]) / 2)  # type: ignore[index]
    # 25 draws tell a standard deviation to 14 %; ranks of the whole sample cost a little more.
    assert np.mean(halves) / 1.96 == pytest.approx(np.std(values), rel=0.5)


@pytest.mark.parametrize(
    ("models", "options", "words"),
    [
        (
            [np.ones((5, 2))],
            {},
            "models must contain at least two models, which are compared with each other, got 1",
        ),
        ([noise(5, 2), noise(6, 2)], {}, r"must encode the same samples, got \[5, 6\] rows"),
        ([noise(5, 2), np.full((5, 2), np.nan)], {}, "codes of model 1 must be finite"),
        (
            [noise(5, 2), noise(5, 2)],
            {"variance": [np.ones((5, 2))]},
            "an array for each of the 2 models, got 1",
        ),
        (
            [noise(5, 2), noise(5, 2)],
            {"variant": "lasso", "alpha": 0.0},
            "alpha must be positive, got 0",
        ),
    ],
)
def test_models_that_cannot_be_compared_are_refused(models: list, options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        udr(models, **options)


def test_correlated_latents_cost_equal_models_their_correlation() -> None:
    x = noise(500, 1)
    codes = np.hstack([x, x + noise(500, 1, 1)])
    r = abs(spearmanr(codes[:, 0], codes[:, 1])[0])
    # Rows of R are (1, r) and (r, 1): max²/sum = 1/(1 + r).
    assert udr([codes, codes]).value == pytest.approx(1 / (1 + r), abs=1e-12)


def test_representations_bring_their_variances_and_must_be_of_the_same_samples() -> None:
    means = [noise(60, 3), noise(60, 2, seed=1)]
    variances = [np.full(mean.shape, 0.1) for mean in means]
    ids = np.arange(60)
    reps = [Representation(m, v, m, ids=ids) for m, v in zip(means, variances, strict=True)]
    assert udr(reps).to_dict() == udr(means, variance=variances).to_dict()
    other = dataclasses.replace(reps[1], ids=np.where(ids < 50, ids, ids + 1))
    with pytest.raises(
        InputError, match=r"model 0 and model 1 .* 10 of 60 ids differ, first in row 50: 50 and 51"
    ):
        udr([reps[0], other])
    few = Representation(means[1][:50], variances[1][:50], means[1][:50], ids=ids[:50])
    with pytest.raises(InputError, match="of the same samples, got 60 and 50"):
        udr([reps[0], few])
    with pytest.raises(InputError, match="all representations or all arrays"):
        udr([reps[0], means[1]])
    with pytest.raises(InputError, match="variance must be omitted"):
        udr(reps, variance=variances)
