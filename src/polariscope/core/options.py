"""Options of concepts, read from their signatures and checked.

A concept's options are the fields of its frozen dataclass or the keyword-only arguments of its function; their
defaults are those of the paper. Command-line flags, study files and ``train(**options)`` are derived from them.

The annotation of an option defines its allowed values: ``Annotated[float, Ge(0), Advice("1 is the VAE")]`` or
``Literal["pad", "crop"]``. They are checked whenever an instance of the class is created.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    cast,
    get_type_hints,
    overload,
)

from polariscope.core.errors import Argument, InputError, unknown
from polariscope.core.option_values import check_value, convert, describe, is_default, remedy_for
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
    default: object  # dataclasses.MISSING if the option is required
    help: str

    @property
    def required(self) -> bool:
        return self.default is dataclasses.MISSING


@functools.cache
def options_of(concept: Any) -> dict[str, Option]:
    """Return the options of a dataclass (its fields) or a function (its keyword-only arguments), in order.

    The help text is the string under a field, or the line ``:param name: (default 4) text`` of the function's
    docstring. If a decorator added arguments that are not options, the attribute ``own_options`` is the function with
    options only. A field with the metadata ``is_option=False`` is not an option. A member that was read from its file
    has its options in ``declared_options``.
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
    """Return the string literal under each field of a dataclass and of the dataclasses it inherits from."""
    docstrings: dict[str, str] = {}
    # Base classes come first, so a subclass replaces the text of an inherited field.
    for kind in reversed(inspect.getmro(concept)):
        if not dataclasses.is_dataclass(kind):
            continue
        node = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
        assert isinstance(node, ast.ClassDef)
        docstrings |= documented_fields(node)
    return docstrings


