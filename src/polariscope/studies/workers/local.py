"""Workers of this machine: processes that drain the same study, and a line that says how far it is."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from polariscope.core.errors import InputError, PolariscopeError
from polariscope.storage.lease import SECONDS
from polariscope.studies.ledger import STATES, Ledger, State
from polariscope.studies.runs import StudyRun
from polariscope.studies.workers.drain import Worker, stop_on_sigterm

LOOK_EVERY = 1.0
"""Seconds between two looks at the workers and at the runs."""
MOST_DEATHS = 3
"""Workers that may be killed one after the other without any step being saved in between."""


def run_locally(
    ledger: Ledger, workers: int = 1, *, progress: bool = False, lease: float = SECONDS
) -> dict[State, int]:
    """Make all runs of a study with processes of this machine; how many are in each state in the end.

    One worker is this process. Several are processes of their own, and the cores are divided between them. A worker
    that is killed is started again. Ctrl-C stops all: runs save where they are.

    :param ledger: that of the study.
    :param workers: (default 1) how many.
    :param progress: (default False) show how far it is.
    :param lease: (default 60) seconds without a sign of life after which other workers may take a run over.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InputError("workers", "be an integer, at least 1", got=f"{workers!r}")
    ledger.prepare()
    hours = ledger.study.limits.max_hours
    deadline = None if hours is None else time.time() + hours * 3600
    with StudyLine(ledger, progress) as line:
        if workers == 1:
            with _stopping_on_sigterm():
                Worker(ledger, deadline=deadline, lease=lease, listen=line.step).drain()
        else:
            _Crew(ledger, workers, deadline, lease).work(line)
    counts = ledger.counts()
    line.say(counts)
    return counts


@contextlib.contextmanager
def _stopping_on_sigterm() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    stop_on_sigterm()
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Crew:
    """Worker processes, started again when they are killed."""

    def __init__(self, ledger: Ledger, workers: int, deadline: float | None, lease: float) -> None:
        self.ledger = ledger
        self.workers = workers
        options = ["--parent", str(os.getpid()), "--lease", str(lease)]
        options += [] if deadline is None else ["--deadline", str(deadline)]
        module = "polariscope.studies.workers.drain"
        self.command = [sys.executable, "-m", module, str(ledger.folder), *options]
        threads = max(1, _cores() // workers)
        package = str(Path(__file__).parents[3])
        paths = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        self.environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": paths}
        self.crew: list[subprocess.Popen[bytes]] = []

    def work(self, line: StudyLine) -> None:
        """Start the workers, and wait until they are done."""
        deaths, before = 0, self._saved()
        with self._forwarding_stops():
            self.crew = [self._start() for _ in range(self.workers)]
            while self.crew:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.crew[0].wait(LOOK_EVERY)
                line.look()
                for worker in [worker for worker in self.crew if worker.poll() is not None]:
                    self.crew.remove(worker)
                    if worker.returncode == 130:
                        self._stop()
                        raise KeyboardInterrupt
                    if worker.returncode in (1, 2):
                        self._stop()
                        raise PolariscopeError("a worker failed; what it said is above.")
                    if worker.returncode != 0:
                        saved = self._saved()
                        deaths = 1 if saved != before else deaths + 1
                        before = saved
                        if deaths > MOST_DEATHS:
                            self._stop()
                            raise PolariscopeError(
                                f"{deaths} workers were killed one after the other before any saved a step (the last "
                                f"with code {worker.returncode}); is there enough memory?"
                            )
                        self.crew.append(self._start())

    def _start(self) -> subprocess.Popen[bytes]:
        # In a session of its own: Ctrl-C reaches this process, which tells the workers once.
        return subprocess.Popen(self.command, env=self.environment, start_new_session=True)

    def _stop(self) -> None:
        for worker in self.crew:
            with contextlib.suppress(ProcessLookupError):
                worker.send_signal(signal.SIGTERM)
        for worker in self.crew:
            worker.wait()
        self.crew = []

    def _saved(self) -> tuple[int, ...]:
        from polariscope.studies.ledger import saved_steps

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
            for number in before:
                signal.signal(number, signal.SIG_IGN)
            self._stop()
            for number, handler in before.items():
                signal.signal(number, handler)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class StudyLine:
    """Shows how far a study is: one live line on a terminal, elsewhere a plain line now and then."""

    def __init__(
        self,
        ledger: Ledger,
        shown: bool,
        every_seconds: float = 20.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ledger = ledger
        self.shown = shown
        self.every_seconds = every_seconds
        self.clock = clock
        self.console = Console(file=sys.stderr)
        self.words = Text()
        self.live = Live(self.words, console=self.console, refresh_per_second=4)
        self.begun = clock()
        self.spoke = self.looked = self.begun
        self.at_start: float | None = None

    def __enter__(self) -> StudyLine:
        if self.shown:
            self.at_start = self._share()
            if self.console.is_terminal:
                self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown and self.console.is_terminal:
            self.live.stop()

    def step(self, run: StudyRun, step: int) -> None:
        """Look now and then while this process trains."""
        if self.shown and self.clock() - self.looked >= 2 * LOOK_EVERY:
            self.look()

    def look(self) -> None:
        """Look at the runs, and say how far they are."""
        if not self.shown:
            return
        self.looked = self.clock()
        self.say(self.ledger.counts(), only_when_due=True)

    def say(self, counts: dict[State, int], *, only_when_due: bool = False) -> None:
        """Say how many runs are in each state, how fast it goes and how long it will take."""
        if not self.shown:
            return
        self.words.plain = self.in_words(counts)
        due = self.clock() - self.spoke >= self.every_seconds or not only_when_due
        if due and not (self.console.is_terminal and only_when_due):
            self.spoke = self.clock()
            self.console.print(self.words.plain, highlight=False, soft_wrap=True)

    def in_words(self, counts: dict[State, int]) -> str:
        """One line: counts, rate and time left."""
        total, ended = sum(counts.values()), counts["done"] + counts["failed"]
        parts = [
            f"{ended} of {total} runs",
            *(f"{counts[state]} {state}" for state in STATES if counts[state]),
        ]
        hours = (self.clock() - self.begun) / 3600
        gained = self._share() - (self.at_start or 0.0)
        if gained > 0 and hours > 0:
            parts.append(f"{gained * total / hours:.3g} runs an hour")
            if left := 1 - self._share():
                parts.append(f"{in_time(3600 * hours * left / gained)} left")
        return " · ".join(parts)

    def _share(self) -> float:
        """Which part of all steps is saved; those of failed runs count, since nobody makes them."""
        from polariscope.studies.ledger import saved_steps

        steps = sum(run.steps for run in self.ledger.runs)
        saved = sum(
            run.steps if self.ledger.failure(run) else min(run.steps, saved_steps(run))
            for run in self.ledger.runs
        )
        return saved / max(1, steps)


def in_time(seconds: float) -> str:
    """A duration for people.

    >>> in_time(42.0), in_time(150.0), in_time(9000.0)
    ('42 s', '2.5 min', '2.5 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.2g} min" if seconds < 3600 else f"{seconds / 3600:.2g} h"
