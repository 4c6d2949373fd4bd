"""Training in a run folder: loading of finished runs, threads, progress, and failures."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from polariscope.core.errors import DivergedError, InputError, PolariscopeError
from polariscope.core.progress import Progress, ProgressDisplay, takes_events
from polariscope.storage.folder import RunFolder
from polariscope.training.loop import AbstractTask, Listener, train_task
from polariscope.training.state import TrainState
from polariscope.training.threads import available_cores, threads_for, using_threads

logger = logging.getLogger("polariscope")

Opened = TypeVar("Opened")


def open_finished(run: RunFolder, steps: int, read: Callable[[Path], Opened]) -> Opened | None:
    """Load a finished training; return None if steps are missing, or if its file is damaged or of another run.

    Such a file is renamed. It can then be recreated from the last checkpoint.

    :param run: the run folder.
    :param steps: requested number of steps.
    :param read: function that reads the file of the model.
    """
    try:
        if not run.model_file.exists():
            return None
        run.check_belongs(run.model_file)  # also raises an error if the file is damaged
        finished = read(run.model_file) if run.is_finished_for(steps) else None
    except PolariscopeError as error:
        source = (
            "recreated from the last checkpoint" if run.checkpoints.steps else "trained again from step 0"
        )
        aside = run.set_model_aside()
        logger.warning("%s It is %s; the old file is kept as %s.", error, source, aside.name)
        return None
    if finished is not None:
        # A damaged log only gives a warning, because the model does not depend on it.
        try:
            run.read_log()
        except PolariscopeError as error:
            logger.warning(
                "%s The model is intact; to restore the log, repeat the run in another folder.", error
            )
    return finished


def threads_by_rule(work: Callable[[], int]) -> int:
    """Return the number of threads for training on this machine, by the fixed rule.

    :param work: function that returns the multiply-adds in the forward pass of a step; not called on a single core.
    """
    cores = available_cores()
    if cores == 1:
        return 1
    with using_threads(1):
        return threads_for(work(), cores)


def threads_of(run: RunFolder, requested: int | None, by_rule: Callable[[], int]) -> dict[str, Any]:
    """Return the number of threads to use and record: the requested one, the recorded one, or that of the rule.

    :param run: the run folder.
    :param requested: the number that the caller requests, or None.
    :param by_rule: function that returns the number for a new training.
    """
    if not run.checkpoints.steps:
        return {"threads": requested or by_rule()}
    environment = run.settings["environment"]
    before, earlier = environment["threads"], environment.get("threads_before", [])
    if requested is None or requested == before:
        if requested is None and before > (cores := available_cores()):
            logger.warning(
                "%s started with %d threads and resumes with the same number, so the result is identical bit for bit; "
                "%d would be faster here.",
                run.path, before, cores,
            )  # fmt: skip
        return {"threads": before, **({"threads_before": earlier} if earlier else {})}
    logger.warning(
        "%s had %d thread%s before and has %d now; the last bits of its numbers can differ from those of a run with a "
        "constant number of threads.",
        run.path, before, "" if before == 1 else "s", requested,
    )  # fmt: skip
    return {"threads": requested, "threads_before": [*earlier, before]}


@contextmanager
def recording_failure(run: RunFolder) -> Iterator[None]:
    """Remove a run that fails before its first checkpoint, and record a later divergence.

    If an extension fails before its first checkpoint, the run is as before.

    :param run: the run folder.
    """
    try:
        yield
    except DivergedError as error:
        if not run.forget() and not run.revert():
            run.keep_failure("diverged", str(error), error.step)
        raise
    # KeyboardInterrupt is not an Exception: the loop has already saved a checkpoint for it.
    except Exception:
        if not run.forget():
            run.revert()
        raise


def train_shown(
    task: AbstractTask[Any],
    run: RunFolder | None,
    progress: bool | Listener | Progress | None,
    listeners: Sequence[Listener] = (),
    describe_line: Callable[[dict[str, Any]], str] | None = None,
) -> TrainState:
    """Train a task and report its progress.

    :param task: the task.
    :param run: its folder; None if nothing is written.
    :param progress: True for a live display, or a function that is called with events, or with every step and its line
        of the log.
    :param listeners: (default none) further functions that are called after every step.
    :param describe_line: (default: that of a model) function that returns a line of the log as text.
    """
    from polariscope.training.listeners import step_events

    steps = task.settings.steps
    if progress is True:
        with ProgressDisplay() as display:
            return train_task(task, run, (*listeners, step_events(display, steps, describe_line)))
    if progress is False or progress is None:
        return train_task(task, run, tuple(listeners))
    if not callable(progress):
        raise InputError("progress", "be True, False or a function", got=f"{progress!r}")
    function: Any = progress
    listener = step_events(function, steps, describe_line) if takes_events(function, n_before=2) else function
    return train_task(task, run, (*listeners, listener))
