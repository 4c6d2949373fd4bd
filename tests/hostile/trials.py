"""Calls with hostile input that have no undamaged counterpart: crashes, hangs, escapes and foreign errors count."""

from __future__ import annotations

import base64
import dataclasses
from pathlib import Path
from typing import Any

from hostile import calls
from hostile.attacks import Arena
from hostile.calls import Call, Outcome, Verdict
from hostile.odd import SILENT_CODE

CANARY = "ESCAPED"
"""File that hostile code would write."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """Files to write, and one command line or piece of Python."""

    area: str
    words: tuple[str, ...]
    is_python: bool = False
    needs: tuple[str, ...] = ()
    files: dict[str, str] = dataclasses.field(default_factory=dict)
    """Contents by path: text, or bytes in base64 after ``base64:``."""
    animal: str = ""
    """Name of a maker in :mod:`hostile.zoo`, which writes files that have no contents, such as pipes."""
    must_refuse: bool = False
    """Whether success is a defect: the input cannot give a result."""
    whole: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "trial", **dataclasses.asdict(self)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Trial:
        fields = {name: value for name, value in record.items() if name != "kind"}
        return cls(**{**fields, "words": tuple(fields["words"]), "needs": tuple(fields["needs"])})

    def __str__(self) -> str:
        files = ", ".join(f"{name} = {content[:80]!r}" for name, content in self.files.items())
        return "; ".join(part for part in (self.animal, files, " ".join(self.words)[:300]) if part)


def write(folder: Path, files: dict[str, str]) -> None:
    """Write the files of a trial."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("base64:"):
            path.write_bytes(base64.b64decode(content[7:]))
        else:
            path.write_text(content, encoding="utf-8", errors="surrogateescape", newline="")


def attempt(arena: Arena, trial: Trial) -> tuple[Verdict, Outcome]:
    """Make a trial and judge it."""
    from hostile import zoo

    calls.copy(arena.clean, arena.here, trial.needs)
    write(arena.here, trial.files)
    if trial.animal:
        zoo.ANIMALS[trial.animal](arena.here)
    outside = {path.name for path in arena.here.parent.iterdir()}
    before = calls.digests(arena.here)
    call = Call(" ".join(trial.words), trial.words, trial.needs, ("out*",), is_python=trial.is_python)
    outcome = arena.run(call, trial.whole)
    escaped = [path for path in (arena.here / CANARY, arena.here.parent / CANARY) if path.exists()]
    strange = {path.name for path in arena.here.parent.iterdir()} - outside
    for path in escaped:
        path.unlink()
    if escaped or strange:
        return Verdict(
            calls.ESCAPED, f"written: {[path.name for path in escaped]} {sorted(strange)}"
        ), outcome
    if outcome.code == SILENT_CODE:
        return Verdict(calls.SILENT, outcome.out.strip()[-300:]), outcome
    if verdict := calls.obvious(outcome):
        return verdict, outcome
    if gone := calls.lost(call, before, calls.digests(arena.here), 1):
        return Verdict(calls.LOST, gone), outcome
    if trial.must_refuse and not outcome.code:
        return Verdict(calls.SILENT, f"not refused: {outcome.out.strip()[:200]}"), outcome
    size = sum(path.stat().st_size for path in arena.here.rglob("*") if path.is_file())
    if outcome.peak > calls.FREE_MEMORY + 4 * size:
        return Verdict(
            calls.GREEDY, f"{outcome.peak / 1e6:.0f} MB for an input of {size / 1e6:.1f} MB"
        ), outcome
    said = (outcome.err.strip() or outcome.out.strip())[-300:]
    return Verdict(calls.REFUSED if outcome.code else calls.OK, said if outcome.code else ""), outcome
