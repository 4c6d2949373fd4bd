"""Verification of all files in a folder: every hash is checked, and damaged files are listed with a remedy."""

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
RESUME = "run the same train command again: it is restored from the last undamaged checkpoint"
COMMANDS = {
    "regime": "diagnose",
    "decomposition": "diagnose --decompose",
    "scores": "score",
    "geometry": "report",
    "comparison": "compare",
    "course": "course",
}


ANSWERS = ((layout.SIZE, "size"), (layout.SIZES, "sizes"), (layout.CURVE, "curve"))
"""Result files of a search, and the kind of each document."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """Result of the verification of one file."""

    path: Path
    state: State
    what: str = ""
    """Description of the problem."""
    remedy: str = ""
    """Recommended action."""


def inspect_folder(path: str | Path) -> list[Finding]:
    """Verify all files in the folder of a run or of a sizing search."""
    path = Path(path)
    if layout.is_run(path):
        with contextlib.suppress(
            DamagedError
        ):  # a FormatError is raised here, because nothing below can be verified in another format
            _ = RunFolder(path).settings
        return list(_run(RunFolder(path)))
    if layout.is_search(path):
        for file, kind in ANSWERS:
            if (path / file).exists():
                # As above, an incompatible format is raised, and damage is listed below.
                with contextlib.suppress(DamagedError):
                    documents.read_document(path / file, kind)
        return list(_search(SearchFolder(path)))
    raise InputError(problem=f"{path} is neither a run nor a sizing search", remedy="pass the folder of one")


def _run(run: RunFolder) -> Iterator[Finding]:
    seen = {
        layout.LOCK,
        layout.ARTEFACT_LOCK,
        layout.LAST_USED,
        layout.SETTINGS,
        layout.LOG,
        layout.MODEL,
        layout.CHECKPOINTS,
        layout.TIMING,
    }
    seen |= {layout.REPORT, layout.TENSORBOARD, layout.SIMILARITY, layout.SIMILARITY_PICTURE}
    settings = _verify(run.path / layout.SETTINGS, lambda _: run.settings, REPEAT)
    yield settings
    log = run.path / layout.LOG
    # The chain of the log starts from the settings, so without them it cannot be verified.
    if settings.state != "whole":
        if log.exists():
            yield Finding(log, "unknown", f"it cannot be verified without {layout.SETTINGS}")
    elif log.exists() or run.model_file.exists() or run.checkpoints.steps:
        yield _verify(log, lambda _: run.read_log(), REPEAT)
        yield from _incomplete(log, "the next train command removes it")
    if run.model_file.exists():
        is_manipulation = False
        with contextlib.suppress(PolariscopeError):
            is_manipulation = run.kind == layout.MANIPULATION
        read = files.read_tensors if is_manipulation else read_model

        def read_own(file: Path) -> None:
            read(file)
            _check_belongs(run, file)

        yield _verify(
            run.model_file, read_own, RESUME.replace("train", "manipulate") if is_manipulation else RESUME
        )
    if (run.path / layout.TIMING).exists():
        read_timing = functools.partial(documents.read_document, kind="timing")
        yield _verify(run.path / layout.TIMING, read_timing, "delete it: only times are lost")
    if (run.path / layout.FAILURE).exists():
        seen.add(layout.FAILURE)
        yield _verify(run.path / layout.FAILURE, lambda _: run.failure(), "delete it")
    for step in run.checkpoints.steps:
        remedy = "delete it: it is ignored, and other checkpoints do not depend on it"
        if len(run.checkpoints.steps) == 1:
            remedy = "it is the only checkpoint: results remain, but training cannot be continued"
        yield _verify(run.checkpoints.path(step), functools.partial(_checkpoint, run, step), remedy)
    for entry in sorted(run.path.iterdir()):
        if match := FILE_NAME.fullmatch(entry.name):
            command = COMMANDS.get(match[1])
            again = f"delete it, then run polariscope {command} {run.path} with the same settings to compute it again"
            remedy = again if command else "delete it: it is computed again when required"
            if match[1] == "size":
                remedy = "delete it; training with the size of the search stores its answer again"
            yield _verify(entry, verify, remedy)
        elif JOURNAL_NAME.fullmatch(entry.name):
            remedy = f"delete it, then run polariscope course {run.path} with the same settings to compute it again"
            yield _verify(entry, verify_journal, remedy)
            yield from _incomplete(entry, "the next course command removes it")
        elif entry.name.endswith(layout.ASIDE):
            what = "it was damaged and is computed again when it is required"
            if entry.name == f"{layout.MODEL}{layout.ASIDE}":
                what = "it was damaged or belongs to another run, and the model was made again"
            yield Finding(entry, "set aside", what, "delete it")
        elif entry.name.endswith(files.PART):
            yield _leftover(entry)
        elif entry.name.startswith((layout.LEASE, layout.CLAIM, layout.CLOCK, layout.ASIDE)):
            continue
        elif entry.name not in seen and not re.fullmatch(r"report-step-\d+\.html", entry.name):
            yield Finding(entry, "unknown", "it was not written by polariscope")
    if run.checkpoints.folder.is_dir():
        for entry in sorted(run.checkpoints.folder.rglob(f".*{files.PART}")):
            yield _leftover(entry)


def _checkpoint(run: RunFolder, step: int, path: Path) -> object:
    del path
    checkpoint = run.checkpoints.read(step)
    _check_belongs(run, run.checkpoints.model_file(step))
    return checkpoint


def _check_belongs(run: RunFolder, file: Path) -> None:
    """Check that a model belongs to a run, unless the settings are damaged, which is a finding of its own."""
    try:
        _ = run.settings
    except PolariscopeError:
        return
    run.check_belongs(file)


def _search(search: SearchFolder) -> Iterator[Finding]:
    again = "run the same size command again: trained models are reused"
    readers: dict[str, Callable[[Path], object]] = {
        layout.SIZE: lambda _: search.read_answer(),
        layout.SIZES: functools.partial(documents.read_document, kind="sizes"),
        layout.CURVE: lambda _: search.read_curve(),
    }
    for name, read in readers.items():
        if (search.path / name).exists():
            yield _verify(search.path / name, read, again)
    for seed in search.seeds():
        yield _verify(
            seed.path / layout.RECIPE,
            functools.partial(documents.read_document, kind="recipe"),
            "run the same size command again: it is written from the present settings",
        )
        for memo in sorted(seed.path.glob("*.json")):
            if memo.name != layout.RECIPE:
                remedy = "delete it and run the search again: the values are computed again"
                kind = "points" if memo.name == layout.POINTS else "memo"
                yield _verify(memo, functools.partial(documents.read_document, kind=kind), remedy)
        for model in seed.all_models():
            yield from _run(model)
        for entry in sorted(seed.path.glob(f".*{files.PART}")):
            yield _leftover(entry)
    for folder in search.methods:
        yield from _search(SearchFolder(folder))
    for entry in sorted(search.path.glob(f".*{files.PART}")):
        yield _leftover(entry)


def _incomplete(path: Path, remedy: str) -> Iterator[Finding]:
    """Yield a finding if the last line of a file is incomplete."""
    if path.is_file() and (content := path.read_bytes()) and not content.endswith(b"\n"):
        what = "its last line is incomplete, because the process that wrote it was killed"
        yield Finding(path, "leftover", what, remedy)


def _leftover(path: Path) -> Finding:
    return Finding(
        path,
        "leftover",
        "the process that wrote it was killed, or is still writing",
        "the next command removes it",
    )


def _verify(path: Path, read: Callable[[Path], object], remedy: str) -> Finding:
    try:
        read(path)
    except (PolariscopeError, OSError, KeyError, TypeError, ValueError) as error:
        return Finding(path, "damaged", str(error), remedy)
    return Finding(path, "whole")
