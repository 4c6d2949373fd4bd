"""The options of a concept: read from its signature, checked at the door.

A concept's options are the fields of its frozen dataclass or the keyword-only arguments of its function; their
defaults are the paper's. Command-line flags, study files and ``train(**options)`` are derived from them.

An option says what it may be in its annotation, ``Annotated[float, Ge(0), Advice("1 is the VAE")]`` or
``Literal["pad", "crop"]``. That is checked when the class that has it is made, by whoever makes it.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import inspect
import math
import re
import textwrap
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeGuard,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from polariscope.core.errors import Argument, InputError, Text, unknown
from polariscope.core.records import to_plain

if TYPE_CHECKING:
    from polariscope.core.registry import Family

Recorded = TypeVar("Recorded")
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Option:
    """One option of a concept."""

    name: str
    annotation: Any
    default: object  # dataclasses.MISSING when it must be given
    help: str

    @property
    def required(self) -> bool:
        return self.default is dataclasses.MISSING


@functools.cache
def options_of(concept: Any) -> dict[str, Option]:
    """The options of a dataclass (its fields) or a function (its keyword-only arguments), in order.

    What each is for is said under the field, or in the function's docstring: ``:param name: (default 4) text``.
    A function that a decorator gave further arguments, which are no options, has its own in ``own_options``. A field
    that is none says so in its metadata, ``is_option=False``. A member that was read from its file has its options in
    ``declared_options``.
    """
    if hasattr(concept, "declared_options"):
        return dict(concept.declared_options)
    concept = getattr(concept, "own_options", concept)
    if dataclasses.is_dataclass(concept):
        hints = get_type_hints(concept, include_extras=True)
        helps = _field_docstrings(concept)
        return {
            field.name: Option(field.name, hints[field.name], _default(field), helps.get(field.name, ""))
            for field in dataclasses.fields(concept)
            if field.init and field.metadata.get("is_option", True)
        }
    hints, helps = (
        get_type_hints(concept, include_extras=True),
        documented_parameters(inspect.getdoc(concept) or ""),
    )
    return {
        parameter.name: Option(
            parameter.name,
            hints.get(parameter.name, Any),
            dataclasses.MISSING if parameter.default is inspect.Parameter.empty else parameter.default,
            helps.get(parameter.name, ""),
        )
        for parameter in inspect.signature(concept).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default


def _field_docstrings(concept: Any) -> dict[str, str]:
    """The string literal under each field of a dataclass and of the dataclasses it inherits from."""
    docstrings: dict[str, str] = {}
    for kind in reversed(inspect.getmro(concept)):
        if not dataclasses.is_dataclass(kind):
            continue
        node = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
        assert isinstance(node, ast.ClassDef)
        docstrings |= documented_fields(node)
    return docstrings


def documented_fields(node: ast.ClassDef) -> dict[str, str]:
    """Return the string literal under each field of a class.

    :param node: the class.
    """
    docstrings = {}
    for field, text in zip(node.body, node.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            docstrings[field.target.id] = " ".join(text.value.value.split())
    return docstrings


def documented_parameters(docstring: str) -> dict[str, str]:
    """Return what a function's docstring says of each argument, without the default.

    :param docstring: the docstring, without its indentation.

    >>> documented_parameters("Sum.\\n\\n:param n_bins: (default 20) number of bins.")
    {'n_bins': 'Number of bins.'}
    """
    lines = re.findall(r"^:param (\w+): (.*(?:\n[ \t]+.*)*)", docstring, flags=re.MULTILINE)
    texts = {name: re.sub(r"^\(default[^)]*\) ", "", " ".join(text.split())) for name, text in lines}
    return {name: f"{text[:1].upper()}{text[1:]}".replace("``", "") for name, text in texts.items()}


def check_options(
    owner: str, concept: Callable[..., object], values: Mapping[str, object], *, partial: bool = False
) -> dict[str, Any]:
    """Refuse unknown options and values of the wrong type; return the values, converted (``"4"`` to 4.0).

    NaN and ∞ are refused too, in lists as well: no option has a use for them, and JSON, in which settings are kept,
    has no NaN. An option whose default is ∞ takes it.

    ``owner`` is how the messages call the concept, e.g. ``objective 'beta'``, or "" if there is only one. An annotation
    may hold a predicate (``Annotated[str, Predicate(is_known)]``); where that raises an :class:`InputError`, this is
    the message. With ``partial``, required options can be missing: others are added later.
    """
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    options = options_of(concept)
    for name in values:
        if name not in options:
            raise unknown(f"option of {owner}", name, options)
    missing = [name for name, option in options.items() if option.required and name not in values]
    if missing and not owner:
        raise InputError(missing[0], "be given")
    if missing and not partial:
        raise InputError(problem=f"{owner} needs {', '.join(missing)}", remedy="give a value for each")
    checked = {}
    concept = getattr(concept, "own_options", concept)
    kinds = get_type_hints(concept)  # without limits, which are checked below
    for name, value in values.items():
        if isinstance(value, bool):  # which would be taken for 0 or 1
            check_value(name, value, options[name].annotation, owner)
        adapter = TypeAdapter(kinds.get(name, Any), config=ConfigDict(arbitrary_types_allowed=True))
        try:
            checked[name] = adapter.validate_python(_split(value, options[name].annotation))
        except ValidationError:
            wanted = describe(options[name].annotation)
            subject = ("option ", Argument(name), f" of {owner}") if owner else Argument(name)
            remedy = _remedy(options[name].annotation, value)
            raise InputError(subject, f"be {wanted}", got=f"{value!r}", remedy=remedy) from None
    check_values(concept, checked, owner)
    return checked


def non_default(concept: Callable[..., object], options: Mapping[str, object]) -> dict[str, Any]:
    """The options that are not the defaults, in the order of the signature."""
    return {
        name: options[name]
        for name, option in options_of(concept).items()
        if name in options and options[name] != option.default
    }


def show(value: object) -> str:
    """The value of an option as it would be typed.

    >>> show(True), show((1, 0.5)), show(None), show(1e-3)
    ('on', '1,0.5', 'none', '0.001')
    """
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple | list):
        return ",".join(map(show, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


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
    """Return whether an option is on or off, so its flag needs no value.

    :param annotation: the annotation of an option.

    >>> is_switch(bool | None), is_switch(Literal["bool"]), is_switch(int)
    (True, False, False)
    """
    return bool in kinds_of(annotation)


def _split(value: Any, annotation: Any) -> Any:
    """Text from a command line: ``"60,40,20"`` for a tuple, ``"0,1;1,0"`` for a tuple of tuples, ``"none"`` for
    None, ``"4"`` for the choice 4.
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


