"""A crew: several workers that drain one study, each a process of its own, wherever such a process is started.

What differs between places is how a process is started, asked to stop and asked whether it has ended
(:class:`AbstractProcess`). Everything else is the same and is here: workers that are killed are replaced, Ctrl-C stops
all of them, and a line says how far the study is.
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
"""Workers that may be killed one after the other without any step being saved in between."""
MODULE = "polariscope.studies.worker"
"""What a worker runs."""


class AbstractProcess(abc.ABC):
    """The process of one worker."""

    @abc.abstractmethod
    def poll(self) -> int | None:
        """Its exit code, negative where a signal killed it; None as long as it has not ended."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Ask it to save and end; does not wait for that."""

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but not longer than this.

        :param seconds: how long at most.
        """
        until = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < until:
            time.sleep(0.1)

    @property
    def is_waiting(self) -> bool:
        """Whether it has not been started yet, because no machine has room for it."""
        return False


class Crew:
    """Workers, started again when they are killed.

    :param ledger: that of the study.
    :param workers: how many.
    :param start: starts one.
    """

    def __init__(self, ledger: Ledger, workers: int, start: Callable[[], AbstractProcess]) -> None:
        self.ledger = ledger
        self.workers = workers
        self.start = start
        self.processes: list[AbstractProcess] = []

    def work(self, line: StudyLine) -> None:
        """Start the workers, and wait until they are done.

        :param line: says how far it is.
        """
        deaths, before = 0, self._saved()
        with self._forwarding_stops():
            for _ in range(self.workers):
                self.processes.append(self.start())
            while self.processes:
                # Any of them would do: the wait is short, and all are polled after it.
                self.processes[0].wait(LOOK_EVERY)
                line.look()
                for worker in list(self.processes):
                    code = worker.poll()
                    if code is None or worker not in self.processes:  # stopped a moment ago
                        continue
                    self.processes.remove(worker)
                    if code == 130:
                        raise KeyboardInterrupt
                    if code in (1, 2):
                        raise PolariscopeError("a worker failed; what it said is above.")
                    if code == 0:  # nothing is left to do, so nobody has to begin
                        self._stop([other for other in self.processes if other.is_waiting])
                        continue
                    # It was killed. Memory may have been short for a moment, so it is replaced; if no step is saved
                    # between deaths, every replacement would be killed too.
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
        return tuple(saved_steps(run) + self.ledger.looks_done(run) for run in self.ledger.runs)

    @contextlib.contextmanager
    def _forwarding_stops(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM stop the workers, which save where they are, and then this process."""

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
    """Prepare the folder of a study, let the work be done, and say how far it is; the runs in each state in the end.

    :param ledger: that of the study.
    :param work: does it, told the line and the time at which it has to stop.
    :param progress: (default False) show how far it is.
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
    """Refuse what is no number of workers.

    :param workers: what was given.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InputError("workers", "be an integer, at least 1", got=f"{workers!r}")


def drain_command(folder: Path, *, deadline: float | None, lease: float) -> list[str]:
    """The command that is one worker.

    :param folder: that of the study.
    :param deadline: time at which it has to stop; None: never.
    :param lease: seconds without a sign of life after which others may take its run over.
    """
    options = ["--lease", str(lease)]
    options += [] if deadline is None else ["--deadline", str(deadline)]
    return [sys.executable, "-m", MODULE, str(folder), *options]


def worker_variables(threads: int) -> dict[str, str]:
    """Environment variables of a worker: its threads, and where it finds the package that is running now.

    :param threads: how many the worker may use.
    """
    # A worker may start with another sys.path than this process, which may have been started from a checkout.
    package = str(Path(__file__).parents[3])
    paths = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": paths}
