"""Similarity: how alike two representations of the same samples are. Functions of two arrays."""

from __future__ import annotations

from polariscope.registry import open_family

similarity = family = open_family(
    __name__, "similarity", traits=("symmetric", "bounds", "invariant_to", "varies_with")
)
