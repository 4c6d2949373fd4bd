"""Workers on a Ray cluster. Ray chooses their nodes; each is a process that works on the study's folder.

Ray moves functions and objects between machines as pickles. None of our objects is pickled: an actor is a
``subprocess.Popen`` of the standard library, and it receives the tokens of a command. So a worker is the same process
as on one machine, with a main thread that receives signals, and the actor is its remote control: ``poll`` and
``send_signal``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import logging
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from polariscope.core.errors import InputError, PolariscopeError, not_installed
from polariscope.storage.lease import SECONDS
from polariscope.studies.ledger import Ledger, State
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

HERE = "local"
"""Address of a cluster that is started on this machine and closed afterwards; the word is Ray's."""
CONNECT_SECONDS = 60.0
"""Seconds that the nodes have to respond before any work begins."""
ANSWER_SECONDS = 10.0
"""Seconds that the machine at an address has to respond."""
MARK = ".seen-"
"""Prefix of the marker files that show if a node can access a folder."""
LOOK = """
import importlib.util, pathlib, sys
missing = [mark for mark in sys.argv[1:] if not pathlib.Path(mark).exists()]
print(pathlib.Path(missing[0]).parent if missing else "")
sys.exit(3 if missing else 0 if importlib.util.find_spec("polariscope") else 4)
"""
"""Script that a node runs before any work, to check that it can access these files and import the package."""


@workers("ray")
@dataclasses.dataclass(frozen=True)
class RayWorkers(AbstractWorkers):
    """Processes on the nodes of a Ray cluster; by default as many as it has room for."""

    address: str = HERE
    """Address of the cluster: "local" starts one on this machine and closes it afterwards, "auto" is the cluster
    of this machine; otherwise HOST:PORT."""

    def work(self, ledger: Ledger, workers: int | None = None, *, progress: bool = False) -> Outcome:
        return Outcome(run_on_ray(ledger, workers, self.address, progress=progress))


def run_on_ray(
    ledger: Ledger,
    workers: int | None = None,
    address: str = HERE,
    *,
    progress: bool = False,
    lease: float = SECONDS,
) -> dict[State, int]:
    """Train and analyse all runs of a study on a Ray cluster; return the number of runs in each state.

    The study's folder is on a disk that all nodes share, and the nodes have the same Python environment. A worker that
    is killed, alone or with its node, is replaced. Ctrl-C stops all workers; runs save a checkpoint.

    :param ledger: ledger of the study.
    :param workers: (default: as many as the cluster has room for) number of workers.
    :param address: (default "local": a cluster on this machine, closed afterwards) "auto" for the cluster that this
        machine is part of, or HOST:PORT.
    :param progress: (default False) show the progress of the study.
    :param lease: (default 60) seconds without a sign of life after which other workers can claim a run.
    """
    if workers is not None:
        check_workers(workers)
    _check_address(address)

    def work(line: StudyLine, deadline: float | None) -> None:
        with _connected(address) as ray:
            nodes = _nodes(ray)
            _check_nodes(ray, nodes, (ledger.folder, Path(str(ledger.study.runs))))
            cpus = [int(node["Resources"]["CPU"]) for node in nodes]
            count, threads = divide(cpus, workers, ledger.study.threads)
            command = drain_command(
                ledger.folder, deadline=deadline, lease=lease, allow_import=ledger.allow_import
            )
            needs = {"num_cpus": threads, "num_gpus": int(ledger.study.device.startswith("cuda"))}
            actor = _actor(ray).options(**needs)
            Crew(ledger, count, lambda: _RayProcess(ray, actor, _in_node(command, threads))).work(line)

    return make_runs(ledger, work, progress=progress)


