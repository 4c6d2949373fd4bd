"""Long trainings without the check of every shape, which more than doubles them; short ones have it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from jaxtyping import config


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """A ``with`` block, or a decorator of a test, in which shapes and types are not checked."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", before)


CHECKED_STEPS = 10


def checked_at_first(train_task: Callable[..., Any]) -> Callable[..., Any]:
    """The loop of training, in which shapes are checked in the first steps, and later where there is more than a step.

    All steps are alike in their shapes. Those that end with a line of the log, a validation or a checkpoint are checked
    however late they are.
    """

    @functools.wraps(train_task)
    def shortened(*args: Any, **options: Any) -> Any:
        call = inspect.signature(train_task).bind(*args, **options)
        call.apply_defaults()
        settings, before, done = call.arguments["task"].settings, config.jaxtyping_disable, itertools.count(1)

        def hear(step: int, line: dict[str, Any] | None) -> None:
            following = step + 1
            plain = following < settings.steps and following % settings.log_every
            unseen = next(done) >= CHECKED_STEPS and plain and following % settings.checkpoint_every
            config.update("jaxtyping_disable", before or bool(unseen))

        call.arguments["listeners"] = (*call.arguments["listeners"], hear)
        try:
            return train_task(*call.args, **call.kwargs)
        finally:
            config.update("jaxtyping_disable", before)

    return shortened