def documented_fields(node: ast.ClassDef) -> dict[str, str]:
    """Return the string literal under each field of a class.

    :param node: syntax tree of the class.
    """
    docstrings = {}
    # Each statement is paired with the next one: a field is documented by the string below it.
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
    """Return the description of each argument in a function's docstring, without the default.

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
    """Check options and return their converted values (``"4"`` becomes 4.0); unknown names raise an error.

    NaN and ∞ raise an error too, also in lists: no option requires them, and JSON, in which settings are stored, has no
    NaN. An option whose default is ∞ accepts it.

    ``owner`` is the name of the concept in messages, e.g. ``objective 'beta'``, or "" if there is only one. An
    annotation can contain a predicate (``Annotated[str, Predicate(is_known)]``); if it raises an :class:`InputError`,
    that is the message. With ``partial``, required options can be missing and are added later.
    """
    options = options_of(concept)
    for name in values:
        if name not in options:
            raise unknown(f"option of {owner}", name, options)
    missing = [name for name, option in options.items() if option.required and name not in values]
    if missing and not owner:
        raise InputError(missing[0], "be given")
    if missing and not partial:
        raise InputError(problem=f"{owner} requires {', '.join(missing)}", remedy="pass a value for each")
    checked = {}
    concept = getattr(concept, "own_options", concept)
    for name, value in values.items():
        if isinstance(value, bool):  # conversion would turn it into 0 or 1
            check_value(name, value, options[name].annotation, owner)
        try:
            checked[name] = convert(value, options[name].annotation)
        except ValueError:
            wanted = describe(options[name].annotation)
            subject = ("option ", Argument(name), f" of {owner}") if owner else Argument(name)
            remedy = remedy_for(options[name].annotation, value)
            raise InputError(subject, f"be {wanted}", got=f"{value!r}", remedy=remedy) from None
    check_values(concept, checked, owner)
    return checked


def non_default(concept: Callable[..., object], options: Mapping[str, object]) -> dict[str, Any]:
    """Return the options that differ from their defaults, in the order of the signature."""
    return {
        name: options[name]
        for name, option in options_of(concept).items()
        if name in options and options[name] != option.default
    }


Refuse: TypeAlias = Callable[[str], Exception]
"""A function that returns the error about a name that no part has."""


def route(
    names: Iterable[str],
    parts: Mapping[str, Collection[str]],
    refuse: Refuse,
    *,
    defers: Mapping[str, Collection[str]] | None = None,
    spell: Callable[[str], str] = str,
) -> dict[str, tuple[str, str]]:
    """Return the part and the option that each name refers to.

    ``PART_NAME`` always works; ``NAME`` works if only one part has it. :func:`polariscope.train`, sizing and the
    command line all use this function.

    :param names: names of options, with or without their part.
    :param parts: names of the options of each part.
    :param refuse: function that returns the error about a name that no part has.
    :param defers: (default none) parts with lower priority than others that have the same option:
        ``{"data": ["training"]}``.
    :param spell: (default: unchanged) function that formats a name for messages.

    >>> parts = {"training": ["seed", "steps"], "prior": ["scale"], "data": ["seed", "scale"]}
    >>> route(["seed", "data_seed", "prior_scale"], parts, KeyError, defers={"data": ["training"]})
    {'seed': ('training', 'seed'), 'data_seed': ('data', 'seed'), 'prior_scale': ('prior', 'scale')}
    """
    routed = {}
    for key in names:
        plain = [(part, key) for part, known in parts.items() if key in known]
        homes = {part for part, _ in plain}
        # A part is skipped if another one with higher priority has the same option.
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
            raise InputError(problem=f"{spell(key)} belongs to more than one part", remedy=f"use {forms}")
        routed[key] = matches[0]
    return routed


def build(family: Family, choice: object, options: Mapping[str, object] | None = None) -> Any:
    """Create a concept from a name, a mapping ``{"name": …, option: …}`` or an existing instance."""
    values = dict(options or {})
    if isinstance(choice, Mapping):
        values = {**{key: value for key, value in choice.items() if key != "name"}, **values}
        if "name" not in choice:
            raise InputError(
                problem=f"a {family.noun} requires a 'name' if it is a mapping", got=sorted(choice)
            )
        choice = choice["name"]
    if isinstance(choice, str):
        concept = family[choice]
        return concept(**check_options(f"{family.noun} {choice!r}", concept, values))
    family.name_of(choice)  # raises if it is not a member of the family
    if values:
        raise InputError(
            problem=f"{family.noun} is an object, so it takes no further options",
            got=", ".join(values),
            remedy="set them when you create it",
        )
    return choice


def spelled_out(*records: Any, open_ended: bool = False) -> Callable[[Function], Function]:
    """Decorate a function whose ``**options`` are fields of records, so signature and docstring list them.

    Type checkers read the annotation of ``**options`` (``Unpack`` of a ``TypedDict``); ``help()`` and tab completion
    show the fields with their defaults. In the docstring they replace the line about ``options``.

    :param records: dataclasses whose fields the function accepts by name.
    :param open_ended: (default False) if True, the function accepts further options, and ``**options`` stays listed.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        named = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
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
        parameters = [*named, *fields, *([rest] if open_ended else [])]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return decorate


Affects = Literal["weights", "log", "files"]
"""Effect of an option: on the weights, only on the log, or only on the files that are stored."""
ALWAYS = object()  # every record contains the option


def option(default: Any, *, since: str = "", absent: object = ALWAYS, affects: Affects = "weights") -> Any:
    """Declare an option that is newer than some records, or that does not change the weights.

    ``depth: int = option(2, since="0.3", absent=1)``: records written before 0.3 do not have the option, and their
    models were trained as if it were 1. It is left out of a record if it has that value, so the hashes of earlier
    settings do not change. A record without it is read with that value (:func:`to_record`, :func:`from_record`).

    :param default: the default.
    :param since: (default "": the first version) version that added the option.
    :param absent: value that applies to records without the option; required with ``since``.
    :param affects: (default "weights") effect of the option.
    """
    if bool(since) != (absent is not ALWAYS):
        raise TypeError("an option that is newer than some records requires both since and absent")
    return dataclasses.field(default=default, metadata={"since": since, "absent": absent, "affects": affects})


