"""The family of workers: a new kind is one file, and every door finds it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from polariscope.core.deprecation import DeprecatedWarning
from polariscope.core.errors import InputError
from polariscope.studies.ledger import Ledger
from polariscope.studies.worker import Worker
from polariscope.studies.workers import AbstractWorkers, Outcome, family, make_missing, workers
from tiny_studies import tiny

CALLS: list[tuple[int | None, str]] = []


@pytest.fixture
def in_process() -> Iterator[None]:
    """A kind of workers that another package could add."""

    @workers("in-process")
    @dataclasses.dataclass(frozen=True)
    class InProcessWorkers(AbstractWorkers):
        """One worker in this process."""

        note: str = ""

        def work(self, ledger: Ledger, workers: int | None = None, *, progress: bool = False) -> Outcome:
            CALLS.append((workers, self.note))
            Worker(ledger).drain()
            return Outcome(ledger.counts())

    yield
    CALLS.clear()
    del family._members["in-process"], family._traits["in-process"]


@pytest.mark.usefixtures("in_process")
def test_a_study_runs_on_a_new_kind_of_workers_with_its_options(tmp_path: Path) -> None:
    counts = tiny(tmp_path).run(3, on="in-process", note="mine")
    assert counts == {"waiting": 0, "running": 0, "done": 2, "failed": 0}
    assert CALLS == [(3, "mine")]


def test_unknown_kinds_and_options_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    study = tiny(tmp_path / "study")
    with pytest.raises(InputError, match=r"no kind of workers named 'lcal'.*Did you mean 'local'"):
        study.run(on="lcal")
    with pytest.raises(InputError, match="no option of kind of workers 'local' named 'address'"):
        make_missing(Ledger(study), "local", {"address": "auto"})
    assert not (tmp_path / "study").exists()


def test_the_argument_for_ray_is_deprecated(tmp_path: Path) -> None:
    with (
        pytest.warns(DeprecatedWarning, match=r"on=.ray."),
        pytest.raises(InputError, match="address must be"),
    ):
        tiny(tmp_path).run(ray="nowhere")
