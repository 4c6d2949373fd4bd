"""Averaged mutual information between latents."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from polariscope.analysis.metrics import Score, metric
from polariscope.analysis.metrics.support.shared import N_PERMUTATIONS, Shared, prepare
from polariscope.core.errors import InputError
from polariscope.core.options import check_options
from polariscope.core.seeds import generator
from polariscope.numerics.information import (
    N_BINS,
    averaged_mutual_information,
    information,
    mutual_information_table,
)
from polariscope.numerics.intervals import recentred_interval


@metric(
    "mi",
    bounds=(0, np.inf),
    higher_is_better=False,
    needs=("codes",),
    invariant_to={"order", "shift", "scale"},
)
def mi(
    codes: Any,
    *,
    variant: Literal["averaged"] = "averaged",
    bins: int = N_BINS,
    seed: int = 0,
    shared: Shared | None = None,
) -> Score:
    r"""How much two latents know of each other, in nats, on average.

    .. math:: \overline{I} = \frac{1}{d^2 - d} \sum_{i \ne j} I(z_i, z_j)

    over the ordered pairs of d latents, each in 20 equal-width ``bins`` over its own range. 0 when every pair is
    independent, but the plug-in estimate of n samples is then about (bins − 1)²/2n: see ``chance``, the mean for
    columns shuffled one by one. Latents that are independent of all others lower it, though nothing about the old
    ones has changed. ``matrix`` holds the informations, (latent, latent), entropies on the diagonal; ``per_latent`` is
    each one's mean with the others.

    Reference: bonheme2023 Eqs 6.9–6.10, Thm 6.4.2; see
    :func:`polariscope.numerics.information.averaged_mutual_information`.

    >>> mi(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).value
    0.0
    """
    check_options("metric 'mi'", mi, {"variant": variant, "bins": bins})
    arrays = prepare(shared, codes, seed=seed)
    if arrays.n_latents < 2:
        raise InputError("information between latents needs at least 2 of them, got 1.")
    if bins < 2:
        raise InputError(f"bins must be at least 2, got {bins}; the published value is 20.")
    binned = arrays.discretised(bins)
    table = mutual_information_table(binned)
    value = averaged_mutual_information(table)
    pairs = [
        information(binned[:, [j]], binned[:, :j], arrays.resamples)[0].reshape(-1, j)
        for j in range(1, arrays.n_latents)
    ]
    draw = generator(seed, "metrics", "columns")
    chances = [
        averaged_mutual_information(mutual_information_table(draw.permuted(binned, axis=0)))
        for _ in range(N_PERMUTATIONS)
    ]
    others = table.sum(axis=1) - np.diag(table)
    return Score.of(
        "mi",
        value,
        interval=recentred_interval(value, np.concatenate(pairs, axis=1).mean(axis=1), (0, np.inf)),
        chance=float(np.mean(chances)),
        variant=variant,
        per_latent=others / (arrays.n_latents - 1),
        matrix=table,
        details={"bins": bins},
    )
