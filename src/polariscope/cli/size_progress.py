"""Progress of a sizing search: a line for each candidate while it trains."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from polariscope.core.progress import ProgressEvent
from polariscope.core.text import plural

MAX_LINES = 12
IDLE_REPORTS = 4
"""Number of consecutive reports of one candidate after which other candidates are considered done."""


class SizeProgress:
    """One line for each candidate while it trains: seed, latents, step and Σ E[σ²].

    On a terminal the lines are live. Otherwise (in a log file or CI) each line is printed once, when its candidate is
    done. Two candidates can train at the same time, so a candidate is considered done after several consecutive reports
    of another one. The settings chosen automatically and the number of threads are printed first. The number of threads
    is printed again if it changes, for example when a seed was started with a different number.
    """

    def __init__(self, *, quiet: bool = False, chosen: str = "") -> None:
        self.quiet = quiet
        self.chosen = chosen
        self.threads: int | None = None
        self.stage = ""
        self.lines: list[str] = []
        self.training: dict[str, tuple[int, int]] = {}
        """Step and line index of each candidate that is not done."""
        self.last: str | None = None
        self.times = 0
        """Number of consecutive reports of the last candidate."""
        self.live: Any = None

    def __enter__(self) -> SizeProgress:
        from rich.live import Live

        from polariscope.cli.console import printer

        console = printer(errors=True)
        if console.is_terminal and not self.quiet:
            self.live = Live(console=console, refresh_per_second=4, transient=True)
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()
        self._finish()

    def __call__(self, event: ProgressEvent) -> None:
        candidate, step = event.task, event.done
        if event.stage != self.stage:
            self._finish()
            self.stage = event.stage
        self.times = self.times + 1 if candidate == self.last else 1
        self.last = candidate
        self._announce()
        if candidate in self.training and self.training[candidate][0] >= step:  # restarted
            self._finish()
        if self.times >= IDLE_REPORTS:
            self._finish(but=candidate)
        if candidate not in self.training:
            self.lines.append("")
        _, index = self.training.get(candidate, (0, len(self.lines) - 1))
        self.training[candidate] = step, index
        self.lines[index] = str(event)
        if self.live is not None:
            self.live.update("\n".join(self.lines[-MAX_LINES:]))

    def _announce(self) -> None:
        """Print the chosen settings once, and the number of threads if it has changed, above any live lines."""
        import torch

        threads = torch.get_num_threads()  # while a model trains, this is its number
        if self.quiet or threads == self.threads:
            return
        self._finish()
        from polariscope.cli.console import say

        message = f"Training with {plural(threads, 'thread')}."
        message = f"{self.chosen}\n{message}" if self.chosen else message
        if self.live is not None:
            self.live.console.print(message)
        else:
            say(message, errors=True)
        self.chosen, self.threads = "", threads

    def _finish(self, but: str | None = None) -> None:
        """Remove all candidates except ``but``, and print their last lines if the output is not live."""
        from polariscope.cli.console import say

        for candidate in [each for each in self.training if each != but]:
            _, index = self.training.pop(candidate)
            if self.live is None and not self.quiet:
                say(self.lines[index], errors=True)
