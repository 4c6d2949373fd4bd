"""Sizing: the number of latents that data need.

:func:`~polariscope.sizing.size.size` runs one method, :func:`~polariscope.sizing.compare.compare_sizes` several.
:func:`~polariscope.sizing.curve.size_curve` measures models with given numbers of latents. The methods are in
``methods/``.
"""

from __future__ import annotations

from polariscope.sizing.methods import family

__all__ = ["family"]
