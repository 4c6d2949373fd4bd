"""Metrics: how well a representation separates and keeps the factors. Functions of (codes, factors)."""

from __future__ import annotations

from polariscope.registry import open_family

metric = family = open_family(__name__, "metric", traits=("bounds", "higher_is_better"))
