"""Run folder: its lock, settings, log, checkpoints and model."""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock

from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.paths import user_path
from polariscope.core.types import Recordable
from polariscope.storage import (
    ASIDE,
    CHECKPOINTS,
    FAILURE,
    GIVEN,
    LOCK,
    LOG,
    MODEL,
    RUN,
    SETTINGS,
    TENSORBOARD,
    TIMING,
)
from polariscope.storage.artefacts import Artefacts
from polariscope.storage.checkpoints import Checkpoint, Checkpoints, Trained
from polariscope.storage.documents import (
    DamagedError,
    ForeignError,
    differences,
    identity_hash,
    read_document,
    read_settings,
    settings_hash,
    write_document,
    write_settings,
)
from polariscope.storage.log import Log, Mark

if TYPE_CHECKING:
    from torch import Tensor

logger = logging.getLogger("polariscope")

STOPPED = "stopped_early_of"
"""Entry in the header of a model whose training stopped early: the number of steps that was requested."""
STOPPED_AT = "stopped_early_at"
"""Entry in the same header: the step at which training stopped. The model is that of an earlier step, the best one."""


class RunFolder:
    """A run folder. Any process can read it; as a context manager it is locked by one process, which can write.

    :param path: the folder.
    :param guard: (default None) function called before every write; it raises if the right to write was lost. The
    caller
        that passes it already holds the folder (:class:`polariscope.storage.lease.Lease`).
    """

    def __init__(self, path: str | Path, guard: files.Guard | None = None) -> None:
        self.path = user_path(path)
        self.guard = guard
        self.checkpoints = Checkpoints(self.path / CHECKPOINTS, guard)
        self.artefacts = Artefacts(self.path, guard)
        self.model_file = self.path / MODEL
        self.tensorboard = self.path / TENSORBOARD
        self._made = False
        self._reported = False
        """If True, a damaged model was reported."""
        self._before: tuple[dict[str, Any], Path] | None = None
        """Settings of a run before :meth:`begin` extended it, and a copy of their file."""
        self._copies = contextlib.ExitStack()

    def __enter__(self) -> RunFolder:
        files.check_target(self.path, "out", folder=True)
        self._refuse_other_things()
        self._made = not self.path.exists()
        try:
            files.make_folder(self.path)
            # A caller with a guard holds the folder already, so the lock is created but not acquired.
            self._lock = filelock.FileLock(self.path / LOCK)
            if self.guard is None:
                self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise PolariscopeError(
                f"{self.path} is being trained by another process; wait for it or choose another folder."
            ) from None
        except OSError as error:
            if isinstance(error, files.WriteError) or error.errno not in files.NOT_WRITABLE:
                raise
            raise files.WriteError.of(self.path, error) from error
        self.remove_leftovers()
        return self

    def remove_leftovers(self) -> None:
        """Delete leftovers of killed processes, also among the checkpoints; files that are being written stay."""
        for folder in (self.path, self.checkpoints.folder):
            files.remove_leftovers(folder)

    def __exit__(self, *_: object) -> None:
        self._copies.close()
        self._lock.release()
        # A run that wrote nothing leaves no folder behind.
        if self.guard is None and self._made and [entry.name for entry in self.path.iterdir()] == [LOCK]:
            (self.path / LOCK).unlink()
            self.path.rmdir()

    def _refuse_other_things(self) -> None:
        """Check that a folder without settings is empty, apart from files of a run that failed early."""
        if others := self._other_things():
            raise InputError(
                "out",
                (
                    f"be a new folder or an earlier run, but {self.path} contains {others[0]!r} and no {SETTINGS}"
                ),
                remedy="choose another folder",
            )

    def _other_things(self) -> list[str]:
        """Return the names in a folder without settings that a run that failed early does not have."""
        if not self.path.is_dir() or self.is_begun:
            return []
        empty = {LOG, TENSORBOARD, FAILURE, TIMING, *([] if self.checkpoints.steps else [CHECKPOINTS])}
        names = sorted(entry.name for entry in self.path.iterdir() if not entry.name.startswith("."))
        return [name for name in names if name not in empty]

    @property
    def is_held(self) -> bool:
        """True if a process is training in this folder now."""
        if not (self.path / LOCK).exists():
            return False
        try:
            with filelock.FileLock(self.path / LOCK, timeout=0):
                return False
        except filelock.Timeout:
            return True
        except OSError:  # a read-only disk
            return False

    @property
    def is_begun(self) -> bool:
        """True if a run was begun in this folder."""
        return (self.path / SETTINGS).exists()

    @property
    def kind(self) -> str:
        """Kind of the folder: ``"run"`` for a model of data, ``"manipulation"`` for a manipulation of data."""
        return self.settings.get("kind", RUN)

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """Settings of the run, checked."""
        return read_settings(self.path)

    @functools.cached_property
    def log(self) -> Log:
        """Log of the run; its chain starts from a hash of the settings."""
        return Log(self.path / LOG, identity_hash(self.settings), self.guard)

    def read_log(self) -> list[dict[str, Any]]:
        """Read the lines of the log, checked against the chain and the newest model or checkpoint."""
        return self.log.read(self.mark())

    def mark(self) -> Mark | None:
        """Return the end of the log when the newest model or checkpoint was saved; None before the first."""
        marks = []
        # A file that cannot be read has no mark, and that of another run has no mark of this log.
        with contextlib.suppress(PolariscopeError):
            if self.model_file.exists():
                self.check_belongs(self.model_file)
            marks += [Mark.from_dict(log) for log in [self.model_header().get("log")] if log is not None]
        for step in self.checkpoints.steps[-1:]:
            with contextlib.suppress(PolariscopeError, OSError, KeyError, TypeError):
                self.check_belongs(self.checkpoints.model_file(step))
                marks.append(self.checkpoints.mark(step))
        # The newest checkpoint can be ahead of the model (an extended run) or behind it, so the later mark counts.
        return max(marks, key=lambda mark: mark.n_lines, default=None)

    @property
    def finished_steps(self) -> int | None:
        """Number of steps of the finished model; None if there is none, or with one warning if it cannot be read."""
        try:
            return self.model_header().get("step")
        except PolariscopeError as error:
            self._report(error)
            return None

    def _report(self, error: PolariscopeError) -> None:
        """Warn once that the finished model cannot be read."""
        if not self._reported:
            self._reported = True
            logger.warning("%s The run counts as unfinished.", error)

    @property
    def is_finished(self) -> bool:
        """True if the folder contains the finished model of its settings."""
        return self.is_begun and self.is_finished_for(self.settings["training"]["steps"])

    def is_finished_for(self, n_steps: int) -> bool:
        """Return True if training for this number of steps has finished here: this is the definition of finished.

        Training finishes when the model has all the steps, or when it stops early. The header of a model that stopped
        early contains the number of steps that was requested (:meth:`save_model`). A request for another number is a
        different training: it resumes from the last checkpoint, stops early at once, and ends with the same weights.

        :param n_steps: requested number of steps.
        """
        try:
            header = self.model_header()
        except PolariscopeError as error:  # a damaged model is not finished: resuming writes it again
            self._report(error)
            return False
        return header.get("step") is not None and n_steps == header.get(STOPPED, header["step"])

    @property
    def stopped_at(self) -> int | None:
        """Step at which early stopping ended the training; None if it did not, or if the model cannot be read."""
        try:
            return self.model_header().get(STOPPED_AT)
        except PolariscopeError:
            return None

    def model_header(self) -> dict[str, Any]:
        """Read the header of the finished model; empty without a model, and an error names a damaged one."""
        return files.read_header(self.model_file) if self.model_file.exists() else {}

    def check_belongs(self, file: Path) -> None:
        """Raise an error if a model was saved by another run: this is the definition of belonging to this run.

        The header of a model contains the identity of its run (the hash from which the chain of the log starts) and
        the mark of the log with which it was saved. Version 0.2.0 recorded only the mark.

        :param file: the finished model or the model of a checkpoint.
        """
        header = files.read_header(file)
        is_foreign = header.get("run", self.log.start.chain) != self.log.start.chain
        try:
            is_foreign |= self.log.contradicts(Mark.from_dict(header["log"]))
        except (KeyError, TypeError, PolariscopeError):  # it was not saved by a run
            is_foreign = True
        if is_foreign:
            raise ForeignError(f"{file} is not a model of the run in {self.path}: another run saved it.")

    def set_model_aside(self) -> Path:
        """Rename a model that is damaged or of another run, so a new one can be written; return its new path."""
        self._check()
        return self.model_file.replace(self.model_file.with_name(f"{MODEL}{ASIDE}"))

    def begin(self, record: dict[str, Any]) -> None:
        """Write the settings of a run; a run with other settings, or with more steps already, raises an error.

        If the run has checkpoints, one of them must be usable: otherwise an error is raised and nothing is changed.
        """
        self.check(record)
        self._check()
        # Called for its error, before anything is written: it raises if no checkpoint is usable.
        if self.checkpoints.steps:
            self._newest_checkpoint()
        log = self.path / LOG
        if log.exists() and not self.checkpoints.steps and not self.model_file.exists():
            if log.stat().st_size:
                logger.warning(
                    "%s has a log, but neither checkpoints nor a model; training restarts from the first step.",
                    self.path,
                )
            log.unlink()
        self.forget_failure()
        earlier = read_settings(self.path) if self.is_begun else None
        if earlier is not None and self.checkpoints.steps:
            record = _as_recorded(earlier, record)
            record["hash"] = settings_hash(record)
            if earlier["training"]["steps"] != record["training"]["steps"]:
                # For revert(), if the extension fails before its first checkpoint. The copy is written now, because
                # a full disk is a likely reason for the failure.
                copy = self._copies.enter_context(files.spare_copy(self.path / SETTINGS))
                self._before = earlier, copy
        if earlier != record:
            write_settings(self.path, record, self.guard)
        self._drop_cached()

    def settle(self, record: dict[str, Any]) -> None:
        """Write the settings of the finished model again if a process that extended the run was killed at once.

        :param record: settings for which the run is finished.
        """
        earlier = read_settings(self.path)
        if earlier["training"]["steps"] == record["training"]["steps"]:
            return
        self._check()
        record = _as_recorded(earlier, {**record, "environment": earlier["environment"]})
        record["hash"] = settings_hash(record)
        self.log.cut(self.mark())
        write_settings(self.path, record, self.guard)
        self._drop_cached()

    def revert(self) -> bool:
        """Restore settings and log of a run if its extension failed before a checkpoint; return True if it did.

        This requires no free space on the disk.
        """
        if self._before is None:
            return False
        settings, copy = self._before
        if max(self.checkpoints.steps, default=0) > settings["training"]["steps"]:
            return False
        # An error about the log must not hide the one that ended the extension.
        with contextlib.suppress(DamagedError):
            self.log.cut(self.mark(), in_place=True)
        self._check()
        copy.replace(self.path / SETTINGS)
        files.fsync_folder(self.path)
        self._before = None
        self._drop_cached()
        return True

    def check(self, record: dict[str, Any]) -> None:
        """Check that a run can be resumed: it has the same settings, and does not have more steps already."""
        if not self.is_begun:
            return
        earlier = read_settings(self.path)
        done = max(self.checkpoints.steps, default=0)
        if not done and not self.model_file.exists():
            return  # without a checkpoint there is nothing to resume
        if changed := differences(earlier, record):
            raise InputError(
                problem=f"{self.path} was trained with other settings ({'; '.join(changed[:4])})",
                remedy="choose another folder, or use the same settings to resume it",
            )
        finished = self.finished_steps
        if not done and finished is not None and not self.is_finished_for(record["training"]["steps"]):
            raise InputError(
                problem=(
                    f"{self.path} has a model of {finished:,} steps and no checkpoints, without which training cannot "
                    "continue exactly"
                ),
                remedy="train in another folder, restore its checkpoints, or delete the run to repeat all steps",
            )
        if record["training"]["steps"] < done:
            raise InputError(
                problem=(
                    f"{self.path} already has {done} steps, more than the {record['training']['steps']} "
                    "requested"
                ),
                remedy="choose another folder",
            )

    def set_aside(self) -> Path:
        """Move a run that cannot be repaired to a hidden subfolder, so it can be repeated; return that folder."""
        self._check()
        numbers = itertools.count(1)
        aside = next(path for n in numbers if not (path := self.path / f"{ASIDE}-{n}").exists())
        aside.mkdir()
        # Hidden entries stay: locks and leases are in use, and the new subfolder is hidden, too.
        for entry in sorted(self.path.iterdir()):
            if not entry.name.startswith("."):
                entry.rename(aside / entry.name)
        self._drop_cached()
        return aside

    def forget(self) -> bool:
        """Remove a run that failed before its first checkpoint; return True if it was removed."""
        if self.checkpoints.steps or self.model_file.exists():
            return False
        self._check()
        for name in (LOG, SETTINGS):
            (self.path / name).unlink(missing_ok=True)
        shutil.rmtree(self.tensorboard, ignore_errors=True)
        if self.checkpoints.folder.is_dir():
            files.remove_leftovers(self.checkpoints.folder)
            self.checkpoints.folder.rmdir()
        return True

    def resume(self, restore: Callable[[Checkpoint], None]) -> list[str]:
        """Restore the newest undamaged checkpoint, cut the log to match, and return messages about damaged ones."""
        messages: list[str] = []
        checkpoint = self._newest_checkpoint(restore, messages) if self.checkpoints.steps else None
        if checkpoint is None and self.log.path.exists() and self.log.path.stat().st_size:
            messages.append(f"{self.path} has no checkpoint; training restarts from the first step.")
        try:
            self.log.cut(None if checkpoint is None else checkpoint.mark)
        except DamagedError as error:
            raise DamagedError(f"{error} Repeat the run in another folder.") from None
        return messages

    def _newest_checkpoint(
        self, restore: Callable[[Checkpoint], None] | None = None, messages: list[str] | None = None
    ) -> Checkpoint:
        """Return the newest checkpoint that is undamaged; raise an error if there is none.

        :param restore: (default None) function that uses the checkpoint; if it fails, an earlier one is tried.
        :param messages: (default None) list to which messages about damaged checkpoints are added.
        """
        messages = [] if messages is None else messages
        for step in reversed(self.checkpoints.steps):
            try:
                checkpoint = self.checkpoints.read(step)
                self.check_belongs(self.checkpoints.model_file(step))
                if restore is not None:
                    restore(checkpoint)
            except (PolariscopeError, OSError, KeyError, TypeError) as error:
                messages.append(f"{error} An earlier checkpoint is used instead.")
                continue
            return checkpoint
        damage = " ".join(
            message.removesuffix(" An earlier checkpoint is used instead.") for message in messages
        )
        raise DamagedError(
            f"{damage} All checkpoints in {self.path} are damaged, so it cannot be continued; train in another folder, "
            "or delete the run and repeat it."
        )

    def save_checkpoint(
        self,
        step: int,
        model: Trained,
        state: Mapping[str, Tensor],
        metadata: Mapping[str, object],
    ) -> None:
        """Write a checkpoint after flushing the log, whose length the checkpoint stores."""
        self.checkpoints.write(step, model, state, metadata, self.log.flush(), self.log.start.chain)

    def save_model(
        self, model: Trained, step: int, n_steps: int | None = None, stopped_at: int | None = None
    ) -> None:
        """Write the finished model.

        :param model: the model.
        :param step: number of steps that it was trained for.
        :param n_steps: (default: ``step``) requested number of steps; larger if training stopped early.
        :param stopped_at: (default None) step at which training stopped early, after ``step``; None if it did not.
        """
        stopped = {} if n_steps in (None, step) else {STOPPED: n_steps}
        stopped |= {} if stopped_at is None else {STOPPED_AT: stopped_at}
        log, run = self.log.flush().to_dict(), self.log.start.chain
        model.save(self.model_file, step=step, guard=self.guard, log=log, run=run, **stopped)

    def _drop_cached(self) -> None:
        """Discard the cached settings and the log, whose chain starts from them, after the settings changed."""
        self.__dict__.pop("settings", None)
        self.__dict__.pop("log", None)

    def _check(self) -> None:
        if self.guard is not None:
            self.guard()

    # Records of studies.

    def failure(self) -> dict[str, Any] | None:
        """Return the record of a failure: its kind and message; None if the run did not fail."""
        file = self.path / FAILURE
        return read_document(file, "failure").content if file.exists() else None

    @property
    def diverged_at(self) -> int | None:
        """Step at which training was aborted because the loss was not finite; None otherwise."""
        try:
            failure = self.failure() or {}
        except PolariscopeError:  # ``polariscope check`` reports a damaged record
            return None
        if failure.get("kind") != "diverged":
            return None
        # Version 0.2.0 did not record the step, so the one after the last checkpoint is used.
        return failure.get("step") or max(self.checkpoints.steps, default=0) + 1

    def keep_given(self, facts: Mapping[str, Recordable]) -> None:
        """Record the model and the data of results that no training in this folder made.

        :param facts: hashes of the model and of the data, and the number of observations.
        """
        if self.given() != facts:
            write_document(self.path / GIVEN, "given", dict(facts), guard=self.guard)

    def given(self) -> dict[str, Any] | None:
        """Return the record of :meth:`keep_given`; None if it is missing or damaged, and then it is written again."""
        try:
            return read_document(self.path / GIVEN, "given").content
        except (PolariscopeError, OSError):
            return None

    def keep_failure(self, kind: str, message: str, step: int | None = None) -> None:
        """Record that the run failed; training it again removes the record.

        :param kind: kind of failure: "diverged", "timeout", "error".
        :param message: the reason and a remedy.
        :param step: (default None) step at which training diverged.
        """
        content: dict[str, object] = {"kind": kind, "message": message}
        content |= {} if step is None else {"step": step}
        write_document(self.path / FAILURE, "failure", content, guard=self.guard)

    def forget_failure(self) -> None:
        """Delete the record of a failure, so the run can be tried again."""
        self._check()
        (self.path / FAILURE).unlink(missing_ok=True)

    def seconds(self) -> dict[str, float]:
        """Return the time of each part of the work, summed over all processes; empty if it was not recorded.

        Times are not part of any hash, so an unreadable file counts as empty, with a warning.
        """
        try:
            document = read_document(self.path / TIMING, "timing")
            content, owner = document.content, document.about.get("run")
            if owner is not None and self.is_begun and owner != identity_hash(self.settings):
                raise DamagedError(f"{self.path / TIMING} contains the times of another run.")
            # type() instead of isinstance, because bool is a subclass of int.
            if isinstance(content, dict) and all(type(each) in (int, float) for each in content.values()):
                return content
            raise DamagedError(f"{self.path / TIMING} is damaged: it does not contain times.")
        except FileNotFoundError:
            return {}
        except (OSError, PolariscopeError) as error:
            logger.warning("%s Its times are left out.", error)
            return {}

    def keep_seconds(self, seconds: Mapping[str, float]) -> None:
        """Store the total time of each part of the work.

        :param seconds: seconds by part: "train", "diagnose" …
        """
        content = {part: round(number, 3) for part, number in seconds.items()}
        about = {"run": identity_hash(self.settings)} if self.is_begun else {}
        write_document(self.path / TIMING, "timing", content, about, guard=self.guard)


