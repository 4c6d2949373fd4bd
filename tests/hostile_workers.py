"""Kills workers of a study at random moments, then lets two finish together. Its own process: workers are forked.

Forking spares each of them the imports, so many can be killed in little time::

    python tests/hostile_workers.py FOLDER KILLS LONGEST SEED

FOLDER is that of a prepared study, LONGEST the seconds that a worker lives at most. Prints how many were killed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback

from polariscope.studies.ledger import Ledger
from polariscope.studies.workers.drain import Worker


def fork(folder: str) -> int:
    """Start a worker; its process number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        Worker(Ledger.open(folder)).drain()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def main(folder: str, kills: int, longest: float, seed: int) -> None:
    """Kill, then let two workers finish."""
    moments, killed = random.Random(seed), 0
    for _ in range(kills):
        child = fork(folder)
        time.sleep(moments.uniform(0.0, longest))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
    children = [fork(folder), fork(folder)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(killed)
    sys.exit(max(codes))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
