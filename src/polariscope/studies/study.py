"""A study: its design, and everything one does with it. ``polariscope.Study``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from polariscope.core.deprecation import warn_deprecated
from polariscope.core.options import build
from polariscope.core.types import OptionValue
from polariscope.studies.design import Options, StudyDesign
from polariscope.studies.ledger import Ledger
from polariscope.studies.planned_runs import StudyRun, plan_runs

if TYPE_CHECKING:
    from pandas import DataFrame

    from polariscope.studies.figures import Drawing
    from polariscope.studies.select import Selections, SelectionsByData
    from polariscope.studies.workers.slurm import Jobs


class Study(StudyDesign):
    """A design with the functions that run it and read its results.

    The fields are those of :class:`~polariscope.studies.design.StudyDesign`. This class adds no field; every method is
    a call of one function, so the modules behind them need only the design.
    """

    def plan(self) -> list[StudyRun]:
        """Every run, checked as :func:`polariscope.train` would check it; nothing is trained or written."""
        return plan_runs(self)

    def run(
        self,
        workers: int | None = None,
        *,
        on: str = "local",
        ray: str | None = None,
        progress: bool = False,
        **options: OptionValue,
    ) -> dict[str, int]:
        """Make the runs that are missing, and count the runs that are waiting, running, done and failed.

        :param workers: (default: 1, or as many as a Ray cluster has room for) number of processes that train at the
            same time, or of jobs.
        :param on: (default "local") kind of workers, a member of ``polariscope.workers``: "local", "ray" or "slurm".
        :param ray: deprecated; use ``on="ray", address=…``.
        :param progress: (default False) show the progress of the study.
        :param options: options of the workers, such as the address of a Ray cluster.
        """
        from polariscope.studies.workers import make_missing

        if ray is not None:
            warn_deprecated("Study.run(ray=ADDRESS)", 'Study.run(on="ray", address=ADDRESS)', "0.3")
            on, options = "ray", {**options, "address": ray}
        return dict(make_missing(Ledger(self), on, options, workers, progress=progress).counts.items())

    def submit(self, workers: int = 1, *, cluster: str = "slurm", options: Options | None = None) -> Jobs:
        """Submit SLURM jobs that make the missing runs, and return the jobs at once.

        :param workers: (default 1) number of jobs; each makes one run after the other.
        :param cluster: (default "slurm") or "local": processes of this machine that outlive this one.
        :param options: (default: those of the cluster) options of sbatch: partition, time, mem, cpus_per_task …
        """
        from polariscope.studies.workers.slurm import submit

        return submit(Ledger(self), workers, cluster, options)

    def table(self) -> DataFrame:
        """Return one row for each run as a frame of pandas."""
        from polariscope.studies.table_rows import study_table

        return study_table(Ledger(self)).to_frame()

    def figure(self, name: str, where: Sequence[str] = (), **options: OptionValue) -> Drawing:
        """Draw a figure of the study: a picture, and the numbers behind it.

        :param name: a member of ``polariscope.figures``.
        :param where: (default: all rows) conditions that rows of its table must meet, ``beta=4``.
        :param options: of the figure, by name.
        """
        from polariscope.studies.figures import family, make_figure

        figure = build(family, name, options)
        return make_figure(figure, figure.table(Ledger(self)), where)

    def select(self, metric: str = "") -> Selections:
        """What each way of choosing a run without labels would choose, and what that costs.

        A study of several datasets is refused: :meth:`select_by_data` chooses within each of them.

        :param metric: (default: the first of the table) the metric that would have been wished for.
        """
        from polariscope.studies.select import select_runs
        from polariscope.studies.table_rows import study_table

        return select_runs(study_table(Ledger(self)), metric)

    def select_by_data(self, metric: str = "") -> SelectionsByData:
        """Return what each way of choosing a run without labels would choose within each dataset, and what that costs.

        :param metric: (default: the first of the table) the metric that would have been wished for.
        """
        from polariscope.studies.select import select_by_data
        from polariscope.studies.table_rows import study_table

        return select_by_data(study_table(Ledger(self)), metric)

    def status(self) -> dict[str, int]:
        """How many runs are waiting, running, done and failed."""
        return dict(Ledger(self).counts().items())
