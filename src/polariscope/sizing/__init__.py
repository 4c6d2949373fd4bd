"""Sizing: how many latents the data need.

:func:`~polariscope.sizing.size.size` asks one method, :func:`~polariscope.sizing.compare.compare_sizes` several,
:func:`~polariscope.sizing.curve.size_curve` shows models of each number of latents. The methods are in ``methods/``.
"""

from __future__ import annotations

from polariscope.sizing.methods import family

__all__ = ["family"]
