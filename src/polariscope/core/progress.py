"""Progress of long jobs: an event that all jobs send, and displays of it.

A job calls a function (:data:`Progress`) with a :class:`ProgressEvent`. Displays are such functions: they show a
percentage (:class:`PercentLine`), or the last message of each task (:class:`ProgressDisplay`). Both are updated in
place on a terminal; in a log they print occasional lines.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

PATIENCE = 2.0
"""Seconds after which progress is first shown."""
EVERY_SECONDS = 20.0
"""Seconds between two lines of a log."""
MAX_LINES = 12
"""Maximum number of live lines."""


Fact: TypeAlias = int | float | str


@dataclasses.dataclass(frozen=True)
class ProgressEvent:
    """State of a task: the amount of work done, and the total."""

    task: str
    """Name of the task: "dsprites: unpacking the images", "seed 0: 16 latents"."""
    done: int = 0
    total: int | None = None
    """Total amount of work, in the unit of ``done``; None if unknown."""
    unit: str = ""
    """Unit of ``done``: "step", "metric"."""
    facts: Mapping[str, Fact] = dataclasses.field(default_factory=dict)
    """Further values by name, for programs."""
    message: str = ""
    """The state in words, for people."""
    stage: str = ""
    """Part of the job to which the task belongs, such as the sizing method that trains a model."""

    @property
    def percent(self) -> int | None:
        """Completed share in per cent, rounded down; None without a total."""
        return None if self.total is None else 100 * self.done // max(self.total, 1)

    @property
    def is_done(self) -> bool:
        """True if the task is complete."""
        return self.total is not None and self.done >= self.total

    def __str__(self) -> str:
        state = self.task if self.percent is None else f"{self.task} … {self.percent} %"
        return (f"{self.stage}: " if self.stage else "") + (self.message or state)


Progress: TypeAlias = Callable[[ProgressEvent], None]
"""A function that is called with every event of a job."""


def in_stage(progress: Progress | None, stage: str) -> Progress | None:
    """Return a function that marks all events of a part of a job with its name.

    >>> in_stage(print, "elbow")(ProgressEvent("seed 0", 1, 4))
    elbow: seed 0 … 25 %

    :param progress: function called with the events, or None.
    :param stage: name of the part of the job.
    """
    if progress is None:
        return None
    function = progress
    return lambda event: function(dataclasses.replace(event, stage=stage))


AnyProgress: TypeAlias = Callable[..., None]
"""A function of events, or one with the arguments that were documented in 0.2.0; see :func:`listener`."""


class Task:
    """A task of a job, called with the amount of work done and the total.

    >>> task = Task(lambda event: print(event), "counting")
    >>> task(1, 4)
    counting … 25 %

    :param progress: function called with the events, or None.
    :param name: name of the task.
    :param unit: (default none) unit of the amounts.
    """

    def __init__(self, progress: Progress | None, name: str, unit: str = "") -> None:
        self.progress, self.name, self.unit = progress, name, unit

    def __call__(self, done: int, total: int | None = None, message: str = "") -> None:
        if self.progress is not None:
            self.progress(ProgressEvent(self.name, done, total, self.unit, message=message))


def takes_events(function: Callable[..., object], n_before: int = 1) -> bool:
    """Return True if a function takes a :class:`ProgressEvent` instead of the arguments of 0.2.0.

    The first parameter is annotated as an event, or a single argument is required although 0.2.0 passed several.

    :param function: the function.
    :param n_before: (default 1) number of arguments that 0.2.0 passed to it.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions of C have no signature
        return False
    positional = [
        each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    if positional and "ProgressEvent" in str(positional[0].annotation):
        return True
    takes_any = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    return n_before > 1 and len(positional) == 1 and not takes_any


def listener(
    progress: AnyProgress | None, arguments: Callable[[ProgressEvent], tuple[object, ...]]
) -> Progress | None:
    """Return a function of events from the argument ``progress`` of a public function.

    Functions that do not take events are called as documented in 0.2.0.

    :param progress: a function of events, a function with the arguments of 0.2.0, or None.
    :param arguments: converts an event to the arguments documented in 0.2.0.
    """
    if progress is None or takes_events(progress):
        return progress
    function = progress

    def send(event: ProgressEvent) -> None:
        function(*arguments(event))

    return send


@contextlib.contextmanager
def reporting(
    progress: bool | AnyProgress | None, arguments: Callable[[ProgressEvent], tuple[object, ...]]
) -> Iterator[Progress | None]:
    """Yield the function of events for an argument ``progress`` that can also be True, for a display.

    :param progress: True, False, None, or a function; see :func:`listener`.
    :param arguments: converts an event to the arguments documented in 0.2.0.
    """
    if progress is True:
        with ProgressDisplay(transient=True) as display:
            yield display
    else:
        yield listener(progress or None, arguments)


class ProgressDisplay:
    """The last message of each task: live on a terminal and in a notebook, occasional lines in a log.

    :param every_seconds: (default 20) seconds between two lines of a log.
    :param transient: (default False) if True, live lines disappear at the end.
    :param clock: (default time.monotonic) function that returns a time in seconds.
    """

    def __init__(
        self,
        every_seconds: float = EVERY_SECONDS,
        *,
        transient: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        self.every_seconds, self.clock = every_seconds, clock
        # Names of tasks can contain brackets, which are markup in rich.
        self.console = Console(file=sys.stderr, highlight=False, markup=False)
        self.is_live = self.console.is_terminal or self.console.is_jupyter
        self.text = Text()
        self.live = Live(self.text, console=self.console, refresh_per_second=4, transient=transient)
        self.lines: dict[tuple[str, str], str] = {}
        """The last message of each task, by stage and task."""
        self.printed: float | None = None
        """Time of the last printed line, or of the first event."""

    def __enter__(self) -> ProgressDisplay:
        if self.is_live:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_live:
            self.live.stop()

    def __call__(self, event: ProgressEvent) -> None:
        self.lines[event.stage, event.task] = str(event)
        self.text.plain = "\n".join([*self.lines.values()][-MAX_LINES:])
        if self.is_live:
            return
        if self.printed is None:
            # The first line of a log is printed after the full interval, so short jobs print nothing but
            # their end.
            self.printed = self.clock()
        if event.is_done or self.clock() - self.printed >= self.every_seconds:
            self.print(event)

    def print(self, event: ProgressEvent) -> None:
        """Print a permanent line above the live lines.

        :param event: the state of a task.
        """
        self.printed = self.clock()
        # In a log, rich would otherwise break lines at 80 characters.
        self.console.print(str(event), soft_wrap=True)


class PercentLine:
    """The percentage of one task; a task that ends quickly is not shown.

    On a terminal the percentage is updated in place. In a file or pipe one line is printed after ``patience`` seconds,
    and one at the end.

    :param task: name of the task: "dsprites: unpacking the images".
    :param patience: (default 2) seconds after which progress is first shown.
    """

    def __init__(self, task: str, patience: float = PATIENCE) -> None:
        self.task, self.patience = task, patience
        self.start, self.shown = time.monotonic(), -1
        self.is_live = sys.stderr.isatty()

    def __call__(self, event: ProgressEvent) -> None:
        percent = event.percent or 0
        is_early = time.monotonic() - self.start < self.patience
        if is_early or percent == self.shown or (self.shown >= 0 and not self.is_live):
            return
        end = "\r" if self.is_live else "\n"
        print(f"{self.task} … {percent} %", end=end, file=sys.stderr, flush=True)
        self.shown = percent

    def __enter__(self) -> PercentLine:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.shown < 0:
            return
        if kind is None:
            print(f"{self.task}: done in {time.monotonic() - self.start:.0f} s", file=sys.stderr, flush=True)
        elif self.is_live:
            print(file=sys.stderr)  # the next output, an error message, starts on a new line


@contextlib.contextmanager
def shown_progress(task: str, patience: float = PATIENCE) -> Iterator[Task]:
    """Yield a task to call as a job proceeds, shown by a :class:`PercentLine`.

    :param task: name of the task.
    :param patience: (default 2) seconds after which progress is first shown.
    """
    with PercentLine(task, patience) as line:
        yield Task(line, task)
