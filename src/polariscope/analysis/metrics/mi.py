"""Averaged mutual information between latents."""

from __future__ import annotations

from typing import Literal

import numpy as np

from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics import Score, metric
from polariscope.core.errors import InputError
from polariscope.numerics.information import (
    N_BINS,
    Bins,
    averaged_mutual_information,
    chance_information_table,
    corrected_information,
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
    variant: Literal["corrected", "averaged"] = "corrected",
    n_bins: Bins = N_BINS,
) -> Score:
    r"""Mutual information between two latents in nats, averaged over pairs.

    .. math:: \overline{I} = \frac{1}{d^2 - d} \sum_{i \ne j} I(z_i, z_j)

    over the ordered pairs of d latents, each in ``n_bins`` equal-width bins over its own range. The plug-in estimate
    from n samples is biased upwards, for independent latents by about (n_bins − 1)²/2n. ``corrected`` subtracts its
    mean over random permutations of one of the two latents, and is at least 0; ``details`` contains both terms. With
    few samples it is too low for strongly dependent latents, at most by the subtracted mean. ``averaged`` is the
    plug-in estimate, as published, with that mean as ``chance``. Adding latents that are independent of all others
    lowers it, although the dependence of the other latents is unchanged. ``matrix`` contains the mutual information
    (latent, latent), with entropies on the diagonal. ``per_latent`` is the mean of each latent with the others. Both
    are corrected if the value is.

    Reference: bonheme2023 Eqs 6.9–6.10, Thm 6.4.2; see
    :func:`polariscope.numerics.information.averaged_mutual_information`.

    :param variant: (default "corrected") mean over pairs of latents minus its chance level, or "averaged", the mean.
    :param n_bins: (default 20) number of equal-width bins of each code.

    >>> mi(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).value
    0.0
    """
    if table.n_latents < 2:
        raise InputError(problem="mutual information requires at least 2 latents", got="1")
    binned = table.discretised(n_bins)
    informations = mutual_information_table(binned)
    plug_in = averaged_mutual_information(informations)
    pairs = [
        # Each pair once: a latent with those before it.
        information(binned[:, [j]], binned[:, :j], table.resamples)[0].reshape(-1, j)
        for j in range(1, table.n_latents)
    ]
    shuffled = chance_information_table(binned, table.seed, table.source)
    level = averaged_mutual_information(shuffled)
    details: dict[str, float] = {"bins": n_bins}
    value, chance = plug_in, level
    notes: tuple[str, ...] = ()
    if variant == "corrected":
        value, chance = corrected_information(plug_in, level), 0.0
        # Entropies on the diagonal have no chance level.
        informations = informations - np.where(np.eye(table.n_latents, dtype=bool), 0.0, shuffled)
        details |= {"averaged": plug_in, "chance_of_averaged": level}
        notes = (
            f"Plug-in estimate {plug_in:.3g} nats, minus {level:.3g} nats, its value for shuffled latents.",
        )
    others = informations.sum(axis=1) - np.diag(informations)
    return Score.of(
        "mi",
        value,
        interval=recentred_interval(value, np.concatenate(pairs, axis=1).mean(axis=1), (0, np.inf)),
        chance=chance,
        variant=variant,
        per_latent=others / (table.n_latents - 1),
        matrix=informations,
        details=details,
        notes=notes,
    )
