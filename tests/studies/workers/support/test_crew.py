"""A crew replaces workers that are killed, not for ever, and waits for nobody when all is done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from polariscope.core.errors import PolariscopeError
from polariscope.studies.ledger import Ledger
from polariscope.studies.workers.support.crew import MAX_DEATHS, AbstractProcess, Crew
from polariscope.studies.workers.support.study_line import StudyLine
from tiny_studies import tiny


class Fake(AbstractProcess):
    """Ends with a code, or waits for a place until it is stopped."""

    def __init__(self, code: int | None) -> None:
        self.code = code
        self.stops = 0

    def poll(self) -> int | None:
        return self.code

    def stop(self) -> None:
        self.stops += 1
        self.code = -9

    def wait(self, seconds: float) -> None:
        return

    @property
    def is_waiting(self) -> bool:
        return self.code is None


def work(folder: Path, codes: list[int | None], workers: int) -> list[Fake]:
    """The processes that a crew starts when they end with these codes."""
    started: list[Fake] = []
    left: Iterator[int | None] = iter(codes)

    def start() -> Fake:
        started.append(Fake(next(left)))
        return started[-1]

    ledger = Ledger(tiny(folder))
    Crew(ledger, workers, start).work(StudyLine(ledger, shown=False))
    return started


def test_killed_workers_are_replaced(tmp_path: Path) -> None:
    assert [fake.code for fake in work(tmp_path, [-9, 0, -6, 0], 2)] == [-9, 0, -6, 0]


def test_too_many_deaths_without_a_saved_step_end_it(tmp_path: Path) -> None:
    with pytest.raises(PolariscopeError, match=r"4 workers were killed one after the other.*with code -9"):
        work(tmp_path, [-9] * (MAX_DEATHS + 1), 1)


def test_who_waits_for_a_place_when_all_is_done_is_sent_home(tmp_path: Path) -> None:
    first, second, third = work(tmp_path, [None, 0, None], 3)
    assert [first.stops, second.stops, third.stops] == [1, 0, 1]


def test_a_worker_that_fails_or_is_interrupted_stops_the_others(tmp_path: Path) -> None:
    with pytest.raises(PolariscopeError, match="a worker failed; its message is above"):
        work(tmp_path, [None, 2], 2)
    with pytest.raises(KeyboardInterrupt):
        work(tmp_path, [None, 130], 2)
