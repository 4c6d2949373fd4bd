"""Listeners, which are called after every step: events of progress, and TensorBoard."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from polariscope.core.progress import Progress, ProgressEvent
from polariscope.core.text import duration

if TYPE_CHECKING:
    from polariscope.training.loop import Listener

EVENT_SECONDS = 0.25
"""Seconds between two events of steps that are not logged."""


def step_events(
    progress: Progress,
    steps: int,
    describe_line: Callable[[dict[str, Any]], str] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Listener:
    """Return a listener that sends the progress of training: steps, time left, and the last line of the log.

    :param progress: function of events.
    :param steps: total number of steps.
    :param describe_line: (default: that of a model) function that returns a line of the log as text.
    :param clock: (default time.monotonic) seconds since some moment.
    """
    describe = describe_line or in_words
    text, first, begun, sent = "", 0, 0.0, -EVENT_SECONDS

    def listen(step: int, line: dict[str, Any] | None) -> None:
        nonlocal text, first, begun, sent
        now = clock()
        if not first:
            first, begun = step, now
        if line is None and now - sent < EVENT_SECONDS:
            return
        sent = now
        text = describe(line) if line is not None else text
        # Lists, such as the KL of each latent, are left out: facts are single values.
        facts = {name: value for name, value in (line or {}).items() if isinstance(value, int | float | str)}
        # The first step is slow, so the time left is measured from its end.
        left = (steps - step) * (now - begun) / (step - first) if step > first else 0.0
        parts = [f"step {step} of {steps}", *([f"{duration(left)} left"] if left >= 1 else [])]
        message = ", ".join(parts) + (f": {text}" if text else "")
        progress(ProgressEvent("training", step, steps, "step", facts, message))

    return listen


def in_words(line: dict[str, Any]) -> str:
    """Summarise a line of the log.

    >>> in_words({"loss": 31.42, "terms": {"rate": 12.0}, "active": 5, "mixed": 1, "passive": 4})
    'loss 31.42 · rate 12.00 · 5 active, 1 mixed, 4 passive'
    """
    terms = " · ".join(f"{name} {value:.2f}" for name, value in line["terms"].items())
    return (
        f"loss {line['loss']:.2f} · {terms} · "
        f"{line['active']} active, {line['mixed']} mixed, {line['passive']} passive"
    )


def tensorboard_listener(writer: Any) -> Callable[[int, dict[str, Any] | None], None]:
    """Return a listener that writes each line of the log as TensorBoard events."""

    def listen(step: int, line: dict[str, Any] | None) -> None:
        if line is None:
            return
        scalars = {
            "loss": line["loss"],
            "trace": line["trace"],
            **({} if line.get("delta_kl") is None else {"delta_kl": line["delta_kl"]}),
            **{f"terms/{name}": value for name, value in line["terms"].items()},
            **{f"latents/{kind}": line[kind] for kind in ("active", "mixed", "passive")},
            **{f"validation/{name}": value for name, value in line.get("validation", {}).items()},
        }
        for name, value in scalars.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return listen
