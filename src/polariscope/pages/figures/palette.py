"""One colour per type of latent, told apart by readers of every kind of colour vision."""

from __future__ import annotations

from polariscope.analysis.regime.variable_types import VariableType

COLOURS: dict[VariableType, str] = {"active": "#0f8b8d", "mixed": "#e08e0b", "passive": "#9aa3ad"}
TRAIN, VALIDATION = "#44546a", "#c2410c"
INK, QUIET, LINE = "#1f2933", "#5b6570", "#d8dee4"
DIVERGING = "RdBu_r"
