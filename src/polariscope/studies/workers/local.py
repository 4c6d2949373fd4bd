"""Workers on this machine: processes that share the runs of one study."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
from collections.abc import Iterator

from polariscope.numerics.parallel import count_cores
from polariscope.storage.lease import SECONDS
from polariscope.studies.ledger import Ledger, State
from polariscope.studies.worker import Worker, stop_on_sigterm
from polariscope.studies.workers import AbstractWorkers, Outcome, workers
from polariscope.studies.workers.support.crew import (
    AbstractProcess,
    Crew,
    check_workers,
    drain_command,
    make_runs,
    worker_variables,
)
from polariscope.studies.workers.support.study_line import StudyLine
from polariscope.training.train import choose_device


@workers("local")
@dataclasses.dataclass(frozen=True)
class LocalWorkers(AbstractWorkers):
    """Processes of this machine; one by default."""

    def work(self, ledger: Ledger, workers: int | None = None, *, progress: bool = False) -> Outcome:
        return Outcome(run_locally(ledger, 1 if workers is None else workers, progress=progress))


def run_locally(
    ledger: Ledger, workers: int = 1, *, progress: bool = False, lease: float = SECONDS
) -> dict[State, int]:
    """Train and analyse all runs of a study with processes of this machine; return the number of runs in each state.

    A single worker is this process. Several workers are separate processes, and the cores are divided between them. A
    worker that is killed is restarted. Ctrl-C stops all workers; runs save a checkpoint.

    :param ledger: ledger of the study.
    :param workers: (default 1) number of workers.
    :param progress: (default False) show the progress of the study.
    :param lease: (default 60) seconds without a sign of life after which other workers can claim a run.
    """
    check_workers(workers)
    choose_device(ledger.study.device)  # a missing device is refused before any run is marked as failed

    def work(line: StudyLine, deadline: float | None) -> None:
        if workers == 1:
            with _stopping_on_sigterm():
                Worker(ledger, deadline=deadline, lease=lease, listen=line.step).drain()
            return
        command = drain_command(
            ledger.folder, deadline=deadline, lease=lease, allow_import=ledger.allow_import
        )
        # A worker whose parent has died stops by itself.
        command += ["--parent", str(os.getpid())]
        environment = {**os.environ, **worker_variables(max(1, count_cores() // workers))}
        Crew(ledger, workers, lambda: LocalProcess(command, environment)).work(line)

    return make_runs(ledger, work, progress=progress)


class LocalProcess(AbstractProcess):
    """A process of this machine.

    :param command: command that it runs.
    :param environment: its environment variables.
    """

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        # In its own session, so Ctrl-C reaches only this process, which then stops each worker once.
        self.process = subprocess.Popen(command, env=environment, start_new_session=True)

    def poll(self) -> int | None:
        return self.process.poll()

    def stop(self) -> None:
        self.process.terminate()

    def wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)


@contextlib.contextmanager
def _stopping_on_sigterm() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    stop_on_sigterm()
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