Refuse: TypeAlias = Callable[[str], Exception]
"""Makes the error about a name that no part has."""


def route(
    names: Iterable[str],
    parts: Mapping[str, Collection[str]],
    refuse: Refuse,
    *,
    defers: Mapping[str, Collection[str]] | None = None,
    spell: Callable[[str], str] = str,
) -> dict[str, tuple[str, str]]:
    """Return the part and the option that each name stands for.

    ``PART_NAME`` always works, ``NAME`` if one part has it. This is the one place where options are given to parts, for
    :func:`polariscope.train`, sizing and the command line.

    :param names: names of options, with or without their part.
    :param parts: names of the options of each part.
    :param refuse: makes the error about a name that no part has.
    :param defers: (default none) parts that leave an option to others which have it too: ``{"data": ["training"]}``.
    :param spell: (default: as it is) spells a name for the reader of a message.

    >>> parts = {"training": ["seed", "steps"], "prior": ["scale"], "data": ["seed", "scale"]}
    >>> route(["seed", "data_seed", "prior_scale"], parts, KeyError, defers={"data": ["training"]})
    {'seed': ('training', 'seed'), 'data_seed': ('data', 'seed'), 'prior_scale': ('prior', 'scale')}
    """
    routed = {}
    for key in names:
        plain = [(part, key) for part, known in parts.items() if key in known]
        homes = {part for part, _ in plain}
        plain = [match for match in plain if not homes & {*(defers or {}).get(match[0], ())}]
        matches = plain + [
            (part, key.removeprefix(f"{part}_"))
            for part, known in parts.items()
            if key.startswith(f"{part}_") and key.removeprefix(f"{part}_") in known
        ]
        if not matches:
            raise refuse(key)
        if len(matches) > 1:
            forms = " or ".join(spell(f"{part}_{name}") for part, name in matches)
            raise InputError(problem=f"{spell(key)} belongs to more than one part", remedy=f"say {forms}")
        routed[key] = matches[0]
    return routed


