"""What the columns of a study's table are: in words, which way is better, and what to add to have them."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

from polariscope.analysis.metrics import family as metrics
from polariscope.core.errors import InputError
from polariscope.studies.analyses import Column
from polariscope.studies.analyses import family as analyses
from polariscope.studies.table import Table

LOGGED = {
    "loss": Column("loss (nats)", higher_is_better=False),
    "loss.reconstruction": Column("reconstruction loss (nats)", higher_is_better=False),
    "loss.rate": Column("KL (nats)"),
    "validation.reconstruction": Column("reconstruction loss, validation (nats)", higher_is_better=False),
    "validation.rate": Column("KL, validation (nats)"),
    "elbo": Column("ELBO (nats)", higher_is_better=True),
    "seconds": Column("seconds", higher_is_better=False),
}
"""Columns that every run has from its log."""


def column_of(name: str) -> Column:
    """What a column is; one that nobody knows has its name as label.

    :param name: of the column.

    >>> column_of("dto").label, column_of("dto").higher_is_better, column_of("mig.sampled").label
    ('distance to orthogonality', False, 'mig, sampled')
    """
    if name in LOGGED:
        return LOGGED[name]
    if (metric := metric_of(name)) is not None:
        label = name.replace(".sampled", ", sampled").replace(":", ", ")
        return Column(label, metrics.traits(metric)["higher_is_better"])
    found = next((column for _, pattern, column in _given() if fnmatch.fnmatchcase(name, pattern)), None)
    return Column(name) if found is None else found


def metric_of(name: str) -> str | None:
    """The metric behind a column, of those that look at factors; None for other columns.

    >>> metric_of("dci:lasso"), metric_of("mig.sampled"), metric_of("mig.low"), metric_of("tc.sampled")
    ('dci', 'mig', None, None)
    """
    metric = name.removesuffix(".sampled").partition(":")[0]
    return metric if metrics.has(metric) and "factors" in metrics.traits(metric)["needs"] else None


def metric_columns(table: Table) -> list[str]:
    """The columns of a table that are metrics of disentanglement or probes.

    :param table: of a study.
    """
    return [name for name in table.measured if metric_of(name) is not None]


def need(table: Table, *names: str) -> None:
    """Refuse a table without numbers in these columns; the message says what to add to the study.

    :param table: of a study.
    :param names: of columns.
    """
    measured = table.measured
    for name in names:
        if name not in measured:
            raise InputError(problem=f"no run of the table has a number in {name!r}", remedy=remedy_for(name))


def need_metric(table: Table, chosen: str) -> str:
    """The metric that was chosen, or the first that the table has.

    :param table: of a study.
    :param chosen: a column, or "".
    """
    found = metric_columns(table)
    if not chosen and not found:
        raise InputError(problem="the table has no metric", remedy=_add("each.score", 'metrics = "mig"'))
    if chosen:
        need(table, chosen)
    return chosen or found[0]


def remedy_for(name: str) -> str:
    """What to add to a study so its table has a column.

    :param name: of the column.

    >>> remedy_for("dto")
    'add [each.geometry] to the study file and run it again'
    """
    if (metric := metric_of(name.partition(".by_")[0])) is not None:
        source = 'source = "sampled"' if ".sampled" in name else ""
        return _add("each.score", *filter(None, [f'metrics = "{metric}"', source]))
    if name.startswith("validation."):
        return "it is logged by runs with a validation part, where validate_every is set"
    if name in LOGGED:
        return "it is logged by objectives that have this term"
    places = [place for place, pattern, _ in _given() if fnmatch.fnmatchcase(name, pattern)]
    return _add(places[0]) if places else "choose one that it has"


def _add(place: str, *lines: str) -> str:
    with_lines = f" with {' and '.join(lines)}" if lines else ""
    return f"add [{place}]{with_lines} to the study file and run it again"


def _given() -> Iterator[tuple[str, str, Column]]:
    """Where in a study file each analysis stands, a pattern of its columns, and what they are."""
    for name in analyses:
        traits = analyses.traits(name)
        for pattern, column in traits["gives"].items():
            yield f"{traits['scope']}.{name}", pattern, column
