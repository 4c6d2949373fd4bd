"""Ranges and choices of options: declared beside the option, checked here.

An option says what it may be in its annotation, ``Annotated[float, Ge(0), Advice("1 is the VAE")]`` or
``Literal["pad", "crop"]``. It is checked when the class that has it is made, by whoever makes it.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import math
import types
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from polariscope.core.errors import InputError, Text

LIMITS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
"""Limits of numbers, as :mod:`annotated_types` names them: ``Annotated[int, Ge(2)]``."""
FINITE = "be finite"
Kind = TypeVar("Kind", bound=type)


@dataclasses.dataclass(frozen=True)
class Advice:
    """What to say to who gave a value that an option does not take; stands in its annotation."""

    text: Text
    """The remedy of the error."""


def checked(kind: Kind) -> Kind:
    """Decorator of a dataclass: the values of its fields are checked before it is made.

    The class says what its fields may be: ``beta: Annotated[float, Ge(0), Advice("1 is the VAE")] = 4.0``; making
    one with −1 is refused with "beta must not be negative, got -1; 1 is the VAE."

    :param kind: the dataclass.
    """
    make = kind.__init__  # type: ignore[misc]
    signature = inspect.signature(make)

    @functools.wraps(make)
    def init(self: Any, *args: Any, **options: Any) -> None:
        if type(self) is kind:  # one that inherits has options of its own
            try:
                given = signature.bind(self, *args, **options).arguments
            except TypeError:
                given = {}  # Python says what is missing or too much
            check_values(kind, given)
        make(self, *args, **options)

    kind.__init__ = init  # type: ignore[misc]
    return kind


def check_values(concept: Callable[..., Any], given: Mapping[str, Any], owner: str = "") -> None:
    """Refuse values outside of what the annotations allow.

    :param concept: The dataclass or function whose annotations they are.
    :param given: Values by name; names that have no annotation are passed over.
    :param owner: (default none) whose options they are, as messages say it.
    """
    hints, defaults = _hints(concept), _defaults(concept)
    for name, value in given.items():
        if name in hints and not (name in defaults and _same(value, defaults[name])):
            check_value(name, value, hints[name], owner)


def check_value(name: str, value: Any, annotation: Any, owner: str = "") -> None:
    """Refuse one value outside of what its annotation allows.

    :param name: The argument's name.
    :param value: What was given for it.
    :param annotation: What it may be.
    :param owner: (default none) whose option it is, as messages say it.
    """
    must = violation(annotation, value)
    if must is None:
        return
    nearest = difflib.get_close_matches(str(value), [word for word in _choices(annotation) if word], n=1)
    remedy = f"did you mean {nearest[0]!r}?" if nearest else _advice(annotation)
    shown = f"{value!r}" if isinstance(value, str) else f"{value}"
    raise InputError(name, must, got=f"{shown} ({owner})" if owner else shown, remedy=remedy)


def violation(annotation: Any, value: Any) -> str | None:
    """What must hold of a value and does not; None where all does, and for types that are not known here.

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
        return violation(kind, value) or (_outside(limits, value) if _is_number(value) else None)
    if origin is Literal:
        words = " or ".join(repr(choice) for choice in arguments)
        return None if value in arguments else f"be {words}"
    if origin in (Union, types.UnionType):
        found = [violation(argument, value) for argument in arguments if argument is not type(None)]
        if None in found or (value is None and type(None) in arguments):
            return None
        return found[0] if len(found) == 1 else f"be {describe(annotation)}"
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        if not isinstance(value, tuple | list):
            return f"be {describe(annotation)}"
        wrong = {must for part in value if (must := violation(arguments[0], part)) is not None}
        return (
            ("hold finite numbers" if wrong == {FINITE} else f"be {describe(annotation)}") if wrong else None
        )
    if annotation is bool:
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


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _outside(limits: list[Any], value: Any) -> str | None:
    """What a number must be that is not within its limits."""
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
        return f"lie between {low:g} and {high:g}"
    return f"be {_bounds(bounds)}"


def _bounds(bounds: Mapping[str, int | float]) -> str:
    return " and ".join(f"{LIMITS[name]} {bound:g}" for name, bound in bounds.items())


def _choices(annotation: Any) -> list[str]:
    """The words an option may be."""
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    return [word for argument in get_args(annotation) for word in _choices(argument)]


def _advice(annotation: Any) -> Text | None:
    """What an annotation advises, wherever in it that stands."""
    if isinstance(annotation, Advice):
        return annotation.text
    parts = get_args(annotation) if get_origin(annotation) is not Literal else ()
    return next((text for part in parts if (text := _advice(part)) is not None), None)


def _same(value: Any, default: Any) -> bool:
    """Whether a value is the default, which is always allowed: ∞ may be one."""
    return value is default or (_is_number(value) and _is_number(default) and value == default)


@functools.cache
def _hints(concept: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(concept, include_extras=True)


@functools.cache
def _defaults(concept: Callable[..., Any]) -> dict[str, Any]:
    return {
        parameter.name: parameter.default
        for parameter in inspect.signature(concept).parameters.values()
        if parameter.default is not inspect.Parameter.empty
    }


def describe(annotation: Any) -> str:
    """A type in words.

    >>> describe(float), describe(tuple[int, ...]), describe(bool | None)
    ('a number', 'a list of integers', 'true or false or none')
    >>> from annotated_types import Ge, Gt, Le
    >>> describe(Annotated[int, Ge(2)]), describe(Annotated[float, Gt(0), Le(1)])
    ('an integer, at least 2', 'a number, above 0 and at most 1')
    >>> describe(Annotated[int, Ge(2)] | None)
    'an integer, at least 2, or none'

    :param annotation: The type, as an option is annotated with it.
    """
    if get_origin(annotation) is Annotated:
        kind, *limits = get_args(annotation)
        bounds = _bounds(
            {name: getattr(limit, name) for limit in limits for name in LIMITS if hasattr(limit, name)}
        )
        return ", ".join([describe(kind), *([bounds] if bounds else [])])
    words = {float: "a number", int: "an integer", str: "a word", bool: "true or false", type(None): "none"}
    if annotation in words:
        return words[annotation]
    origin = getattr(annotation, "__origin__", None)
    arguments = [argument for argument in getattr(annotation, "__args__", ()) if argument is not Ellipsis]
    if origin is tuple:
        item, comma, within = describe(arguments[0]).partition(", ")
        noun, of, rest = item.split(" ", 1)[-1].partition(" of ")
        return f"a list of {noun}s{of}{rest}{comma}{'each ' if within else ''}{within}"
    if origin is not None and "Literal" in str(origin):
        return "one of " + ", ".join(str(argument) for argument in arguments)
    if origin is Mapping:
        return "a table of options"
    if arguments:
        parts = list(dict.fromkeys(describe(argument) for argument in arguments))
        return (", or " if any("," in part for part in parts) else " or ").join(parts)
    return getattr(annotation, "__name__", str(annotation))
