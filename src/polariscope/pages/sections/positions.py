"""Positions of channels: maps of the KL, and the effective number of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, UInt8

from polariscope.core.figure_style import SEQUENTIAL
from polariscope.core.pictures import data_uri, join
from polariscope.core.text import readable
from polariscope.pages.sections import AbstractSection, section

if TYPE_CHECKING:
    from polariscope.pages.record import ReportRecord

MAX_MAPS = 64
"""Maximum number of channels whose maps are shown."""


@section("positions", title="Positions", order=12)
class PositionsSection(AbstractSection):
    """KL of each channel at each position."""

    def applies(self, record: ReportRecord) -> bool:
        """Return whether latents are channels with positions."""
        return record.regime.positions is not None

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return the maps of the channels with the largest KL, and the number of independent values of each."""
        regime, positions = record.regime, record.regime.positions
        assert positions is not None
        values = np.array(positions.kl)
        largest = float(values[np.isfinite(values)].max(initial=0.0))
        # A deterministic encoder has an infinite KL at every position.
        has_maps = record.has_rate and bool(np.isfinite(values).all())
        rows = [
            {
                "latent": regime.latents[index],
                "kl": readable(regime.latents[index].kl) if record.has_rate else "–",
                "lowest": float(values[index].min()),
                "highest": float(values[index].max()),
                "map": data_uri(heat_map(positions.kl_map(index), largest)) if has_maps else None,
                "correlation": positions.correlation[index],
                "n_effective": positions.n_effective[index],
            }
            for index in regime.order[:MAX_MAPS]
        ]
        return {
            "rows": rows,
            "has_maps": has_maps,
            "largest": largest,
            "n_positions": positions.n_positions,
            "more": regime.n_latents - len(rows),
        }


def heat_map(
    values: Float[np.ndarray, "*position"], largest: float
) -> UInt8[np.ndarray, "height width colour"]:
    """Return a picture of values from 0 to ``largest``; frames of a video are in a row, a sequence is one line."""
    from matplotlib import colormaps

    images = values.reshape(-1, *values.shape[-2:]) if values.ndim > 1 else values[None, None]
    shares = np.clip(images / largest, 0, 1) if largest > 0 else np.zeros_like(images)
    colours = np.round(colormaps[SEQUENTIAL](shares)[..., :3] * 255).astype(np.uint8)
    return join(list(colours))
