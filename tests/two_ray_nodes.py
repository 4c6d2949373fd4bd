"""Run a study on a Ray cluster of two nodes on this machine, each with one CPU.

The script is a separate process because Ray stays loaded in it::

    python tests/two_ray_nodes.py FOLDER

FOLDER contains a prepared study of two runs. The study is first run and interrupted as by Ctrl-C while both nodes are
working. Then it is run again, and one worker is killed. The script prints its observations as JSON.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any
from unittest import mock

from ray.cluster_utils import Cluster

from polariscope.core.errors import InputError
from polariscope.studies.ledger import Ledger
from polariscope.studies.workers import ray as workers
from tiny_studies import is_logging, owner_of, wait_for


def owners(ledger: Ledger) -> set[int]:
    """Return the processes that hold a run now and have trained it for some steps."""
    return {owner for run in ledger.runs if is_logging(run) and (owner := owner_of(run)) is not None}


def node_of(process: int) -> str:
    """Return the node whose manager started a process."""
    variables = Path(f"/proc/{process}/environ").read_bytes().decode().split("\0")
    return next(word for word in variables if word.startswith("RAY_RAYLET_PID="))


def both_at_work(ledger: Ledger) -> tuple[int, int]:
    """Return the two processes that hold the runs; the first is suspended until there is a second."""
    paused = wait_for(lambda: owners(ledger)).pop()
    os.kill(paused, signal.SIGSTOP)
    return paused, wait_for(lambda: owners(ledger) - {paused}).pop()


def interrupt(ledger: Ledger, seen: dict[str, Any]) -> None:
    """Interrupt the study as by Ctrl-C while both nodes are working."""
    paused, other = both_at_work(ledger)
    seen["nodes"] = len({node_of(paused), node_of(other)})
    os.kill(paused, signal.SIGCONT)
    os.kill(os.getpid(), signal.SIGINT)


def kill(ledger: Ledger) -> None:
    """Kill one of two workers with SIGKILL while both are working."""
    os.kill(both_at_work(ledger)[0], signal.SIGKILL)


def two_nodes(scratch: str) -> Cluster:
    """Start a cluster of two nodes; retry if Ray abandons a node that starts slowly on a busy machine."""
    # Ray writes its address here, and takes for granted that an earlier one has made the folder.
    Path(os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp", "ray").mkdir(exist_ok=True)
    for attempt in range(ATTEMPTS):
        cluster = Cluster()
        try:
            for options in ({"temp_dir": scratch}, {}):
                cluster.add_node(num_cpus=1, **options)
        except Exception:  # it has no class of its own
            cluster.shutdown()
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return cluster
    raise AssertionError("never")


ATTEMPTS = 3


def main(folder: str) -> None:
    """Interrupt the study, then kill a worker, then print the results."""
    logging.disable(logging.INFO)
    scratch = tempfile.mkdtemp(prefix="ray-")
    cluster = two_nodes(scratch)
    seen: dict[str, Any] = {}
    try:
        ledger = Ledger.open(folder)
        hostile = threading.Thread(target=interrupt, args=(ledger, seen), daemon=True)
        hostile.start()
        try:
            workers.run_on_ray(ledger, address=cluster.address)
        except KeyboardInterrupt:
            seen["interrupted"] = [(entry.state, entry.step > 0) for entry in ledger.entries()]
        hostile = threading.Thread(target=kill, args=(ledger,), daemon=True)
        hostile.start()
        with mock.patch.object(workers, "_RayProcess", wraps=workers._RayProcess) as started:
            seen["counts"] = workers.run_on_ray(ledger, address=cluster.address)
        hostile.join(60)
        seen["started"] = started.call_count
        with mock.patch.object(Path, "touch"):  # as if the nodes had another disk
            try:
                workers.run_on_ray(ledger, address=cluster.address)
            except InputError as error:
                seen["refused"] = str(error)
    finally:
        cluster.shutdown()
        shutil.rmtree(scratch, ignore_errors=True)
    print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1])
