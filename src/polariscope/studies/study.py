"""``polariscope.Study``: the design of a study, with methods that run it and read its results."""

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
    """Many runs that are defined together: their data, objectives, settings, seeds and analyses.

    The arguments are the fields of :class:`~polariscope.studies.design.StudyDesign`, which are also the keys of a study
    file. The methods train the runs and read their results.
    """

    def plan(self) -> list[StudyRun]:
        """Return every run, checked as :func:`polariscope.train` checks it; nothing is trained or written."""
        return plan_runs(self)

    def run(
        self,
        workers: int | None = None,
        *,
        on: str = "local",
        ray: str | None = None,
        progress: bool = False,
        allow_import: bool = False,
        **options: OptionValue,
    ) -> dict[str, int]:
        """Train and analyse the missing runs, and return the number of runs that are waiting, running, done and failed.

        :param workers: (default: 1; with Ray, as many as the cluster has room for) number of processes that train at
            the same time, or of jobs.
        :param on: (default "local") kind of workers, a member of ``polariscope.workers``: "local", "ray" or "slurm".
        :param ray: deprecated; use ``on="ray", address=…``.
        :param progress: (default False) show the progress of the study.
        :param allow_import: (default False) if True, models of the study can be imported by the name of a function,
            which runs its code.
        :param options: options of the workers, such as the address of a Ray cluster.
        """
        from polariscope.studies.workers import make_missing

        if ray is not None:
            warn_deprecated("Study.run(ray=ADDRESS)", 'Study.run(on="ray", address=ADDRESS)', "0.3")
            on, options = "ray", {**options, "address": ray}
        ledger = Ledger(self, allow_import=allow_import)
        return dict(make_missing(ledger, on, options, workers, progress=progress).counts.items())

    def submit(self, workers: int = 1, *, cluster: str = "slurm", options: Options | None = None) -> Jobs:
        """Submit SLURM jobs that train the missing runs, and return the jobs at once.

        :param workers: (default 1) number of jobs; each trains one run after another.
        :param cluster: (default "slurm") "slurm", or "local" for processes of this machine that outlive this one.
        :param options: (default: those of the cluster) options of sbatch: partition, time, mem, cpus_per_task …
        """
        from polariscope.studies.workers.slurm import submit

        return submit(Ledger(self), workers, cluster, options)

    def table(self) -> DataFrame:
        """Return a pandas frame with one row for each run."""
        from polariscope.studies.table_rows import study_table

        return study_table(Ledger(self)).to_frame()

    def figure(self, name: str, where: Sequence[str] = (), **options: OptionValue) -> Drawing:
        """Draw a figure of the study, and return it with the numbers behind it.

        :param name: a member of ``polariscope.figures``.
        :param where: (default: all rows) conditions that rows of its table must meet, ``beta=4``.
        :param options: options of the figure.
        """
        from polariscope.studies.figures import family, make_figure

        figure = build(family, name, options)
        return make_figure(figure, figure.table(Ledger(self)), where)

    def select(self, metric: str = "") -> Selections:
        """Return the run that each criterion without labels selects, and the cost of the selection.

        A study with several datasets is refused: :meth:`select_by_data` selects within each dataset.

        :param metric: (default: the first of the table) metric that the selection is judged by.
        """
        from polariscope.studies.select import select_runs
        from polariscope.studies.table_rows import study_table

        return select_runs(study_table(Ledger(self)), metric)

    def select_by_data(self, metric: str = "") -> SelectionsByData:
        """Return the run that each criterion without labels selects within each dataset, and the cost of the selection.

        :param metric: (default: the first of the table) metric that the selection is judged by.
        """
        from polariscope.studies.select import select_by_data
        from polariscope.studies.table_rows import study_table

        return select_by_data(study_table(Ledger(self)), metric)

    def status(self) -> dict[str, int]:
        """Return the number of runs that are waiting, running, done and failed."""
        return dict(Ledger(self).counts().items())
