"""Similarity measures of two representations of the same samples.

``similarity["cka"](x, y)`` takes two arrays with a row for each of the same samples and returns one number, in float64.
To compare many layers, each member also declares a ``form``: every layer is compressed once to a small array, and
scores are computed from these arrays in bulk (:mod:`polariscope.analysis.layer_forms`).
"""

from __future__ import annotations

from polariscope.core.registry import open_family

CHANGES = ("rotation", "scale", "shift", "linear_map", "sample_order")
"""Values of ``invariant_to`` and ``varies_with``. They are changes of one representation (an orthogonal map of its
features, a factor common to all features, a constant added to each, an invertible linear map), or the same new order of
the samples in both."""

similarity = family = open_family(
    __name__,
    "similarity",
    traits=("symmetric", "bounds", "invariant_to", "varies_with", "form", "too_high_when_wide"),
)
