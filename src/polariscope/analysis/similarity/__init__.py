"""Similarity: how alike two representations of the same samples are. Functions of two arrays.

``similarity["cka"](x, y)`` takes two arrays with a row for each of the same samples and gives one number, in float64.
For the many layers of many models each member also declares a ``form``: every layer is compressed once to a small
array, and scores come from these alone, many at a time (:mod:`polariscope.analysis.layer_forms`).
"""

from __future__ import annotations

from polariscope.core.registry import open_family

CHANGES = ("rotation", "scale", "shift", "linear_map", "sample_order")
"""What ``invariant_to`` and ``varies_with`` can name. Changes of one representation: an orthogonal map of its
features, a factor common to all, a constant added to each, an invertible linear map; or the same new order of the
samples in both."""

similarity = family = open_family(
    __name__,
    "similarity",
    traits=("symmetric", "bounds", "invariant_to", "varies_with", "form", "too_high_when_wide"),
)
