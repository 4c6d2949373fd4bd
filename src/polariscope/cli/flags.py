"""Options of concepts as flags: every field of a dataset, objective, net … is a flag by the same name.

Which flags there are depends on the concepts chosen on the same line, so they are taken off the line before
it is parsed, and given to their parts afterwards.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand

from polariscope.core.errors import Argument, Call, Either, InputError, Piece, Spelling, Text
from polariscope.core.options import Option, check_options, options_of, show
from polariscope.core.registry import Family

KEY = "polariscope.flags"
HELP_ALL = "--help-all"
NO_VALUE = object()  # a flag at the end of the line, or before another flag
WORDS = {"true": True, "yes": True, "false": False, "no": False, "none": None}


@dataclasses.dataclass(frozen=True)
class Group:
    """The options of one concept."""

    part: str
    """What kind of concept it is: data, training, objective, net …"""
    name: str
    """Which one; empty for training."""
    options: dict[str, Option]

    @property
    def title(self) -> str:
        return f"{self.part} {self.name}".strip()

    @property
    def flags(self) -> dict[str, str]:
        """The option behind each flag."""
        return {spelling(name): name for name in self.options}

    @property
    def flags_with_part(self) -> dict[str, str]:
        """The same with the part in front, which is never ambiguous."""
        return {f"--{self.part}{flag[1:]}": name for flag, name in self.flags.items()}


def spelling(name: str) -> str:
    """An option as a flag.

    >>> spelling("learning_rate"), spelling("n_latents")
    ('--learning-rate', '--latents')
    """
    return "--latents" if name == "n_latents" else "--" + name.replace("_", "-")


class Flags(Spelling):
    """How the command line writes arguments: ``--net mlp``.

    An argument that the called command has no flag for, as an array in a file, is spelled as it is.

    :param flags: The flags of the command that was called.
    :param advised: Flags of other commands that advice may speak of: "train with ``--keep-checkpoints all``".
    :param parts: (default none) Flags of options with their part in front, ``prior_scale``.
    """

    def __init__(
        self, flags: Iterable[str], advised: Iterable[str] = (), parts: Mapping[str, str] | None = None
    ) -> None:
        self.flags = frozenset(flags)
        self.parts = dict(parts or {})
        self.advised = self.flags | frozenset(advised)

    def name(self, name: str) -> str:
        """The flag, where there is one.

        >>> Flags(["--alpha"]).name("alpha"), Flags(["--alpha"]).name("variance")
        ('--alpha', 'variance')
        """
        return next((flag for flag in _forms(name) if flag in self.flags), self.parts.get(name, name))

    def setting(self, name: str, value: object) -> str:
        """The flag with its value.

        >>> Flags(["--net", "--samples", "--quiet"]).setting("net", "mlp")
        '--net mlp'
        >>> Flags(["--standardise"]).setting("standardise", False)
        '--no-standardise'
        >>> Flags(["--delimiter"]).setting("delimiter", ";")
        "--delimiter ';'"
        """
        flag = next((flag for flag in _forms(name) if flag in self.advised), None)
        if flag is None:
            return f"{name} {show(value)}"
        if isinstance(value, bool):
            return flag if value else f"--no-{flag[2:]}"
        shown = show(value)
        return f"{flag} {shown if '…' in shown else shlex.quote(shown)}"  # …: what the reader fills in

    def call(self, call: Call) -> str:
        """The command of that name."""
        settings = (f"{spelling(name)} {shlex.quote(str(value))}" for name, value in call.settings.items())
        return f"'{' '.join(['polariscope', call.name, *map(str.upper, call.places), *settings])}'"

    def either(self, advice: Either) -> Text:
        """What a command can do about it."""
        return advice.command


def _forms(name: str) -> tuple[str, str]:
    """The flag of a name, and the one of a number of things: ``--samples`` for n_samples."""
    return spelling(name), spelling(name.removeprefix("n_"))


def groups_of(part: str, family: Family) -> list[Group]:
    """The options of every concept of a family; where files are is said in the source, NAME:PATH."""
    found = []
    for name in family:
        options = {key: option for key, option in options_of(family[name]).items() if key != "path"}
        found.append(Group(part, name, options))
    return found


def is_switch(option: Option) -> bool:
    """Whether an option is on or off, so its flag needs no value."""
    return "bool" in str(option.annotation)


def show_default(option: Option) -> str:
    """A default as it would be typed."""
    return "required" if option.required else show(option.default)


def show_flag(option: Option, flag: str | None = None) -> str:
    """A flag, with its off form where it is a switch."""
    flag = flag or spelling(option.name)
    return f"{flag} / --no-{flag[2:]}" if is_switch(option) else flag


def explain(option: Option) -> str:
    """What an option means, with its values where they are words to choose from."""
    words = get_args(option.annotation) if get_origin(option.annotation) is Literal else ()
    return f"{option.help} One of {', '.join(map(str, words))}.".strip() if words else option.help


class FlagCommand(TyperCommand):
    """A command whose flags beyond its own are options of concepts, by default those of the datasets."""

    context_class = typer.Context
    common: Mapping[str, tuple[str, ...]] = {}
    """The flags that ``--help`` shows: the command's own under "", others under the title of their group. None: all.
    ``--help-all`` shows all."""

    def groups(self) -> list[Group]:
        """The options that may be given, those of every concept that could be chosen."""
        from polariscope.data.dataset import family as datasets

        return groups_of("data", datasets)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if HELP_ALL in args[: args.index("--") if "--" in args else None]:
            ctx.meta[HELP_ALL] = True
            typer.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        declared = {
            flag: getattr(parameter, "is_flag", False) or flag == "--help"
            for parameter in self.get_params(ctx)
            for flag in (*parameter.opts, *parameter.secondary_opts)
        }
        rest, ctx.meta[KEY] = self._take(args, declared)
        return super().parse_args(ctx, rest)

    def _take(self, args: list[str], declared: Mapping[str, bool]) -> tuple[list[str], dict[str, Any]]:
        """Split a line into what the command declares itself and the flags of concepts with their values."""
        rest: list[str] = []
        found: dict[str, Any] = {}
        queue = list(args)
        while queue:
            word = queue.pop(0)
            flag, equals, value = word.partition("=")
            if word == "--":
                return [*rest, word, *queue], found
            if not word.startswith("--"):
                rest.append(word)
            elif flag in declared:
                rest.append(word)
                if not equals and not declared[flag] and queue:
                    rest.append(queue.pop(0))
            elif equals:
                found[flag] = WORDS.get(value.lower(), value) if flag in self._switches() else value
            elif flag in self._switches():
                found[flag] = WORDS[queue.pop(0).lower()] if queue and queue[0].lower() in WORDS else True
            elif flag.startswith("--no-") and f"--{flag[5:]}" in self._switches():
                found[f"--{flag[5:]}"] = False
            else:
                found[flag] = queue.pop(0) if queue and not queue[0].startswith("--") else NO_VALUE
        return rest, found

    def _switches(self) -> set[str]:
        return {
            flag
            for group in self.groups()
            for flags in (group.flags, group.flags_with_part)
            for flag, name in flags.items()
            if is_switch(group.options[name])
        }

    def shown_flags(self, group: Group) -> dict[str, str]:
        """How the help spells the options of a group."""
        return group.flags

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The flags used most in one list; with ``--help-all`` every flag, those of each concept under its name."""
        every = HELP_ALL in ctx.meta or not self.common
        own, arguments = [], []
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None and parameter.param_type_name == "argument":
                arguments.append(row)
            elif row is not None and (every or {*parameter.opts} & {*self.common[""], "--help"}):
                own.append(
                    (re.sub(r" <\w+>$", "", row[0]), re.sub(r" +\[default: (.*)\]$", r" [\1]", row[1]))
                )
        if self.common:
            own.insert(
                len(own) - 1, (HELP_ALL, "Show every option, also those of each part that can be chosen.")
            )
        sections = {
            f"Options of {group.title}": self._rows(group, every) for group in self.groups() if group.options
        }
        if not every:
            own[-2:-2] = [row for rows in sections.values() for row in rows]
            sections = {}
        for title, rows in {"Arguments": arguments, "Options": own, **sections}.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def _rows(self, group: Group, every: bool) -> list[tuple[str, str]]:
        """The flags of a group with what they mean: every one, or those used most."""
        about = "" if every or not group.name else f"With {group.title}: "
        return [
            (show_flag(option, flag), f"{about}{explain(option)} [{show_default(option)}]".strip())
            for flag, name in self.shown_flags(group).items()
            for option in [group.options[name]]
            if every or flag in self.common.get(group.title, ())
        ]


