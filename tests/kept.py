"""Cached results of a run, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polariscope.storage.artefacts import Artefact, Artefacts


def artefacts(run: Path, kind: str, **settings: Any) -> list[Artefact]:
    """Return the artefacts of a kind, in the order of their creation."""
    return [one for one in Artefacts(run) if one.kind == kind and one.matches(**settings)]


def contents(run: Path, kind: str, **settings: Any) -> list[Any]:
    """Return the contents of these artefacts as JSON values."""
    return [Artefacts(run).read(one.key) for one in artefacts(run, kind, **settings)]
