"""Tables in files: which of their columns are features, which labels, which name the rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Shaped

from polariscope.core.errors import Argument, InputError, Text
from polariscope.data.own.support.columns import choose_columns, listed
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.frames import as_ids

REMEDY: Text = (
    "drop or fill in these rows, choose other columns with ",
    Argument("columns"),
    ", or name classes with ",
    Argument("labels"),
)
"""What to do about a column that lacks values or holds text."""


@dataclasses.dataclass(frozen=True)
class Selection:
    """What the columns of a table are for, by name."""

    features: tuple[str, ...]
    labels: tuple[str, ...] = ()
    row_names: str | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that may hold text."""
        return (*self.labels, *(() if self.row_names is None else (self.row_names,)))


def select(
    there: Sequence[str], where: str, columns: Sequence[str], labels: Sequence[str], row_names: str | None
) -> Selection:
    """The columns that are used: as features all that are neither labels nor names of rows, unless some are named.

    :param there: the columns of the table.
    :param where: what the table is called.
    :param columns: the features that the user names; none: all that are left.
    :param labels: the columns that are factors.
    :param row_names: the column that identifies rows, or None.
    """
    names = () if row_names is None else (row_names,)
    for wanted in (columns, labels, names):
        choose_columns(wanted, there, where)
    twice = [name for name in (*labels, *names) if name in columns or (name in labels and name in names)]
    if twice:
        raise InputError(
            problem=f"of {where}, {listed(twice)} cannot be both a feature and a label or name",
            remedy="name each column once",
        )
    features = tuple(columns) or tuple(name for name in there if name not in (*labels, *names))
    if not features:
        raise InputError(
            problem=f"{where} has no column left for the observations", remedy="name fewer labels"
        )
    return Selection(features, tuple(labels), row_names)


def contents_of(
    selection: Selection,
    numbers: Mapping[str, Shaped[np.ndarray, " sample"]],
    texts: Mapping[str, Shaped[np.ndarray, " sample"]],
    choices: tuple[str, ...] = (),
) -> Contents:
    """Features as one array, beside factors and names.

    :param selection: what the columns are for.
    :param numbers: the features by name.
    :param texts: labels and names of rows, by name.
    :param choices: (default none) what was decided while reading.
    """
    features = [numbers[name] for name in selection.features]
    array = np.empty(
        (len(features[0]), len(features)), dtype=np.result_type(*(each.dtype for each in features))
    )
    for place, column in enumerate(features):
        array[:, place] = column
    factors = {name: texts[name] for name in selection.labels} or None
    ids = None if selection.row_names is None else as_ids(texts[selection.row_names])
    return Contents(array, factors, feature_names=selection.features, ids=ids, choices=choices)