def repair(folder: RunFolder, *, checkpoints: bool = False) -> None:
    """Set a run aside if its files are damaged, since results based on them could not be trusted; it is then repeated.

    The files are moved, never deleted. These are files without settings, damaged settings and a damaged log.

    :param folder: folder of the run, with the guard of the process that repairs it.
    :param checkpoints: (default False) if True, damaged checkpoints count too.
    """
    try:
        if not folder.is_begun:
            if others := folder._other_things():
                raise DamagedError(f"{folder.path} contains {others[0]!r} and no {SETTINGS}.")
            return
        # Read for its checks only.
        _ = folder.settings
        folder.read_log()
        for step in folder.checkpoints.steps if checkpoints else ():
            try:
                folder.checkpoints.read(step)
                folder.check_belongs(folder.checkpoints.model_file(step))
            except (PolariscopeError, KeyError, TypeError) as error:
                raise DamagedError(str(error)) from None
    except (DamagedError, OSError) as error:
        logger.warning("%s The run is trained again; the old files are in %s.", error, folder.set_aside())


def read_log(run: str | Path) -> list[dict[str, Any]]:
    """Read the lines of a run's log and check them; empty before the run was begun."""
    folder = RunFolder(run)
    return folder.read_log() if folder.is_begun else []


def _as_recorded(earlier: Any, record: Any) -> Any:
    """Return a record whose unchanged values are spelled as before: 4 and 4.0 are equal, but have different hashes."""
    if isinstance(earlier, dict) and isinstance(record, dict):
        return {name: _as_recorded(earlier.get(name), value) for name, value in record.items()}
    return earlier if earlier == record else record
