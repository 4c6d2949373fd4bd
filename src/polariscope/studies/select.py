"""Selecting the best run of a study without labels: the choice of each criterion, and its cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from polariscope.core.errors import InputError
from polariscope.core.frames import frame_of, rows_of
from polariscope.core.records import AbstractRecord
from polariscope.core.text import assigned
from polariscope.numerics.intervals import Interval
from polariscope.numerics.ranks import spearman
from polariscope.studies.columns import column_of, need_metric, remedy_for
from polariscope.studies.table import Table

if TYPE_CHECKING:
    from pandas import DataFrame

ELBO = "elbo"
SELECTORS = ("udr", "dto", ELBO, "agreement")
"""Columns that do not require labels: unsupervised disentanglement ranking, distance to orthogonality, evidence lower
bound, and agreement over seeds."""


@dataclasses.dataclass(frozen=True)
class Selection:
    """The run that one criterion selects."""

    selector: str
    """Column used as criterion."""
    run: str
    """Run with the best value; the first of several equal ones."""
    value: float
    """Value of the criterion for this run."""
    metric: float
    """Value of the metric for this run."""
    cost: float
    """Difference to the metric of the best run; never negative."""
    rank: int
    """Rank of the run by the metric, from 1."""
    n: int
    """Number of runs that have both values; the best run is one of these."""
    correlation: float | None
    """Spearman's correlation over runs between criterion and metric, both oriented such that higher is better."""
    interval: Interval | None
    """95 % interval of the correlation by Fisher's transformation, which assumes independent runs."""