def typed(flags: Mapping[str, object]) -> list[str]:
    """Flags of concepts as they would be typed again.

    >>> typed({"--image-size": "32", "--exact": False, "--grey": True})
    ['--image-size', '32', '--no-exact', '--grey']
    """
    words: list[str] = []
    for flag, value in flags.items():
        words += [f"--no-{flag[2:]}"] if value is False else [flag] if value is True else [flag, str(value)]
    return words


def share_out(
    given: Mapping[str, object], chosen: Iterable[Group], every: Iterable[Group], own: Iterable[str] = ()
) -> dict[str, dict[str, Any]]:
    """Give each flag to the chosen part that has the option; refuse the rest with the nearest that exists.

    ``--PART-NAME`` always works; ``--NAME`` where one part has it. What training shares with the data
    (``--seed``) is training's. ``own`` are the command's own flags, for suggestions only.
    """
    chosen = list(chosen)
    shared: dict[str, dict[str, Any]] = {group.part: {} for group in chosen}
    for flag, value in given.items():
        matches = [
            (group.part, known[flag])
            for group in chosen
            for known in (group.flags, group.flags_with_part)
            if flag in known
        ]
        if {part for part, _ in matches} == {"training", "data"}:
            matches = [match for match in matches if match[0] == "training"]
        if not matches:
            raise _refusal(flag, chosen, every, own)
        if len(matches) > 1:
            forms = " or ".join(f"--{part}{spelling(name)[1:]}" for part, name in matches)
            raise InputError(problem=f"{flag} belongs to more than one part", remedy=f"say {forms}")
        part, name = matches[0]
        if value is NO_VALUE:
            raise InputError(problem=f"{flag} needs a value: {flag} VALUE")
        shared[part][name] = value
    return shared


