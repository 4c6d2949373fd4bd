"""Workers of a study: processes that train its runs, on this machine, on a Ray cluster or as SLURM jobs.

A member is a frozen dataclass whose fields are its options. To add one, write its file here: ``polariscope study run
FILE --on NAME --set NAME.OPTION=VALUE`` and ``Study.run(on=NAME)`` find it. All workers run the same process
(:mod:`polariscope.studies.worker`); members differ in how they start it.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from polariscope.core.options import build
from polariscope.core.registry import open_family

if TYPE_CHECKING:
    from polariscope.core.types import OptionValue
    from polariscope.studies.ledger import Ledger, State


class AbstractJobs(abc.ABC):
    """Jobs that continue after the call that submitted them."""

    ids: tuple[str, ...]
    """Job numbers."""
    folder: Path
    """Folder of their scripts and logs."""

    @abc.abstractmethod
    def wait(self, *, progress: bool = False) -> dict[State, int]:
        """Wait until all jobs have ended, and count the runs in each state. Ctrl-C stops waiting, not the jobs.

        :param progress: (default False) show the progress of the study.
        """


@dataclasses.dataclass(frozen=True)
class Outcome:
    """State of a study when its workers return."""

    counts: dict[State, int]
    """Number of runs in each state."""
    jobs: AbstractJobs | None = None
    """Jobs that are still queued or running; None if all workers have ended."""


@dataclasses.dataclass(frozen=True)
class AbstractWorkers(abc.ABC):
    """A kind of workers."""

    @abc.abstractmethod
    def work(self, ledger: Ledger, workers: int | None = None, *, progress: bool = False) -> Outcome:
        """Train and analyse the missing runs.

        :param ledger: ledger of the study.
        :param workers: (default: chosen by the member) number of workers.
        :param progress: (default False) show the progress of the study.
        """


workers = family = open_family(__name__, "kind of workers")


def make_missing(
    ledger: Ledger,
    on: str,
    options: Mapping[str, OptionValue],
    workers: int | None = None,
    *,
    progress: bool = False,
) -> Outcome:
    """Train and analyse the missing runs of a study with workers of one kind.

    :param ledger: ledger of the study.
    :param on: name of a member of this family.
    :param options: options of the member.
    :param workers: (default: chosen by the member) number of workers.
    :param progress: (default False) show the progress of the study.
    """
    ledger.check_imports()
    return build(family, on, options).work(ledger, workers, progress=progress)
