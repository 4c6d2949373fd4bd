"""The best and the worst restart of each setting of a study."""

from __future__ import annotations

from collections.abc import Iterator

from polariscope.core.errors import InputError, unknown
from polariscope.core.text import assigned, listed
from polariscope.studies.columns import column_of
from polariscope.studies.table import MAX_RUNS_NAMED, Table

RESTART = "restart"
"""Column with the rank of a restart: best, worst, or only one."""


def extremes(table: Table, column: str) -> Table:
    """Return, for each setting, the run with the best score and below it the run with the worst, over all seeds.

    The column determines whether higher or lower is better. Among equal scores the first run of the table is the best
    and the last one the worst. A setting with a single seed has one row. Only finished models of runs that are done and
    have a number in the column are compared; the notes name the others. With the analysis ``coordinates`` the table
    shows whether entangled restarts encode their factors in polar coordinates, the question of zietlow2022 Figs
    4.10–4.11.

    >>> rows = tuple({"run": f"seed {seed}", "seed": seed, "mig": mig} for seed, mig in enumerate((0.2, 0.5, 0.1)))
    >>> [(row["run"], row["restart"]) for row in extremes(Table(rows, ("seed",)), "mig").rows]
    [('seed 1', 'best'), ('seed 2', 'worst')]

    :param table: table of a study.
    :param column: name of the score, a column of numbers for which higher or lower is better.
    """
    models = table.finished
    sign = _direction(models, column)
    notes: list[str] = []
    alone: list[str] = []
    ranked = models.replace(models.frame[models.numbers[column].notna()])
    scores = sign * ranked.numbers[column].to_numpy()
    rows: list[int] = []
    labels: list[str] = []
    for settings, restarts in ranked.groups("seed", "step"):
        setting = assigned(settings)
        values = scores[restarts]
        if len(restarts) == 1:
            rows, labels = [*rows, restarts[0]], [*labels, "only one"]
            alone.append(setting)
            continue
        if values.min() == values.max():
            notes.append(
                f"All {len(values)} seeds{f' of {setting}' if setting else ''} have the same {column}."
            )
        rows += [
            restarts[values.argmax()],
            # argmin of the reversed values finds the last of equal ones.
            restarts[len(values) - 1 - values[::-1].argmin()],
        ]
        labels += ["best", "worst"]
    if alone:
        of_which = f" of {'; '.join(alone)}" if alone[0] else ""
        notes.append(f"There is only one seed{of_which}: neither a best nor a worst.")
    notes += _left_out(table, models, column)
    frame = ranked.frame.iloc[rows].copy()
    frame.insert(0, RESTART, labels)
    return table.replace(frame, (*table.notes, *notes))


def _direction(models: Table, column: str) -> int:
    """Return 1 if higher is better, −1 if lower is; refuse a column that cannot rank runs."""
    ranking = [name for name in models.measured if column_of(name).higher_is_better is not None]
    if column not in models.columns:
        raise unknown("column", column, ranking)
    if column not in ranking:
        has_numbers = models.numbers[column].notna().any()
        raise InputError(
            problem=(
                f"neither higher nor lower is better for {column!r}"
                if has_numbers
                else f"the column {column!r} has no numbers to rank runs by"
            ),
            remedy=f"choose one of {', '.join(ranking)}",
        )
    return 1 if column_of(column).higher_is_better else -1


def _left_out(table: Table, models: Table, column: str) -> Iterator[str]:
    if table.not_done:
        yield f"Not compared, since they are not done: {listed(table.not_done, MAX_RUNS_NAMED)}."
    without = models.frame.run[models.numbers[column].isna()].astype("str").tolist()
    if without:
        yield f"Not compared, since they have no number in {column!r}: {listed(without, MAX_RUNS_NAMED)}."
