"""Exact conversion of frozen records and settings to JSON, and of JSON to records.

JSON has no tuples, arrays, ∞ or NaN. Tuples and arrays become lists, ∞ becomes the word "Infinity", and NaN becomes
null. The annotations of the record's class determine the original types.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.text import numbered

if TYPE_CHECKING:
    import numpy as np

Record = TypeVar("Record")
INFINITIES = {math.inf: "Infinity", -math.inf: "-Infinity"}
"""Words that both Python's float() and JavaScript's Number() read as ±∞."""
NUMBERS = {word: number for number, word in INFINITIES.items()}
CELLS = {"float64": (float, int, type(None)), "int64": (int,), "bool": (bool,)}
"""Types of the cells of an array in JSON, besides the words for ±∞."""
WORDS = {
    float: "a number",
    int: "an integer",
    str: "text",
    bool: "true or false",
    tuple: "a list",
    list: "a list",
    dict: "a mapping",
    Mapping: "a mapping",
    type(None): "null",
}


def to_plain(value: object) -> Any:
    """Convert a record, or settings, to JSON values.

    :param value: a dataclass, mapping, tuple, list, array or single value, nested in any way

    >>> import numpy as np
    >>> to_plain({"shape": (3, np.int64(4)), "scores": np.array([0.5, np.inf, np.nan])})
    {'shape': [3, 4], 'scores': [0.5, 'Infinity', None]}
    """
    if isinstance(value, str) and hasattr(value, "to_dict"):  # text that carries a code
        return to_plain(value.to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    # Arrays and numbers of NumPy and torch, recognised without importing either of them.
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        # NaN is not a key of this mapping, so it becomes None.
        return INFINITIES.get(value)
    return value


class AbstractRecord:
    """A frozen dataclass of results that can be written as JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values: tuples and arrays are lists, ∞ is the word "Infinity", NaN is null."""
        return to_plain(self)


class AbstractStoredRecord(AbstractRecord):
    """A record that can also be read back.

    ``class Size(AbstractStoredRecord, remedy="size the data again")``: the remedy is part of the error message about
    JSON that is not such a record.
    """

    _remedy: ClassVar[str] = "make it again"

    def __init_subclass__(cls, *, remedy: str | None = None) -> None:
        super().__init_subclass__()
        if remedy is not None:
            cls._remedy = remedy

    @classmethod
    def from_dict(cls: type[Record], stored: Mapping[str, object]) -> Record:
        """Rebuild a record from the output of :meth:`to_dict`, equal bit for bit; other input raises an error.

        :param stored: JSON values; a field with a default can be missing.
        """
        return from_plain(cls, stored, cls._remedy)  # type: ignore[attr-defined]


def from_plain(
    kind: type[Record], value: object, remedy: str = "make it again", *, with_others: bool = False
) -> Record:
    """Rebuild a record from the output of :func:`to_plain`; other input raises an error.

    Each field is read by its annotation. Supported are numbers (an integer stays one if the annotation allows both),
    text, truth values, ``Literal``, ``None``, unions, tuples, lists, mappings, other records, ``object`` or ``Any``
    (unchanged), and arrays with jaxtyping annotations, which become float64, int64 or bool. A field with a default can
    be missing, because older files do not have the newest fields.

    :param kind: the dataclass
    :param value: values read from JSON
    :param remedy: (default "make it again") advice in the error message, e.g. "diagnose the model again"
    :param with_others: (default False) if True, ignore fields that the record does not have; otherwise they raise an
        error
    """
    if with_others and isinstance(value, Mapping):
        value = {name: value[name] for name in _hints(kind) if name in value}  # type: ignore[arg-type]
    try:
        return _read_record(kind, value, "")
    except _MisfitError as misfit:
        raise not_stored(kind, str(misfit), remedy) from None


def not_stored(kind: type, reason: str, remedy: str) -> PolariscopeError:
    """Return the error for JSON that is not a record of this class.

    >>> not_stored(int, "it must be an integer, got 'x'", "count again")
    PolariscopeError("this is not a stored int: it must be an integer, got 'x'; count again.")
    """
    return PolariscopeError(f"this is not a stored {kind.__name__}: {reason}; {remedy}.")


class _MisfitError(Exception):
    """Error about a value that does not fit, with its location: ``latents[0].kl must be a number, got 'x'``."""

    def __init__(self, where: str, must: str, value: Any = dataclasses.MISSING) -> None:
        got = "" if value is dataclasses.MISSING else f", got {_shown(value)}"
        super().__init__(f"{where or 'it'} must {must}{got}")


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a mapping of {', '.join(map(str, value)) or 'nothing'}"[:80]
    return f"a list of length {len(value)}" if isinstance(value, (list, tuple)) else repr(value)[:80]


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


@functools.cache
def _required(kind: Any) -> frozenset[str]:
    missing = dataclasses.MISSING
    return frozenset(
        field.name
        for field in dataclasses.fields(kind)
        if field.init and field.default is missing and field.default_factory is missing
    )


def _read_record(kind: Any, value: Any, where: str) -> Any:
    hints = _hints(kind)
    if not isinstance(value, Mapping):
        raise _MisfitError(where, f"be a mapping with the fields {', '.join(hints)}", value)
    for must, names in (("have", _required(kind) - set(value)), ("not have", set(value) - set(hints))):
        if names:
            raise _MisfitError(where, f"{must} the {numbered('field', sorted(map(str, names)))}")
    fields = {
        name: _read(hint, value[name], f"{where}.{name}" if where else name)
        for name, hint in hints.items()
        if name in value
    }
    try:
        return kind(**_shaped(hints, fields, where))
    except InputError as error:  # the record checks its own values
        raise _MisfitError(where, f"be valid ({str(error).rstrip('.')})") from None


def _read(hint: Any, value: Any, where: str) -> Any:
    if hint is Any or hint is object:
        return value
    if _is_array(hint):
        return _read_array(hint, value, where)
    if dataclasses.is_dataclass(hint):
        return _read_record(hint, value, where)
    if isinstance(hint, type) and issubclass(hint, str) and hasattr(hint, "from_dict"):
        try:
            return hint.from_dict(value)
        except (InputError, KeyError, TypeError) as error:
            raise _MisfitError(where, f"be a stored {hint.__name__} ({str(error).rstrip('.')})") from None
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _read_union(arguments, value, where)
    if origin in (tuple, list):
        return _read_sequence(origin, arguments, value, where)
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise _MisfitError(where, "be a mapping", value)
        return {
            _read_key(arguments[0], key, where): _read(arguments[1], item, f"{where}[{key!r}]")
            for key, item in value.items()
        }
    if origin is Literal:
        # The type is compared too, because True equals 1.
        if not any(value == choice and type(value) is type(choice) for choice in arguments):
            raise _MisfitError(where, f"be one of {', '.join(map(str, arguments))}", value)
        return value
    return _read_single(hint, value, where)


def _read_single(hint: Any, value: Any, where: str) -> Any:
    if hint is float:
        if isinstance(value, str) and value in NUMBERS:
            return NUMBERS[value]
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value):
            return float(value)
    elif hint not in (int, str, bool, type(None)):
        raise TypeError(
            f"a record with a field of type {hint} cannot be read; see from_plain for those that can."
        )
    elif type(value) is hint:  # not isinstance: True is an int
        return value
    raise _MisfitError(where, f"be {WORDS[hint]}", value)


def _read_union(arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    """Return the first type that fits; integers are tried before floats, so 3 does not become 3.0."""
    if value is None and type(None) in arguments:
        return None
    choices = [argument for argument in arguments if argument is not type(None)]
    if len(choices) == 1:
        return _read(choices[0], value, where)
    # Sorting is stable, so only floats move to the end.
    for choice in sorted(choices, key=lambda choice: choice is float):
        try:
            return _read(choice, value, where)
        except _MisfitError:
            continue
    types = dict.fromkeys(WORDS.get(get_origin(choice) or choice, str(choice)) for choice in arguments)
    raise _MisfitError(where, f"be {' or '.join(types)}", value)


def _read_sequence(origin: Any, arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    if not isinstance(value, (list, tuple)):
        raise _MisfitError(where, "be a list", value)
    repeated = origin is list or (len(arguments) == 2 and arguments[1] is Ellipsis)
    hints = [arguments[0]] * len(value) if repeated else list(arguments)
    if len(hints) != len(value):
        raise _MisfitError(where, f"be a list of length {len(hints)}", value)
    items = enumerate(zip(hints, value, strict=True))
    return origin(_read(hint, item, f"{where}[{index}]") for index, (hint, item) in items)


def _read_key(hint: Any, key: str, where: str) -> Any:
    """Read a key of a mapping, which JSON stores as text."""
    if hint is int:
        try:
            return int(key)
        except ValueError:
            raise _MisfitError(where, "have integers as keys", key) from None
    return _read(hint, key, f"a key of {where}")


def _is_array(hint: Any) -> bool:
    return hasattr(hint, "dim_str")  # jaxtyping's annotations


def _read_array(hint: Any, value: Any, where: str) -> np.ndarray:
    """Read an array from nested lists of numbers; in arrays of floats null is NaN and "Infinity" is ∞."""
    import numpy as np

    if not isinstance(value, (list, tuple)) and hint.dim_str.strip():
        raise _MisfitError(where, "be a list", value)
    names = hint.dtypes if isinstance(hint.dtypes, tuple) else ()
    dtype = next((name for name in CELLS if name in names), None)
    if dtype is None:
        raise TypeError(
            f"an array annotated {hint} cannot be read back; annotate it with Float, Int or Bool."
        )
    try:
        # As objects, cells keep their types, so True in an array of numbers is detected below.
        cells = np.array(value, dtype=object)
    except ValueError:
        raise _MisfitError(where, "have rows of equal length") from None
    for cell in cells.ravel().tolist():
        if isinstance(cell, list):
            raise _MisfitError(where, "have rows of equal length")
        is_infinite = dtype == "float64" and isinstance(cell, str) and cell in NUMBERS
        if type(cell) not in CELLS[dtype] and not is_infinite:
            raise _MisfitError(where, f"contain {'truth values' if dtype == 'bool' else 'numbers'}", cell)
    # NumPy converts None to NaN and "Infinity" to ∞.
    return cells.astype(dtype)


def _shaped(hints: Mapping[str, Any], fields: dict[str, Any], where: str) -> dict[str, Any]:
    """Check the axes of arrays against their annotations: their number, and equal lengths for equal names.

    An empty list has lost its inner axes. They get the lengths that axes of the same name have in other fields, or 0.
    """
    axes = {name: _axes(hints[name]) for name, field in fields.items() if hasattr(field, "ndim")}
    lengths: dict[str, int] = {}
    # Empty arrays come last, because their shape is inferred from the others.
    for name in sorted(axes, key=lambda name: fields[name].size == 0):
        array, names = fields[name], axes[name]
        if names is None:
            continue
        if array.size == 0 and array.ndim < len(names):
            array = fields[name] = array.reshape(
                [*array.shape, *(lengths.get(axis, 0) for axis in names[array.ndim :])]
            )
        if array.ndim != len(names):
            raise _MisfitError(
                f"{where}.{name}" if where else name, f"have {len(names)} axes, got {array.ndim}"
            )
        for axis, length in zip(names, array.shape, strict=True):
            # Only plain names are compared: numbers, expressions and names with an underscore have no common
            # length.
            if axis.isidentifier() and axis[0] != "_" and lengths.setdefault(axis, length) != length:
                raise _MisfitError(
                    f"{where}.{name}" if where else name,
                    f"have as many entries along {axis} as other fields, {lengths[axis]}, got {length}",
                )
    return fields


def _axes(hint: Any) -> list[str] | None:
    """Return the names of an annotation's axes; None if their number is not fixed."""
    kinds = [kind for kind in (*get_args(hint), hint) if _is_array(kind)]
    names = kinds[0].dim_str.split() if kinds else ["..."]
    return None if any(name == "..." or name.startswith("*") for name in names) else names
