"""Unsupervised disentanglement ranking: agreement between the latents of models trained alike."""

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
    r"""Degree to which the latents of models trained alike match one to one.

    With R_ab ≥ 0 the strength of the relation between latent a of model i and latent b of model j,

    .. math:: \mathrm{UDR}_{ij} = \tfrac12 \Bigl( \frac1{d_i} \sum_a \frac{\max_b R_{ab}^2}{\sum_b R_{ab}}
        + \frac1{d_j} \sum_b \frac{\max_a R_{ab}^2}{\sum_a R_{ab}} \Bigr)

    The score of a model is the median over the other models, and the value is the mean over models.
    ``details["per_model"]`` contains each model, ``matrix`` every pair (the diagonal, a model with itself, is 0 and not
    used). With ``spearman`` it is 1 if every latent is a monotone map of one latent of each other model and has no rank
    correlation with the rest. Equality up to order and sign is not sufficient: if two latents within a model have
    correlation r, even identical models score only 1/(1 + |r|), and chance correlations with n samples cost about
    (d − 1)·0.8/√n. The ``lasso`` shrinks a perfect match of uncorrelated latents to 1 − ``alpha``, its maximum. The
    score approaches 0 if each latent is spread over many others.

    R is the absolute rank correlation, or for ``lasso`` the absolute coefficient of the standardised latents of model i
    in a regression of each latent of model j on them with penalty ``alpha``. Ranks are computed once and all pairs are
    one matrix product. The lasso is solved from the same product for all targets at once, and is not symmetric.

    If ``variance`` contains each model's posterior variances, only latents with a mean KL above 0.01 nats count, d_i of
    them; without it all latents that vary count. A model without such latents scores 0. ``models`` are mean codes of
    the same samples, 1 000 in the paper, or representations, which include variances; different ids raise an error.
    ``chance`` is computed from rows shuffled separately in each model. The interval is a jackknife over 20 blocks of
    samples, with the ranks of all; it does not cover the choice of models.

    Reference: Duan et al., Unsupervised Model Selection for Variational Disentangled Representation Learning
    (duan2020), whose formula pools both directions, dividing by d_i + d_j (``pooling="pooled"``, which is the same if
    d_i = d_j); the code averages the two directions, the default.

    :param variant: (default "spearman") measure of the relation between two latents: "spearman" or "lasso".
    :param pooling: (default "both-ways") average over the two directions: "both-ways" or "pooled".
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
        # The products of all samples minus those of a block are the products without it.
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
        else ["Without variances every latent that varies counts, including passive ones."]
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
    """Return a mask of the latents that count, for each model."""
    used = [np.ptp(codes, axis=0) > 0 for codes in models.codes]
    if models.variance is None:
        return used
    # The paper's rule compares with N(0, 1) for every model.
    pairs = zip(models.codes, models.variance, strict=True)
    kls = [gaussian_kl(codes, variance).mean(axis=0) for codes, variance in pairs]
    return [varies & (kl > KL_THRESHOLD) for varies, kl in zip(used, kls, strict=True)]


def _relations(
    gram: Float[np.ndarray, "all all"], parts: Slices, alpha: float | None
) -> Float[np.ndarray, "all all"]:
    """Return R between all latents of all models: correlations, or lasso coefficients of the row for the column."""
    if alpha is None:
        # Without a block, the columns are no longer exactly standardised.
        scale = np.sqrt(np.diag(gram))
        return np.minimum(np.abs(gram / np.outer(scale, scale)), 1.0)
    return np.abs(np.concatenate([lasso(gram[part, part], gram[part], alpha) for part in parts]))


def lasso(
    gram: Float[np.ndarray, "latent latent"], products: Float[np.ndarray, "latent target"], alpha: float
) -> Float[np.ndarray, "latent target"]:
    r"""Minimise ½ tr(WᵀGW) − tr(WᵀP) + α‖W‖₁ over W by coordinate descent, for all columns at once.

    With G = XᵀX/n and P = XᵀY/n this is the lasso of each column of Y on X.

    >>> lasso(np.eye(2), np.array([[0.5], [-0.05]]), 0.1)
    array([[0.4],
           [0. ]])
    """
    weights = np.zeros_like(products)
    for _ in range(10_000):
        largest = 0.0
        for j in range(len(gram)):
            # The residual of latent j without its own contribution; the next line is the soft threshold of
            # the lasso.
            rest = products[j] - gram[j] @ weights + gram[j, j] * weights[j]
            new = np.sign(rest) * np.maximum(np.abs(rest) - alpha, 0) / gram[j, j]
            largest = max(largest, float(np.abs(new - weights[j]).max()))
            weights[j] = new
        if largest < 1e-10:
            return weights + 0.0  # no −0
    raise InputError(
        problem="the lasso did not converge: two latents of a model are almost equal",
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
    """Return max²/sum of each row; 0 for a row of zeros."""
    totals = relation.sum(axis=1)
    return np.divide(relation.max(axis=1) ** 2, totals, out=np.zeros_like(totals), where=totals > 0)


def _per_model(pairs: Float[np.ndarray, "model model"]) -> Float[np.ndarray, " model"]:
    """Return the median over the other models."""
    m = len(pairs)
    return np.median(pairs[~np.eye(m, dtype=bool)].reshape(m, m - 1), axis=1)