@dataclasses.dataclass(frozen=True)
class Selections(AbstractRecord):
    """Selections by every criterion that the table contains, compared with the best run and a random run."""

    metric: str
    best_run: str
    best: float
    """Metric of the best run."""
    random: float
    """Expected metric of a run selected at random."""
    selections: tuple[Selection, ...]
    """Selections, in order of increasing cost."""
    missing: dict[str, str]
    """Criteria without numbers in the table, with the analysis to add to the study."""
    not_competing: tuple[str, ...] = ()
    """Runs that cannot be selected because they have fewer latents in use than factors vary."""
    data: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Varying settings of the data of these runs; empty if the study has one dataset."""

    @property
    def random_cost(self) -> float:
        """Expected difference between the best run and a run selected at random."""
        return abs(self.best - self.random)

    def to_frame(self) -> DataFrame:
        """Return one row for each criterion, in order of increasing cost."""
        rows = [dataclasses.asdict(selection) for selection in self.selections]
        for row in rows:
            row["low"], row["high"] = row.pop("interval") or (None, None)
        return frame_of(rows)


@dataclasses.dataclass(frozen=True)
class SelectionsByData(AbstractRecord):
    """Selections among the runs of each dataset; runs of different datasets are not ranked against each other."""

    metric: str
    parts: tuple[Selections, ...]
    """Selections within each dataset, in the order of the table."""
    not_ranked: dict[str, str]
    """Datasets without a run to select, with the reason."""

    def to_frame(self) -> DataFrame:
        """Return one row for each dataset and criterion; the first columns are the settings of the data."""
        rows = [{**part.data, **row} for part in self.parts for row in rows_of(part.to_frame())]
        return frame_of(rows)


def with_elbo(table: Table) -> Table:
    """Return the table with the evidence lower bound of each run, −(reconstruction loss + KL) at the end of training.

    :param table: table of a study.
    """
    terms = ("loss.reconstruction", "loss.rate")
    if not set(terms) <= set(table.columns):
        return table
    return table.replace(table.frame.assign(**{ELBO: -(table.numbers[terms[0]] + table.numbers[terms[1]])}))


def select_runs(table: Table, metric: str = "") -> Selections:
    """Return the run that each criterion without labels selects from a study, and the cost of the selection.

    The criteria are unsupervised disentanglement ranking (highest), distance to orthogonality (lowest), ELBO (highest)
    and agreement over seeds (highest). Only finished models of runs that are done are candidates, and only if they have
    at least as many latents in use as factors vary, since the score of a collapsed model is meaningless. This is the
    question of mushom2020 §5.5 and zietlow2022 §1.3: labels are used here to judge the criteria, never to select. A
    table with several datasets is refused; :func:`select_by_data` selects within each dataset.

    :param table: table of a study with one dataset.
    :param metric: (default: the first of the table) metric that the selection is judged by.
    """
    parts = table.finished.by_data()
    if len(parts) > 1:
        raise InputError(
            problem=f"the study has {len(parts)} datasets, whose runs are not ranked against each other",
            remedy="use select_by_data, which selects within each",
        )
    table = with_elbo(table.finished)
    return _selections(table, _direction(table, metric), {})


def select_by_data(table: Table, metric: str = "") -> SelectionsByData:
    """Return the results of :func:`select_runs` for the runs of each dataset separately.

    A dataset without a run to select is listed with the reason; if there is no run to select in any dataset, the table
    is refused.

    :param table: table of a study.
    :param metric: (default: the first of the table) metric that the selection is judged by.
    """
    table = with_elbo(table.finished)
    wished = _direction(table, metric)
    parts, refused, errors = [], {}, []
    for settings, runs in table.by_data():
        try:
            parts.append(_selections(runs, wished, settings))
        except InputError as error:
            refused[data_in_words(settings)] = str(error)
            errors.append(error)
    if not parts:
        raise errors[0]
    return SelectionsByData(wished[0], tuple(parts), refused)


def data_in_words(settings: Mapping[str, Any]) -> str:
    """Return the settings of a dataset as ``data=sprites, data.variants=noise``.

    :param settings: varying settings of the data.
    """
    return assigned(settings) or "data"


def _direction(table: Table, metric: str) -> tuple[str, int]:
    """Return the metric, and 1 if higher is better or −1 if lower is."""
    metric = need_metric(table, metric)
    up = column_of(metric).higher_is_better
    if up is None:
        raise InputError("metric", "be a column for which higher or lower is better", got=f"{metric!r}")
    return metric, 1 if up else -1


def _selections(table: Table, wished: tuple[str, int], data: dict[str, Any]) -> Selections:
    """Return the selections among the finished runs of one dataset."""
    from pandas import DataFrame

    metric, sign = wished
    if not table.numbers[metric].notna().any():
        raise InputError(
            problem=f"no finished run has a value in column {metric!r}", remedy=remedy_for(metric)
        )
    weak = table.competing(False).frame["run"].astype("str").tolist()
    table = table.competing()
    if not table.numbers[metric].notna().any():
        raise InputError(
            problem=f"every run with a value in column {metric!r} has fewer latents in use than factors that vary",
            remedy="train longer, or with a lower weight of the KL",
        )
    numbers = table.numbers.set_axis(table.frame["run"].astype("str"))
    scored = numbers[metric].dropna()
    best_run = str((sign * scored).idxmax())
    selections, missing = [], {}
    for selector in SELECTORS:
        # A column that the table lacks becomes None, so no row is left.
        both = DataFrame({"value": numbers.get(selector), "metric": numbers[metric]}).dropna()
        if len(both):
            selections.append(_selection(selector, both, sign))
        else:
            missing[selector] = remedy_for(selector)
    selections.sort(key=lambda selection: selection.cost)
    best, random = float(scored[best_run]), float(scored.to_numpy().mean())
    return Selections(metric, best_run, best, random, tuple(selections), missing, tuple(weak), data)


def _selection(selector: str, numbers: DataFrame, sign: int) -> Selection:
    """Return the run that a criterion selects, with its metric; rows are indexed by the names of runs."""
    values = (1 if column_of(selector).higher_is_better else -1) * numbers["value"]
    run, goodness = str(values.idxmax()), sign * numbers["metric"]
    related = spearman(values.to_numpy(), goodness.to_numpy())
    return Selection(
        selector=selector,
        run=run,
        value=float(numbers.loc[run, "value"]),
        metric=float(numbers.loc[run, "metric"]),
        cost=float(goodness.max() - goodness[run]),
        rank=1 + int((goodness > goodness[run]).sum()),
        n=len(numbers),
        correlation=related.value,
        interval=related.interval,
    )
