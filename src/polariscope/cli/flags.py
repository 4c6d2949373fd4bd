"""Options of parts as flags: every field of a dataset, objective, net … is a flag of the same name.

The available flags depend on the parts selected on the same command line. Such flags are removed from the line before
it is parsed, and assigned to the selected parts afterwards. Therefore only these are imported. For the help, and for
messages about unknown flags, the options of all parts are read from their files.
"""

from __future__ import annotations

import dataclasses
import difflib
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import typer

from polariscope.cli.command import HELP_ALL, RecordCommand, default_note, explain, spelling
from polariscope.core.errors import Argument, Call, Either, InputError, Spelling, Text
from polariscope.core.option_values import is_switch, show
from polariscope.core.options import Option, check_options, options_of, route
from polariscope.core.registry import Family

KEY = "polariscope.flags"
"""Key of the context's metadata for the flags of parts, as they were typed."""
NO_VALUE = object()  # a flag at the end of the line, or before another flag
SWITCH_VALUES = {"true": True, "yes": True, "false": False, "no": False, "none": None}
DEFERS = {"data": ("training",)}
"""Parts that leave a shared option to other parts: --seed is the seed of training, not of the data."""


@dataclasses.dataclass(frozen=True)
class Group:
    """The options of one part: a dataset, an objective, the training …"""

    part: str
    """Kind of the part: data, training, objective, net …"""
    name: str
    """Name of the member; empty for training."""
    concept: Any
    """Dataclass or function that has the options."""
    without: Collection[str] = ()
    """Options that are not flags."""
    called: str = ""
    """Name in messages; by default the kind and the name."""

    @property
    def options(self) -> dict[str, Option]:
        """The options by name."""
        return {name: option for name, option in options_of(self.concept).items() if name not in self.without}

    @property
    def title(self) -> str:
        return f"{self.part} {self.name}".strip()

    @property
    def owner(self) -> str:
        """Name in messages."""
        return self.called or (f"{self.part} {self.name!r}" if self.name else self.part)

    @property
    def flags(self) -> dict[str, str]:
        """Option name for each flag."""
        return {spelling(name): name for name in self.options}

    @property
    def flags_with_part(self) -> dict[str, str]:
        """Option name for each flag with the part as a prefix, which is never ambiguous."""
        return {f"--{self.part}{flag[1:]}": name for flag, name in self.flags.items()}

    def has(self, flag: str) -> bool:
        """Return whether a flag, or the ``--no-`` form of a switch, belongs to this part."""
        on = f"--{flag.removeprefix('--no-')}" if flag.startswith("--no-") else flag
        return any(each in known for each in (flag, on) for known in (self.flags, self.flags_with_part))


Groups = Callable[[], Iterable[Group]]
"""Function that reads the options of every part that can be selected."""


