"""Recognition of numbers, text and missing values in the columns of tables."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int, Num, Shaped

from polariscope.core.arrays import LARGEST_WHOLE
from polariscope.core.errors import InputError, Text, unknown
from polariscope.core.text import listed, plural, shortened

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "<na>", "?"})
"""Texts that mark a missing value in tables, in lower case."""
TOO_LARGE = "which is an integer beyond 2^53, so floats cannot distinguish it from its neighbours"
WHOLE = re.compile(r"[+-]?[0-9]+")
PADDED = re.compile(r"[+-]?0[0-9]+")
"""An integer with a leading zero, which is a code and not a quantity."""
MAX_NAMED = 5
"""Maximum number of columns or files that a message names; the others are counted."""


@dataclasses.dataclass
class Trouble:
    """Problems of one column."""

    missing: int = 0
    missing_row: int = 0
    text: str | None = None
    text_row: int = 0
    reason: str = ""

    def describe(self, name: str) -> str:
        """Describe the problems of the column.

        :param name: name of the column.
        """
        problems = []
        if self.missing:
            problems.append(f"lacks {plural(self.missing, 'value')}, first in row {self.missing_row}")
        if self.text is not None:
            problems.append(f"contains {shortened(self.text, 60)!r} in row {self.text_row}, {self.reason}")
        return f"column {name!r} {' and '.join(problems)}"


class Troubles:
    """Problems of the columns of a table, collected over the whole table before an error is raised."""

    def __init__(self) -> None:
        self._by_column: dict[str, Trouble] = {}

    def __contains__(self, column: str) -> bool:
        return column in self._by_column

    def missing(self, column: str, rows: Sequence[int]) -> None:
        """Record missing values.

        :param column: name of the column.
        :param rows: their rows, from 0.
        """
        trouble = self._by_column.setdefault(column, Trouble())
        if not trouble.missing:
            trouble.missing_row = int(rows[0])
        trouble.missing += len(rows)

    def text(self, column: str, example: str, row: int, reason: str = "which is not a number") -> None:
        """Record a value that cannot be used as a number.

        :param column: name of the column.
        :param example: the value as it is written.
        :param row: its row, from 0.
        :param reason: (default "which is not a number") reason why it cannot be used.
        """
        trouble = self._by_column.setdefault(column, Trouble())
        if trouble.text is None:
            trouble.text, trouble.text_row, trouble.reason = example, row, reason

    def refuse(self, where: str, remedy: Text) -> None:
        """Raise an error that names the columns, if there are any.

        :param where: name of the table in the message.
        :param remedy: remedy in the message.
        """
        if not self._by_column:
            return
        named = [trouble.describe(name) for name, trouble in list(self._by_column.items())[:MAX_NAMED]]
        more = len(self._by_column) - len(named)
        rest = f", and {more} more columns" if more else ""
        raise InputError(problem=f"{where}: {'; '.join(named)}{rest}", remedy=remedy)


def is_missing(value: object) -> bool:
    """Return whether a value of a table is missing: None, NaN, or a text like "" or "NA".

    >>> is_missing("NA"), is_missing(float("nan")), is_missing(0), is_missing("no")
    (True, True, False, False)

    :param value: the value.
    """
    # NaN is the only value that differs from itself.
    if value is None or (isinstance(value, float) and value != value):
        return True
    return str(value).strip().casefold() in MISSING


def is_absent(value: object) -> bool:
    """Return whether a name or label is missing: None, NaN or an empty text; "NA" is not missing.

    >>> is_absent(None), is_absent(float("nan")), is_absent(" "), is_absent("NA")
    (True, True, True, False)

    :param value: the value.
    """
    if isinstance(value, str | bytes):
        return not value.strip()
    # pandas and polars represent missing values by objects of their own.
    is_nan = isinstance(value, float | np.floating) and bool(np.isnan(value))
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def is_number(text: str) -> bool:
    """Return whether Python can convert a text to a number.

    :param text: the text.
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_features(
    name: str, texts: Sequence[str], start: int, troubles: Troubles
) -> Num[np.ndarray, " sample"]:
    """Return the texts of a feature as numbers, as integers if all are; missing values become NaN.

    :param name: name of the column.
    :param texts: its values as they are written.
    :param start: number of its first row.
    :param troubles: collects the values that cannot be used as numbers.
    """
    values: list[float] = []
    for row, text in enumerate(map(str.strip, texts), start):
        values.append(float(text) if is_number(text) else np.nan)
        if is_missing(text):
            continue
        if values[-1] != values[-1]:
            troubles.text(name, text, row)
        elif PADDED.fullmatch(text):
            troubles.text(name, text, row, "which is text because of its leading zero")
        # Python's integers are exact, floats are not.
        # Python refuses to convert thousands of digits, and 20 of them exceed the limit in any case.
        elif WHOLE.fullmatch(text) and (len(text) > 20 or abs(int(text)) > LARGEST_WHOLE):
            troubles.text(name, text, row, TOO_LARGE)
    # NumPy reads a column of integers at once; any other text makes it fail.
    try:
        return np.array(texts, dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(values)


def as_names(
    name: str, texts: Shaped[np.ndarray, " sample"], troubles: Troubles
) -> Shaped[np.ndarray, " sample"]:
    """Return the names of rows as they are written, without surrounding blanks.

    :param name: name of the column.
    :param texts: its values as they are written.
    :param troubles: collects the missing names.
    """
    names = np.array([text.strip() for text in texts.tolist()])
    lacking = np.flatnonzero(names == "")
    if len(lacking):
        troubles.missing(name, lacking.tolist())
    return names


def as_labels(
    name: str, texts: Shaped[np.ndarray, " sample"], troubles: Troubles, kind: str | None = None
) -> Shaped[np.ndarray, " sample"]:
    """Return labels as numbers if this loses nothing that is written, otherwise as text.

    Integers without leading zeros become numbers, and so do measurements such as 1.5. An empty text is missing. "NA"
    is a class, except among measurements and in a column whose kind requires numbers.

    >>> [as_labels("a", np.array(texts, dtype=object), Troubles()).tolist()
    ...     for texts in (["2", "1"], ["1.50", "2"], ["01", "1"], ["1", "NA"])]
    [[2, 1], [1.5, 2.0], ['01', '1'], ['1', 'NA']]

    :param name: name of the column.
    :param texts: its values as they are written.
    :param troubles: collects the missing labels.
    :param kind: (default: not known) the kind of the factor, if the user passed it.
    """
    import pandas

    # Only distinct texts are converted, because a column has few classes and many rows.
    codes, written = pandas.factorize(texts)
    classes = [str(text).strip() for text in written]
    known = [text for text in classes if not is_missing(text)]
    numbers = _label_numbers(known)
    needs_numbers = kind not in (None, "categorical") or (numbers is not None and numbers.dtype.kind == "f")
    marks_missing = numbers is not None and bool(known) and needs_numbers
    absent = [is_missing(text) if marks_missing else text == "" for text in classes]
    if any(absent):
        troubles.missing(name, np.flatnonzero(np.array(absent)[codes]).tolist())
        return np.zeros(len(texts))
    if numbers is not None and len(known) == len(classes):
        return numbers[codes]
    return np.array(classes)[codes]


def _label_numbers(classes: Sequence[str]) -> Num[np.ndarray, " class"] | None:
    """Return the numbers that distinct texts represent; None if they are not numbers or some would be equal."""
    # Python also accepts 1_000 and digits of other scripts as numbers, which a table means as text.
    if any(PADDED.fullmatch(text) or not text.isascii() or "_" in text for text in classes):
        return None
    try:
        numbers = np.array(classes, dtype=np.int64 if all(map(WHOLE.fullmatch, classes)) else np.float64)
    except (ValueError, OverflowError):
        return None
    is_measured = numbers.dtype.kind == "f" and bool((numbers != np.rint(numbers)).any())
    # Blanks around a value are not part of it.
    return numbers if is_measured or len(set(numbers.tolist())) == len(set(classes)) else None


def number_classes(
    column: Shaped[np.ndarray, " sample"],
) -> tuple[Int[np.ndarray, " sample"], tuple[str, ...]]:
    """Number the classes of a text column in alphabetical order; return the numbers and the text of each.

    >>> codes, names = number_classes(np.array(["red", "blue", "red"]))
    >>> codes.tolist(), names
    ([1, 0, 1], ('blue', 'red'))

    :param column: the texts.
    """
    names, codes = np.unique(column.astype(str), return_inverse=True)
    return codes.reshape(-1).astype(np.int64), tuple(map(str, names))


def choose_columns(wanted: Sequence[str], existing: Sequence[str], where: str) -> None:
    """Raise an error if a column is missing from a table or is requested twice.

    :param wanted: the columns that the user requests.
    :param existing: the columns of the table.
    :param where: name of the table in messages.
    """
    known = set(existing)
    for name, count in collections.Counter(wanted).items():
        if name not in known:
            raise unknown(f"column of {where}", name, existing)
        if count > 1:
            raise InputError(problem=f"column {name!r} of {where} was requested twice", remedy="list it once")


def check_names(names: Sequence[str], where: str) -> None:
    """Raise an error if two columns of a table have the same name.

    :param names: names of its columns.
    :param where: name of the table in messages.
    """
    twice = sorted(name for name, count in collections.Counter(names).items() if count > 1)
    if twice:
        raise InputError(
            problem=f"{where} has more than one column named {listed(twice, quoted=True)}",
            remedy="rename them",
        )
