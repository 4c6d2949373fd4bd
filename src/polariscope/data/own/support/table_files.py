"""Roles of the columns of a table in a file: features, labels, names of rows, or aside."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Num, Shaped

from polariscope.core.errors import Argument, InputError, Text
from polariscope.core.text import listed
from polariscope.data.own.support.column_kinds import choose_columns
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.foreign_frames import as_ids

VALUE_BYTES = 8
"""Memory of one number of a table."""
REMEDY: Text = (
    "drop or fill in these rows, choose other columns with ",
    Argument("columns"),
    ", declare classes with ",
    Argument("labels"),
    " and rows with ",
    Argument("row_names"),
    ", or leave columns out with ",
    Argument("aside"),
)
"""Remedy for a column that lacks values or contains text."""


@dataclasses.dataclass(frozen=True)
class Selection:
    """Roles of the columns of a table, by name."""

    features: tuple[str, ...]
    labels: tuple[str, ...] = ()
    row_names: str | None = None
    aside: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns that can contain text."""
        return (*self.labels, *self.aside, *(() if self.row_names is None else (self.row_names,)))


def select(
    existing: Sequence[str],
    where: str,
    columns: Sequence[str],
    labels: Sequence[str],
    row_names: str | None,
    aside: Sequence[str] = (),
) -> Selection:
    """Assign roles to the columns; by default, all columns without another role are features.

    :param existing: the columns of the table.
    :param where: name of the table in messages.
    :param columns: the features that the user selected; empty for all remaining columns.
    :param labels: the columns that are factors.
    :param row_names: the column that identifies rows, or None.
    :param aside: (default none) the columns that are neither features nor factors.
    """
    names = () if row_names is None else (row_names,)
    for wanted in (columns, labels, names, aside):
        choose_columns(wanted, existing, where)
    others = collections.Counter([*labels, *names, *aside])
    named = set(columns)
    twice = [name for name, count in others.items() if name in named or count > 1]
    if twice:
        raise InputError(
            problem=(
                f"{listed(twice, quoted=True)} of {where} cannot have two roles (feature, label, name of rows, aside)"
            ),
            remedy="use each column once",
        )
    features = tuple(columns) or tuple(name for name in existing if name not in others)
    if not features:
        raise InputError(
            problem=f"{where} has no column left for the observations", remedy="use fewer labels"
        )
    return Selection(features, tuple(labels), row_names, tuple(aside))


def contents_of(
    selection: Selection,
    array: Num[np.ndarray, "sample feature"] | None,
    texts: Mapping[str, Shaped[np.ndarray, " sample"]],
    choices: tuple[str, ...] = (),
) -> Contents:
    """Return the contents of a table: features, factors and names of rows.

    :param selection: the columns in use.
    :param array: the features.
    :param texts: labels, names of rows and columns set aside, by name.
    :param choices: (default none) decisions made while reading.
    """
    factors = {name: texts[name] for name in selection.labels} or None
    ids = None if selection.row_names is None else as_ids(texts[selection.row_names])
    aside = {name: texts[name] for name in selection.aside}
    return Contents(array, factors, feature_names=selection.features, ids=ids, aside=aside, choices=choices)
