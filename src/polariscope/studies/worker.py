"""One worker: it claims a free run, trains and analyses it, releases it, and repeats until no run is left."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from polariscope.core.errors import DivergedError, InputError, PolariscopeError
from polariscope.core.files import NOT_WRITABLE
from polariscope.runs.run import Run
from polariscope.storage.documents import DamagedError
from polariscope.storage.folder import RunFolder, repair
from polariscope.storage.lease import SECONDS, Lease, LostLeaseError
from polariscope.studies.ledger import Ledger, OnceTask, OverTask
from polariscope.studies.planned_runs import Datasets, StudyRun
from polariscope.training.train import train

logger = logging.getLogger("polariscope")

KEEP_TIMES_EVERY = 10.0
"""Seconds between two records of the time a run has taken; a killed worker loses at most this much."""
WAIT = 0.5
"""Seconds between two checks of runs that other workers hold."""
RECORDED = ("log_every", "validate_every", "probe_samples")
"""Settings that a resumed run keeps from its first start, because its log depends on them."""

Task = TypeVar("Task")
Listener = Callable[[StudyRun, int], None]
"""Called with the run that is trained and its number of steps."""


class RunTimeoutError(Exception):
    """Error of a run that exceeded its time limit.

    It is not a :class:`PolariscopeError`: it can be raised anywhere, and must not be mistaken for a damaged file.
    """


class Worker:
    """A worker that trains and analyses the runs of a study until none is left.

    :param ledger: ledger of the study.
    :param deadline: (default None) time, as returned by ``time.time()``, at which the worker stops; runs save a
        checkpoint.
    :param parent: (default None) process identifier; the worker stops when this is no longer its parent process.
    :param lease: (default 60) seconds without a sign of life after which other workers can claim a run.
    :param listen: (default None) called after every step.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        deadline: float | None = None,
        parent: int | None = None,
        lease: float = SECONDS,
        listen: Listener | None = None,
    ) -> None:
        self.ledger = ledger
        self.study = ledger.study
        self.deadline = deadline
        self.parent = parent
        self.lease = lease
        self.listen = listen
        self.datasets = Datasets()
        self.is_stopping = False
        """True if the deadline has passed or the parent process has ended."""

    def drain(self) -> None:
        """Do all work that no other worker does; return when the study is done or the worker has to stop."""
        if threading.current_thread() is not threading.main_thread():
            raise PolariscopeError(
                "a worker must run in the main thread of a process, which receives signals."
            )
        self._repeat(self.ledger.once_tasks(), self._once)
        self._repeat(self.ledger.runs, self._run)
        # Listed only now, because these analyses include only runs that are done.
        self._repeat(self.ledger.over_tasks(), self._over)

    def _repeat(self, tasks: Sequence[Task], do: Callable[[Task], bool]) -> None:
        """Repeat until all tasks are done, by this worker or another."""
        # Tasks of other workers remain in the list: if such a worker dies, its task is taken over.
        waiting = list(tasks)
        while waiting and not self._must_stop():
            left = [task for task in waiting if not (self._must_stop() or do(task))]
            if len(left) == len(waiting):
                time.sleep(WAIT)
            waiting = left

    def _must_stop(self) -> bool:
        # A process whose parent has died gets another parent, so nobody waits for this worker any more.
        alone = self.parent is not None and os.getppid() != self.parent
        late = self.deadline is not None and time.time() >= self.deadline
        self.is_stopping = self.is_stopping or late or alone
        return self.is_stopping

    # Runs.

    def _run(self, run: StudyRun) -> bool:
        """Train and analyse a run unless it is done, failed or claimed; return True if nothing is left to do for it."""
        # Checked before the lease is taken, since taking it writes to the folder: a finished study is only read.
        if self.ledger.is_done(run):
            return True
        if failure := self.ledger.failure(run):
            self.is_stopping |= failure["kind"] == "diverged" and self.study.diverged == "stop"
            return True
        lease = Lease.take(run.folder, self.lease)
        if lease is None:
            return False
        with lease:
            if self.ledger.is_done(run) or self.ledger.failure(
                run
            ):  # finished by the previous owner meanwhile
                return True
            try:
                with self._time_limit():
                    self._make(run, lease)
            except LostLeaseError as error:
                # The run has not failed: its new owner continues it.
                logger.warning("%s", error)
                return False
            except KeyboardInterrupt:
                # The error is also raised when this worker stopped itself, by the signal in _make.
                if self.is_stopping:
                    return False
                raise
            except Exception as error:
                if isinstance(error, OSError) and error.errno in NOT_WRITABLE:
                    raise  # the disk is full, which is not a failure of the run
                return self._failed(run, lease, error)
            return True

    def _make(self, run: StudyRun, lease: Lease) -> None:
        """Train or resume a run, and compute its requested results."""
        folder = RunFolder(run.folder, lease.check)
        times = Times(folder)
        if run.given is not None:
            folder.forget_failure()
            data = None if run.given.has_codes else self.datasets[run.point.data]
            self._analyse(self.ledger.opened(run, data, lease.check), times)
            return
        repair(folder)
        data = self.datasets[run.point.data]
        settings = run.point.arguments
        if folder.is_begun and (folder.checkpoints.steps or folder.model_file.exists()):
            settings |= {name: folder.settings["training"][name] for name in RECORDED}

        def listener(step: int, line: object) -> None:  # noqa: ARG001
            times.keep("train", only_after=KEEP_TIMES_EVERY)
            if self.listen is not None:
                self.listen(run, step)
            if self._must_stop():
                signal.raise_signal(signal.SIGTERM)  # saves a checkpoint and ends the training

        device, threads = self.study.device, self.study.threads
        with times.part("train"):
            try:
                train(data, out=folder, device=device, threads=threads, progress=listener, **settings)
            except DamagedError as error:
                logger.warning(
                    "%s The run is trained again; the old files are in %s.", error, folder.set_aside()
                )
                # From scratch, so with the settings of the study and not with those that the old log required.
                train(
                    data, out=folder, device=device, threads=threads, progress=listener, **run.point.arguments
                )
        # Results are guarded too: a worker that was suspended during an analysis must not write after it lost the run.
        self._analyse(self.ledger.opened(run, data, lease.check), times)

    def _analyse(self, opened: Run, times: Times) -> None:
        """Compute the requested results of a run."""
        opened.folder.artefacts.set_damaged_aside()
        for step in self.ledger.steps_of(opened):
            for name, analysis in self.ledger.measurements():
                with times.part(name):
                    analysis.measure(opened, step)

    def _failed(self, run: StudyRun, lease: Lease, error: Exception) -> bool:
        kind = "error"
        if isinstance(error, DivergedError):
            kind = "diverged"
        elif isinstance(error, RunTimeoutError):
            kind = "timeout"
        known = isinstance(error, PolariscopeError | RunTimeoutError)
        message = str(error) if known else f"{type(error).__name__}: {error}"
        try:
            step = error.step if isinstance(error, DivergedError) else None
            RunFolder(run.folder, lease.check).keep_failure(kind, message, step)
        except LostLeaseError:
            return False
        logger.warning("%s failed: %s", run.name, message)
        self.is_stopping |= kind == "diverged" and self.study.diverged == "stop"
        return True

    @contextlib.contextmanager
    def _time_limit(self) -> Iterator[None]:
        """Raise an error inside the block when the time limit of a run is exceeded."""
        seconds = self.study.limits.timeout_per_run
        if seconds is None:
            yield
            return

        over: list[RunTimeoutError] = []

        def late(*_: object) -> None:
            over.append(
                RunTimeoutError(
                    f"the run took longer than the {seconds:g} seconds of timeout_per_run; increase it and retry."
                )
            )
            raise over[0]

        before = signal.signal(signal.SIGALRM, late)
        # The signal is repeated, because code that ignores errors, such as a finaliser, can swallow the first one.
        signal.setitimer(signal.ITIMER_REAL, seconds, max(seconds, 1.0))
        try:
            yield
        except Exception as error:
            if over and not isinstance(error, LostLeaseError):
                # The interrupted code might have wrapped the timeout in another error.
                raise over[0] from error
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    # Analyses done once, and over several runs.

    def _once(self, task: OnceTask) -> bool:
        if task.analysis.is_kept(task.search):
            return True
        lease = Lease.take(task.folder, self.lease)
        if lease is None:
            return False
        with lease:
            # Checked again, since another worker can have finished it before this one got the lease.
            if not task.analysis.is_kept(task.search):
                task.analysis.measure(self.datasets[task.data], task.settings, task.search)
        return True

    def _over(self, task: OverTask) -> bool:
        if self.ledger.over_result(task) is not None:
            return True
        lease = Lease.take(task.folder, self.lease)
        if lease is None:
            return False
        with lease:
            # Another worker can have finished it before this one got the lease.
            if self.ledger.over_result(task) is None:
                data = self.datasets[task.runs[0].point.data]
                content = task.analysis.measure([Run(run.folder, data) for run in task.runs])
                # Another worker owns the task now and stores the result.
                with contextlib.suppress(LostLeaseError):
                    self.ledger.keep_over_result(task, content, lease.check)
        return True


