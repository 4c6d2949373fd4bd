"""Tables of a study with other rows than runs: lines of logs, codes of observations, pairs of layers."""

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
from polariscope.studies.table import Table, line_cells, settings_of

if TYPE_CHECKING:
    from polariscope.layers.comparison import HeatMap
    from polariscope.studies.ledger import Ledger
    from polariscope.studies.runs import StudyRun


def log_table(ledger: Ledger) -> Table:
    """One row for each line of each run's log: its loss, terms, validation and counts of types.

    :param ledger: that of the study.
    """
    rows: list[Columns] = []
    for entry in ledger.entries():
        common: Columns = {"run": entry.run.name, "state": entry.state, **settings_of(entry.run)}
        with contextlib.suppress(PolariscopeError, OSError):
            lines = Run(entry.run.folder, computes=False).log()
            rows += [{**common, "step": line["step"], **line_cells(line)} for line in lines]
    return Table(tuple(rows), tuple(ledger.runs[0].varies))


def codes_table(ledger: Ledger, run: str = "", n_samples: int = 1000) -> Table:
    """One row for each of some observations, as one run encodes it, with its factors.

    Columns are ``mean.0`` and so on, the latents with the largest KL first, and the factors with their kind in front,
    ``categorical.shape``. The codes are those that the first analysis of the study kept.

    :param ledger: that of the study.
    :param run: (default: the first that is done) name of a run.
    :param n_samples: (default 1,000) observations at most.
    """
    from polariscope.analysis.regime.posterior import gaussian_kl

    where = next((dict(analysis.where) for analysis in ledger.study.analyses("each").values()), None)
    if where is None:
        raise InputError(
            problem="the study keeps no codes", remedy="add [each.encode] to the study file and run it again"
        )
    chosen = _run_named(ledger, run)
    codes = Run(chosen.folder, computes=False).representation(**where)
    if codes.factors is None:
        raise InputError(problem="the data have no factors", remedy="take data whose factors are known")
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
                "run": chosen.name,
                "state": "done",
                "sample": sample,
                **{f"mean.{latent}": float(codes.mean[sample, latent]) for latent in order},
                **dict(factors),
            }
        )
    return Table(tuple(rows), ())


def layers_table(
    ledger: Ledger,
    one: str = "",
    other: str = "",
    *,
    measures: Sequence[str],
    step: int | None = None,
    n_samples: int = 1000,
    seed: int = 0,
) -> Table:
    """One row for each pair of layers and each measure: the mean over all pairs of runs of two groups.

    The comparison is computed where it is not kept yet, and kept with the first of the runs.

    :param ledger: that of the study.
    :param one: (default: all runs) the runs of the first group: conditions joined by commas, ``beta=1``.
    :param other: (default: the same) those of the second.
    :param measures: members of ``polariscope.similarity``.
    :param step: (default None: the finished models) compare the checkpoints of this step.
    :param n_samples: (default 1,000) observations.
    :param seed: (default 0) seed of their choice.
    """
    first = _group(ledger, one)
    second = _group(ledger, other) if other else first
    if second != first and set(first) & set(second):
        raise InputError("one and other", "have no run in common", got=f"{one or 'all'!r} and {other!r}")
    runs = list(dict.fromkeys([*first, *second]))
    rows: list[Columns] = []
    for measure in measures:
        found = compared(
            runs, len(first), measure, (one or "all", other or one or "all"), step, n_samples, seed
        )
        for i, row in enumerate(found.rows):
            for j, column in enumerate(found.columns):
                rows.append(
                    {
                        "measure": measure,
                        "first": found.row_label,
                        "second": found.column_label,
                        "row": row,
                        "column": column,
                        "similarity": float(found.values[i, j]),
                        "sd": None if found.spread is None else float(found.spread[i, j]),
                        "pairs": found.n_pairs,
                    }
                )
    return Table(tuple(rows), ())


def compared(
    runs: Sequence[Path],
    n_first: int,
    measure: str,
    labels: tuple[str, str],
    step: int | None,
    n_samples: int,
    seed: int,
) -> HeatMap:
    """The heat map of two groups of runs, averaged over their pairs (bonheme2023 Eq. 7.9).

    :param runs: folders, those of the first group first; without others, the group is compared with itself.
    :param n_first: how many belong to the first group.
    :param measure: a member of ``polariscope.similarity``.
    :param labels: what the groups are called.
    :param step: None for the finished models, or a step of which all kept a checkpoint.
    :param n_samples: observations.
    :param seed: of their choice.
    """
    opened = [Run(folder) for folder in runs]
    found = opened[0].comparison(opened[1:], measure, n_samples, seed, step=step)
    groups = [labels[0]] * n_first + [labels[1]] * (len(runs) - n_first)
    grouped = dataclasses.replace(found, groups=tuple(groups))
    return grouped.average()


def _group(ledger: Ledger, conditions: str) -> list[Path]:
    """Folders of the done runs for which all conditions hold."""
    done = [entry.run for entry in ledger.entries() if entry.state == "done"]
    table = Table(
        tuple({"run": run.name, "folder": str(run.folder), **settings_of(run)} for run in done),
        tuple(ledger.runs[0].varies),
    )
    rows = table.where(*(part.strip() for part in conditions.split(",") if part.strip())).rows if done else ()
    if not rows:
        raise InputError(problem=f"no run that is done has {conditions or 'these settings'}")
    return [Path(str(row["folder"])) for row in rows]


def _run_named(ledger: Ledger, name: str) -> StudyRun:
    done = [entry.run for entry in ledger.entries() if entry.state == "done"]
    if not done:
        raise InputError(problem="no run of the study is done yet", remedy="run it first")
    if not name:
        return done[0]
    found = next((run for run in done if run.name == name), None)
    if found is None:
        raise InputError("run", "name a run that is done", got=f"{name!r}", remedy=f"{done[0].name} is one")
    return found
