"""Calls in bad conditions: no room for files, a full or read-only disk, a wrong clock, files from the future."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import random
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hostile import calls, victims
from hostile.attacks import (
    CACHE_CALLS,
    ESTIMATOR_CALLS,
    HALF_CALLS,
    MANIPULATION_CALLS,
    RUN_CALLS,
    SEARCH_CALLS,
    STUDY_CALLS,
    Arena,
    describe_difference,
)
from hostile.calls import Call, Outcome, Result, Verdict

FRESH = (
    Call.command(f"{victims.TRAIN} --out out --quiet", name="train", results=("out/model.safetensors",)),
    Call.command(f"{victims.SIZE} --out out", name="size", results=("out/size.json",)),
    Call.command("study run s.toml", "s.toml", name="study run, new", results=("runs/*/model.safetensors",)),
    Call.command("diagnose r0 --samples 80 --bootstrap 10 --json out.json", "r0", results=("out.json",)),
    Call.command("score r0 --samples 80 --metrics mig --json out.json", "r0", results=("out.json",)),
    Call.command("course r0 --samples 80 --csv out.csv", "r0", results=("out.csv",)),
    Call.command("data preview mnist:originals --out out.png", "originals", results=("out.png",)),
)
EVERY = (
    *FRESH,
    *RUN_CALLS,
    *HALF_CALLS,
    *STUDY_CALLS,
    *SEARCH_CALLS,
    *MANIPULATION_CALLS,
    *CACHE_CALLS,
    *ESTIMATOR_CALLS,
)
CALLS = {call.name: call for call in EVERY}
WRITABLE = tuple(call.name for call in EVERY if not call.varies)

YEARS = 365.25 * 86400
CLOCKS: dict[str, Callable[[float], float]] = {
    "a century ahead": lambda now: now + 100 * YEARS,
    "in 1970": lambda now: now % 1000,
    "backwards": lambda now: 4e9 - now,
    "stopped": lambda now: 1.8e9,
    "jumping": lambda now: now + 3600 * ((now * 1e3) % 7 - 3),
}
AGES = {"of 1970": 0.0, "of 2100": 4.1e9, "of 1901": -(2.0**31)}
ROOM = (0, 1, 200, 1000, 4000, 20_000, 100_000)
"""Bytes that a file or a disk has room for."""


@dataclasses.dataclass(frozen=True)
class Condition:
    """A call in bad conditions."""

    call: str
    kind: str
    value: str
    area: str = "conditions"

    def to_dict(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "condition": self.kind, "kind": "condition"}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Condition:
        return cls(record["call"], record["condition"], record["value"])

    def __str__(self) -> str:
        return f"{self.kind} {self.value}: {self.call}"


def conditions(seed: int) -> Iterator[Condition]:
    """Yield every call in every condition, in random order."""
    made = [
        *(Condition(name, "file size", str(room)) for name in WRITABLE for room in ROOM),
        *(Condition(name, "clock", value) for name in WRITABLE for value in CLOCKS),
        *(Condition(name, "files", value) for name in WRITABLE for value in AGES),
    ]
    if can_mount():
        made += [Condition(name, "disk", str(room)) for name in WRITABLE for room in ROOM[2:]]
        made += [Condition(name, "read-only", "") for name in WRITABLE]
    random.Random(seed).shuffle(made)
    yield from made


@functools.cache
def can_mount() -> bool:
    """Return whether this process can mount a file system, for small and read-only disks."""
    if os.geteuid():
        return False
    with tempfile.TemporaryDirectory() as folder:
        is_mounted = _mount("-t", "tmpfs", "tmpfs", folder)
        if is_mounted:
            subprocess.run(["umount", folder], check=True)
    return is_mounted


def _mount(*words: str) -> bool:
    return subprocess.run(["mount", *words], capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def disk(folder: Path) -> Iterator[Callable[[str], None]]:
    """Put a disk of its own over a folder; the function changes its options: ``size=4k``, ``ro``."""
    if not _mount("-t", "tmpfs", "tmpfs", str(folder)):
        raise RuntimeError(f"cannot mount a file system at {folder}")
    try:
        yield lambda options: _mount("-o", f"remount,{options}", str(folder)) and None
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def endure(arena: Arena, condition: Condition) -> tuple[Verdict, Outcome]:
    """Make a call in bad conditions and judge it; then without them, and it must succeed."""
    call = CALLS[condition.call]
    arena.usual(call)
    if condition.kind not in ("disk", "read-only"):
        calls.copy(arena.clean, arena.here, call.needs)
        return _judged(arena, call, condition)
    calls.copy(arena.clean, arena.here, ())
    with disk(arena.here) as change:
        calls.fill(arena.clean, arena.here, call.needs)
        if condition.kind == "disk":
            used = shutil.disk_usage(arena.here).used
            change(f"size={used + int(condition.value)}")
        else:
            change("ro")
        return _judged(arena, call, condition, lambda: change("rw,size=1g"))


def _judged(
    arena: Arena, call: Call, condition: Condition, relieve: Callable[[], None] = lambda: None
) -> tuple[Verdict, Outcome]:
    usual, expected, texts = arena.usual(call)
    if condition.kind == "files":
        age = AGES[condition.value]
        for path in arena.here.rglob("*"):
            if not path.is_symlink():
                os.utime(path, (age, age))
    before = calls.digests(arena.here)
    outcome = _in_condition(arena, call, condition)
    relieve()
    after = calls.digests(arena.here)
    verdict = calls.obvious(outcome)
    if verdict is None and (gone := calls.lost(call, before, after, outcome.code)):
        verdict = Verdict(calls.LOST, f"exit code {outcome.code}: {gone}")
    result = Result.of(call, outcome, after)
    if verdict is None and outcome.code == 0 and result != expected:
        said = calls.notes(outcome, usual, calls.texts_of(call, arena.here), texts)
        kind = calls.NOTED if said else calls.SILENT
        verdict = Verdict(kind, "\n".join(said)[-300:] or describe_difference(expected, result))
    if verdict is None and outcome.code and condition.kind in ("clock", "files"):
        verdict = Verdict(calls.LOCKED, f"refused: {(outcome.err or outcome.out).strip()[-300:]}")
    if (verdict is not None and verdict.failed) or not outcome.code:
        return verdict or Verdict(calls.OK), outcome
    again = arena.run(call)
    files = calls.digests(arena.here)
    if Result.of(call, again, files) != expected and not (again.code == 0 and calls.notes(again, usual)):
        return Verdict(
            calls.LOCKED, f"again without {condition.kind}: {(again.err or again.out)[-300:]}"
        ), outcome
    if left := [path for path in files if path.endswith(".polariscope.part")]:
        return Verdict(calls.LEFTOVER, ", ".join(left)), outcome
    return Verdict(calls.REFUSED, outcome.err.strip()[-300:]), outcome


def _in_condition(arena: Arena, call: Call, condition: Condition) -> Outcome:
    if condition.kind == "file size":
        room = int(condition.value)
        return arena.run(call, before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
    if condition.kind == "clock":
        return arena.run(call, before=lambda: _set_clock(CLOCKS[condition.value]))
    return arena.run(call)


def _set_clock(clock: Callable[[float], float]) -> None:
    now = time.time
    time.time = lambda: clock(now())
    time.time_ns = lambda: int(clock(now()) * 1e9)