def build(family: Family, chosen: object, options: Mapping[str, object] | None = None) -> Any:
    """A concept with its options, from a name, a mapping ``{"name": …, option: …}`` or a finished instance."""
    values = dict(options or {})
    if isinstance(chosen, Mapping):
        values = {**{key: value for key, value in chosen.items() if key != "name"}, **values}
        if "name" not in chosen:
            raise InputError(problem=f"a {family.noun} given as a mapping needs a 'name'", got=sorted(chosen))
        chosen = chosen["name"]
    if isinstance(chosen, str):
        concept = family[chosen]
        return concept(**check_options(f"{family.noun} {chosen!r}", concept, values))
    family.name_of(chosen)  # refuses what is none of the family
    if values:
        raise InputError(
            problem=f"{family.noun} was given as an object, so it takes no further options",
            got=", ".join(values),
            remedy="set them when you make it",
        )
    return chosen


def spelled_out(*records: Any, open_ended: bool = False) -> Callable[[Function], Function]:
    """Decorate a function whose ``**options`` are fields of records: signature and docstring show each of them.

    Type checkers read the annotation of ``**options`` (``Unpack`` of a ``TypedDict``); ``help()`` and tab completion
    show the fields with their defaults. In the docstring they replace the line about ``options``.

    :param records: dataclasses whose fields the function accepts by name.
    :param open_ended: (default False) whether the function accepts further options; signature and docstring keep them.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        (rest,) = (each for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD)
        kinds = {name: kind for record in records for name, kind in get_type_hints(record).items()}
        options = [
            each
            for record in records
            for name, each in options_of(record).items()
            if name not in signature.parameters
        ]
        keyword = inspect.Parameter.KEYWORD_ONLY
        fields = [
            inspect.Parameter(each.name, keyword, default=each.default, annotation=kinds[each.name])
            for each in options
        ]
        lines = [f":param {each.name}: (default {each.default!r}) {each.help}" for each in options]
        function.__doc__ = re.sub(
            rf"^([ \t]*):param {rest.name}: .*(?:\n\1[ \t]+.*)*",
            lambda line: "\n".join([*(line[1] + text for text in lines), *([line[0]] if open_ended else [])]),
            function.__doc__ or "",
            flags=re.MULTILINE,
        )
        parameters = [*own, *fields, *([rest] if open_ended else [])]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return decorate


Affects = Literal["weights", "log", "files"]
"""What an option changes: the weights, only the log, or only which files are kept."""
ALWAYS = object()  # no record lacks the option


def option(default: Any, *, since: str = "", absent: object = ALWAYS, affects: Affects = "weights") -> Any:
    """Declare a field of a dataclass of options that is newer than some records, or that changes no weights.

    ``depth: int = option(2, since="0.3", absent=1)``: records written before 0.3 do not have the option, and their
    models were trained as if it were 1. It is left out of a record if it has that value, so the hashes of earlier
    settings stay as they are, and a record without it is read with that value (:func:`to_record`,
    :func:`from_record`).

    :param default: the default.
    :param since: (default "": the first version) version that added the option.
    :param absent: the value that records without the option have; required if ``since`` is given.
    :param affects: (default "weights") what the option changes.
    """
    if bool(since) != (absent is not ALWAYS):
        raise TypeError("an option that is newer than some records needs both since and absent")
    return dataclasses.field(default=default, metadata={"since": since, "absent": absent, "affects": affects})


def to_record(options: Any) -> dict[str, Any]:
    """Return a dataclass of options as JSON values, without newer options that have the value of their absence.

    :param options: the dataclass.
    """
    plain = to_plain(options)
    absent = _absent(type(options))
    return {
        name: value
        for name, value in plain.items()
        if name not in absent or getattr(options, name) != absent[name]
    }


def from_record(kind: type[Recorded], record: Mapping[str, Any]) -> Recorded:
    """Return the dataclass of options that :func:`to_record` wrote, in this version or an earlier one.

    :param kind: the dataclass.
    :param record: its record.
    """
    return kind(**completed(kind, record))


def completed(kind: Any, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record that :func:`to_record` wrote with the options that it leaves out.

    :param kind: the dataclass of options.
    :param record: its record, of this version or an earlier one.
    """
    return {**_absent(kind), **record}