class Times:
    """Time spent on each part of a run, including earlier processes."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.seconds = dict(folder.seconds())
        self.mark = time.monotonic()

    def keep(self, part: str, only_after: float = 0.0) -> None:
        """Add the time since the last call to a part, and write the record.

        :param part: name of the part.
        :param only_after: (default 0) minimum number of seconds between two records.
        """
        passed = time.monotonic() - self.mark
        if passed < only_after:
            return
        # Not the present time, so the time that writing takes is counted next.
        self.mark += passed
        self.seconds[part] = self.seconds.get(part, 0.0) + passed
        self.folder.keep_seconds(self.seconds)

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the time inside the block as this part."""
        self.mark = time.monotonic()
        try:
            yield
        except (LostLeaseError, OSError):
            raise  # the lease is lost or the disk is full, so the time cannot be written either
        except BaseException:
            # The time of a failed or interrupted run counts too; an error in recording it must not hide the first
            # error.
            with contextlib.suppress(LostLeaseError, OSError):
                self.keep(name)
            raise
        self.keep(name)


def stop_on_sigterm() -> None:
    """Make SIGTERM end the process as Ctrl-C does."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)


def stop_when_preempted() -> None:
    """Make SIGUSR1 and SIGUSR2, by which SLURM announces that a job will be stopped, act like SIGTERM."""

    def stop(*_: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, stop)


def main(arguments: list[str] | None = None) -> int:
    """Run a worker on the study of a folder; this is the command that other machines run.

    :param arguments: (default: those of the process) FOLDER, then options.
    """
    parser = argparse.ArgumentParser(prog="python -m polariscope.studies.worker")
    parser.add_argument("folder")
    parser.add_argument(
        "--deadline", type=float, help="time at which the worker stops, in seconds since 1970"
    )
    parser.add_argument(
        "--seconds", type=float, help="time at which the worker stops, in seconds after its start"
    )
    parser.add_argument("--parent", type=int)
    parser.add_argument("--lease", type=float, default=SECONDS)
    parser.add_argument("--allow-import", action="store_true")
    flags = parser.parse_args(arguments)
    stop_on_sigterm()
    stop_when_preempted()
    try:
        ledger = Ledger.open(flags.folder, allow_import=flags.allow_import)
        deadline = flags.deadline if flags.seconds is None else time.time() + flags.seconds
        Worker(ledger, deadline=deadline, parent=flags.parent, lease=flags.lease).drain()
    except KeyboardInterrupt:
        return 130
    except PolariscopeError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