def divide(cpus: Sequence[int], workers: int | None = None, threads: int | None = None) -> tuple[int, int]:
    """Return the number of workers of a cluster, and the number of threads of each.

    If the number of workers is fixed, each gets as many threads as possible such that there is room for all. If there
    are more workers than CPUs, each has one thread, and those without room wait.

    >>> divide([4, 2]), divide([4, 2], workers=2), divide([4, 2], threads=2), divide([1], workers=3)
    ((6, 1), (2, 2), (3, 2), (3, 1))

    :param cpus: number of CPUs of each node.
    :param workers: (default: as many as there is room for) number of workers.
    :param threads: (default: see above) number of threads of each worker.
    """

    def places(each: int) -> int:
        return sum(count // each for count in cpus)

    if threads is None:
        fitting = [
            each for each in range(1, max(cpus) + 1) if workers is not None and places(each) >= workers
        ]
        threads = max(fitting, default=1)
    if not places(threads):
        raise InputError(
            problem=f"no node of the Ray cluster has {threads} CPUs, one for each thread; the largest has {max(cpus)}",
            remedy="reduce the threads of the study",
        )
    return workers or places(threads), threads


class _RayProcess(AbstractProcess):
    """A process on some node of a Ray cluster.

    It might wait until a node has room. When its node dies it counts as ended by SIGKILL.

    :param ray: the module, connected.
    :param actor: class that creates a ``subprocess.Popen`` on a node.
    :param command: command that it runs.
    """

    def __init__(self, ray: Any, actor: Any, command: list[str]) -> None:
        self._ray = ray
        self._handle = actor.remote(command, cwd=os.getcwd(), start_new_session=True)
        self._answer = self._handle.poll.remote()
        self._has_begun = False
        self._code: int | None = None

    def poll(self) -> int | None:
        # A timeout of 0 returns at once, also if the actor has not answered.
        if self._code is None and self._ray.wait([self._answer], timeout=0)[0]:
            try:
                self._code = self._ray.get(self._answer)
            except self._ray.exceptions.RayActorError:
                self._code = -signal.SIGKILL
            self._has_begun = True
            if self._code is None:
                self._answer = self._handle.poll.remote()
            else:
                self._ray.kill(self._handle)  # releases its CPUs
        return self._code

    def stop(self) -> None:
        if self._has_begun:
            self._handle.send_signal.remote(signal.SIGTERM)
        else:
            # An actor that still waits for a node has no process to signal.
            self._ray.kill(self._handle)

    @property
    def is_waiting(self) -> bool:
        return not self._has_begun


def _actor(ray: Any) -> Any:
    """Return the actor class that creates a ``subprocess.Popen`` on a node.

    The class is created from its name and base alone, so its pickle contains no code. Ray reads the signature of every
    method, and ``Popen.__class_getitem__`` has none, so it is set to None.
    """
    return ray.remote(type("Worker", (subprocess.Popen,), {"__class_getitem__": None}))


def _in_node(command: list[str], threads: int) -> list[str]:
    """Return a command that runs with our variables added to those of the node, and ends with its actor."""
    return ["/bin/sh", "-c", 'exec env "$@" --parent $PPID', "worker", *_variables(threads), *command]


def _variables(threads: int) -> list[str]:
    return [f"{name}={value}" for name, value in worker_variables(threads).items()]


def _check_address(address: str) -> None:
    """Refuse an address without a cluster; Ray itself would try for minutes."""
    if address in (HERE, "auto"):
        return
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or int(port) > 65535:
        raise InputError("address", f"be {HERE}, auto or HOST:PORT", got=f"{address!r}")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
    except OSError as error:
        raise PolariscopeError(
            f"no Ray cluster responds at {address} ({error}); run 'ray status' there to see why."
        ) from None


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Yield the module ray, connected to a cluster; an existing connection stays open."""
    # Ray sends no usage statistics.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == HERE:
        # Read when Ray is imported: servers then listen on 127.0.0.1 alone, as on Windows and macOS.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        ray = importlib.import_module("ray")
    except ImportError:
        raise not_installed("a study on a Ray cluster", "ray", "ray", "use workers of this machine") from None
    # Another part of the program connected, and will disconnect.
    if ray.is_initialized():
        yield ray
        return
    options = {"include_dashboard": False} if address == HERE else {}
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, logging_level=logging.WARNING, log_to_driver=True, **options)
    except Exception as error:  # Ray raises a plain Exception if a node does not start in time
        raise PolariscopeError(
            f"the Ray cluster at {address!r} cannot be reached ({str(error).splitlines()[0]}); 'ray start --head' "
            "starts one, 'auto' is the one of this machine."
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()
        if before is not None:
            signal.signal(signal.SIGTERM, before)  # Ray installs its own handler


def _nodes(ray: Any) -> list[dict[str, Any]]:
    """Return the nodes that can have workers."""
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not nodes:
        raise PolariscopeError("no node of the Ray cluster has a CPU; add one with 'ray start --address'.")
    return nodes


def _check_nodes(ray: Any, nodes: list[dict[str, Any]], folders: Sequence[Path]) -> None:
    """Refuse a cluster if a node cannot access the folders or cannot start a worker."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    run_there = ray.remote(subprocess.run)
    marks = [folder.absolute() / f"{MARK}{uuid.uuid4().hex}" for folder in dict.fromkeys(folders)]
    command = ["env", *_variables(1), sys.executable, "-c", LOOK]
    try:
        for mark in marks:
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
        answers = []
        for node in nodes:
            there = strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            # Without CPUs, so the check also runs on a node whose CPUs are all busy.
            task = run_there.options(num_cpus=0, scheduling_strategy=there, max_retries=0)
            arguments = [*command, *map(str, marks)]
            answers.append(task.remote(arguments, cwd=os.getcwd(), capture_output=True, text=True))
        for node, answer in zip(nodes, answers, strict=True):
            _judge(ray, node["NodeManagerAddress"], answer)
    finally:
        for mark in marks:
            mark.unlink(missing_ok=True)


def _judge(ray: Any, host: str, answer: Any) -> None:
    """Refuse a node whose check failed."""
    name = f"the node {host} of the Ray cluster"
    try:
        process = ray.get(answer, timeout=CONNECT_SECONDS)
    except ray.exceptions.GetTimeoutError:
        raise PolariscopeError(
            f"{name} did not respond in {CONNECT_SECONDS:g} seconds; see 'ray status'."
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            problem=f"{name} cannot access the folder {os.getcwd()}, from which the study is run",
            remedy="run it from a folder on a disk that all nodes share",
        ) from None
    except ray.exceptions.RayError as error:
        raise PolariscopeError(f"{name} cannot start a worker: {str(error).splitlines()[-1]}") from None
    if process.returncode == 3:
        raise InputError(
            problem=f"{name} cannot access the folder {process.stdout.strip()} of the study",
            remedy="put the study on a disk that all nodes share",
        )
    if process.returncode == 4:
        raise InputError(
            problem=f"the Python of {name}, {sys.executable}, does not have polariscope",
            remedy="install it there",
        )
    if process.returncode != 0:
        last = (process.stderr.strip().splitlines() or [f"code {process.returncode}"])[-1]
        raise InputError(
            problem=f"{name} cannot start {sys.executable}: {last}",
            remedy="give all nodes the same Python environment",
        )
