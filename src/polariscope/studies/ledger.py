"""The record of a study: the state of each run (waiting, running, done, failed) is read from its folder.

Next to the run folders are readable links to them, the resolved design, and results over several runs. All of these can
be rebuilt from the run folders and the study file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from polariscope.core import files
from polariscope.core.errors import Argument, InputError, PolariscopeError
from polariscope.core.paths import user_path
from polariscope.core.records import to_plain
from polariscope.core.text import listed
from polariscope.core.types import Recordable
from polariscope.data.dataset import AbstractDataset
from polariscope.runs.given_run import GivenRun
from polariscope.runs.run import Run
from polariscope.storage import LINKS, STUDY, documents
from polariscope.storage.folder import RunFolder
from polariscope.storage.lease import is_taken
from polariscope.studies.analyses import AbstractOnce, AbstractOver
from polariscope.studies.analyses.encode import EncodeAnalysis
from polariscope.studies.design import StudyDesign
from polariscope.studies.planned_runs import StudyRun, is_named_by_its_settings, once_settings, plan_runs

DESIGN = STUDY
ONCE = "once"
OVER = "over"
RESULT = "result.json"
PAGE = "study.html"

State = Literal["waiting", "running", "done", "failed"]
STATES: tuple[State, ...] = ("waiting", "running", "done", "failed")


@dataclasses.dataclass(frozen=True)
class Entry:
    """State and progress of one run."""

    run: StudyRun
    state: State
    step: int
    """Gradient steps that are saved."""
    kind: str = ""
    """Kind of failure: diverged, timeout, error."""
    message: str = ""
    """Reason of the failure, or why a trained run is waiting."""


@dataclasses.dataclass(frozen=True)
class Shortcoming:
    """Reason why a run is not done."""

    message: str = ""
    """Damaged or missing result of a trained run; empty if training has not finished."""
    is_failure: bool = False
    """If True, an analysis raised an error that is neither about missing nor about damaged files."""


@dataclasses.dataclass(frozen=True)
class OnceTask:
    """An analysis that is done once for a dataset and an objective."""

    name: str
    analysis: AbstractOnce
    data: Mapping[str, object]
    settings: Mapping[str, object]
    folder: Path

    @property
    def search(self) -> Path:
        """Folder in which the analysis stores its results."""
        return self.folder / "search"


@dataclasses.dataclass(frozen=True)
class OverTask:
    """An analysis over runs that differ only in their seed."""

    name: str
    analysis: AbstractOver
    runs: tuple[StudyRun, ...]
    folder: Path

    @property
    def key(self) -> dict[str, Any]:
        """Everything that the result depends on: analysis, options and runs."""
        hashes = [run.hash for run in self.runs]
        return {"analysis": self.name, "options": to_plain(self.analysis), "runs": hashes}


class Ledger:
    """The record of which runs and results of a study exist.

    :param study: the design.
    :param runs: (default: planned from the design) runs of the design, if they have been planned already.
    :param allow_import: (default False) if True, models of the design can be imported by the name of a function.
    """

    def __init__(
        self, study: StudyDesign, runs: list[StudyRun] | None = None, *, allow_import: bool = False
    ) -> None:
        self.study = study
        self.allow_import = allow_import
        self.folder = Path(study.out)
        self.every = plan_runs(study) if runs is None else runs
        """All runs of the design."""
        self.runs = self.every[: study.limits.max_runs]
        """Runs within the budget."""
        self.page = self.folder / PAGE
        self._done: dict[str, tuple[object, ...]] = {}

    @classmethod
    def open(cls, folder: str | Path, *, allow_import: bool = False) -> Ledger:
        """Open the ledger of a study that has been started.

        :param folder: folder of the study.
        :param allow_import: (default False) if True, models of the design can be imported by the name of a function.
        """
        file = user_path(folder, "folder") / DESIGN
        if not file.exists():
            raise InputError(problem=f"{folder} is not the folder of a study: it has no {DESIGN}")
        design = StudyDesign.from_dict(documents.read_document(file, "study").content)
        return cls(design, allow_import=allow_import)

    def prepare(self) -> None:
        """Write the design and the readable links; files that are up to date are not touched."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content, earlier = self.study.to_dict(), None
        # A design that cannot be read is written again.
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
            with contextlib.suppress(FileExistsError):  # the link exists and is correct
                (links / name).symlink_to(target, target_is_directory=True)

    def check_imports(self) -> None:
        """Raise an error if the design imports models and this is not allowed; nothing has been computed then."""
        imported = [model for model in self.study.given() if model.imported is not None]
        if imported and not self.allow_import:
            raise InputError(
                problem=(
                    f"the study imports {listed([f'{each.name} ({each.imported})' for each in imported])}, which runs "
                    "code of these modules"
                ),
                remedy=("if you trust them, allow it with ", Argument("allow_import", True)),
            )

    # State of runs.

    def is_done(self, run: StudyRun) -> bool:
        """Return True if a run and all its requested results exist and are intact; every hash is checked."""
        return self.shortcoming(run) is None

    def shortcoming(self, run: StudyRun) -> Shortcoming | None:
        """Return the reason why a run is not done; None if it is done.

        :param run: a run of the study.
        """
        try:
            if not is_trained(run):
                return Shortcoming()
            self.check(run)
        except (PolariscopeError, OSError) as error:
            return Shortcoming(str(error))
        except Exception as error:
            # Any other error is a mistake in an analysis, possibly of a plug-in. The other runs still have a state.
            return Shortcoming(f"{type(error).__name__}: {error}", is_failure=True)
        return None

    def opened(
        self, run: StudyRun, data: AbstractDataset | None = None, guard: files.Guard | None = None
    ) -> Run:
        """Open the results of a run or of a model that was trained elsewhere; without data, they are only read.

        :param run: a run of the study.
        :param data: (default None) its data.
        :param guard: (default None) function called before every write; without it, missing results are not computed.
        """
        read_only = guard is None
        if run.given is None:
            return Run(run.folder, data, guard=guard, read_only=read_only)
        return GivenRun(
            run.folder, run.given, data, guard=guard, read_only=read_only, allow_import=self.allow_import
        )

    def check(self, run: StudyRun) -> None:
        """Read all requested results of a trained run; raise an error if something is missing or damaged.

        :param run: a run of the study.
        """
        opened = self.opened(run)
        opened.log()
        opened.digest()
        opened.folder.artefacts.check_all()  # results over several runs use cached codes, too
        for step in self.steps_of(opened):
            for _, analysis in self.measurements():
                analysis.measure(opened, step)

    def measurements(self) -> list[tuple[str, Any]]:
        """Return the analyses of each run by name, each after the encoding that it requires, which is checked too."""
        measurements: list[tuple[str, Any]] = []
        for name, analysis in self.study.analyses("each").items():
            codes = EncodeAnalysis(**analysis.where)
            measurements += [
                each for each in (("encode", codes), (name, analysis)) if each not in measurements
            ]
        return measurements

    def steps_of(self, opened: Run) -> list[int | None]:
        """Return the models of a run that are analysed: the finished one, or each of its checkpoints.

        :param opened: a finished run.
        """
        if not self.study.checkpoints:
            return [None]
        finished = opened.folder.finished_steps  # not the last one if training stopped early
        return [None if step == finished else step for step in opened.steps]

    def looks_done(self, run: StudyRun) -> bool:
        """Return True if a run was done when its files last changed: for display, not for decisions."""
        return self._shown_shortcoming(run) is None

    def _shown_shortcoming(self, run: StudyRun) -> Shortcoming | None:
        """Return the reason why a run is not done; one that was done is checked again only if its files changed."""
        if not is_trained(run):
            return Shortcoming()
        model = RunFolder(run.folder).model_file if run.given is None else run.folder
        if not model.exists():
            return Shortcoming()
        # Adding or removing a file changes the folder's time; further training changes the model's time.
        stamp = (run.folder.stat().st_mtime_ns, model.stat().st_mtime_ns)
        if self._done.get(run.hash) == stamp:
            return None
        shortcoming = self.shortcoming(run)
        if shortcoming is None:
            self._done[run.hash] = stamp
        return shortcoming

    def failure(self, run: StudyRun) -> dict[str, Any] | None:
        """Return kind and reason of a failure; None if there is none, or if its record is unreadable."""
        try:
            return RunFolder(run.folder).failure()
        except PolariscopeError:
            return None

    def entry(self, run: StudyRun) -> Entry:
        """Return the state of a run.

        :param run: a run of the study.
        """
        step = saved_steps(run)
        shortcoming = self._shown_shortcoming(run)
        if shortcoming is None:
            return Entry(run, "done", RunFolder(run.folder).finished_steps or step)
        if failure := self.failure(run):
            return Entry(run, "failed", step, failure["kind"], failure["message"])
        if is_taken(run.folder):
            return Entry(run, "running", step)
        if shortcoming.is_failure:
            return Entry(run, "failed", step, "error", shortcoming.message)
        return Entry(run, "waiting", step, message=shortcoming.message)

    def entries(self) -> list[Entry]:
        """Return the state of each run within the budget."""
        return [self.entry(run) for run in self.runs]

    def counts(self) -> dict[State, int]:
        """Return the number of runs in each state."""
        counts = Counter(entry.state for entry in self.entries())
        return {state: counts[state] for state in STATES}

    # Analyses done once, and over several runs.

    def once_tasks(self) -> list[OnceTask]:
        """Return the analyses to do once for each dataset and objective."""
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
        """Return the analyses over runs that differ only in their seed; failed runs are left out."""
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
        """Return the result over these runs; None if it is missing, damaged, or belongs to other runs.

        :param task: the analysis and its runs.
        """
        with contextlib.suppress(OSError, PolariscopeError):
            document = documents.read_document(task.folder / RESULT, "over")
            if document.about == task.key:
                return document.content
        return None

    def keep_over_result(self, task: OverTask, content: Recordable, guard: files.Guard | None = None) -> None:
        """Store a result over several runs.

        :param task: the analysis and its runs.
        :param content: the result.
        :param guard: (default None) called before the file is written.
        """
        documents.write_document(task.folder / RESULT, "over", content, task.key, guard)

    # Failed runs and leftover folders.

    def retry(self, kinds: tuple[str, ...] = ()) -> list[StudyRun]:
        """Mark failed runs to be tried again, and return them.

        :param kinds: (default: all) only runs with these kinds of failure: diverged, timeout, error.
        """
        retried = []
        for run in self.every:
            failure = self.failure(run)
            if failure is not None and (not kinds or failure["kind"] in kinds):
                RunFolder(run.folder).forget_failure()
                retried.append(run)
        return retried

    def others(self) -> Iterator[Path]:
        """Yield run folders inside the study's folder that an earlier design of the study began.

        Folders that were not made by a study are never yielded, nor are runs whose settings are damaged.
        """
        runs_folder = self.folder / "runs"
        wanted = {run.folder.resolve() for run in self.every}
        # A folder of runs elsewhere can be shared with other studies, whose runs must not be removed.
        if Path(str(self.study.runs)).resolve() != runs_folder.resolve() or not runs_folder.is_dir():
            return
        for folder in sorted(runs_folder.iterdir()):
            is_other = folder.is_dir() and folder.resolve() not in wanted
            if is_other and is_named_by_its_settings(folder) and not is_taken(folder):
                yield folder


def is_trained(run: StudyRun) -> bool:
    """Return True if the training that the study requires has ended, at its last step or early.

    :param run: a run of the study.
    """
    return run.given is not None or RunFolder(run.folder).is_finished_for(run.steps)


def saved_steps(run: StudyRun) -> int:
    """Return the gradient steps of a run that are saved on disk."""
    folder = RunFolder(run.folder)
    return max([*folder.checkpoints.steps, folder.finished_steps or 0], default=0)
