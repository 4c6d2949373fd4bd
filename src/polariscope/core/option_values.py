"""Values of options: conversion from text, checks against annotations, and descriptions in words.

This is the only mechanism that validates options. Annotations are plain types, unions, ``Literal``, tuples and
mappings, with limits from :mod:`annotated_types`: ``Annotated[float, Ge(0), Advice("1 is the VAE")]``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import decimal
import difflib
import math
import operator
import os
import types
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

from polariscope.core.errors import InputError, Text
from polariscope.core.paths import user_path

SWITCH = dict.fromkeys(("true", "yes", "on", "t", "y", "1"), True) | dict.fromkeys(
    ("false", "no", "off", "f", "n", "0"), False
)
"""Texts that are accepted for an option that is on or off."""
LIMITS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
"""Limits of numbers, by their names in :mod:`annotated_types`: ``Annotated[int, Ge(2)]``."""
FINITE, ALL_FINITE = "be finite", "contain finite numbers"


@dataclasses.dataclass(frozen=True)
class Advice:
    """Hint shown when a value is rejected; part of the annotation of an option."""

    text: Text
    """The remedy of the error."""


def convert(value: object, annotation: object) -> Any:
    """Convert a value to the type of its option; raise ValueError if that is not possible.

    A value that already has one of the types is unchanged. Otherwise the first type that fits is used. Limits are
    checked by :func:`check_value`.

    >>> convert("4", float), convert("60,40", tuple[int, ...]), convert("none", int | None), convert(4, float | int)
    (4.0, (60, 40), None, 4)

    :param value: text from a command line, or a value from Python or a file.
    :param annotation: annotation of the option.
    """
    value = _split(value, annotation)
    kinds = kinds_of(annotation)
    if any(type(value) is kind for kind in kinds):
        return value
    for kind in kinds:
        # Foreign values fail in many ways: int(inf) overflows, Decimal("x") is an invalid operation, and comparing
        # a tensor with several values raises RuntimeError.
        with contextlib.suppress(ValueError, TypeError, ArithmeticError, RuntimeError):
            return _as_kind(value, kind)
    raise ValueError(f"{value!r} is not {describe(annotation)}")


def _as_kind(value: Any, kind: Any) -> Any:
    """Convert a value to one type that is not a union; raise ValueError, TypeError or OverflowError on failure."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return value
    if origin is Literal:
        return arguments[arguments.index(value)]
    if origin is tuple:
        return _as_tuple(value, arguments)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise TypeError
        return {convert(key, arguments[0]): convert(item, arguments[1]) for key, item in value.items()}
    if kind is bool:
        return _as_switch(value)
    if kind is int:
        return _as_integer(value)
    # Python would convert b"4" to 4.0.
    if kind is float and not _is_switch(value) and not isinstance(value, bytes):
        return float(value)
    if kind is str and isinstance(value, str):
        return str(value)  # NumPy's strings are a subclass
    if kind is Path and isinstance(value, str | os.PathLike):
        return user_path(value)
    if kind in (float, Path) or not isinstance(value, origin or kind):
        raise TypeError
    return value


