"""Share of each factor that its best latent knows."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge

from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics import Score, metric
from polariscope.numerics.intervals import recentred_interval


@metric(
    "best-share",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("codes", "factors"),
    invariant_to={"order", "shift", "scale"},
)
def best_share(
    table: Table,
    *,
    variant: Literal["mean", "worst"] = "mean",
    n_bins: Annotated[int, Ge(2)] = 20,
) -> Score:
    r"""Information that the best latent of each factor has about it, as a share of the factor's entropy.

    .. math:: \frac1K \sum_k \frac{\max_j I(z_j; w_k)}{H(w_k)}

    with latents z_j in equal-width bins and K factors w_k. 1 if one latent determines each factor; 0 if no latent has
    information about any factor. ``mean`` averages over the factors, ``worst`` takes the smallest share.

    Reference: the first term of the mutual information gap, Chen et al., 2018, https://arxiv.org/abs/1802.04942.

    :param variant: (default "mean") the average over the factors, or the worst of them.
    :param n_bins: (default 20) equal-width bins of each code.

    >>> factors = np.array([[a, b] for a in range(3) for b in range(3)] * 2)
    >>> round(best_share(factors.astype(float), factors).value, 6)
    1.0
    """
    average = np.mean if variant == "mean" else np.min
    per_factor = table.mi_table(n_bins).max(axis=0) / table.factor_entropies
    informations, entropies = table.mi_replicates(n_bins)
    # A class that a resample lacks can leave a factor without entropy.
    replicates = informations.max(axis=1) / np.maximum(entropies, np.finfo(float).tiny)
    shuffled = table.mi_permuted(n_bins).max(axis=1) / table.factor_entropies
    value = float(average(per_factor))
    return Score.of(
        "best-share",
        value,
        interval=recentred_interval(value, average(replicates, axis=1), (0, 1)),
        chance=float(average(shuffled, axis=1).mean()),
        variant=variant,
        per_factor=per_factor,
    )
