"""Fits side by side: in order, on as many threads as are of use."""

from __future__ import annotations

import os

import pytest

from polariscope.numerics import parallel
from polariscope.numerics.parallel import in_threads


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many threads each pool was made with."""
    made: list[int] = []
    pool = parallel.ThreadPoolExecutor

    def told(n_threads: int) -> object:
        made.append(n_threads)
        return pool(n_threads)

    monkeypatch.setattr(parallel, "ThreadPoolExecutor", told)
    return made


def test_answers_are_in_the_order_of_the_items_on_no_more_threads_than_either_needs(
    threads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", {0: {4, 5, 7}}.__getitem__, raising=False)  # 0: this process
    for count, expected in ((10, 3), (3, 3), (2, 2), (1, 1), (0, 1)):
        assert in_threads(lambda item: item**2, range(count)) == [item**2 for item in range(count)]
        assert threads.pop() == expected


@pytest.mark.parametrize(("processors", "expected"), [(3, 3), (None, 1)])
def test_systems_that_do_not_tell_a_process_its_processors_tell_how_many_there_are(
    processors: int | None, expected: int, threads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    assert in_threads(str, range(5)) == ["0", "1", "2", "3", "4"]
    assert threads == [expected]


def test_an_error_in_one_of_them_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda item: 1 / item, [1, 0])
