"""Intrinsic dimension: how many numbers it takes to say where a sample lies. Functions of an array."""

from __future__ import annotations

from polariscope.registry import open_family

estimator = family = open_family(__name__, "dimension estimator")
