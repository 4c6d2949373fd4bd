"""Kill workers of a study at random moments, then let two finish together.

The script is a separate process because it forks its workers. Forking saves their imports, so many can be killed in
little time::

    python tests/hostile/workers.py FOLDER KILLS LONGEST SEED

FOLDER contains a prepared study, and LONGEST is the maximum lifetime of a worker in seconds. The script prints the
number of workers that were killed while they held a run.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

# What a worker opens when it needs it is opened here, once for all of them.
from polariscope.storage.lease import newest
from polariscope.studies.ledger import Ledger
from polariscope.studies.worker import Worker


def fork(ledger: Ledger) -> int:
    """Start a worker, and return its process identifier."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        Worker(ledger).drain()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def had(folder: Path, child: int) -> bool:
    """Return True if a dead worker held a run and did not release it."""
    last = newest(folder) if folder.is_dir() else None
    owner = None if last is None else json.loads(last.read_text())["content"]
    return owner is not None and owner["process"] == child and not owner["released"]


def main(folder: str, kills: int, longest: float, seed: int) -> None:
    """Kill workers, then let two workers finish."""
    moments, at_work, ledger = random.Random(seed), 0, Ledger.open(folder)
    for _ in range(kills):
        child = fork(ledger)
        time.sleep(moments.uniform(0.0, longest))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        at_work += any(had(run.folder, child) for run in ledger.runs)
    children = [fork(ledger), fork(ledger)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(at_work)
    sys.exit(max(codes))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
