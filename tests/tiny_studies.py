"""Studies that take almost no time, and the parts of them that must be identical byte for byte."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from polariscope.storage import TIMING, documents
from polariscope.storage.folder import RunFolder
from polariscope.storage.lease import newest
from polariscope.studies.planned_runs import StudyRun
from polariscope.studies.study import Study

Found = TypeVar("Found")


def tiny(out: Path, **fields: Any) -> Study:
    """Return a study of linear models on a few Gaussian rows."""
    given: dict[str, Any] = {
        "data": {"name": "gaussian", "n_samples": 60},
        "objective": "beta",
        "settings": {
            **{"net": "linear", "n_latents": 2, "batch_size": 8, "steps": 12},
            **{"log_every": 3, "checkpoint_every": 4, "probe_samples": 8},
        },
        "grid": {"beta": [1.0, 4.0]},
        "each": {"diagnose": {"n_samples": 40, "n_bootstrap": 5}},
        "out": str(out),
    }
    return Study(**{**given, **fields})


def is_logging(run: StudyRun) -> bool:
    """Return True if a run has been trained for some steps: its log has a line."""
    folder = RunFolder(run.folder)
    return folder.is_begun and folder.log.path.exists() and folder.log.path.stat().st_size > 0


def owner_of(run: StudyRun) -> int | None:
    """Return the process that holds a run now, according to its lease."""
    last = newest(run.folder) if run.folder.is_dir() else None
    if last is None:
        return None
    try:
        owner = documents.read_document(last, "lease").content
    except FileNotFoundError:  # the next one has just taken it
        return None
    return owner["process"] if not owner["released"] and Path(f"/proc/{owner['process']}").exists() else None


def wait_for(find: Callable[[], Found], seconds: float = 120.0) -> Found:
    """Wait until ``find`` returns a true value, and return it."""
    patience = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < patience, f"nothing after {seconds:g} seconds"
        time.sleep(0.01)
    return found


def snapshot(study: Study) -> dict[str, str]:
    """Return a hash of every file of every run, except hidden files, files set aside, and records of time."""
    root = Path(str(study.runs))
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and path.name != TIMING
        and not path.name.endswith(".damaged")
        and not any(part.startswith(".") for part in path.relative_to(root).parts)
    }
