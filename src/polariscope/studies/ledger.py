"""The record of a study. The run folders are the truth: waiting, running, done and failed are read from them.

Beside them are readable links to the folders, the design as it was resolved, and what was measured over several runs.
All of it can be made again from the run folders and the study's file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.records import to_plain
from polariscope.core.types import Recordable
from polariscope.runs.results import NotCachedError
from polariscope.runs.run import Run
from polariscope.storage import LINKS, documents
from polariscope.storage.documents import DamagedError
from polariscope.storage.folder import RunFolder
from polariscope.storage.lease import is_taken
from polariscope.studies.analyses import AbstractOnce, AbstractOver
from polariscope.studies.analyses.encode import EncodeAnalysis
from polariscope.studies.design import StudyDesign
from polariscope.studies.planned_runs import StudyRun, once_settings, plan_runs

logger = logging.getLogger("polariscope")

DESIGN = "study.json"
ONCE = "once"
OVER = "over"
RESULT = "result.json"
PAGE = "study.html"

State = Literal["waiting", "running", "done", "failed"]
STATES: tuple[State, ...] = ("waiting", "running", "done", "failed")


@dataclasses.dataclass(frozen=True)
class Entry:
    """How far one run is."""

    run: StudyRun
    state: State
    step: int
    """Gradient steps that are saved."""
    kind: str = ""
    """How it failed: diverged, timeout, error."""
    message: str = ""
    """Why it failed."""


@dataclasses.dataclass(frozen=True)
class OnceTask:
    """Something to find once for some data and an objective."""

    name: str
    analysis: AbstractOnce
    data: Mapping[str, object]
    settings: Mapping[str, object]
    folder: Path

    @property
    def search(self) -> Path:
        """Where the analysis keeps what it finds."""
        return self.folder / "search"


@dataclasses.dataclass(frozen=True)
class OverTask:
    """Something to measure over runs that differ in their seed only."""

    name: str
    analysis: AbstractOver
    runs: tuple[StudyRun, ...]
    folder: Path

    @property
    def key(self) -> dict[str, Any]:
        """What the result depends on."""
        hashes = [run.hash for run in self.runs]
        return {"analysis": self.name, "options": to_plain(self.analysis), "runs": hashes}


class Ledger:
    """What of a study is there, and what is not.

    :param study: the design.
    :param runs: (default: as the design has them) its runs, where they are known already.
    """

    def __init__(self, study: StudyDesign, runs: list[StudyRun] | None = None) -> None:
        self.study = study
        self.folder = Path(study.out)
        self.every = plan_runs(study) if runs is None else runs
        """All runs of the design."""
        self.runs = self.every[: study.limits.max_runs]
        """Those within the budget."""
        self.page = self.folder / PAGE
        self._done: dict[str, tuple[object, ...]] = {}

    @classmethod
    def open(cls, folder: str | Path) -> Ledger:
        """The ledger of a study that was begun.

        :param folder: that of the study.
        """
        file = Path(folder) / DESIGN
        if not file.exists():
            raise InputError(problem=f"{folder} is not the folder of a study: it has no {DESIGN}")
        return cls(StudyDesign.from_dict(documents.read_document(file, "study").content))

    def prepare(self) -> None:
        """Write the design and the readable links. What is there and right stays as it is."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content, earlier = self.study.to_dict(), None
        with contextlib.suppress(OSError, PolariscopeError):
            earlier = documents.read_document(self.folder / DESIGN, "study").content
        if content != earlier:
            documents.write_document(self.folder / DESIGN, "study", content)
        links = self.folder / LINKS
        links.mkdir(exist_ok=True)
        wanted = {run.name: os.path.relpath(run.folder, links) for run in self.every}
        for link in links.iterdir():
            if link.is_symlink() and wanted.get(link.name) != os.readlink(link):
                link.unlink(missing_ok=True)
        for name, target in wanted.items():
            with contextlib.suppress(FileExistsError):  # there already, and right
                (links / name).symlink_to(target, target_is_directory=True)

    # What is known of a run.

    def is_done(self, run: StudyRun) -> bool:
        """Whether a run and all that is asked of it are there and whole: every hash is checked."""
        try:
            self.check(run)
        except (NotCachedError, PolariscopeError, OSError):
            return False
        return True

    def check(self, run: StudyRun) -> None:
        """Read everything that is asked of a run; raises where something is not there or not whole.

        :param run: one of the study.
        """
        opened = Run(run.folder, read_only=True)
        if not is_trained(run):
            raise NotCachedError(f"{run.folder} is not finished.")
        opened.log()
        opened.digest()
        for step in self.steps_of(opened):
            for _, analysis in self.measurements():
                analysis.measure(opened, step)

    def measurements(self) -> list[tuple[str, Any]]:
        """What is measured of each run, by name, each after the codes that it needs, which are checked too."""
        measurements: list[tuple[str, Any]] = []
        for name, analysis in self.study.analyses("each").items():
            codes = EncodeAnalysis(**analysis.where)
            measurements += [
                each for each in (("encode", codes), (name, analysis)) if each not in measurements
            ]
        return measurements

    def steps_of(self, opened: Run) -> list[int | None]:
        """Which models of a run are measured: the finished one, or each of its checkpoints.

        :param opened: a finished run.
        """
        if not self.study.checkpoints:
            return [None]
        finished = opened.folder.finished_steps  # not the last one if training stopped early
        return [None if step == finished else step for step in opened.steps]

    def looks_done(self, run: StudyRun) -> bool:
        """Whether a run is done, by the headers and names of its files: for a display, not for a decision."""
        if not is_trained(run):
            return False
        model = RunFolder(run.folder).model_file
        # The time of the folder changes when a file is added or removed, that of the model when it is trained on.
        stamp = (run.folder.stat().st_mtime_ns, model.stat().st_mtime_ns)
        if self._done.get(run.hash) != stamp:
            if not self.is_done(run):
                return False
            self._done[run.hash] = stamp
        return True

    def failure(self, run: StudyRun) -> dict[str, Any] | None:
        """How and why a run failed; None if it did not, or if that cannot be read: then it is tried again."""
        try:
            return RunFolder(run.folder).failure()
        except PolariscopeError:
            return None

    def entry(self, run: StudyRun) -> Entry:
        """How far a run is.

        :param run: one of the study.
        """
        step = saved_steps(run)
        if self.looks_done(run):
            return Entry(run, "done", RunFolder(run.folder).finished_steps or step)
        if failure := self.failure(run):
            return Entry(run, "failed", step, failure["kind"], failure["message"])
        return Entry(run, "running" if is_taken(run.folder) else "waiting", step)

    def entries(self) -> list[Entry]:
        """How far each run within the budget is."""
        return [self.entry(run) for run in self.runs]

    def counts(self) -> dict[State, int]:
        """Number of runs in each state."""
        counts = Counter(entry.state for entry in self.entries())
        return {state: counts[state] for state in STATES}

    # What is done once, and over all.

    def once_tasks(self) -> list[OnceTask]:
        """What is to be determined once for each data and objective."""
        tasks: dict[str, OnceTask] = {}
        for name, analysis in self.study.analyses("once").items():
            for run in self.runs:
                settings = once_settings(run.point)
                key = files.digest([name, to_plain(analysis), run.point.data, settings])[:16]
                if key not in tasks:
                    folder = self.folder / ONCE / f"{name}-{key}"
                    tasks[key] = OnceTask(name, analysis, run.point.data, settings, folder)
        return list(tasks.values())

    def over_tasks(self) -> list[OverTask]:
        """What is to be measured over runs that differ in their seed only; failed runs are left out."""
        groups: dict[str, list[StudyRun]] = {}
        for run in self.runs if self.study.analyses("over") else []:
            if self.looks_done(run):
                groups.setdefault(run.group, []).append(run)
        return [
            OverTask(name, analysis, tuple(runs), self.folder / OVER / f"{name}-{group}")
            for name, analysis in self.study.analyses("over").items()
            for group, runs in groups.items()
            if len(runs) > 1
        ]

    def over_result(self, task: OverTask) -> dict[str, Any] | None:
        """What was measured over these runs; None if that is not there, not whole, or of other runs.

        :param task: what is asked for.
        """
        with contextlib.suppress(OSError, PolariscopeError):
            document = documents.read_document(task.folder / RESULT, "over")
            if document.about == task.key:
                return document.content
        return None

    def keep_over_result(self, task: OverTask, content: Recordable, guard: files.Guard | None = None) -> None:
        """Keep what was measured over some runs.

        :param task: what was asked for.
        :param content: what came of it.
        :param guard: (default None) called before it is written.
        """
        documents.write_document(task.folder / RESULT, "over", content, task.key, guard)

    # What is done about failed runs and leftovers.

    def retry(self, kinds: tuple[str, ...] = ()) -> list[StudyRun]:
        """Let failed runs be tried again; those that were.

        :param kinds: (default: all) only those that failed so: diverged, timeout, error.
        """
        retried = []
        for run in self.every:
            failure = self.failure(run)
            if failure is not None and (not kinds or failure["kind"] in kinds):
                RunFolder(run.folder).forget_failure()
                retried.append(run)
        return retried

    def others(self) -> Iterator[Path]:
        """Run folders in the study's folder that no run of the design has: of an earlier design."""
        runs_folder = self.folder / "runs"
        wanted = {run.folder.resolve() for run in self.every}
        # A folder of runs elsewhere may be shared with other studies, whose runs are not ours to remove.
        if Path(str(self.study.runs)).resolve() != runs_folder.resolve() or not runs_folder.is_dir():
            return
        for folder in sorted(runs_folder.iterdir()):
            if folder.is_dir() and folder.resolve() not in wanted and not is_taken(folder):
                yield folder


def is_trained(run: StudyRun) -> bool:
    """Return whether the training that the study asks for has ended, at its last step or early.

    :param run: one of the study.
    """
    return RunFolder(run.folder).is_finished_for(run.steps)


def saved_steps(run: StudyRun) -> int:
    """Gradient steps of a run that would not be lost now."""
    folder = RunFolder(run.folder)
    return max([*folder.checkpoints.steps, folder.finished_steps or 0], default=0)


def repair(folder: RunFolder) -> None:
    """Put a run aside whose settings or log are damaged; nothing that follows could be trusted.

    :param folder: that of the run, with the guard of who repairs it.
    """
    if not folder.is_begun:
        return
    try:
        _ = folder.settings
        folder.read_log()
    except (DamagedError, OSError) as error:
        logger.warning("%s It is made again; what is there is kept in %s.", error, folder.set_aside())
