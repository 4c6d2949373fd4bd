"""Listeners, which are called after every step: a live display, and TensorBoard."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text


class ProgressLine:
    """Display of steps and time, the loss terms, and the counts of active, mixed and passive latents.

    On a terminal it has two live lines; elsewhere (a log file, CI) it prints a plain line at intervals.

    :param steps: total number of steps.
    :param every_seconds: (default 20) seconds between two plain lines.
    :param describe_line: (default: that of a model) function that returns a line of the log as text.
    """

    def __init__(
        self,
        steps: int,
        every_seconds: float = 20.0,
        describe_line: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        self.steps = steps
        self.every_seconds = every_seconds
        self.describe_line = describe_line or in_words
        self.console = Console(file=sys.stderr)
        self.bar = Progress(TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.task = self.bar.add_task("training", total=steps)
        self.text = Text()
        self.live = Live(Group(self.bar, self.text), console=self.console, refresh_per_second=4)
        self.printed_at = time.monotonic()

    def __enter__(self) -> ProgressLine:
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.console.is_terminal:
            self.live.stop()

    def __call__(self, step: int, line: dict[str, object] | None) -> None:
        self.bar.update(self.task, completed=step)
        if line is None:
            return
        self.text.plain = self.describe_line(line)
        due = time.monotonic() - self.printed_at >= self.every_seconds or step == self.steps
        if not self.console.is_terminal and due:
            self.printed_at = time.monotonic()
            self.console.print(
                f"step {step} of {self.steps}: {self.describe_line(line)}", highlight=False, soft_wrap=True
            )


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
