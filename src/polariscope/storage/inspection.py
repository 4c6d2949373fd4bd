"""Is everything in a folder whole? Every hash is verified, and what is damaged is named with what can be done."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from polariscope import storage as layout
from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.models.model import read_model
from polariscope.storage import documents
from polariscope.storage.artefacts import FILE_NAME, verify
from polariscope.storage.documents import DamagedError
from polariscope.storage.folder import RunFolder
from polariscope.storage.journal import FILE_NAME as JOURNAL_NAME
from polariscope.storage.journal import verify_journal
from polariscope.storage.search_folder import SearchFolder

State = Literal["whole", "damaged", "set aside", "leftover", "unknown"]
REPEAT = "cannot be recomputed: repeat the run in another folder"
RESUME = "run the same train command again: it is made from the last whole checkpoint"
COMMANDS = {
    "regime": "diagnose",
    "decomposition": "diagnose --decompose",
    "scores": "score",
    "geometry": "report",
    "comparison": "compare",
    "course": "course",
}


ANSWERS = ((layout.SIZE, "size"), (layout.SIZES, "sizes"), (layout.CURVE, "curve"))
"""Files in the folder of a search that hold its results, and what kind of document each is."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """What is to be said of one file."""

    path: Path
    state: State
    what: str = ""
    """What is wrong with it."""
    remedy: str = ""
    """What can be done about it."""


def inspect_folder(path: str | Path) -> list[Finding]:
    """Verify everything in the folder of a run or of a sizing search."""
    path = Path(path)
    if layout.is_run(path):
        with contextlib.suppress(DamagedError):  # of another format nothing below can be judged
            _ = RunFolder(path).settings
        return list(_run(RunFolder(path)))
    if layout.is_search(path):
        for file, kind in ANSWERS:
            if (path / file).exists():
                with contextlib.suppress(DamagedError):
                    documents.read_document(path / file, kind)
        return list(_search(SearchFolder(path)))
    raise InputError(problem=f"{path} is neither a run nor a sizing search", remedy="give the folder of one")


def _run(run: RunFolder) -> Iterator[Finding]:
    seen = {
        layout.LOCK,
        layout.ARTEFACT_LOCK,
        layout.ASKED,
        layout.SETTINGS,
        layout.LOG,
        layout.MODEL,
        layout.CHECKPOINTS,
        layout.TIMING,
    }
    seen |= {layout.REPORT, layout.TENSORBOARD, layout.SIMILARITY, layout.SIMILARITY_PICTURE}
    yield _verify(run.path / layout.SETTINGS, lambda _: run.settings, REPEAT)
    log = run.path / layout.LOG
    if log.exists() or run.model_file.exists():
        yield _verify(log, lambda _: run.read_log(), REPEAT)
    if run.model_file.exists():
        is_manipulation = False
        with contextlib.suppress(PolariscopeError):
            is_manipulation = run.kind == layout.MANIPULATION
        read = files.read_tensors if is_manipulation else read_model
        yield _verify(
            run.model_file, read, RESUME.replace("train", "manipulate") if is_manipulation else RESUME
        )
    if (run.path / layout.FAILURE).exists():
        seen.add(layout.FAILURE)
        yield _verify(run.path / layout.FAILURE, lambda _: run.failure(), "delete it")
    for step in run.checkpoints.steps:
        remedy = "delete it: it is passed over; other checkpoints stand for themselves"
        yield _verify(run.checkpoints.path(step), functools.partial(_checkpoint, run, step), remedy)
    for entry in sorted(run.path.iterdir()):
        if match := FILE_NAME.fullmatch(entry.name):
            command = COMMANDS.get(match[1])
            again = f"delete it, then polariscope {command} {run.path} with the same settings makes it again"
            remedy = again if command else "delete it: it is computed again when it is needed"
            if match[1] == "size":
                remedy = "delete it; training with the size of the search keeps its answer again"
            yield _verify(entry, verify, remedy)
        elif JOURNAL_NAME.fullmatch(entry.name):
            remedy = f"delete it, then polariscope course {run.path} with the same settings measures it again"
            yield _verify(entry, verify_journal, remedy)
        elif entry.name.endswith(layout.ASIDE):
            yield Finding(
                entry, "set aside", "it was damaged, and made again under its own name", "delete it"
            )
        elif entry.name.endswith(files.PART):
            yield _leftover(entry)
        elif entry.name.startswith((layout.LEASE, layout.CLAIM, layout.CLOCK, layout.ASIDE)):
            continue
        elif entry.name not in seen and not re.fullmatch(r"report-step-\d+\.html", entry.name):
            yield Finding(entry, "unknown", "it is not a file of polariscope")
    if run.checkpoints.folder.is_dir():
        for entry in sorted(run.checkpoints.folder.rglob(f".*{files.PART}")):
            yield _leftover(entry)


def _checkpoint(run: RunFolder, step: int, path: Path) -> object:
    del path
    return run.checkpoints.read(step)


def _search(search: SearchFolder) -> Iterator[Finding]:
    again = "size again with the same command: models that were trained are not trained again"
    for name, kind in ANSWERS:
        if (search.path / name).exists():
            yield _verify(search.path / name, functools.partial(documents.read_document, kind=kind), again)
    for seed in search.seeds():
        yield _verify(
            seed.path / layout.RECIPE,
            functools.partial(documents.read_document, kind="recipe"),
            "cannot be recomputed: size again in another folder",
        )
        for memo in sorted(seed.path.glob("*.json")):
            if memo.name != layout.RECIPE:
                remedy = "delete it, and size again: the values are measured again"
                kind = "points" if memo.name == layout.POINTS else "memo"
                yield _verify(memo, functools.partial(documents.read_document, kind=kind), remedy)
        for model in seed.models():
            yield from _run(model)
        for entry in sorted(seed.path.glob(f".*{files.PART}")):
            yield _leftover(entry)
    for folder in search.methods:
        yield from _search(SearchFolder(folder))
    for entry in sorted(search.path.glob(f".*{files.PART}")):
        yield _leftover(entry)


def _leftover(path: Path) -> Finding:
    return Finding(
        path,
        "leftover",
        "a process that wrote it was killed, or is writing now",
        "the next command removes it",
    )


def _verify(path: Path, read: Callable[[Path], object], remedy: str) -> Finding:
    try:
        read(path)
    except (PolariscopeError, OSError, KeyError, TypeError, ValueError) as error:
        return Finding(path, "damaged", str(error), remedy)
    return Finding(path, "whole")
