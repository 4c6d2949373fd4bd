"""Choosing the best run of a study without labels: what each way would choose, and what that costs."""

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
"""Columns that need no labels: unsupervised disentanglement ranking, distance to orthogonality, evidence lower bound,
and agreement over seeds."""


@dataclasses.dataclass(frozen=True)
class Selection:
    """What one way of choosing would choose."""

    selector: str
    """The column that is chosen by."""
    run: str
    """The run with the best value; of equal ones the first."""
    value: float
    """What the selector says of it."""
    metric: float
    """The metric of this run."""
    cost: float
    """How much worse that is than the metric of the best run; never negative."""
    rank: int
    """Place of the run by the metric, from 1."""
    n: int
    """Runs that have both numbers; the best is the best of these."""
    correlation: float | None
    """Spearman's correlation over runs of how good the selector and the metric say that they are."""
    interval: Interval | None
    """Its 95 % interval by Fisher's transformation, which takes runs as independent."""


@dataclasses.dataclass(frozen=True)
class Selections(AbstractRecord):
    """Every way of choosing that the table allows, beside the best run and one at random."""

    metric: str
    best_run: str
    best: float
    """The metric of the best run of all."""
    random: float
    """The metric that a run chosen at random has on average."""
    selections: tuple[Selection, ...]
    """The cheapest first."""
    missing: dict[str, str]
    """Selectors that the table has no numbers of, with what to add to the study."""
    not_competing: tuple[str, ...] = ()
    """Runs that were not chosen from, since they have fewer latents in use than factors vary."""
    data: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of the data of these runs, of those that vary; nothing if the study has one dataset."""

    @property
    def random_cost(self) -> float:
        """How much worse than the best a run chosen at random is on average."""
        return abs(self.best - self.random)

    def to_frame(self) -> DataFrame:
        """Return a row for each way of choosing, the cheapest first."""
        rows = [dataclasses.asdict(one) for one in self.selections]
        for row in rows:
            row["low"], row["high"] = row.pop("interval") or (None, None)
        return frame_of(rows)


@dataclasses.dataclass(frozen=True)
class SelectionsByData(AbstractRecord):
    """Choices among the runs of each dataset; runs of different datasets are not ranked against each other."""

    metric: str
    parts: tuple[Selections, ...]
    """The choices within each dataset, in the order of the table."""
    not_ranked: dict[str, str]
    """Datasets without a run to choose, with the reason."""

    def to_frame(self) -> DataFrame:
        """Return a row for each dataset and way of choosing, with the settings of the data in front."""
        rows = [{**part.data, **row} for part in self.parts for row in rows_of(part.to_frame())]
        return frame_of(rows)


def with_elbo(table: Table) -> Table:
    """The table with the evidence lower bound of each run, −(reconstruction loss + KL) at the end of training.

    :param table: of a study.
    """
    terms = ("loss.reconstruction", "loss.rate")
    if not set(terms) <= set(table.columns):
        return table
    return table.replace(table.frame.assign(**{ELBO: -(table.numbers[terms[0]] + table.numbers[terms[1]])}))


def select_runs(table: Table, metric: str = "") -> Selections:
    """What each selector that needs no labels would choose of a study's runs, and what that costs.

    The selectors are unsupervised disentanglement ranking (highest), distance to orthogonality (lowest), ELBO (highest)
    and agreement over seeds (highest). Only finished models of done runs take part, and of these only runs with as many
    latents in use as factors vary: the score of a collapsed model means nothing. This is the question of mushom2020
    §5.5 and zietlow2022 §1.3: labels are used here to judge the selectors, never to choose. A table of several datasets
    is refused; :func:`select_by_data` chooses within each.

    :param table: of a study with one dataset.
    :param metric: (default: the first of the table) the metric that would have been wished for.
    """
    parts = table.finished.by_data()
    if len(parts) > 1:
        raise InputError(
            problem=f"the study has {len(parts)} datasets, whose runs are not ranked against each other",
            remedy="use select_by_data, which chooses within each",
        )
    table = with_elbo(table.finished)
    return _selections(table, _direction(table, metric), {})


def select_by_data(table: Table, metric: str = "") -> SelectionsByData:
    """Return what :func:`select_runs` returns, for the runs of each dataset separately.

    A dataset none of whose runs can be chosen is named with the reason; if that holds for all of them, the table is
    refused.

    :param table: of a study.
    :param metric: (default: the first of the table) the metric that would have been wished for.
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

    :param settings: of the data, of those that vary.
    """
    return assigned(settings) or "data"


def _direction(table: Table, metric: str) -> tuple[str, int]:
    """Return the metric, and 1 if more of it is better or −1 if less is."""
    metric = need_metric(table, metric)
    up = column_of(metric).higher_is_better
    if up is None:
        raise InputError("metric", "be a column of which more or less is better", got=f"{metric!r}")
    return metric, 1 if up else -1


def _selections(table: Table, wished: tuple[str, int], data: dict[str, Any]) -> Selections:
    """Return the choices among the finished runs of one dataset."""
    from pandas import DataFrame

    metric, sign = wished
    if not table.numbers[metric].notna().any():
        raise InputError(problem=f"no run that is done has a number in {metric!r}", remedy=remedy_for(metric))
    weak = table.competing(False).frame["run"].astype("str").tolist()
    table = table.competing()
    if not table.numbers[metric].notna().any():
        raise InputError(
            problem=f"no run with a number in {metric!r} has as many latents in use as factors vary",
            remedy="train longer, or with a lower weight of the KL",
        )
    numbers = table.numbers.set_axis(table.frame["run"].astype("str"))
    scored = numbers[metric].dropna()
    best_run = str((sign * scored).idxmax())
    selections, missing = [], {}
    for selector in SELECTORS:
        both = DataFrame({"value": numbers.get(selector), "metric": numbers[metric]}).dropna()
        if len(both):
            selections.append(_selection(selector, both, sign))
        else:
            missing[selector] = remedy_for(selector)
    selections.sort(key=lambda selection: selection.cost)
    best, random = float(scored[best_run]), float(scored.to_numpy().mean())
    return Selections(metric, best_run, best, random, tuple(selections), missing, tuple(weak), data)


def _selection(selector: str, numbers: DataFrame, sign: int) -> Selection:
    """What a selector chooses by its values, and the metric of that; rows have the names of runs."""
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
