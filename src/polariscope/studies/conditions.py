"""Conditions on the rows of a table, ``mig>0.3``, and short names of data variants in them."""

from __future__ import annotations

import contextlib
import dataclasses
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from polariscope.core.errors import InputError
from polariscope.studies.analyses import Cell

VARIANTS, ORIGINAL = "data.variants", "original"
"""The setting that lists the variants of the data, and the name for data without variants."""
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclasses.dataclass(frozen=True)
class Condition:
    """A column compared with a value."""

    column: str
    operator: str
    """One of = != < <= > >=."""
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Return the condition that a text states.

        :param text: ``mig>0.3``, ``beta=4``, ``state!=failed``.

        >>> Condition.parse("mig >= 0.3")
        Condition(column='mig', operator='>=', value='0.3')
        """
        # Operators of two characters come first, because < would match the beginning of <=.
        match = re.fullmatch(r"(.+?)\s*(<=|>=|!=|=|<|>)\s*(.*)", text)
        if match is None:
            raise InputError("a condition", "be COLUMN=VALUE, or with !=, <, <=, >, >=", got=f"{text!r}")
        return cls(*match.groups())

    def holds(self, cell: Cell, value: str) -> bool:
        """Return True if a cell meets the condition; a missing cell meets no condition.

        :param cell: cell of the column.
        :param value: value to compare with: that of the condition, or the value that its short name refers to.
        """
        return _holds(self.column, cell, OPERATORS[self.operator], value)

    def missing(self, is_missing: Any) -> Any:
        """Return which cells meet the condition when it refers to data without variants, whose cell is empty.

        :param is_missing: mask of the empty cells.
        """
        return OPERATORS[self.operator](is_missing, True)


def value_among(values: Sequence[object], setting: str, name: object) -> object:
    """Return the value of a setting that a name refers to; see :meth:`polariscope.studies.table.Table.value_named`.

    :param values: values of the setting.
    :param setting: name of a setting that varies.
    :param name: the value, or a short name of variants.
    """
    if setting != VARIANTS or any(is_same(value, name) for value in values):
        return name
    if name == ORIGINAL:
        return next((value for value in values if value in (None, "none")), name)
    # A variant can be one of several, joined by +, and can have options after - or :.
    pattern = rf"(.*\+)?{re.escape(str(name))}([-:+].*)?"
    meant = [value for value in values if value is not None and re.fullmatch(pattern, str(value))]
    if len(meant) > 1:
        raise InputError(
            problem=f"{name!r} matches several values of {setting!r}: {', '.join(map(str, meant))}",
            remedy="write the value in full",
        )
    return meant[0] if meant else name


def is_same(cell: object, value: object) -> bool:
    """Return True if a cell is equal to a value, which can be typed as text.

    :param cell: cell of a table.
    :param value: the value to compare with.
    """
    return cell == value or str(cell) == str(value)


def _holds(name: str, cell: Cell, compare: Callable[[Any, Any], bool], text: str) -> bool:
    """Compare a cell with a text, as numbers if both are numbers; "yes" and "no" can be written as true and false."""
    if cell is None:
        return False
    if isinstance(cell, bool):
        return compare(
            "yes" if cell else "no", {"true": "yes", "false": "no"}.get(text.lower(), text.lower())
        )
    if isinstance(cell, int | float):
        # A text that is not a number can still be tested for equality below.
        with contextlib.suppress(ValueError):
            return compare(cell, float(text))
        if compare not in (operator.eq, operator.ne):
            raise InputError(f"the value compared with {name!r}", "be a number", got=f"{text!r}")
    return compare(str(cell).lower(), text.lower())
