"""Modularity: does each latent code one factor only?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from polariscope.errors import InputError
from polariscope.metrics import Score, metric
from polariscope.metrics._checks import FactorKind
from polariscope.metrics._resampling import recentred_interval
from polariscope.metrics._shared import N_BINS, Shared, prepare
from polariscope.settings import check_options

ROUNDING = 1e-12
"""Nats: of a latent that is constant the entropies differ by less."""


@metric(
    "modularity",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("codes", "factors"),
    invariant_to={"order", "shift", "scale"},
)
def modularity(
    codes: Any,
    factors: Any,
    *,
    variant: Literal["locatello", "informative"] = "locatello",
    bins: int = N_BINS,
    factor_names: Sequence[str] = (),
    factor_kinds: Sequence[FactorKind] | None = None,
    seed: int = 0,
    shared: Shared | None = None,
) -> Score:
    r"""How far each latent's information is about a single factor.

    .. math:: m_j = 1 - \frac{\sum_{k \ne k^*} I(z_j; w_k)^2}{(K - 1) \, I(z_j; w_{k^*})^2},
        \qquad k^* = \arg\max_k I(z_j; w_k)

    averaged over latents, for K ≥ 2 factors; information in nats from 20 equal-width ``bins`` of each code. 1 when
    every latent knows one factor, even if several know the same; 0 when each knows all factors equally.

    A latent of pure noise does not score 0: the plug-in information of n samples is about (bins − 1)(classes −
    1)/2n, and factors with more classes get more of it. Read the value beside the ``chance`` level. ``locatello``
    averages over all latents, one without any information counting 0; ``informative`` over those that know more of
    some factor than they do in any of ten shufflings of the rows; 0 if none does.

    Reference: Ridgeway & Mozer, Learning Deep Disentangled Embeddings with the F-Statistic Loss, 2018,
    https://arxiv.org/abs/1802.05312; analyses.md §5.

    >>> factors = np.array([[a, b] for a in range(3) for b in range(3)] * 2)
    >>> modularity(factors.astype(float), factors).value
    1.0
    """
    check_options("metric 'modularity'", modularity, {"variant": variant, "bins": bins})
    arrays = prepare(shared, codes, factors, factor_names=factor_names, factor_kinds=factor_kinds, seed=seed)
    if arrays.n_factors < 2:
        raise InputError("modularity tells factors apart, so that at least 2 are needed, got 1.")
    if bins < 2:
        raise InputError(f"bins must be at least 2, got {bins}; the published value is 20.")
    table, permuted = arrays.mi_table(bins), arrays.mi_permuted(bins)
    counted = np.ones(arrays.n_latents, dtype=bool)
    if variant == "informative":
        counted = (table > permuted.max(axis=0)).any(axis=1)
    per_latent = _per_latent(table)
    value = _average(per_latent, counted)
    replicates = _average(_per_latent(arrays.mi_replicates(bins)[0]), counted)
    return Score.of(
        "modularity",
        float(value),
        interval=recentred_interval(float(value), replicates, (0, 1)),
        chance=float(np.mean(_of_shuffled(permuted, variant))),
        variant=variant,
        per_latent=per_latent,
        matrix=table,
        details={
            "factor": table.argmax(axis=1),
            "counted": counted,
            "factor_names": arrays.factor_names,
            "bins": bins,
        },
        notes=arrays.grid_notes,
    )


def _per_latent(
    tables: Float[np.ndarray, "*replicate latent factor"],
) -> Float[np.ndarray, "*replicate latent"]:
    squares = np.where(tables > ROUNDING, tables, 0.0) ** 2
    largest = squares.max(axis=-1)
    others = (squares.sum(axis=-1) - largest) / (squares.shape[-1] - 1)
    return np.where(largest > 0, 1 - others / np.where(largest > 0, largest, 1), 0.0)


def _average(per_latent: Float[np.ndarray, "*replicate latent"], counted: Bool[np.ndarray, " latent"]) -> Any:
    return per_latent[..., counted].mean(axis=-1) if counted.any() else np.zeros(per_latent.shape[:-1])


def _of_shuffled(permuted: Float[np.ndarray, "replicate latent factor"], variant: str) -> list[float]:
    """The same of each shuffling, which for ``informative`` is judged against the others."""
    found = []
    for number, table in enumerate(permuted):
        counted = np.ones(table.shape[0], dtype=bool)
        if variant == "informative":
            counted = (table > np.delete(permuted, number, axis=0).max(axis=0)).any(axis=1)
        found.append(float(_average(_per_latent(table), counted)))
    return found
