"""Cached results of a run as rows of text, for ``polariscope show`` and the table of a report."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from polariscope.analysis.regime.rule import TypeRule
from polariscope.core.text import file_size
from polariscope.storage.artefacts import Artefact

HIDDEN = ("models", "against_model")
"""Settings that are hashes, which are not shown."""
UNITS = {"n_samples": "samples", "n_points": "points", "n_observations": "observations"}


@dataclasses.dataclass(frozen=True)
class Row:
    """Description of one cached result."""

    kind: str
    about: str
    """Settings."""
    step: str
    file: str
    size: str


def row_of(artefact: Artefact, fingerprint: str | None = None) -> Row:
    """Describe a cached result.

    :param artefact: the result.
    :param fingerprint: (default None) fingerprint of the run's data; results on other data are marked.
    """
    key = artefact.key
    parts = ["on other data"] if fingerprint is not None and key.data != fingerprint else []
    parts += [", ".join(artefact.names)] if artefact.names else []
    parts += [f"part {key.part}"] if key.part != "all" else []
    parts += _settings(key.settings) if key.kind != "size" else [str(key.settings.get("method", ""))]
    return Row(
        kind=key.kind,
        about=", ".join(part for part in parts if part),
        step="" if key.step is None else f"{key.step:,}",
        file=artefact.path.name,
        size=file_size(artefact.n_bytes),
    )


def _settings(settings: Mapping[str, Any]) -> list[str]:
    return [
        f"{value:,} {UNITS[name]}" if name in UNITS else f"{name} {_value(value)}"
        for name, value in settings.items()
        if not _is_hidden(name, value)
    ]


def _is_hidden(name: str, value: Any) -> bool:
    """Return whether a setting is a hash, empty, or at its default."""
    is_empty = value is None or value is False or value in ([], {}, [[None]])
    return is_empty or name in HIDDEN or (name, value) == ("n_bootstrap", TypeRule().n_bootstrap)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(_value(item) for item in value)
    if isinstance(value, dict):
        return " ".join(f"{name}={_value(item)}" for name, item in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)
