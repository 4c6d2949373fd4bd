"""Columns of a study's table: label, direction of improvement, and the analysis to add if a column is missing."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from polariscope.analysis.metrics import family as metrics
from polariscope.analysis.regime.latent_types import TYPES
from polariscope.core.errors import InputError
from polariscope.studies.analyses import Column
from polariscope.studies.analyses import family as analyses

if TYPE_CHECKING:
    from pandas import DataFrame

    from polariscope.studies.table import Table

LOGGED = {
    "loss": Column("loss (nats)", higher_is_better=False),
    "loss.reconstruction": Column("reconstruction loss (nats)", higher_is_better=False),
    "loss.rate": Column("KL (nats)", bounds=(0.0, math.inf)),
    "validation.reconstruction": Column("reconstruction loss, validation (nats)", higher_is_better=False),
    "validation.rate": Column("KL, validation (nats)", bounds=(0.0, math.inf)),
    "elbo": Column("ELBO (nats)", higher_is_better=True),
    "seconds": Column("seconds", higher_is_better=False),
}
"""Columns that every run has from its log."""
ABBREVIATION = 3
"""Maximum number of letters of an abbreviation."""


def column_of(name: str) -> Column:
    """Return the description of a column; an unknown column is labelled with its name.

    The name of a metric with three letters or fewer is an abbreviation, so it is written in capitals.

    :param name: name of the column.

    >>> column_of("dto").label, column_of("dto").higher_is_better, column_of("mig.sampled").label
    ('distance to orthogonality', False, 'MIG, sampled')
    """
    if name in LOGGED:
        return LOGGED[name]
    if (metric := metric_of(name)) is not None:
        rest = name.removeprefix(metric).replace(".sampled", ", sampled").replace(":", ", ")
        rest = rest.replace(".in_use", ", latents in use")
        label = f"{metric.upper() if len(metric) <= ABBREVIATION else metric}{rest}"
        traits = metrics.traits(metric)
        low, high = traits["bounds"]
        return Column(label, traits["higher_is_better"], (float(low), float(high)))
    column = next((known for _, pattern, known in _patterns() if fnmatch.fnmatchcase(name, pattern)), None)
    return Column(name) if column is None else column


def metric_of(name: str) -> str | None:
    """Return the metric behind a column if it compares codes with factors; None for other columns.

    >>> metric_of("dci:lasso"), metric_of("mig.sampled"), metric_of("mig.low"), metric_of("tc.sampled")
    ('dci', 'mig', None, None)
    """
    metric = name.removesuffix(".in_use").removesuffix(".sampled").partition(":")[0]
    return metric if metrics.has(metric) and "factors" in metrics.traits(metric)["needs"] else None


def bounds_of(name: str, numbers: DataFrame) -> tuple[float, float]:
    """Return the smallest and largest possible value of a column; a count of latents is bounded by their number.

    :param name: name of the column.
    :param numbers: rows that are averaged, with the counts of types that every run has.
    """
    # The ends of an interval have the bounds of the quantity.
    base = name.partition(".by_factor.")[0].removesuffix(".low").removesuffix(".high")
    column = column_of(base)
    metric = base.removesuffix(".in_use").removesuffix(".sampled").partition(":")[0]
    bounds = column.bounds
    if metrics.has(metric):
        bounds = metrics.traits(metric)["bounds"]
    low, high = map(float, bounds)
    if column.counts_latents and set(TYPES) <= set(numbers.columns):
        high = float(numbers[list(TYPES)].sum(axis="columns").max())
    return low, high


def metric_columns(table: Table) -> list[str]:
    """Return the columns of a table that are disentanglement metrics or probes.

    :param table: table of a study.
    """
    return [name for name in table.measured if metric_of(name) is not None]


def need(table: Table, *names: str) -> None:
    """Refuse a table whose finished models have no numbers in these columns, and suggest what to add to the study.

    :param table: table of a study.
    :param names: names of columns.
    """
    measured = table.finished.measured
    missing = [name for name in names if name not in measured]
    if missing:
        raise InputError(
            problem=f"no finished run has a value in column {' or '.join(map(repr, missing))}",
            remedy=remedy_for(*missing),
        )


def need_metric(table: Table, metric: str) -> str:
    """Return the requested metric, or the first metric of the table.

    :param table: table of a study.
    :param metric: a column, or "".
    """
    available = metric_columns(table.finished)
    if not metric and not available:
        raise InputError(problem="the table has no metric", remedy=remedy_for("mig"))
    if metric:
        need(table, metric)
    return metric or available[0]


def remedy_for(*names: str) -> str:
    """Return instructions for adding columns to the table of a study.

    :param names: names of the columns.

    >>> remedy_for("dto")
    'in the study file add [each.geometry], then run it again'
    >>> remedy_for("ds", "dto")
    'in the study file add ds to the metrics of [each.score] and add [each.geometry], then run it again'
    """
    # Several columns can need the same line.
    added = list(dict.fromkeys(filter(None, map(_added_for, names))))
    others = [_other_for(name) for name in names if _added_for(name) is None]
    parts = [f"in the study file {' and '.join(added)}, then run it again"] if added else []
    return "; ".join(dict.fromkeys([*parts, *others]))


def _added_for(name: str) -> str | None:
    """Return the line to add to a study file; None for a column that no analysis computes."""
    if (metric := metric_of(name.partition(".by_")[0])) is not None:
        source = ' with source = "sampled"' if ".sampled" in name else ""
        return f"add {metric} to the metrics of [each.score]{source}"
    if name in LOGGED or name.startswith("validation."):
        return None
    sections = [section for section, pattern, _ in _patterns() if fnmatch.fnmatchcase(name, pattern)]
    return f"add [{sections[0]}]" if sections else None


def _other_for(name: str) -> str:
    """Return a hint for a column that no analysis computes."""
    if name.startswith("validation."):
        return "it is logged by runs that have validation data and set validate_every"
    return "it is logged by objectives with this term" if name in LOGGED else "choose a column of the table"


def _patterns() -> Iterator[tuple[str, str, Column]]:
    """Yield the section of each analysis in a study file, a pattern of its columns, and their description."""
    for name in analyses:
        traits = analyses.traits(name)
        for pattern, column in traits["gives"].items():
            yield f"{traits['scope']}.{name}", pattern, column
