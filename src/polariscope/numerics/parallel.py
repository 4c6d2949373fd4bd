"""Independent fits in parallel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def count_cores() -> int:
    """Return the number of cores that this process can use."""
    # A container or a batch system can allow fewer cores than the machine has; macOS and Windows have no such function.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply ``function`` to each item on as many threads as there are processors; return the results in order.

    It is intended for fits that release Python's lock and use one thread each. Several threads inside one fit would
    wait for each other at every tree: on two busy processors LightGBM took ten times as long. The results do not depend
    on the number of threads.
    """
    queue = list(items)
    with ThreadPoolExecutor(max(1, min(count_cores(), len(queue)))) as pool:
        return list(pool.map(function, queue))
