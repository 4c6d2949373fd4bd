"""The cached results of a run as rows of text: for ``polariscope show`` and the table of a report."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from polariscope.analysis.regime.rule import TypeRule
from polariscope.core.text import file_size
from polariscope.storage.artefacts import Artefact

HIDDEN = ("models", "against_model")
"""Settings that say nothing to a reader: hashes, and what is the same for all."""
WORDS = {"n_samples": "samples", "n_points": "points", "n_observations": "observations"}


@dataclasses.dataclass(frozen=True)
class Row:
    """One artefact in words."""

    kind: str
    about: str
    """Its settings."""
    step: str
    file: str
    size: str


def row_of(artefact: Artefact, fingerprint: str | None = None) -> Row:
    """An artefact in words.

    :param fingerprint: that of the run's data; what was measured on others says so.
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
        f"{value:,} {WORDS[name]}" if name in WORDS else f"{name} {_value(value)}"
        for name, value in settings.items()
        if not _says_nothing(name, value)
    ]


def _says_nothing(name: str, value: Any) -> bool:
    """Whether a setting is a hash, at its usual value, or not there."""
    usual = value is None or value is False or value in ([], {}, [[None]])
    return usual or name in HIDDEN or (name, value) == ("n_bootstrap", TypeRule().n_bootstrap)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(_value(item) for item in value)
    if isinstance(value, dict):
        return " ".join(f"{name}={_value(item)}" for name, item in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)
