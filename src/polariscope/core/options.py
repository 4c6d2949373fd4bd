"""The options of a concept: read from its signature, checked at the door.

A concept's options are the fields of its frozen dataclass or the keyword-only arguments of its function; their
defaults are the paper's. Command-line flags, study files and ``train(**options)`` are derived from them.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

from polariscope.core.errors import Argument, InputError, unknown
from polariscope.core.limits import check_value, check_values, describe
from polariscope.core.records import to_plain
from polariscope.core.registry import Family


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
    A function that a decorator gave further arguments, which are no options, has its own in ``own_options``.
    """
    concept = getattr(concept, "own_options", concept)
    if dataclasses.is_dataclass(concept):
        hints = get_type_hints(concept, include_extras=True)
        helps = _field_docstrings(concept)
        return {
            field.name: Option(field.name, hints[field.name], _default(field), helps.get(field.name, ""))
            for field in dataclasses.fields(concept)
            if field.init
        }
    hints, helps = get_type_hints(concept, include_extras=True), _parameter_lines(concept)
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
    found: dict[str, str] = {}
    for kind in reversed(inspect.getmro(concept)):
        if not dataclasses.is_dataclass(kind):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            ):
                found[field.target.id] = " ".join(text.value.value.split())
    return found


def _parameter_lines(concept: Callable[..., Any]) -> dict[str, str]:
    """What a function's docstring says of each argument, without the default."""
    lines = re.findall(
        r"^:param (\w+): (.*(?:\n[ \t]+.*)*)", inspect.getdoc(concept) or "", flags=re.MULTILINE
    )
    texts = {name: re.sub(r"^\(default[^)]*\) ", "", " ".join(text.split())) for name, text in lines}
    return {name: f"{text[:1].upper()}{text[1:]}".replace("``", "") for name, text in texts.items()}


def check_options(owner: str, concept: Callable[..., object], given: Mapping[str, object]) -> dict[str, Any]:
    """Refuse unknown options and values of the wrong type; return the values, converted (``"4"`` to 4.0).

    NaN and ∞ are refused too, in lists as well: no option has a use for them, and JSON, in which settings are kept,
    has no NaN. An option whose default is ∞ takes it.

    ``owner`` is how the messages call the concept, e.g. ``objective 'beta'``. An annotation may hold a predicate
    (``Annotated[str, Predicate(is_known)]``); where that raises an :class:`InputError`, this is the message.
    """
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    options = options_of(concept)
    for name in given:
        if name not in options:
            raise unknown(f"option of {owner}", name, options)
    missing = [name for name, option in options.items() if option.required and name not in given]
    if missing:
        raise InputError(problem=f"{owner} needs {', '.join(missing)}", remedy="give a value for each")
    checked = {}
    concept = getattr(concept, "own_options", concept)
    kinds = get_type_hints(concept)  # without limits, which are checked below
    for name, value in given.items():
        if isinstance(value, bool):  # which would be taken for 0 or 1
            check_value(name, value, options[name].annotation, owner)
        adapter = TypeAdapter(kinds.get(name, Any), config=ConfigDict(arbitrary_types_allowed=True))
        try:
            checked[name] = adapter.validate_python(_split(value, options[name].annotation))
        except ValidationError as wrong:
            for reason in wrong.errors():  # what a predicate of the annotation refused in words of its own
                if isinstance(own := reason.get("ctx", {}).get("error"), InputError):
                    raise own from None
            wanted = describe(options[name].annotation)
            raise InputError(
                ("option ", Argument(name), f" of {owner}"), f"be {wanted}", got=f"{value!r}"
            ) from None
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


def _split(value: Any, annotation: Any) -> Any:
    """Text from a command line: ``"60,40,20"`` for a tuple, ``"0,1;1,0"`` for a tuple of tuples, ``"none"`` for
    None, ``"4"`` for the choice 4.
    """
    text = str(annotation)
    if isinstance(value, str) and value.lower() == "none" and "None" in text:
        return None
    if isinstance(value, str) and "tuple[tuple[" in text:
        return [[part for part in row.split(",") if part] for row in value.split(";") if row]
    if isinstance(value, str) and "tuple[" in text:
        return [part for part in value.split(",") if part]
    if isinstance(value, str) and get_origin(annotation) is Literal:
        return {str(choice): choice for choice in get_args(annotation)}.get(value, value)
    return value


def build(family: Family, chosen: object, options: Mapping[str, object] | None = None) -> Any:
    """A concept with its options, from a name, a mapping ``{"name": …, option: …}`` or a finished instance."""
    given = dict(options or {})
    if isinstance(chosen, Mapping):
        given = {**{key: value for key, value in chosen.items() if key != "name"}, **given}
        if "name" not in chosen:
            raise InputError(problem=f"a {family.noun} given as a mapping needs a 'name'", got=sorted(chosen))
        chosen = chosen["name"]
    if isinstance(chosen, str):
        concept = family[chosen]
        return concept(**check_options(f"{family.noun} {chosen!r}", concept, given))
    family.name_of(chosen)  # refuses what is none of the family
    if given:
        raise InputError(
            problem=f"{family.noun} was given as an object, so it takes no further options",
            got=", ".join(given),
            remedy="set them when you make it",
        )
    return chosen


def describe_concept(family: Family, concept: object) -> dict[str, Any]:
    """The JSON record of a concept made by :func:`build`; building from it gives an equal one."""
    return {"name": family.name_of(concept), **to_plain(concept)}