def to_record(options: Any, family: Family | None = None) -> dict[str, Any]:
    """Convert a dataclass of options to JSON values, leaving out newer options that equal their ``absent`` value.

    :param options: the dataclass.
    :param family: (default None) family of a concept, whose name is then part of the record.
    """
    head = {} if family is None else {"name": family.name_of(options)}
    absent = _absent(type(options))
    return head | {
        name: value
        for name, value in to_plain(options).items()
        if name not in absent or getattr(options, name) != absent[name]
    }


@overload
def from_record(kind: type[Recorded], record: Mapping[str, Any]) -> Recorded: ...
@overload
def from_record(kind: Family, record: Mapping[str, Any]) -> Any: ...


def from_record(kind: Any, record: Mapping[str, Any]) -> Any:
    """Rebuild a dataclass of options from the output of :func:`to_record`, of this or an earlier version.

    :param kind: the dataclass, or the family of the concept that the record names.
    :param record: its record.
    """
    if isinstance(kind, type):
        return kind(**completed(kind, record))
    return build(kind, completed(kind[record["name"]], record))


def completed(kind: Any, record: Mapping[str, Any]) -> dict[str, Any]:
    """Add the options that :func:`to_record` left out to a record.

    :param kind: the dataclass of options.
    :param record: its record, of this version or an earlier one.
    """
    return {**_absent(kind), **record}


def affecting(kind: Any, *parts: Affects) -> set[str]:
    """Return the names of the options that affect one of these parts.

    :param kind: a dataclass of options.
    :param parts: "weights", "log" or "files".
    """
    return {
        field.name for field in dataclasses.fields(kind) if field.metadata.get("affects", "weights") in parts
    }


def _absent(kind: Any) -> dict[str, Any]:
    """Return the values of newer options that apply to records without them."""
    values = {field.name: field.metadata.get("absent", ALWAYS) for field in dataclasses.fields(kind)}
    return {name: value for name, value in values.items() if value is not ALWAYS}


Kind = TypeVar("Kind", bound=type)


def checked(kind: Kind) -> Kind:
    """Decorate a dataclass whose values are checked and converted when an instance is created.

    With ``beta: Annotated[float, Ge(0), Advice("1 is the VAE")] = 4.0`` the value −1 raises "beta must not be negative,
    got -1; 1 is the VAE."

    :param kind: the dataclass.
    """
    make = kind.__init__  # type: ignore[misc]
    signature = inspect.signature(make)

    @functools.wraps(make)
    def init(self: Any, *args: Any, **options: Any) -> None:
        if type(self) is kind:  # a subclass has its own options and check
            try:
                values = signature.bind(self, *args, **options).arguments
            except TypeError:
                make(self, *args, **options)  # raises Python's message about the arguments
                raise
            check_values(kind, values)
            hints: dict[str, Any] = _hints(cast("Callable[..., Any]", kind))
            # 4 and 4.0, or a list and a tuple, are one setting: they have the same record and the same hash.
            # The slice leaves out self and the arguments passed by name.
            args = tuple(
                _of_type(value, hints.get(name)) for name, value in list(values.items())[1 : len(args) + 1]
            )
            options = {name: _of_type(value, hints.get(name)) for name, value in options.items()}
        make(self, *args, **options)

    kind.__init__ = init  # type: ignore[misc]
    return kind


def _of_type(value: Any, annotation: Any) -> Any:
    """Return a checked value as the type of its annotation; texts and values of other types stay as they are."""
    if annotation is None or isinstance(value, str):
        return value
    try:
        return convert(value, annotation)
    except ValueError:
        # The value has passed its check, so a type that convert does not support stays as it is.
        return value


def check_values(concept: Callable[..., object], values: Mapping[str, object], owner: str = "") -> None:
    """Check values against annotations.

    :param concept: the dataclass or function with the annotations.
    :param values: values by name; names without an annotation are ignored.
    :param owner: (default none) name of the concept in messages.
    """
    hints, defaults = _hints(concept), _defaults(concept)
    for name, value in values.items():
        if name in hints and not (name in defaults and is_default(value, defaults[name])):
            check_value(name, value, hints[name], owner)


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
