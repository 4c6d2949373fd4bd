"""Declaration of commands: positional arguments, and records whose fields become flags.

Name, type, range, default and help of a flag are those of the field::

    @dataclasses.dataclass(frozen=True)
    class Options:
        json: Annotated[Path, Flag("FILE")] | None = None
        \"""File for all results.\"""

    @command(observations="polariscope.data.observations.Observations", options=Options)
    def diagnose(targets: Targets, observations: Observations, options: Options) -> None: ...

A record that is slow to import is declared by its dotted name, and imported when its command is called.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_origin

import typer
from typer.core import TyperCommand

from polariscope.core.option_values import is_switch, kinds_of, show
from polariscope.core.options import Option, check_options, options_of
from polariscope.core.paths import user_path

EXPLICIT = "polariscope.given"
"""Key of the context's metadata for the names of the fields that were set on the command line."""
HELP_ALL = "--help-all"
OUTPUT_FILE = "FILE"
"""Placeholder of flags for files that a command writes."""
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Flag:
    """Spelling and help of a field on the command line, if they differ from its name; part of the annotation."""

    metavar: str = ""
    """Placeholder of the value in the help. FILE is a file that the command writes; it never replaces an input."""
    name: str = ""
    """The flag, if it differs from the name of the field, for example --set."""
    default: str | None = None
    """Description of the default, if it depends on other settings."""
    repeated: bool = False
    """If True, the flag can be repeated, each time with one value. Otherwise values are separated by commas."""


@dataclasses.dataclass(frozen=True)
class Constant:
    """A default that is defined in another module, which is imported when the command is called."""

    name: str
    """Its dotted name."""


def open_name(name: str) -> Any:
    """Import and return the object with a dotted name.

    >>> open_name("dataclasses.dataclass") is dataclasses.dataclass
    True
    """
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


