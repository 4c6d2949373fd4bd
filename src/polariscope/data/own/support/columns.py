"""Columns of tables: which hold numbers, which text, which lack values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Int, Shaped

from polariscope.core.errors import InputError, Text, unknown

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "<na>", "?"})
"""What stands in tables for a value that is not known, in small letters."""
MOST_NAMED = 5
"""Columns or files that a message names; of more it gives the number."""


@dataclasses.dataclass
class Trouble:
    """What is wrong with one column."""

    missing: int = 0
    missing_row: int = 0
    text: str | None = None
    text_row: int = 0

    def words(self, name: str) -> str:
        """What is wrong, in words.

        :param name: the column's name.
        """
        said = []
        if self.missing:
            said.append(
                f"lacks {self.missing} value{'s' * (self.missing > 1)}, first in row {self.missing_row}"
            )
        if self.text is not None:
            said.append(f"holds {self.text!r} in row {self.text_row}, which is no number")
        return f"column {name!r} {' and '.join(said)}"


class Troubles:
    """What is wrong with the columns of a table, gathered over all of it before it is refused."""

    def __init__(self) -> None:
        self._found: dict[str, Trouble] = {}

    def missing(self, column: str, rows: Sequence[int]) -> None:
        """Note values that are not known.

        :param column: where.
        :param rows: in which rows, from 0.
        """
        trouble = self._found.setdefault(column, Trouble())
        if not trouble.missing:
            trouble.missing_row = int(rows[0])
        trouble.missing += len(rows)

    def text(self, column: str, example: str, row: int) -> None:
        """Note text where numbers are needed.

        :param column: where.
        :param example: such a text.
        :param row: its row, from 0.
        """
        trouble = self._found.setdefault(column, Trouble())
        if trouble.text is None:
            trouble.text, trouble.text_row = example, row

    def refuse(self, where: str, remedy: Text) -> None:
        """Raise an error that names the columns, if there are any.

        :param where: what the table is called.
        :param remedy: what to do.
        """
        if not self._found:
            return
        named = [trouble.words(name) for name, trouble in list(self._found.items())[:MOST_NAMED]]
        more = len(self._found) - len(named)
        rest = f", and {more} more columns" if more else ""
        raise InputError(problem=f"{where}: {'; '.join(named)}{rest}", remedy=remedy)


def is_missing(value: object) -> bool:
    """Whether a value of a table stands for none: None, NaN, or a text like "" or "NA".

    >>> is_missing("NA"), is_missing(float("nan")), is_missing(0), is_missing("no")
    (True, True, False, False)

    :param value: the value.
    """
    if value is None or (isinstance(value, float) and value != value):
        return True
    return str(value).strip().casefold() in MISSING


def number_classes(
    column: Shaped[np.ndarray, " sample"],
) -> tuple[Int[np.ndarray, " sample"], tuple[str, ...]]:
    """Texts as numbers, in alphabetical order, and the text of each number.

    >>> codes, names = number_classes(np.array(["red", "blue", "red"]))
    >>> codes.tolist(), names
    ([1, 0, 1], ('blue', 'red'))

    :param column: the texts.
    """
    names, codes = np.unique(column.astype(str), return_inverse=True)
    return codes.reshape(-1).astype(np.int64), tuple(map(str, names))


def choose_columns(wanted: Sequence[str], there: Sequence[str], where: str) -> None:
    """Refuse columns that a table does not have, or that are asked for twice.

    :param wanted: the columns that the user names.
    :param there: those the table has.
    :param where: what the table is called.
    """
    for name in wanted:
        if name not in there:
            raise unknown(f"column of {where}", name, there)
        if list(wanted).count(name) > 1:
            raise InputError(problem=f"column {name!r} of {where} was asked for twice", remedy="name it once")


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse a table in which two columns have the same name.

    :param names: of its columns.
    :param where: what the table is called.
    """
    twice = (
        sorted({name for name in names if list(names).count(name) > 1})
        if len(set(names)) < len(names)
        else []
    )
    if twice:
        raise InputError(
            problem=f"{where} has more than one column named {listed(twice)}", remedy="rename them"
        )


def listed(names: Iterable[object]) -> str:
    """Names for a message: the first few, and how many more there are.

    >>> listed("abcdefg")
    "'a', 'b', 'c', 'd', 'e' and 2 more"

    :param names: the names.
    """
    every = [repr(str(name)) for name in names]
    more = len(every) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
