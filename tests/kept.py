"""What a run has kept, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polariscope.storage.artefacts import Artefact, Artefacts


def artefacts(run: Path, kind: str, **settings: Any) -> list[Artefact]:
    """The artefacts of a kind, in the order in which they were made."""
    return [one for one in Artefacts(run) if one.kind == kind and one.matches(**settings)]


def contents(run: Path, kind: str, **settings: Any) -> list[Any]:
    """What they hold, as JSON has it."""
    return [Artefacts(run).read(one.key) for one in artefacts(run, kind, **settings)]
