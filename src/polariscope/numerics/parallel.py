"""Independent fits side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def in_threads(function: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
    """``function`` of each item, in order, on as many threads as there are processors.

    For fits that leave Python's lock while they compute and use one thread each. Several threads inside one fit
    would wait for each other at every tree: on two busy processors that took LightGBM ten times as long. The
    answers do not depend on the number of threads.
    """
    waiting = list(items)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(max(1, min(available, len(waiting)))) as pool:
        return list(pool.map(function, waiting))