@dataclasses.dataclass(frozen=True)
class FlagsOf:
    """The fields of a record that become flags."""

    record: str | type
    """The dataclass, or its dotted name."""
    only: Collection[str] = ()
    """Fields that become flags; all if empty."""
    without: Collection[str] = ()
    """Fields that do not become flags."""
    defaults: Mapping[str, object] = dataclasses.field(default_factory=dict)
    """Defaults of this command that replace those of the record: values, or a :class:`Constant`."""
    shown: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Descriptions of defaults for the help; ``{default}`` is replaced by the value."""

    def open(self) -> Any:
        """Return the dataclass."""
        return open_name(self.record) if isinstance(self.record, str) else self.record

    def own_defaults(self) -> dict[str, object]:
        """Return the defaults of this command that replace those of the record."""
        return {
            name: open_name(value.name) if isinstance(value, Constant) else value
            for name, value in self.defaults.items()
        }

    def options(self) -> dict[str, Option]:
        """Return the fields that become flags, with the defaults of this command."""
        return {
            name: dataclasses.replace(option, default=self.own_defaults().get(name, option.default))
            for name, option in options_of(self.open()).items()
            if (name in self.only or not self.only) and name not in self.without
        }

    def build(self, values: Mapping[str, object]) -> Any:
        """Check values and return the record.

        :param values: values by field.
        """
        record = self.open()
        return record(**check_options("", record, {**self.own_defaults(), **values}))


Records: TypeAlias = Mapping[str, FlagsOf]


def command(
    cls: type[TyperCommand] | None = None, /, **records: FlagsOf | str | type
) -> Callable[[Function], Function]:
    """Declare the records whose fields are the flags of a command.

    :param cls: (default :class:`RecordCommand`) class of the command, if options of model parts are flags too.
    :param records: for each argument of the function that is a record: the dataclass, its dotted name, or
        :class:`FlagsOf` with some of its fields. Other arguments are positional.
    """

    def declare(function: Function) -> Function:
        function.records = {  # type: ignore[attr-defined]
            name: record if isinstance(record, FlagsOf) else FlagsOf(record)
            for name, record in records.items()
        }
        function.command_class = cls or RecordCommand  # type: ignore[attr-defined]
        return function

    return declare


def add_command(app: typer.Typer, name: str, function: Callable[..., Any], *, closed: bool = False) -> None:
    """Add a command to a group.

    :param app: the group.
    :param name: name of the command.
    :param function: declared by :func:`command`.
    :param closed: (default False) if True, add only its name and help, without importing its records.
    """
    if closed:
        app.command(name, help=inspect.getdoc(function))(lambda: None)
    else:
        app.command(name, cls=function.command_class)(as_typer(function))  # type: ignore[attr-defined]


def explicit_options(context: typer.Context) -> frozenset[str]:
    """Return the names of the fields that were set on the command line.

    :param context: context of the call.
    """
    return context.meta.get(EXPLICIT, frozenset())


def spelling(name: str) -> str:
    """Return the flag of an option.

    >>> spelling("learning_rate"), spelling("n_latents"), spelling("n_bins")
    ('--learning-rate', '--latents', '--n-bins')
    """
    return "--latents" if name == "n_latents" else "--" + name.replace("_", "-")


def flag_of(option: Option) -> Flag:
    """Return the flag of a record's field: ``--samples`` for n_samples.

    :param option: the field.
    """
    flag = next(iter(_metadata(option.annotation)), Flag())
    return dataclasses.replace(flag, name=flag.name or spelling(option.name.removeprefix("n_")))


def _metadata(annotation: Any) -> list[Flag]:
    if get_origin(annotation) is Literal:
        return []
    here = [each for each in getattr(annotation, "__metadata__", ()) if isinstance(each, Flag)]
    return here + [flag for part in get_args(annotation) for flag in _metadata(part)]


def show_default(option: Option) -> str:
    """Return a default as it would be typed on the command line."""
    return "required" if option.required else show(option.default)


def default_note(option: Option, described: str | None = None) -> str:
    """Return the default of an option for the end of its help; empty if the default is an empty list or text.

    :param option: the option.
    :param described: (default None) description of the default; ``{default}`` is replaced by the value.
    """
    shown = (described or "{default}").format(default=show_default(option))
    return "" if not shown else f" [{shown}]" if option.required else f" [default: {shown}]"


def explain(option: Option) -> str:
    """Return the help of an option, with the values it accepts if there is a fixed set of them."""
    choices = [
        str(word)
        for kind in kinds_of(option.annotation)
        if get_origin(kind) is Literal
        for word in get_args(kind)
    ]
    return f"{option.help} One of {', '.join(choices)}.".strip() if choices else option.help


def as_typer(function: Callable[..., Any]) -> Callable[..., None]:
    """Return a function with a signature for typer, which builds the records from flags and calls ``function``.

    :param function: the command, declared by :func:`command`.
    """
    records: Records = function.records  # type: ignore[attr-defined]
    fields = {
        (part, name): option for part, record in records.items() for name, option in record.options().items()
    }
    signature = inspect.signature(function).parameters
    names = vars(sys.modules[function.__module__])

    def run(context: Any, **values: Any) -> None:
        values_by_part: dict[str, dict[str, Any]] = {part: {} for part in records}
        for part, name in fields:
            value = values.pop(f"{part}__{name}")
            # typer passes an empty list for a repeatable flag that is absent.
            if value is not None and value != []:
                values_by_part[part][name] = value
        # Commands can then distinguish a default from a value that was typed.
        context.meta[EXPLICIT] = frozenset(name for values in values_by_part.values() for name in values)
        built = {part: record.build(values_by_part[part]) for part, record in records.items()}
        arguments = {**{name: _expanded(value) for name, value in values.items()}, **built}
        _check_outputs(fields, built, values)
        if "context" in signature:
            arguments["context"] = context
        function(**arguments)

    parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for name, parameter in signature.items():
        is_positional = parameter.kind is not inspect.Parameter.VAR_KEYWORD
        if is_positional and name not in records and name != "context":
            # Annotations are strings here, because every module imports annotations from __future__.
            annotation = eval(parameter.annotation, names)
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(annotation=annotation, kind=kind))
    for (part, name), option in fields.items():
        parameters.append(
            inspect.Parameter(
                f"{part}__{name}",
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=_typer_option(option, records[part].shown.get(name)),
            )
        )
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    # typer reads both the signature and the annotations.
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = function.__doc__
    return run


def _check_outputs(
    fields: Mapping[tuple[str, str], Option], records: Mapping[str, Any], positional: Mapping[str, Any]
) -> None:
    """Refuse to write to a file that the command reads, or that belongs to a run, a search or a study."""
    paths = {key: getattr(records[key[0]], key[1], None) for key in fields}
    outputs = {
        key: path for key, path in paths.items() if path and flag_of(fields[key]).metavar == OUTPUT_FILE
    }
    if not outputs:
        return
    from polariscope.storage.outputs import check_output

    # Flags with text, such as --data, can name a file too.
    named = [value for key, value in paths.items() if isinstance(value, str | Path) and key not in outputs]
    inputs: list[Path] = []
    for value in [named, *positional.values()]:
        for each in value if isinstance(value, list | tuple) else [value]:
            # Data are NAME, PATH or NAME:PATH; a name is not the path of a file that exists.
            inputs += [Path(part) for part in {str(each), str(each).partition(":")[2]} if part]
    for (_, name), path in outputs.items():
        check_output(path, name, inputs)


def _expanded(value: Any) -> Any:
    """Return a positional argument with ``~`` as the home folder if it is a path, or a list of paths."""
    if isinstance(value, Path):
        return user_path(value)
    return [_expanded(each) for each in value] if isinstance(value, list | tuple) else value


def _typer_option(option: Option, shown: str | None) -> Any:
    """Return the annotation of a flag: text, or a switch. Values are checked when the record is built."""
    flag = flag_of(option)
    described = shown or flag.default
    is_off = option.default is False or (option.default is None and not described)
    help_text = explain(option) + ("" if is_off else default_note(option, described))
    if is_switch(option.annotation):
        # A switch that is off by default needs no --no- form.
        names = flag.name if option.default is False else f"{flag.name}/--no-{flag.name[2:]}"
        return Annotated[bool | None, typer.Option(names, help=help_text, show_default=False)]
    kind: Any = list[str] | None if flag.repeated else str | None
    info = typer.Option(flag.name, help=help_text, show_default=False, metavar=flag.metavar or None)
    return Annotated[kind, info]


class RecordCommand(TyperCommand):
    """A command whose help shows the meaning and default of each flag."""

    context_class = typer.Context
    common: Mapping[str, tuple[str, ...]] = {}
    """Flags that ``--help`` shows: the command's own under "", others under the title of their group. If empty, it
    shows all flags. ``--help-all`` always shows all flags."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the flags."""
        for title, rows in self.sections(ctx).items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def sections(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """Return the rows of the help by title."""
        every = HELP_ALL in ctx.meta or not self.common
        options, arguments = [], []
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is None:
                continue
            row = (row[0].rpartition(" <")[0] or row[0]) if row[0].endswith(">") else row[0], row[1]
            if parameter.param_type_name == "argument":
                arguments.append(row)
            elif every or {*parameter.opts} & {*self.common[""], "--help"}:
                options.append(row)
        return {"Arguments": arguments, "Options": options}