def affecting(kind: Any, *parts: Affects) -> set[str]:
    """Return the names of the options that change one of these parts.

    :param kind: a dataclass of options.
    :param parts: "weights", "log" or "files".
    """
    return {
        field.name for field in dataclasses.fields(kind) if field.metadata.get("affects", "weights") in parts
    }


def _absent(kind: Any) -> dict[str, Any]:
    """Return the values that newer options have in records without them."""
    values = {field.name: field.metadata.get("absent", ALWAYS) for field in dataclasses.fields(kind)}
    return {name: value for name, value in values.items() if value is not ALWAYS}


def rebuild(family: Family, record: Mapping[str, Any]) -> Any:
    """Return the concept that :func:`describe_concept` recorded, in this version or an earlier one.

    :param family: its family.
    :param record: its record, with its ``name``.
    """
    return build(family, {**_absent(family[record["name"]]), **record})


def describe_concept(family: Family, concept: object) -> dict[str, Any]:
    """Return the JSON record of a concept made by :func:`build`; building from it gives an equal one.

    :param family: its family.
    :param concept: the concept, a dataclass.
    """
    return {"name": family.name_of(concept), **to_record(concept)}


LIMITS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
"""Limits of numbers, as :mod:`annotated_types` names them: ``Annotated[int, Ge(2)]``."""
FINITE, ALL_FINITE = "be finite", "hold finite numbers"
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
                values = signature.bind(self, *args, **options).arguments
            except TypeError:
                values = {}  # Python says what is missing or too much
            check_values(kind, values)
        make(self, *args, **options)

    kind.__init__ = init  # type: ignore[misc]
    return kind


def check_values(concept: Callable[..., object], values: Mapping[str, object], owner: str = "") -> None:
    """Refuse values outside of what the annotations allow.

    :param concept: The dataclass or function whose annotations they are.
    :param values: Values by name; names that have no annotation are passed over.
    :param owner: (default none) whose options they are, as messages say it.
    """
    hints, defaults = _hints(concept), _defaults(concept)
    for name, value in values.items():
        if name in hints and not (name in defaults and _same(value, defaults[name])):
            check_value(name, value, hints[name], owner)


def check_value(name: str, value: object, annotation: object, owner: str = "") -> None:
    """Refuse one value outside of what its annotation allows.

    :param name: The argument's name.
    :param value: What was given for it.
    :param annotation: What it may be.
    :param owner: (default none) whose option it is, as messages say it.
    """
    must = violation(annotation, value)
    if must is None:
        return
    remedy = _remedy(annotation, value)
    shown = f"{value!r}" if isinstance(value, str) else f"{value}"
    raise InputError(name, must, got=f"{shown} ({owner})" if owner else shown, remedy=remedy)


def _remedy(annotation: object, value: object) -> Text | None:
    """The nearest word that an option can be, or what its annotation advises."""
    nearest = difflib.get_close_matches(str(value), [word for word in _choices(annotation) if word], n=1)
    return f"did you mean {nearest[0]!r}?" if nearest else _advice(annotation)


def violation(annotation: object, value: object) -> str | None:
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
    return value is default or (_is_number(value) and _is_number(default) and bool(value == default))


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


WORDS: Mapping[object, str] = {
    float: "a number",
    int: "an integer",
    str: "a word",
    bool: "true or false",
    Path: "a path",
    type(None): "none",
}
"""Types in words."""


def describe(annotation: object) -> str:
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
    origin = get_origin(annotation)
    if origin is None and annotation in WORDS:
        return WORDS[annotation]
    arguments = [argument for argument in get_args(annotation) if argument is not Ellipsis]
    if origin is tuple:
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
