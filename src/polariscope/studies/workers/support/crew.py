"""A crew: several workers on one study, each a separate process, on any machine.

Kinds of workers differ only in how a process is started, stopped and polled (:class:`AbstractProcess`). The rest is
shared here: workers that are killed are replaced, Ctrl-C stops all of them, and a line shows the progress of the study.
"""

from __future__ import annotations

import abc
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from polariscope.core.errors import InputError, PolariscopeError
from polariscope.studies.ledger import Ledger, State, saved_steps
from polariscope.studies.workers.support.study_line import LOOK_EVERY, StudyLine

MAX_DEATHS = 3
"""Maximum number of workers that are killed one after another without a saved step in between."""
MODULE = "polariscope.studies.worker"
"""Module that a worker runs."""


class AbstractProcess(abc.ABC):
    """The process of one worker."""

    @abc.abstractmethod
    def poll(self) -> int | None:
        """Return the exit code, negative if a signal killed the process; None while it is running."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Request that the process saves and ends, without waiting for it."""

    def wait(self, seconds: float) -> None:
        """Wait until the process has ended, at most for some seconds.

        :param seconds: maximum time to wait.
        """
        until = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < until:
            time.sleep(0.1)

    @property
    def is_waiting(self) -> bool:
        """True if the process has not been started yet because no machine has room for it."""
        return False


class Crew:
    """Workers that are restarted when they are killed.

    :param ledger: ledger of the study.
    :param workers: number of workers.
    :param start: function that starts one worker.
    """

    def __init__(self, ledger: Ledger, workers: int, start: Callable[[], AbstractProcess]) -> None:
        self.ledger = ledger
        self.workers = workers
        self.start = start
        self.processes: list[AbstractProcess] = []

    def work(self, line: StudyLine) -> None:
        """Start the workers, and wait until they have ended.

        :param line: display of the progress.
        """
        deaths, before = 0, self._saved()
        with self._forwarding_stops():
            for _ in range(self.workers):
                self.processes.append(self.start())
            while self.processes:
                # Waiting for any one of them is enough: the wait is short, and all are polled after it.
                self.processes[0].wait(LOOK_EVERY)
                line.look()
                for worker in list(self.processes):
                    code = worker.poll()
                    if code is None or worker not in self.processes:  # still running, or stopped just now
                        continue
                    self.processes.remove(worker)
                    # The code of a worker that was interrupted.
                    if code == 130:
                        raise KeyboardInterrupt
                    if code in (1, 2):
                        raise PolariscopeError("a worker failed; its message is above.")
                    if code == 0:  # nothing is left to do, so waiting workers need not start
                        self._stop([other for other in self.processes if other.is_waiting])
                        continue
                    # It was killed. Memory can be short for a moment, so the worker is replaced; but if no step is
                    # saved between deaths, every replacement would be killed too.
                    saved = self._saved()
                    deaths = 1 if saved != before else deaths + 1
                    before = saved
                    if deaths > MAX_DEATHS:
                        raise PolariscopeError(
                            f"{deaths} workers were killed one after the other before any saved a step (the last "
                            f"with code {code}); is there enough memory?"
                        )
                    self.processes.append(self.start())

    def _stop(self, processes: list[AbstractProcess]) -> None:
        for worker in processes:
            worker.stop()
        for worker in processes:
            while worker.poll() is None:
                worker.wait(LOOK_EVERY)
            self.processes.remove(worker)

    def _saved(self) -> tuple[int, ...]:
        # Finished analyses count as progress, too.
        return tuple(saved_steps(run) + self.ledger.looks_done(run) for run in self.ledger.runs)

    @contextlib.contextmanager
    def _forwarding_stops(self) -> Iterator[None]:
        """Make Ctrl-C and SIGTERM stop the workers, which save a checkpoint, and then this process."""

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            # A second Ctrl-C must not interrupt the wait for workers that are saving.
            for number in before:
                signal.signal(number, signal.SIG_IGN)
            self._stop(list(self.processes))
            for number, handler in before.items():
                signal.signal(number, handler)


def make_runs(
    ledger: Ledger, work: Callable[[StudyLine, float | None], None], *, progress: bool = False
) -> dict[State, int]:
    """Prepare the folder of a study, run the workers with a display of progress, and return the runs in each state.

    :param ledger: ledger of the study.
    :param work: function that runs the workers, called with the display and the time at which it has to stop.
    :param progress: (default False) show the progress of the study.
    """
    ledger.prepare()
    hours = ledger.study.limits.max_hours
    deadline = None if hours is None else time.time() + hours * 3600
    with StudyLine(ledger, progress) as line:
        work(line, deadline)
    counts = ledger.counts()
    line.say(counts)
    return counts


def check_workers(workers: int) -> None:
    """Refuse an invalid number of workers.

    :param workers: number of workers.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InputError("workers", "be an integer, at least 1", got=f"{workers!r}")


def drain_command(
    folder: Path, *, deadline: float | None, lease: float, allow_import: bool = False
) -> list[str]:
    """Return the command that runs one worker.

    :param folder: folder of the study.
    :param deadline: time at which it has to stop; None for no limit.
    :param lease: seconds without a sign of life after which other workers can claim its run.
    :param allow_import: (default False) if True, models can be imported by the name of a function.
    """
    options = ["--lease", str(lease), *(["--allow-import"] if allow_import else [])]
    options += [] if deadline is None else ["--deadline", str(deadline)]
    return [sys.executable, "-m", MODULE, str(folder), *options]


def worker_variables(threads: int) -> dict[str, str]:
    """Return the environment variables of a worker: its threads, and the path of the running package.

    :param threads: number of threads of the worker.
    """
    # A worker can start with another sys.path than this process, for example if this one runs from a checkout.
    package = str(Path(__file__).parents[4])
    paths = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": paths}
