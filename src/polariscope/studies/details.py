"""Tables of a study whose rows are not runs: lines of logs, codes of observations, pairs of layers."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from polariscope.core.errors import InputError, PolariscopeError
from polariscope.runs.run import Run
from polariscope.studies.analyses import Columns
from polariscope.studies.table import Table
from polariscope.studies.table_rows import line_cells, settings_of

if TYPE_CHECKING:
    from polariscope.layers.comparison import HeatMap
    from polariscope.studies.ledger import Ledger
    from polariscope.studies.planned_runs import StudyRun


def log_table(ledger: Ledger) -> Table:
    """Return one row for each line of each run's log: its loss, terms, validation and counts of types.

    :param ledger: ledger of the study.
    """
    rows: list[Columns] = []
    for entry in ledger.entries():
        common: Columns = {"run": entry.run.name, "state": entry.state, **settings_of(entry.run)}
        # A run that has not begun has no log.
        with contextlib.suppress(PolariscopeError, OSError):
            lines = ledger.opened(entry.run).log()
            rows += [{**common, "step": line["step"], **line_cells(line)} for line in lines]
    return Table(rows, tuple(ledger.runs[0].varies))


def codes_table(ledger: Ledger, run: str = "", n_samples: int = 1000) -> Table:
    """Return one row for each observation, with the codes of one run and the factors.

    Columns are ``mean.0`` and so on, with the latents of largest KL first, and the factors with their kind as prefix,
    ``categorical.shape``. The codes are those that the first analysis of the study cached.

    :param ledger: ledger of the study.
    :param run: (default: the first that is done) name of a run.
    :param n_samples: (default 1,000) maximum number of observations.
    """
    from polariscope.analysis.regime.posterior import gaussian_kl

    where = next((dict(analysis.where) for analysis in ledger.study.analyses("each").values()), None)
    if where is None:
        raise InputError(
            problem="the study stores no codes",
            remedy="in the study file add [each.encode], then run it again",
        )
    chosen_run = _run_named(ledger, run)
    codes = Run(chosen_run.folder, read_only=True).representation(**where)
    if codes.factors is None:
        raise InputError(problem="the data have no factors", remedy="use data with known factors")
    kl = (
        gaussian_kl(codes.mean, codes.variance).mean(axis=0)
        if codes.rate is None
        else codes.rate.mean(axis=0)
    )
    order = np.argsort(-kl, kind="stable").tolist()
    kinds = codes.factor_kinds or tuple("categorical" for _ in codes.factor_names)
    names = [f"{kind}.{name}" for kind, name in zip(kinds, codes.factor_names, strict=True)]
    rows: list[Columns] = []
    for sample in range(min(n_samples, len(codes.mean))):
        factors = zip(names, codes.factors[sample].tolist(), strict=True)
        rows.append(
            {
                "run": chosen_run.name,
                "state": "done",
                "sample": sample,
                **{f"mean.{latent}": float(codes.mean[sample, latent]) for latent in order},
                **dict(factors),
            }
        )
    return Table(rows, ())


def layers_table(
    ledger: Ledger,
    one: str = "",
    other: str = "",
    *,
    measures: Sequence[str],
    step: int | None = None,
    other_step: int | None = None,
    n_samples: int = 1000,
    seed: int = 0,
) -> Table:
    """Return one row for each pair of layers and each measure: the mean over all pairs of runs of two groups.

    The comparison is computed if it is not cached yet, and is cached with the first run.

    :param ledger: ledger of the study.
    :param one: (default: all runs) runs of the first group: conditions joined by commas, ``beta=1``.
    :param other: (default: the same) runs of the second group.
    :param measures: members of ``polariscope.similarity``.
    :param step: (default None: the finished models) step of the checkpoints.
    :param other_step: (default None: as ``step``) step of the second group.
    :param n_samples: (default 1,000) number of observations.
    :param seed: (default 0) seed for drawing the observations.
    """
    first = _group(ledger, one)
    second = _group(ledger, other) if other else first
    if second != first and set(first) & set(second):
        raise InputError("one and other", "have no run in common", got=f"{one or 'all'!r} and {other!r}")
    labels = (one or "all", other or one or "all")
    rows: list[Columns] = []
    for measure in measures:
        heat_map = compared(first, second, measure, labels, (step, other_step), n_samples, seed)
        for i, row in enumerate(heat_map.rows):
            for j, column in enumerate(heat_map.columns):
                rows.append(
                    {
                        "measure": measure,
                        "title": heat_map.title or measure,
                        "first": heat_map.row_label,
                        "second": heat_map.column_label,
                        "row": row,
                        "column": column,
                        "similarity": float(heat_map.values[i, j]),
                        "sd": None if heat_map.spread is None else float(heat_map.spread[i, j]),
                        "pairs": heat_map.n_pairs,
                    }
                )
    return Table(rows, ())


def compared(
    first: Sequence[Path],
    second: Sequence[Path],
    measure: str,
    labels: tuple[str, str],
    steps: tuple[int | None, int | None],
    n_samples: int,
    seed: int,
) -> HeatMap:
    """Return the heat map of two groups of models, averaged over their pairs (bonheme2023 Eq. 7.9).

    :param first: folders of the runs of the first group.
    :param second: folders of the second group: the same, or others.
    :param measure: a member of ``polariscope.similarity``.
    :param labels: names of the groups.
    :param steps: None for the finished models, or a step of which all have a checkpoint; for the second group None is
        the step of the first.
    :param n_samples: number of observations.
    :param seed: seed for drawing the observations.
    """
    runs = [Run(folder) for folder in dict.fromkeys([*first, *second])]
    if steps[1] is None or steps[1] == steps[0]:
        comparison = runs[0].comparison(runs[1:], measure, n_samples, seed, step=steps[0])
        # If both groups are the same, all runs belong to the first.
        groups = [labels[0]] * len(first) + [labels[1]] * (len(runs) - len(first))
        return dataclasses.replace(comparison, groups=tuple(groups)).average()
    pair = (steps[0] or runs[0].folder.finished_steps or runs[0].n_steps, steps[1])
    comparison = runs[0].comparison(runs[1:], measure, n_samples, seed, checkpoints=sorted(set(pair)))
    ends = [f"{label} at step {step:,}" for label, step in zip(labels, pair, strict=True)]
    members = {
        **{(run, pair[0]): ends[0] for run in range(len(first))},
        # Runs of the second group come last.
        **{(run, pair[1]): ends[1] for run in range(len(runs) - len(second), len(runs))},
    }
    groups = [members.get(checkpoint, "") for checkpoint in comparison.checkpoints]
    return dataclasses.replace(comparison, groups=tuple(groups)).average(*ends)


def _group(ledger: Ledger, conditions: str) -> list[Path]:
    """Return the folders of the finished runs that meet all conditions."""
    done = [entry.run for entry in ledger.entries() if entry.state == "done"]
    table = Table(
        [{"run": run.name, "folder": str(run.folder), **settings_of(run)} for run in done],
        tuple(ledger.runs[0].varies),
    )
    rows = table.where(*(part.strip() for part in conditions.split(",") if part.strip())).rows if done else ()
    if not rows:
        raise InputError(problem=f"no finished run has {conditions or 'these settings'}")
    return [Path(str(row["folder"])) for row in rows]


def _run_named(ledger: Ledger, name: str) -> StudyRun:
    done = [entry.run for entry in ledger.entries() if entry.state == "done"]
    if not done:
        raise InputError(problem="no run of the study is done yet", remedy="run it first")
    if not name:
        return done[0]
    run = next((run for run in done if run.name == name), None)
    if run is None:
        raise InputError("run", "name a run that is done", got=f"{name!r}", remedy=f"{done[0].name} is one")
    return run
