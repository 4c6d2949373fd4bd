"""Long trainings without the check of every shape, which more than doubles their time; short ones have it."""

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
    """Disable checks of shapes and types, in a ``with`` block or as a decorator of a test."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", before)


CHECKED_STEPS = 10


def checked_at_first(train_task: Callable[..., Any]) -> Callable[..., Any]:
    """Return the training loop with shapes checked in the first steps, and in later steps that do more than train.

    All steps have the same shapes. Steps that end with a line of the log, a validation or a checkpoint are always
    checked.
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