def _refusal(flag: str, chosen: list[Group], every: Iterable[Group], own: Iterable[str]) -> InputError:
    elsewhere = [group for group in every if flag in group.flags]
    if elsewhere:
        homes = " and ".join(group.title for group in elsewhere)
        here = ", ".join(group.title for group in chosen if group.name)
        parts = [Argument(group.part, group.name) for group in elsewhere if group.part != "data"]
        add: list[Piece] = [piece for part in parts for piece in (" or ", part)]
        return InputError(
            problem=f"no option {flag} here: it belongs to {homes}, and the parts chosen are {here}",
            remedy=("add ", *add[1:], f", or leave {flag} out") if parts else f"leave {flag} out",
        )
    choices = [*own, *(known for group in chosen for known in group.flags)]
    nearest = difflib.get_close_matches(flag, choices, n=1)
    return InputError(
        problem=f"no option {flag}",
        remedy=f"did you mean {nearest[0]}?" if nearest else (Argument("help_all"), " lists those there are"),
    )


def read_settings(family: Family, words: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The options of members given as ``NAME.OPTION=VALUE``, checked, by member.

    >>> from polariscope.analysis.metrics import family as metrics
    >>> read_settings(metrics, ["mig.n_bins=10", "dci.n_trees=50", "mig.n_samples=500"])
    {'mig': {'n_bins': 10, 'n_samples': 500}, 'dci': {'n_trees': 50}}
    """
    given: dict[str, dict[str, Any]] = {}
    for word in words:
        place, equals, value = word.partition("=")
        name, dot, option = place.strip().partition(".")
        if not (equals and dot and option):
            raise InputError("set", "be NAME.OPTION=VALUE", got=f"{word!r}")
        family[name]  # refuses unknown names
        given.setdefault(name, {})[option.replace("-", "_")] = value.strip()
    return {name: _checked(family, name, options) for name, options in given.items()}


def _checked(family: Family, name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Options of one member, checked; messages name them as they were typed."""
    try:
        return check_options(f"{family.noun} {name!r}", family[name], options)
    except InputError as error:
        raise error.renamed({option: Argument("set", f"{name}.{option}") for option in options}) from None
