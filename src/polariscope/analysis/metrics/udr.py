"""Unsupervised disentanglement ranking: do models that were trained alike find the same latents?"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Gt
from jaxtyping import Bool, Float

from polariscope.analysis.code_table import N_PERMUTATIONS
from polariscope.analysis.metrics import Score, metric
from polariscope.analysis.model_codes import Models
from polariscope.analysis.regime.posterior import gaussian_kl
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.numerics.dependence import ranked, standardised
from polariscope.numerics.intervals import jackknife_interval

BLOCKS = 20
KL_THRESHOLD = 0.01
Slices = list[slice]


@metric(
    "udr",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("models",),
    invariant_to={"order", "shift", "scale", "sign"},
    uses=("variance",),
)
def udr(
    models: Models,
    *,
    variant: Literal["spearman", "lasso"] = "spearman",
    pooling: Literal["both-ways", "pooled"] = "both-ways",
    alpha: Annotated[float, Gt(0)] = 0.1,
) -> Score:
    r"""How far the latents of models trained alike match one to one.

    With R_ab ≥ 0 the strength of the relation between latent a of model i and latent b of model j,

    .. math:: \mathrm{UDR}_{ij} = \tfrac12 \Bigl( \frac1{d_i} \sum_a \frac{\max_b R_{ab}^2}{\sum_b R_{ab}}
        + \frac1{d_j} \sum_b \frac{\max_a R_{ab}^2}{\sum_a R_{ab}} \Bigr)

    A model's score is the median over the other models; the value is the mean over models, ``details["per_model"]`` has
    each, ``matrix`` every pair (the diagonal, a model with itself, is 0 and not used). With ``spearman`` it is 1 when
    every latent is a monotone map of one latent of each other model and has no rank correlation with the rest. That
    they are the same up to order and sign is not enough: two latents with correlation r within a model take
    1/(1 + |r|) of it even from equal models, and chance correlations of n samples take about (d − 1)·0.8/√n. The
    ``lasso`` shrinks a perfect match of uncorrelated latents to 1 − ``alpha``, which is then the most. It approaches
    0 when each latent is spread over many others.

    R is the absolute rank correlation, or for ``lasso`` the absolute coefficient of the standardised latents of model i
    in a regression of each latent of model j on them with penalty ``alpha``. Ranks are taken once and all pairs are one
    matrix product; the lasso is solved from the same product, all targets at once, and is not symmetric.

    Only latents with a mean KL of over 0.01 nats count, d_i of them, when ``variance`` gives each model's posterior
    variances; without it all that vary do. A model without any scores 0. ``models`` are mean codes of the same samples,
    1 000 in the paper, or representations, which have variances; ids that differ are refused. ``chance`` is for
    rows shuffled separately in each model. The interval is a jackknife over 20 blocks of samples, with the ranks of
    all; it is not about the choice of models.

    Reference: Duan et al., Unsupervised Model Selection for Variational Disentangled Representation Learning
    (duan2020), whose formula pools both directions, dividing by d_i + d_j (``pooling="pooled"``,
    the same when d_i = d_j); the code averages both ways, the default.

    :param variant: (default "spearman") how the relation of two latents is measured.
    :param pooling: (default "both-ways") how both directions are averaged.
    :param alpha: (default 0.1) penalty of ``lasso``.

    >>> codes = np.array([[a, b] for a in range(3) for b in range(3)], dtype=float)
    >>> round(udr([codes, -codes[:, ::-1]]).value, 6)
    1.0
    """
    used = _used(models)
    used_codes = [c[:, u] for c, u in zip(models.codes, used, strict=True)]
    columns = [standardised(ranked(c) if variant == "spearman" else c) for c in used_codes]
    ends = np.cumsum([c.shape[1] for c in columns])
    parts = [slice(end - c.shape[1], end) for end, c in zip(ends, columns, strict=True)]

    def score(products: Float[np.ndarray, "all all"], n: int) -> Float[np.ndarray, "model model"]:
        relations = _relations(products / n, parts, alpha if variant == "lasso" else None)
        return _pair_scores(relations, parts, pooling)

    stacked = np.concatenate(columns, axis=1)
    n = len(stacked)
    blocks = [block.T @ block for block in np.array_split(stacked, min(BLOCKS, n))]
    sizes = [len(block) for block in np.array_split(stacked, min(BLOCKS, n))]
    total = np.sum(blocks, axis=0)
    pairs = score(total, n)
    per_model = _per_model(pairs)
    value = float(per_model.mean())
    left_out = np.array(
        [_per_model(score(total - block, n - size)).mean() for block, size in zip(blocks, sizes, strict=True)]
    )
    chances = []
    for index in range(N_PERMUTATIONS):
        draw = generator(models.seed, "udr", "permutation", index)
        shuffled = np.concatenate([draw.permutation(column) for column in columns], axis=1)
        chances.append(float(_per_model(score(shuffled.T @ shuffled, n)).mean()))
    notes = (
        []
        if models.variance is not None
        else ["Without variances every latent that varies counts, passive ones too."]
    )
    notes += [f"Model {i} has no latent in use and scores 0." for i, u in enumerate(used) if not u.any()]
    return Score.of(
        "udr",
        value,
        interval=jackknife_interval(value, left_out, (0.0, 1.0)),
        chance=float(np.mean(chances)),
        variant=variant,
        matrix=pairs,
        details={
            "per_model": per_model,
            "best_model": int(per_model.argmax()),
            "n_latents_used": [int(u.sum()) for u in used],
            "pooling": pooling,
        },
        notes=tuple(notes),
    )


def _used(models: Models) -> list[Bool[np.ndarray, " _"]]:
    """Which latents of each model count."""
    used = [np.ptp(codes, axis=0) > 0 for codes in models.codes]
    if models.variance is None:
        return used
    pairs = zip(models.codes, models.variance, strict=True)
    kls = [gaussian_kl(codes, variance).mean(axis=0) for codes, variance in pairs]
    return [varies & (kl > KL_THRESHOLD) for varies, kl in zip(used, kls, strict=True)]


def _relations(
    gram: Float[np.ndarray, "all all"], parts: Slices, alpha: float | None
) -> Float[np.ndarray, "all all"]:
    """R between all latents of all models: correlations, or lasso coefficients of the row in predicting the column."""
    if alpha is None:
        scale = np.sqrt(np.diag(gram))
        return np.minimum(np.abs(gram / np.outer(scale, scale)), 1.0)
    return np.abs(np.concatenate([lasso(gram[part, part], gram[part], alpha) for part in parts]))


def lasso(
    gram: Float[np.ndarray, "latent latent"], products: Float[np.ndarray, "latent target"], alpha: float
) -> Float[np.ndarray, "latent target"]:
    r"""Minimum over W of ½ tr(WᵀGW) − tr(WᵀP) + α‖W‖₁, column by column, by coordinate descent on all at once.

    With G = XᵀX/n and P = XᵀY/n this is the lasso of each column of Y on X.

    >>> lasso(np.eye(2), np.array([[0.5], [-0.05]]), 0.1)
    array([[0.4],
           [0. ]])
    """
    weights = np.zeros_like(products)
    for _ in range(10_000):
        largest = 0.0
        for j in range(len(gram)):
            rest = products[j] - gram[j] @ weights + gram[j, j] * weights[j]
            new = np.sign(rest) * np.maximum(np.abs(rest) - alpha, 0) / gram[j, j]
            largest = max(largest, float(np.abs(new - weights[j]).max()))
            weights[j] = new
        if largest < 1e-10:
            return weights + 0.0  # no −0
    raise InputError(
        problem="the lasso did not converge: two latents of a model are almost the same",
        remedy="use 'spearman'",
    )


def _pair_scores(
    relations: Float[np.ndarray, "all all"], parts: Slices, pooling: str
) -> Float[np.ndarray, "model model"]:
    scores = np.zeros((len(parts), len(parts)))
    for i, rows in enumerate(parts):
        for j, columns in enumerate(parts):
            part = relations[rows, columns]
            if i != j and part.size:
                across, down = _strengths(part), _strengths(part.T)
                pooled = np.concatenate([across, down]).mean()
                scores[i, j] = pooled if pooling == "pooled" else (across.mean() + down.mean()) / 2
    return scores


def _strengths(relation: Float[np.ndarray, "row column"]) -> Float[np.ndarray, " row"]:
    """max²/sum of each row; 0 for a row without any relation."""
    totals = relation.sum(axis=1)
    return np.divide(relation.max(axis=1) ** 2, totals, out=np.zeros_like(totals), where=totals > 0)


def _per_model(pairs: Float[np.ndarray, "model model"]) -> Float[np.ndarray, " model"]:
    """Median over the other models."""
    m = len(pairs)
    return np.median(pairs[~np.eye(m, dtype=bool)].reshape(m, m - 1), axis=1)
