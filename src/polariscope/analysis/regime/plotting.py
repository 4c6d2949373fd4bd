"""Figure of a diagnosis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from polariscope.analysis.regime.latent_types import COLOURS, TYPES
from polariscope.core.figure_style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from polariscope.analysis.regime.regime import Regime


def draw(regime: Regime, ax: Axes | None = None) -> Axes:
    """Draw variance (bars, left axis) and KL (crosses with intervals, right axis) of each latent, coloured by type.

    :param regime: the diagnosis.
    :param ax: (default: axes of a new pyplot figure) axes to draw on.
    """
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(1.6 + 0.42 * regime.n_latents, 3.0), layout="constrained")
    latents = [regime.latents[index] for index in regime.order]
    positions = list(range(len(latents)))
    bars = ax.bar(
        positions,
        [latent.mean_of_variance for latent in latents],
        color=[COLOURS[latent.type] for latent in latents],
    )
    for kind in TYPES:
        count = regime.counts[kind]
        if count:
            first = next(bar for bar, latent in zip(bars, latents, strict=True) if latent.type == kind)
            first.set_label(f"{count} {kind}")
    ax.set_xticks(positions, [str(latent.index) for latent in latents])
    ax.set_xlabel(f"{regime.unit}, by KL")
    ax.set_ylabel("mean posterior variance")
    finite = [
        (position, latent)
        for position, latent in zip(positions, latents, strict=True)
        if math.isfinite(latent.kl)
    ]
    if finite:
        kl_axis = ax.twinx()
        values = [latent.kl for _, latent in finite]
        around = [
            [max(0.0, latent.kl - latent.kl_interval[0]) for _, latent in finite],
            [max(0.0, latent.kl_interval[1] - latent.kl) for _, latent in finite],
        ]
        kl_axis.errorbar([position for position, _ in finite], values, around, fmt="x", color=INK, lw=1)
        kl_axis.set_ylabel("KL, nats")
    ax.legend(frameon=False, loc="best")
    return ax