class Flags(Spelling):
    """Spelling of arguments as flags in messages: ``--net mlp``.

    An argument without a flag, for example an array in a file, is not changed.

    :param flags: flags of the called command.
    :param more: (default none) function that returns further flags of the command, those of all its parts.
    :param advised: (default none) function that returns flags of other commands that advice can mention: "train with
        ``--keep-checkpoints all``".
    :param parts: (default none) function that returns the flags of options whose names include the part:
        ``prior_scale``.
    """

    def __init__(
        self,
        flags: Iterable[str],
        more: Callable[[], Collection[str]] = tuple,
        advised: Callable[[], Collection[str]] = tuple,
        parts: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.flags = frozenset(flags)
        self.more, self.advised, self.parts = more, advised, parts

    def name(self, name: str) -> str:
        """Return the flag of an argument, or its name if there is no flag.

        >>> Flags(["--alpha"]).name("alpha"), Flags(["--alpha"]).name("variance")
        ('--alpha', 'variance')
        """
        return self._find(name, (lambda: self.flags, self.more)) or self.parts().get(name, name)

    def _find(self, name: str, sources: Iterable[Callable[[], Collection[str]]]) -> str | None:
        """Return the flag from the first source that has it; later sources are not read, since that is slow."""
        for read in sources:
            flags = read()
            for form in _forms(name):
                if form in flags:
                    return form
        return None

    def setting(self, name: str, value: object) -> str:
        """Return the flag with its value.

        >>> Flags(["--net", "--samples", "--quiet"]).setting("net", "mlp")
        '--net mlp'
        >>> Flags(["--standardise"]).setting("standardise", False)
        '--no-standardise'
        >>> Flags(["--delimiter"]).setting("delimiter", ";")
        "--delimiter ';'"
        """
        flag = self._find(name, (lambda: self.flags, self.more, self.advised))
        if flag is None:
            return f"{name} {show(value)}"
        if isinstance(value, bool):
            return flag if value else f"--no-{flag[2:]}"
        shown = show(value)
        return f"{flag} {shown if '…' in shown else shlex.quote(shown)}"  # …: a placeholder

    def call(self, call: Call) -> str:
        """Return the command line for a call."""
        settings = (f"{spelling(name)} {shlex.quote(str(value))}" for name, value in call.settings.items())
        return f"'{' '.join(['polariscope', call.name, *map(str.upper, call.places), *settings])}'"

    def either(self, advice: Either) -> Text:
        """Return the advice for users of the command line."""
        return advice.command


def _forms(name: str) -> tuple[str, str]:
    """Return the two possible flags of a name: ``--n-samples`` and ``--samples`` for n_samples."""
    return spelling(name), spelling(name.removeprefix("n_"))


def group_of(part: str, family: Mapping[str, Any], name: str) -> Group:
    """Return the options of one part, except ``path``, which is written in the source: NAME:PATH.

    :param part: kind of the part: data, objective …
    :param family: its family, which imports the member, or its catalogue, which does not.
    :param name: name of the member; an unknown name raises an error.
    """
    return Group(part, name, family[name], without=("path",))


def groups_of(part: str, family: str) -> list[Group]:
    """Return the options of every member of a family, read from their files without importing them.

    :param part: kind of the part: objective.
    :param family: public name of the family: objectives.
    """
    from polariscope.core.catalogue import read_family

    catalogue = read_family(family)
    return [group_of(part, catalogue, name) for name in catalogue]


def show_flag(option: Option, flag: str | None = None) -> str:
    """Return a flag, with its ``--no-`` form if it is a switch."""
    flag = flag or spelling(option.name)
    return f"{flag} / --no-{flag[2:]}" if is_switch(option.annotation) else flag


class FlagCommand(RecordCommand):
    """A command that also has the options of parts as flags, by default those of the datasets."""

    def groups(self) -> list[Group]:
        """Return the options of every part that can be selected."""
        return groups_of("data", "datasets")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if HELP_ALL in args[: args.index("--") if "--" in args else None]:
            ctx.meta[HELP_ALL] = True
            typer.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        parameters = self.get_params(ctx)
        # For each flag, whether it is a switch, which takes no value.
        declared = {
            flag: getattr(parameter, "is_flag", False) or flag == "--help"
            for parameter in parameters
            for flag in (*parameter.opts, *parameter.secondary_opts)
        }
        n_positional = sum(parameter.param_type_name == "argument" for parameter in parameters)
        rest, flags = split_line(args, declared)
        if n_positional_in(rest, declared) < n_positional and any(
            isinstance(value, str) for value in flags.values()
        ):
            # The word after a switch can be an argument ("--exact gaussian"). Finding the switches is slow, so it is
            # done only if an argument is missing.
            rest, flags = split_line(args, declared, self._switches())
        ctx.meta[KEY] = flags
        return super().parse_args(ctx, rest)

    def _switches(self) -> set[str]:
        return {
            flag
            for group in self.groups()
            for flags in (group.flags, group.flags_with_part)
            for flag, name in flags.items()
            if is_switch(group.options[name].annotation)
        }

    def shown_flags(self, group: Group) -> dict[str, str]:
        """Return the flags of a group as the help spells them."""
        return group.flags

    def sections(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """Return the common flags in one list; with ``--help-all``, all flags, grouped by part."""
        every = HELP_ALL in ctx.meta or not self.common
        sections = super().sections(ctx)
        own_rows = sections["Options"]
        if self.common:
            # Before --help, which is the last row.
            own_rows.insert(
                len(own_rows) - 1,
                (HELP_ALL, "Show all options, including those of all parts."),
            )
        groups = {
            f"Options of {group.title}": self._rows(group, every) for group in self.groups() if group.options
        }
        if every:
            return {**sections, **groups}
        # Before --help-all and --help.
        own_rows[-2:-2] = [row for rows in groups.values() for row in rows]
        return sections

    def _rows(self, group: Group, every: bool) -> list[tuple[str, str]]:
        """Return the flags of a group with their help: all of them, or the common ones."""
        about = "" if every or not group.name else f"With {group.title}: "
        return [
            (show_flag(option, flag), f"{about}{explain(option)}{default_note(option)}".strip())
            for flag, name in self.shown_flags(group).items()
            for option in [group.options[name]]
            if every or flag in self.common.get(group.title, ())
        ]


def split_line(
    args: Iterable[str], declared: Mapping[str, bool], switches: Collection[str] = ()
) -> tuple[list[str], dict[str, Any]]:
    """Split a command line into the command's own arguments and flags, and the flags of parts with their values.

    The word after a flag is its value, unless the flag is known to be a switch.

    :param args: words of the command line.
    :param declared: the command's own flags, and whether each is a switch.
    :param switches: (default none) flags of parts that are known to be switches.
    """
    rest: list[str] = []
    flags: dict[str, Any] = {}
    queue = list(args)
    while queue:
        word = queue.pop(0)
        flag, equals, value = word.partition("=")
        if word == "--":
            return [*rest, word, *queue], flags
        if not word.startswith("--"):
            rest.append(word)
        elif flag in declared:
            rest.append(word)
            if not equals and not declared[flag] and queue:
                rest.append(queue.pop(0))
        elif equals:
            flags[flag] = value
        else:
            # The --no- form of a switch takes no value.
            is_off = f"--{flag.removeprefix('--no-')}" in switches
            has_value = bool(queue) and not queue[0].startswith("--") and not is_off
            has_value = has_value and (flag not in switches or queue[0].lower() in SWITCH_VALUES)
            flags[flag] = queue.pop(0) if has_value else NO_VALUE
    return rest, flags


def n_positional_in(rest: Iterable[str], declared: Mapping[str, bool]) -> int:
    """Return the number of positional arguments among a command's own arguments and flags.

    >>> n_positional_in(["--out", "run", "digits", "--quiet"], {"--out": False, "--quiet": True})
    1
    """
    tokens = iter(rest)
    count = 0
    for word in tokens:
        if word == "--":
            return count + len(list(tokens))
        if not word.startswith("--"):
            count += 1
        elif word in declared and not declared[word]:
            next(tokens, None)
    return count


def typed(flags: Mapping[str, object]) -> list[str]:
    """Return flags and their values as words of a command line.

    >>> typed({"--image-size": "32", "--no-exact": NO_VALUE})
    ['--image-size', '32', '--no-exact']
    """
    return [
        word
        for flag, value in flags.items()
        for word in ([flag] if value is NO_VALUE else [flag, str(value)])
    ]


def assign_flags(
    flags: Mapping[str, object],
    selected: Iterable[Group],
    every: Groups,
    own_flags: Iterable[str] = (),
    defers: Mapping[str, Collection[str]] = DEFERS,
    related: Callable[[str], Collection[str]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Assign each flag to the selected part that has the option, check its value, and refuse unknown flags.

    :param flags: flags of parts, as they were typed.
    :param selected: the selected parts.
    :param every: function that reads all parts, for the message about a flag that no selected part has.
    :param own_flags: (default none) the command's own flags, for suggestions.
    :param defers: (default: data to training) parts that leave a shared option to other parts.
    :param related: (default none) function that returns related commands with a flag, for the message.
    """
    selected = list(selected)

    def refusal(flag: str) -> InputError:
        return _refusal(flag, selected, every, own_flags, related(flag) if related else ())

    known: dict[str, dict[str, Group]] = {group.part: {} for group in selected}
    for group in selected:
        # Several methods share one part; an option that two of them have belongs to the first.
        known[group.part] |= {name: group for name in group.options if name not in known[group.part]}
    keys = {_key(flag): flag for flag in flags}
    # An option whose own name begins with no_ is not a negation.
    off = {key: key.removeprefix("no_") for key in keys if key.startswith("no_") and not _homes(key, known)}
    homes = route(
        [off.get(key, key) for key in keys],
        known,
        lambda key: refusal(_flag(key, keys, off)),
        defers=defers,
        spell=spelling,
    )
    assigned: dict[str, dict[str, Any]] = {part: {} for part in known}
    for key, flag in keys.items():
        part, name = homes[off.get(key, key)]
        group = known[part][name]
        value = flags[flag]
        if is_switch(group.options[name].annotation):
            value = _as_switch(value, is_off=key in off)
        elif key in off:  # not refusal(flag): a selected part has the option, and only the "no" is wrong
            raise InputError(problem=f"no option {flag}", remedy=f"did you mean {spelling(off[key])}?")
        elif value is NO_VALUE:
            raise InputError(problem=f"{flag} requires a value: {flag} VALUE")
        assigned[part] |= check_part(group, {name: value}, key)
    return assigned


def check_part(group: Group, values: Mapping[str, object], key: str) -> dict[str, Any]:
    """Check the value of a part's option; messages name the option as it was typed.

    :param group: the part.
    :param values: one value by name.
    :param key: the option as it was typed, with or without its part as a prefix.
    """
    try:
        return check_options(group.owner, group.concept, values, partial=True)
    except InputError as error:
        raise error.renamed({name: Argument(key) for name in values}) from None


def _key(flag: str) -> str:
    """Return the option of a flag, with its part as a prefix if the flag has it."""
    return "n_latents" if flag == "--latents" else flag[2:].replace("-", "_")


def _flag(key: str, keys: Mapping[str, str], off: Mapping[str, str]) -> str:
    """Return the flag that was typed for a name."""
    return keys[key] if key in keys else next(keys[typed] for typed, name in off.items() if name == key)


def _homes(key: str, known: Mapping[str, Collection[str]]) -> list[str]:
    return [part for part, names in known.items() if key in names or key.removeprefix(f"{part}_") in names]


def _as_switch(value: object, *, is_off: bool) -> object:
    """Return the value of a switch; other text than yes or no is returned, and its type check refuses it."""
    if value is NO_VALUE:
        return not is_off
    return SWITCH_VALUES.get(value.lower(), value) if isinstance(value, str) and not is_off else value


def _refusal(
    flag: str, selected: list[Group], every: Groups, own_flags: Iterable[str], related: Collection[str]
) -> InputError:
    if related:
        commands = " and ".join(f"'polariscope {name}'" for name in related)
        return InputError(
            problem=f"no option {flag} here: it belongs to {commands}", remedy=f"leave {flag} out"
        )
    elsewhere = [group for group in every() if group.has(flag)]
    if elsewhere:
        homes = _titles(elsewhere)
        here = ", ".join(group.title for group in selected if group.name)
        parts = [Argument(group.part, group.name) for group in elsewhere if group.part != "data"]
        another = " or another of these" if len(parts) > 1 else ""
        return InputError(
            problem=f"no option {flag} here: it belongs to {homes}, and the selected parts are {here}",
            remedy=("add ", parts[0], f"{another}, or leave {flag} out") if parts else f"leave {flag} out",
        )
    flags = [*own_flags, *(known for group in selected for known in group.flags)]
    # Options of parts that are not selected are suggested too, with their part: --bta is --beta of objective beta.
    others: dict[str, str] = {}
    for group in every():
        for known in group.flags:
            if known not in flags and (known not in others or known == f"--{group.name}"):
                others[known] = (
                    group.title
                )  # --beta is more likely that of objective beta than of another part
    nearest = [known for known in flags if _initials(known) == flag.removeprefix("--")]  # --lr
    nearest = nearest or difflib.get_close_matches(flag, [*flags, *others], n=1)
    if not nearest:
        return InputError(problem=f"no option {flag}", remedy=(Argument("help_all"), " lists all options"))
    home = f", an option of {others[nearest[0]]}" if nearest[0] in others else ""
    return InputError(problem=f"no option {flag}", remedy=f"did you mean {nearest[0]}{home}?")


def _titles(groups: Sequence[Group]) -> str:
    """Name groups, those of one part together: objective beta, beta-tc and data gaussian."""
    names: dict[str, list[str]] = {}
    for group in groups:
        names.setdefault(group.part, []).append(group.name)
    return " and ".join(f"{part} {', '.join(own)}".strip() for part, own in names.items())


def read_settings(family: Family, tokens: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the checked options of members from ``NAME.OPTION=VALUE``, by member.

    >>> from polariscope.analysis.metrics import family as metrics
    >>> read_settings(metrics, ["mig.n_bins=10", "dci.n_trees=50", "mig.n_samples=500"])
    {'mig': {'n_bins': 10, 'n_samples': 500}, 'dci': {'n_trees': 50}}
    """
    settings: dict[str, dict[str, Any]] = {}
    for word in tokens:
        path, equals, value = word.partition("=")
        name, dot, option = path.strip().partition(".")
        if not (equals and dot and option):
            raise InputError("set", "be NAME.OPTION=VALUE", got=f"{word!r}")
        family[name]  # refuses unknown names
        settings.setdefault(name, {})[option.replace("-", "_")] = value.strip()
    return {name: _checked(family, name, options) for name, options in settings.items()}


def _checked(family: Family, name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the checked options of one member; messages name them as they were typed."""
    try:
        return check_options(f"{family.noun} {name!r}", family[name], options)
    except InputError as error:
        raise error.renamed({option: Argument("set", f"{name}.{option}") for option in options}) from None


def _initials(flag: str) -> str:
    """Return the first letters of the words of a flag.

    >>> _initials("--learning-rate")
    'lr'
    """
    return "".join(word[:1] for word in flag.removeprefix("--").split("-"))
