"""Simultaneous trainings, each in a thread of one process."""

from __future__ import annotations

import concurrent.futures
import contextvars
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from polariscope.training.stopping import outer_stop, stop_requests
from polariscope.training.threads import using_threads

Result = TypeVar("Result")


def together(jobs: Sequence[Callable[[], Result]]) -> list[Result]:
    """Run several trainings in parallel and return their results; each computes the same as alone.

    PyTorch lets other threads run while it computes, so with a core for each, nets of some size take little longer
    together than one alone. Ctrl-C stops all of them after their step, and each saves a checkpoint. If one fails, the
    others are stopped in the same way, and its error is raised. A second Ctrl-C does not stop sooner.

    >>> together([lambda: 1, lambda: 2])
    [1, 2]

    :param jobs: functions that train, each with its own model.
    """
    threads = torch.get_num_threads()
    with (
        stop_requests() as stop,
        using_threads(threads),  # restores the number that the jobs might change
        concurrent.futures.ThreadPoolExecutor(max(1, len(jobs))) as pool,
    ):

        def run(job: Callable[[], Result]) -> Result:
            outer_stop.set(stop)
            torch.set_num_threads(threads)  # a new thread inherits the number that any thread set last
            return job()

        # Threads do not inherit context variables, and a context can be entered by one thread only, so each
        # gets a copy.
        running = [pool.submit(contextvars.copy_context().run, run, job) for job in jobs]
        for done in concurrent.futures.as_completed(running):
            if done.exception() is not None:
                stop.set()
        errors = [error for each in running if (error := each.exception()) is not None]
        for error in sorted(errors, key=lambda each: isinstance(each, KeyboardInterrupt)):
            raise error  # errors first, then interrupted trainings
        return [each.result() for each in running]
