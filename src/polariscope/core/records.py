"""Frozen records to JSON and back, exactly."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from polariscope.core.errors import InputError

Record = TypeVar("Record")
INFINITY = "Infinity"  # what both Python's float() and JavaScript's Number() read as ∞


def to_plain(value: Any) -> Any:
    """A record as JSON has it; JSON has no ∞, so that it becomes the word "Infinity"."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return INFINITY if value > 0 else f"-{INFINITY}"
    return value


def from_plain(kind: type[Record], value: Any) -> Record:
    """The record of this class that :func:`to_plain` wrote; one with other fields is refused."""
    hints = _hints(kind)  # type: ignore[arg-type]
    if not isinstance(value, Mapping) or set(value) != set(hints):
        found = sorted(map(str, value)) if isinstance(value, Mapping) else type(value).__name__
        raise InputError(
            f"a stored {kind.__name__} must have the fields {', '.join(sorted(hints))}, got {found}; "
            "it was written by another version: diagnose the model again."
        )
    return kind(**{name: _read(hint, value[name]) for name, hint in hints.items()})


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _read(hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(hint):
        return from_plain(hint, value)  # type: ignore[arg-type]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        chosen = next(argument for argument in arguments if argument is not type(None))
        return None if value is None else _read(chosen, value)
    if origin is tuple:
        repeated = len(arguments) == 2 and arguments[1] is Ellipsis
        kinds = [arguments[0]] * len(value) if repeated else arguments
        return tuple(_read(kind, item) for kind, item in zip(kinds, value, strict=True))
    if origin is dict:
        return {key: _read(arguments[1], item) for key, item in value.items()}
    if origin is Literal:
        if value not in arguments:
            raise InputError(f"expected one of {', '.join(arguments)} in a stored record, got {value!r}.")
        return value
    return hint(value)
