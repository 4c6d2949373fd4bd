"""Modularity: concentration of each latent's information on one factor."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics import Score, metric
from polariscope.analysis.metrics.support.resampling import half_samples
from polariscope.core.errors import InputError
from polariscope.numerics.information import N_BINS, Bins, information
from polariscope.numerics.intervals import interval_from_halves, recentred_interval

ROUNDING = 1e-12
"""Rounding error of the mutual information of a constant latent, in nats."""

LEVEL = 0.05
"""Significance level: how often uninformative codes have a latent that counts as informative."""


@metric(
    "modularity",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("codes", "factors"),
    invariant_to={"order", "shift", "scale"},
)
def modularity(
    table: Table,
    *,
    variant: Literal["locatello", "informative"] = "locatello",
    n_bins: Bins = N_BINS,
) -> Score:
    r"""Concentration of the information of each latent on a single factor.

    .. math:: m_j = 1 - \frac{\sum_{k \ne k^*} I(z_j; w_k)^2}{(K - 1) \, I(z_j; w_{k^*})^2},
        \qquad k^* = \arg\max_k I(z_j; w_k)

    averaged over latents, for K ≥ 2 factors, with information in nats from ``n_bins`` equal-width bins of each code. It
    is 1 if every latent is informative about one factor, even if several share the same factor, and 0 if each latent is
    equally informative about all factors.

    A latent of pure noise does not score 0: the plug-in information of n samples is about (bins − 1)(classes − 1)/2n,
    and is larger for factors with more classes. Compare the value with the ``chance`` level. ``locatello`` averages
    over all latents, and a latent without any information counts as 0. ``informative`` averages over the latents that
    carry more information about some factor than expected by chance (:func:`informative`), and is 0 if there are none;
    for uninformative codes a latent passes this test in one case out of twenty. Its interval is the spread over 20
    halves of the samples, with latents selected again in each; that of ``locatello`` is by bootstrap.

    Reference: Ridgeway & Mozer, Learning Deep Disentangled Embeddings with the F-Statistic Loss
    (ridgeway2018).

    :param variant: (default "locatello") average over all latents, or over "informative" ones.
    :param n_bins: (default 20) number of equal-width bins of each code.

    >>> factors = np.array([[a, b] for a in range(3) for b in range(3)] * 2)
    >>> modularity(factors.astype(float), factors).value
    1.0
    """
    if table.n_factors < 2:
        raise InputError(problem="at least 2 factors are required", got="1")
    informations, permuted = table.mi_table(n_bins), table.mi_permuted(n_bins)
    per_latent = _per_latent(informations)
    if variant == "informative":
        counted = informative(informations, permuted, table, n_bins)
        value = float(_average(per_latent, counted))
        interval = interval_from_halves(value, _of_halves(table, n_bins))
        by_chance = _average(_per_latent(permuted), informative(permuted, permuted, table, n_bins))
    else:
        counted = np.ones(table.n_latents, dtype=bool)
        value = float(per_latent.mean())
        replicates = _per_latent(table.mi_replicates(n_bins)[0]).mean(axis=-1)
        interval = recentred_interval(value, replicates, (0, 1))
        by_chance = _per_latent(permuted).mean(axis=-1)
    return Score.of(
        "modularity",
        value,
        interval=interval,
        chance=float(by_chance.mean()),
        variant=variant,
        per_latent=per_latent,
        matrix=informations,
        details={
            "factor": informations.argmax(axis=1),
            "counted": counted,
            "factor_names": table.factor_names,
            "bins": n_bins,
        },
        notes=table.grid_notes,
    )


def _per_latent(
    tables: Float[np.ndarray, "*replicate latent factor"],
) -> Float[np.ndarray, "*replicate latent"]:
    squares = np.where(tables > ROUNDING, tables, 0.0) ** 2
    largest = squares.max(axis=-1)
    others = (squares.sum(axis=-1) - largest) / (squares.shape[-1] - 1)
    # The inner where prevents a division by 0, which the outer one would discard.
    return np.where(largest > 0, 1 - others / np.where(largest > 0, largest, 1), 0.0)


def _average(
    per_latent: Float[np.ndarray, "*replicate latent"], counted: Bool[np.ndarray, "*replicate latent"]
) -> Any:
    """Return the mean over the latents that count; 0 if there are none."""
    return (per_latent * counted).sum(axis=-1) / np.maximum(counted.sum(axis=-1), 1)


def informative(
    tables: Float[np.ndarray, "*replicate latent factor"],
    permuted: Float[np.ndarray, "permutation latent factor"],
    table: Table,
    n_bins: int,
) -> Bool[np.ndarray, "*replicate latent"]:
    r"""Return a mask of the latents with significant information about some factor, by a G test at 5 %.

    If a latent with b bins and a factor with c classes are independent, 2nI is χ² distributed with (b − 1)(c − 1)
    degrees of freedom for many samples. For few samples its mean differs by a factor, which is estimated from shuffled
    rows with as many samples as the tables (Bartlett's correction). The level is divided equally among all pairs of a
    latent and a factor (Bonferroni).
    """
    from scipy.special import chdtri

    n_used = np.array([len(np.unique(column)) for column in table.discretised(n_bins).T])
    # A constant latent has no degree of freedom, and a quotient must be defined.
    freedom = np.maximum((n_used - 1)[:, None] * (np.array(table.n_classes) - 1), 1)
    # The information of a constant latent is only rounding error.
    expected = np.maximum(permuted.mean(axis=0), ROUNDING)
    return (tables > expected * chdtri(freedom, LEVEL / freedom.size) / freedom).any(axis=-1)


def _of_halves(table: Table, n_bins: int) -> list[float]:
    """Return the score of the informative latents of each half of the samples."""
    rounds = half_samples(np.arange(table.n_samples), table, "modularity")
    weights = np.stack([np.bincount(half, minlength=table.n_samples) for half in rounds]).astype(np.uint8)
    binned = table.discretised(n_bins)
    shape = (-1, table.n_latents, table.n_factors)
    tables, shuffled = (
        information(codes, table.classes, weights)[0].reshape(shape)
        for codes in (binned, binned[table.permutations[0]])
    )
    return _average(_per_latent(tables), informative(tables, shuffled, table, n_bins)).tolist()
