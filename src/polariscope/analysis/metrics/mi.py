"""Averaged mutual information between latents."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge

from polariscope.analysis.metrics import Score, metric
from polariscope.analysis.metrics.support.table import N_PERMUTATIONS, Table
from polariscope.core.errors import InputError
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
    table: Table,
    *,
    variant: Literal["averaged"] = "averaged",
    n_bins: Annotated[int, Ge(2)] = N_BINS,
) -> Score:
    r"""How much two latents know of each other, in nats, on average.

    .. math:: \overline{I} = \frac{1}{d^2 - d} \sum_{i \ne j} I(z_i, z_j)

    over the ordered pairs of d latents, each in ``n_bins`` equal-width bins over its own range. 0 when every pair is
    independent, but the plug-in estimate of n samples is then about (n_bins − 1)²/2n: see ``chance``, the mean for
    columns shuffled one by one. Latents that are independent of all others lower it, though nothing about the old
    ones has changed. ``matrix`` holds the informations, (latent, latent), entropies on the diagonal; ``per_latent`` is
    each one's mean with the others.

    Reference: bonheme2023 Eqs 6.9–6.10, Thm 6.4.2; see
    :func:`polariscope.numerics.information.averaged_mutual_information`.

    :param variant: (default "averaged") the only one: the mean over pairs of latents.
    :param n_bins: (default 20) equal-width bins of each code.

    >>> mi(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).value
    0.0
    """
    if table.n_latents < 2:
        raise InputError(problem="information between latents needs at least 2 of them", got="1")
    binned = table.discretised(n_bins)
    informations = mutual_information_table(binned)
    value = averaged_mutual_information(informations)
    pairs = [
        information(binned[:, [j]], binned[:, :j], table.resamples)[0].reshape(-1, j)
        for j in range(1, table.n_latents)
    ]
    draw = generator(table.seed, "metrics", "columns")
    chances = [
        averaged_mutual_information(mutual_information_table(draw.permuted(binned, axis=0)))
        for _ in range(N_PERMUTATIONS)
    ]
    others = informations.sum(axis=1) - np.diag(informations)
    return Score.of(
        "mi",
        value,
        interval=recentred_interval(value, np.concatenate(pairs, axis=1).mean(axis=1), (0, np.inf)),
        chance=float(np.mean(chances)),
        variant=variant,
        per_latent=others / (table.n_latents - 1),
        matrix=informations,
        details={"bins": n_bins},
    )
