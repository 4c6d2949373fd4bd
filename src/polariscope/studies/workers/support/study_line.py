"""Progress display of a study: a live line on a terminal, otherwise a plain line at intervals."""

from __future__ import annotations

import time
from collections.abc import Callable

from polariscope.core.progress import Fact, ProgressDisplay, ProgressEvent
from polariscope.core.text import duration
from polariscope.studies.ledger import STATES, Ledger, State, is_trained, saved_steps
from polariscope.studies.planned_runs import StudyRun

LOOK_EVERY = 1.0
"""Seconds between two checks of the workers and runs."""


class StudyLine:
    """Progress display of a study: a live line on a terminal, otherwise a plain line at intervals."""

    def __init__(
        self,
        ledger: Ledger,
        shown: bool,
        every_seconds: float = 20.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ledger = ledger
        self.shown = shown
        self.clock = clock
        self.begun = self.looked = clock()
        self.display = ProgressDisplay(every_seconds, clock=clock)
        self.at_start: float | None = None

    def __enter__(self) -> StudyLine:
        if self.shown:
            self.at_start = self._share()
            self.display.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self.display.__exit__()

    def step(self, run: StudyRun, step: int) -> None:
        """Update the display at intervals while this process trains."""
        if self.shown and self.clock() - self.looked >= 2 * LOOK_EVERY:
            self.look()

    def look(self) -> None:
        """Check the runs, and show their progress."""
        if not self.shown:
            return
        self.looked = self.clock()
        self.say(self.ledger.counts(), only_when_due=True)

    def say(self, counts: dict[State, int], *, only_when_due: bool = False) -> None:
        """Show the number of runs in each state, the rate and the time left."""
        if not self.shown:
            return
        done, total = counts["done"] + counts["failed"], sum(counts.values())
        facts = dict[str, Fact](counts.items())
        event = ProgressEvent("study", done, total, "run", facts, self.in_words(counts))
        if only_when_due:
            self.display(event)
        else:
            self.display.print(event)

    def in_words(self, counts: dict[State, int]) -> str:
        """Return the line: counts, rate and time left."""
        total, ended = sum(counts.values()), counts["done"] + counts["failed"]
        parts = [
            f"{ended} of {total} runs",
            *(f"{counts[state]} {state}" for state in STATES if counts[state]),
        ]
        hours = (self.clock() - self.begun) / 3600
        # Steps that earlier calls saved say nothing about the present rate.
        gained = self._share() - (self.at_start or 0.0)
        if gained > 0 and hours > 0:
            rate = gained * total / hours
            parts.append(f"{rate:,.0f} runs an hour" if rate >= 100 else f"{rate:.3g} runs an hour")
            if left := 1 - self._share():
                parts.append(f"{duration(3600 * hours * left / gained)} left")
        return " · ".join(parts)

    def _share(self) -> float:
        """Return the share of all steps that are saved; failed runs count, since their steps will not be trained."""
        steps = sum(run.steps for run in self.ledger.runs)
        saved = sum(
            run.steps if self.ledger.failure(run) or is_trained(run) else min(run.steps, saved_steps(run))
            for run in self.ledger.runs
        )
        return saved / max(1, steps)
