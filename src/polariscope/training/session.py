"""Trainings in a folder: opened if finished, their threads, their progress, and what a failure leaves."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from polariscope.core.errors import DivergedError, PolariscopeError
from polariscope.storage.folder import RunFolder
from polariscope.training.loop import AbstractTask, Listener, train_task
from polariscope.training.state import TrainState
from polariscope.training.threads import available_cores, threads_for, using_threads

logger = logging.getLogger("polariscope")

Opened = TypeVar("Opened")


def open_finished(run: RunFolder, steps: int, read: Callable[[Path], Opened]) -> Opened | None:
    """Return what a finished training left; None if it has not all its steps, or if its file is damaged.

    A damaged file is renamed. The file can then be made again from the last checkpoint.

    :param run: the folder.
    :param steps: number of steps asked for.
    :param read: reads the file of the model.
    """
    try:
        run.model_header()  # refuses a damaged file
        return read(run.model_file) if run.is_finished_for(steps) else None
    except PolariscopeError as error:
        logger.warning("%s It is made again from the last checkpoint.", error)
        run.set_model_aside()
        return None


def threads_by_rule(work: Callable[[], int]) -> int:
    """Return the number of threads that the fixed rule gives a training on this machine.

    :param work: returns the multiply-adds in the forward pass of a step; not called if there is one core.
    """
    cores = available_cores()
    if cores == 1:
        return 1
    with using_threads(1):
        return threads_for(work(), cores)


def threads_of(run: RunFolder, asked: int | None, by_rule: Callable[[], int]) -> dict[str, Any]:
    """Return the number of threads to use and to record: as asked for, else as before, else by the rule.

    :param run: the folder.
    :param asked: the number that the caller asks for; None: none.
    :param by_rule: returns the number for a new training.
    """
    if not run.checkpoints.steps:
        return {"threads": asked or by_rule()}
    environment = run.settings["environment"]
    before, earlier = environment["threads"], environment.get("threads_before", [])
    if asked is None or asked == before:
        if asked is None and before > (cores := available_cores()):
            logger.warning(
                "%s was begun with %d threads and is resumed with as many, so the result stays the same bit for bit; "
                "%d would be faster here.",
                run.path, before, cores,
            )  # fmt: skip
        return {"threads": before, **({"threads_before": earlier} if earlier else {})}
    logger.warning(
        "%s had %d thread%s before and has %d now; the last bits of its numbers can differ from those of a run with "
        "one number throughout.",
        run.path, before, "" if before == 1 else "s", asked,
    )  # fmt: skip
    return {"threads": asked, "threads_before": [*earlier, before]}


@contextmanager
def recording_failure(run: RunFolder) -> Iterator[None]:
    """Inside, a training that fails before its first checkpoint leaves nothing, and a later divergence is recorded.

    :param run: the folder.
    """
    try:
        yield
    except DivergedError as error:
        if not run.forget():
            run.keep_failure("diverged", str(error), error.step)
        raise
    except Exception:
        run.forget()
        raise


def train_shown(
    task: AbstractTask[Any],
    run: RunFolder | None,
    listeners: Sequence[Listener],
    *,
    show: bool,
    describe_line: Callable[[dict[str, Any]], str] | None = None,
) -> TrainState:
    """Train a task, with a live line if it is asked for.

    :param task: what is trained.
    :param run: its folder; None: nothing is written.
    :param listeners: functions that are called after every step.
    :param show: whether a live line is shown.
    :param describe_line: (default: that of a model) returns a line of the log as text.
    """
    if not show:
        return train_task(task, run, tuple(listeners))
    from polariscope.training.listeners import ProgressLine

    with ProgressLine(task.settings.steps, describe_line=describe_line) as line:
        return train_task(task, run, (*listeners, line))