def _as_tuple(value: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError
    items = tuple(value)
    of_items = [arguments[0]] * len(items) if arguments[1:] == (...,) else arguments
    return tuple(convert(item, of_item) for item, of_item in zip(items, of_items, strict=True))


def _is_switch(value: Any) -> bool:
    """Return True for True and False, also those of NumPy and PyTorch, which must not be taken for 1 and 0."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")


def _as_switch(value: Any) -> bool:
    # A number from a file can be 1.0 instead of 1.
    text = str(value.item() if hasattr(value, "item") else value).strip().lower().removesuffix(".0")
    if text not in SWITCH:
        raise ValueError
    return SWITCH[text]


def _as_integer(value: Any) -> int:
    if _is_switch(value) or isinstance(value, bytes):
        raise TypeError
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            value = decimal.Decimal(value.strip())  # exact: "1e4" and "4.0" are integers
    with contextlib.suppress(TypeError):  # floats, also those of arrays, have no index
        return operator.index(value)
    if value != int(value):
        raise ValueError
    return int(value)


def _split(value: Any, annotation: Any) -> Any:
    """Split text from a command line.

    ``"60,40,20"`` is a tuple, ``"0,1;1,0"`` a tuple of tuples, ``"none"`` None and ``"4"`` the choice 4.
    """
    if not isinstance(value, str):
        return value
    kinds = kinds_of(annotation)
    choices = {
        str(choice): choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)
    }
    if value in choices:
        return choices[value]
    if value.lower() == "none" and type(None) in kinds and Path not in kinds:  # a file can be called none
        return None
    for kind in kinds:
        if get_origin(kind) is tuple:
            return _rows(value) if _has_tuples(kind) else _items(value)
    return value


def _has_tuples(kind: Any) -> bool:
    return any(get_origin(item) is tuple for item in kinds_of(get_args(kind)[0]))


def _items(text: str) -> list[str]:
    return [item for item in text.split(",") if item]


def _rows(text: str) -> list[list[str]]:
    return [_items(row) for row in text.split(";") if row]


def kinds_of(annotation: Any) -> tuple[Any, ...]:
    """Return the types that an annotation allows, without limits and advice: the members of its union.

    :param annotation: the annotation of an option.

    >>> from annotated_types import Ge
    >>> kinds_of(Annotated[int, Ge(1)] | None), kinds_of(tuple[int, ...]), kinds_of(Literal["bool"])
    ((<class 'int'>, <class 'NoneType'>), (tuple[int, ...],), (typing.Literal['bool'],))
    """
    if get_origin(annotation) is Annotated:
        return kinds_of(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(kind for member in get_args(annotation) for kind in kinds_of(member))
    return (annotation,)


def is_switch(annotation: Any) -> bool:
    """Return True if an option is on or off, so its flag requires no value.

    :param annotation: the annotation of an option.

    >>> is_switch(bool | None), is_switch(Literal["bool"]), is_switch(int)
    (True, False, False)
    """
    return bool in kinds_of(annotation)


def show(value: object) -> str:
    """Return the value of an option as it would be typed.

    >>> show(True), show((1, 0.5)), show(None), show(1e-3)
    ('on', '1,0.5', 'none', '0.001')
    """
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple | list):
        return ",".join(map(show, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def check_value(name: str, value: object, annotation: object, owner: str = "") -> None:
    """Check one value against its annotation.

    :param name: name of the argument.
    :param value: its value.
    :param annotation: its annotation.
    :param owner: (default none) owner of the option in messages, such as "objective 'beta'".
    """
    must = violation(annotation, value)
    if must is None:
        return
    remedy = remedy_for(annotation, value)
    shown = f"{value!r}" if isinstance(value, str) else f"{value}"
    raise InputError(name, must, got=f"{shown} ({owner})" if owner else shown, remedy=remedy)


def remedy_for(annotation: object, value: object) -> Text | None:
    """Return the most similar allowed word as a suggestion, or the advice of the annotation."""
    nearest = difflib.get_close_matches(str(value), [word for word in _choices(annotation) if word], n=1)
    return f"did you mean {nearest[0]!r}?" if nearest else _advice(annotation)


def violation(annotation: object, value: object) -> str | None:
    """Return the rule that a value violates; None if it violates none, or if its type is not supported here.

    >>> from annotated_types import Ge, Gt, Lt
    >>> violation(Annotated[float, Gt(0)], 0.0), violation(Annotated[float, Gt(0)], 1)
    ('be positive', None)
    >>> violation(Annotated[float, Gt(0), Lt(1)], 2), violation(int, 2.5), violation(float, math.nan)
    ('lie between 0 and 1', 'be an integer', 'be finite')
    >>> violation(tuple[Annotated[int, Ge(1)], ...], (3, 0)), violation(Literal["pad", "crop"], "crp")
    ('be a list of integers, each at least 1', "be 'pad' or 'crop'")
    >>> violation(Annotated[float, Gt(0)] | None, None), violation(Annotated[float, Gt(0)] | None, -1)
    (None, 'be positive')
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        kind, *limits = arguments
        wrong = violation(kind, value) or (_outside(limits, value) if _is_number(value) else None)
        tests = [limit.func for limit in limits if hasattr(limit, "func")]  # predicates
        return wrong or (None if all(test(value) for test in tests) else f"be {describe(kind)}")
    if origin is Literal:
        choices = " or ".join(repr(choice) for choice in arguments)
        return None if value in arguments else f"be {choices}"
    if origin in (Union, types.UnionType):
        violations = [violation(argument, value) for argument in arguments if argument is not type(None)]
        if None in violations or (value is None and type(None) in arguments):
            return None
        return violations[0] if len(violations) == 1 else f"be {describe(annotation)}"
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        if not isinstance(value, tuple | list):
            return f"be {describe(annotation)}"
        broken = {must for part in value if (must := violation(arguments[0], part)) is not None}
        if not broken:
            return None
        return ALL_FINITE if broken <= {FINITE, ALL_FINITE} else f"be {describe(annotation)}"
    if annotation is bool:
        # The name covers NumPy's type (bool_ in version 1, bool in version 2) without importing NumPy.
        return None if type(value).__name__ in ("bool", "bool_") else "be True or False"
    if annotation is int:
        return None if isinstance(value, Integral) and not isinstance(value, bool) else "be an integer"
    if annotation is float:
        if not _is_number(value):
            return "be a number"
        return None if math.isfinite(value) else FINITE
    if annotation is str:
        return None if isinstance(value, str) else "be a word"
    return None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


def _outside(limits: list[Any], value: Any) -> str | None:
    """Return the rule that a number outside its limits violates, otherwise None."""
    bounds = {name: getattr(limit, name) for limit in limits for name in LIMITS if hasattr(limit, name)}
    holds = {
        "ge": lambda bound: value >= bound,
        "gt": lambda bound: value > bound,
        "le": lambda bound: value <= bound,
        "lt": lambda bound: value < bound,
    }
    if all(holds[name](bound) for name, bound in bounds.items()):
        return None
    if bounds == {"gt": 0}:
        return "be positive"
    if bounds == {"ge": 0}:
        return "not be negative"
    if list(bounds) in (["gt", "lt"], ["ge", "le"]):
        low, high = bounds.values()
        return f"lie between {_bound(low)} and {_bound(high)}"
    return f"be {_bounds(bounds)}"


def _bounds(bounds: Mapping[str, int | float]) -> str:
    return " and ".join(f"{LIMITS[name]} {_bound(bound)}" for name, bound in bounds.items())


def _bound(bound: float | int) -> str:
    # "g" would shorten 1,000,000,001 to 1e+09.
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def _choices(annotation: Any) -> list[str]:
    """Return the words that an annotation allows."""
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    return [word for argument in get_args(annotation) for word in _choices(argument)]


def _advice(annotation: Any) -> Text | None:
    """Return the advice in an annotation, at any depth."""
    if isinstance(annotation, Advice):
        return annotation.text
    parts = get_args(annotation) if get_origin(annotation) is not Literal else ()
    return next((text for part in parts if (text := _advice(part)) is not None), None)


def is_default(value: Any, default: Any) -> bool:
    """Return True if a value is the default, which is always allowed, even if it is ∞."""
    return value is default or (_is_number(value) and _is_number(default) and bool(value == default))


WORDS: Mapping[object, str] = {
    float: "a number",
    int: "an integer",
    str: "a word",
    bool: "true or false",
    Path: "a path",
    type(None): "none",
}
"""Descriptions of types."""


def describe(annotation: object) -> str:
    """Describe a type in words.

    >>> describe(float), describe(tuple[int, ...]), describe(bool | None)
    ('a number', 'a list of integers', 'true or false or none')
    >>> from annotated_types import Ge, Gt, Le
    >>> describe(Annotated[int, Ge(2)]), describe(Annotated[float, Gt(0), Le(1)])
    ('an integer, at least 2', 'a number, above 0 and at most 1')
    >>> describe(Annotated[int, Ge(2)] | None)
    'an integer, at least 2, or none'

    :param annotation: the annotation of an option.
    """
    if get_origin(annotation) is Annotated:
        kind, *limits = get_args(annotation)
        bounds = _bounds(
            {name: getattr(limit, name) for limit in limits for name in LIMITS if hasattr(limit, name)}
        )
        return ", ".join([describe(kind), *([bounds] if bounds else [])])
    origin = get_origin(annotation)
    if origin is None and annotation in WORDS:
        return WORDS[annotation]
    arguments = [argument for argument in get_args(annotation) if argument is not Ellipsis]
    if origin is tuple:
        # "an integer, at least 1" becomes "a list of integers, each at least 1": the plural belongs to the
        # noun, before "of".
        item, comma, within = describe(arguments[0]).partition(", ")
        noun, of, rest = item.split(" ", 1)[-1].partition(" of ")
        return f"a list of {noun}s{of}{rest}{comma}{'each ' if within else ''}{within}"
    if origin is Literal:
        return "one of " + ", ".join(str(argument) for argument in arguments)
    if origin is Mapping:
        return "a table of options"
    if arguments:
        parts = list(dict.fromkeys(describe(argument) for argument in arguments))
        return (", or " if any("," in part for part in parts) else " or ").join(parts)
    return getattr(annotation, "__name__", str(annotation))
