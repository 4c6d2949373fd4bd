"""Options of concepts as flags: every field of a dataset, objective, net … is a flag by the same name.

Which flags there are depends on the concepts chosen on the same line. They are taken off the line before it is parsed,
and given to the chosen parts afterwards, so only these are opened. The options of all parts are read, from their files,
for help and for the message about a flag that no chosen part has.
"""

from __future__ import annotations

import dataclasses
import difflib
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import typer

from polariscope.cli.command import HELP_ALL, RecordCommand, explain, show_default, spelling
from polariscope.core.errors import Argument, Call, Either, InputError, Piece, Spelling, Text
from polariscope.core.option_values import is_switch, show
from polariscope.core.options import Option, check_options, options_of, route
from polariscope.core.registry import Family

KEY = "polariscope.flags"
"""Key of the context under which the flags of parts are, as they were typed."""
NO_VALUE = object()  # a flag at the end of the line, or before another flag
WORDS = {"true": True, "yes": True, "false": False, "no": False, "none": None}
DEFERS = {"data": ("training",)}
"""What training shares with the data, the seed, is training's."""


@dataclasses.dataclass(frozen=True)
class Group:
    """The options of one concept."""

    part: str
    """What kind of concept it is: data, training, objective, net …"""
    name: str
    """Which one; empty for training."""
    concept: Any
    """The dataclass or function whose options they are."""
    without: Collection[str] = ()
    """Options that are not flags here."""
    called: str = ""
    """How messages call the concept; by default its part and name."""

    @property
    def options(self) -> dict[str, Option]:
        """The options by name."""
        return {name: option for name, option in options_of(self.concept).items() if name not in self.without}

    @property
    def title(self) -> str:
        return f"{self.part} {self.name}".strip()

    @property
    def owner(self) -> str:
        """How messages call the concept."""
        return self.called or (f"{self.part} {self.name!r}" if self.name else self.part)

    @property
    def flags(self) -> dict[str, str]:
        """The option behind each flag."""
        return {spelling(name): name for name in self.options}

    @property
    def flags_with_part(self) -> dict[str, str]:
        """The same with the part in front, which is never ambiguous."""
        return {f"--{self.part}{flag[1:]}": name for flag, name in self.flags.items()}

    def has(self, flag: str) -> bool:
        """Whether a flag, or the off form of a switch, is an option of the concept."""
        on = f"--{flag.removeprefix('--no-')}" if flag.startswith("--no-") else flag
        return any(each in known for each in (flag, on) for known in (self.flags, self.flags_with_part))


Groups = Callable[[], Iterable[Group]]
"""Opens the options of every concept that could be chosen."""


class Flags(Spelling):
    """How the command line writes arguments: ``--net mlp``.

    An argument that the called command has no flag for, as an array in a file, is spelled as it is.

    :param flags: The flags of the command that was called.
    :param more: (default none) Opens further flags of the command, those of the parts it could have.
    :param advised: (default none) Opens flags of other commands that advice can name: "train with
        ``--keep-checkpoints all``".
    :param parts: (default none) Opens the flags of options with their part in front, ``prior_scale``.
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
        """The flag, where there is one.

        >>> Flags(["--alpha"]).name("alpha"), Flags(["--alpha"]).name("variance")
        ('--alpha', 'variance')
        """
        return self._find(name, (lambda: self.flags, self.more)) or self.parts().get(name, name)

    def _find(self, name: str, places: Iterable[Callable[[], Collection[str]]]) -> str | None:
        """The flag of a name in the first place that has it; later places are not opened."""
        for read in places:
            flags = read()
            for form in _forms(name):
                if form in flags:
                    return form
        return None

    def setting(self, name: str, value: object) -> str:
        """The flag with its value.

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


def group_of(part: str, family: Mapping[str, Any], name: str) -> Group:
    """The options of one concept; where its files are is said in the source, NAME:PATH.

    :param part: what the command calls it: data, objective …
    :param family: the concept's family, which opens the concept, or its catalogue, which does not.
    :param name: its name; an unknown one is refused.
    """
    return Group(part, name, family[name], without=("path",))


def groups_of(part: str, family: str) -> list[Group]:
    """The options of every concept of a family, read from their files and not opened.

    :param part: what the command calls them.
    :param family: the family's public name: objectives.
    """
    from polariscope.core.catalogue import read_family

    catalogue = read_family(family)
    return [group_of(part, catalogue, name) for name in catalogue]


def show_flag(option: Option, flag: str | None = None) -> str:
    """A flag, with its off form where it is a switch."""
    flag = flag or spelling(option.name)
    return f"{flag} / --no-{flag[2:]}" if is_switch(option.annotation) else flag


class FlagCommand(RecordCommand):
    """A command whose flags beyond its own are options of concepts, by default those of the datasets."""

    def groups(self) -> list[Group]:
        """The options that may be given, those of every concept that could be chosen."""
        return groups_of("data", "datasets")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if HELP_ALL in args[: args.index("--") if "--" in args else None]:
            ctx.meta[HELP_ALL] = True
            typer.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        parameters = self.get_params(ctx)
        declared = {
            flag: getattr(parameter, "is_flag", False) or flag == "--help"
            for parameter in parameters
            for flag in (*parameter.opts, *parameter.secondary_opts)
        }
        n_places = sum(parameter.param_type_name == "argument" for parameter in parameters)
        rest, flags = split_line(args, declared)
        if n_words(rest, declared) < n_places and any(isinstance(value, str) for value in flags.values()):
            # The word after a switch, "--exact gaussian", can be an argument: which flags are switches must be known.
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
        """How the help spells the options of a group."""
        return group.flags

    def sections(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """The flags used most in one list; with ``--help-all`` every flag, those of each concept under its name."""
        every = HELP_ALL in ctx.meta or not self.common
        sections = super().sections(ctx)
        own = sections["Options"]
        if self.common:
            own.insert(
                len(own) - 1, (HELP_ALL, "Show every option, also those of each part that can be chosen.")
            )
        groups = {
            f"Options of {group.title}": self._rows(group, every) for group in self.groups() if group.options
        }
        if every:
            return {**sections, **groups}
        own[-2:-2] = [row for rows in groups.values() for row in rows]
        return sections

    def _rows(self, group: Group, every: bool) -> list[tuple[str, str]]:
        """The flags of a group with what they mean: every one, or those used most."""
        about = "" if every or not group.name else f"With {group.title}: "
        return [
            (show_flag(option, flag), f"{about}{explain(option)} [{show_default(option)}]".strip())
            for flag, name in self.shown_flags(group).items()
            for option in [group.options[name]]
            if every or flag in self.common.get(group.title, ())
        ]


def split_line(
    args: Iterable[str], declared: Mapping[str, bool], switches: Collection[str] = ()
) -> tuple[list[str], dict[str, Any]]:
    """Split a line into what the command declares itself and the flags of concepts, with their values as text.

    A flag that is followed by a word takes it for its value, unless it is known to be a switch.

    :param args: the words of the line.
    :param declared: the command's own flags, and whether each is a switch.
    :param switches: (default none) flags of concepts that are known to be switches.
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
            is_off = f"--{flag.removeprefix('--no-')}" in switches
            has_value = bool(queue) and not queue[0].startswith("--") and not is_off
            has_value = has_value and (flag not in switches or queue[0].lower() in WORDS)
            flags[flag] = queue.pop(0) if has_value else NO_VALUE
    return rest, flags


def n_words(rest: Iterable[str], declared: Mapping[str, bool]) -> int:
    """How many positional arguments there are among what a command declares itself.

    >>> n_words(["--out", "run", "digits", "--quiet"], {"--out": False, "--quiet": True})
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
    """Flags of concepts as they would be typed again.

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
    chosen: Iterable[Group],
    every: Groups,
    own: Iterable[str] = (),
    defers: Mapping[str, Collection[str]] = DEFERS,
    related: Callable[[str], Collection[str]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Give each flag to the chosen part that has the option, check its value, and refuse other flags.

    :param flags: the flags of parts, as they were typed.
    :param chosen: the parts.
    :param every: opens the parts that could be chosen, for the message about a flag that no chosen part has.
    :param own: (default none) the command's own flags, for suggestions only.
    :param defers: (default: data to training) parts that leave an option to others which have it too.
    :param related: (default none) finds related commands that have a flag, for the message.
    """
    chosen = list(chosen)

    def refusal(flag: str) -> InputError:
        return _refusal(flag, chosen, every, own, related(flag) if related else ())

    known: dict[str, dict[str, Group]] = {group.part: {} for group in chosen}
    for group in chosen:
        known[group.part] |= {name: group for name in group.options if name not in known[group.part]}
    keys = {_key(flag): flag for flag in flags}
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
        elif key in off:  # not refusal(flag): the part is chosen, and only the "no" is wrong
            raise InputError(problem=f"no option {flag}", remedy=f"did you mean {spelling(off[key])}?")
        elif value is NO_VALUE:
            raise InputError(problem=f"{flag} needs a value: {flag} VALUE")
        assigned[part] |= check_part(group, {name: value}, key)
    return assigned


def check_part(group: Group, values: Mapping[str, object], key: str) -> dict[str, Any]:
    """Check values of a part's options; messages name them as they were typed.

    :param group: the part.
    :param values: one value by name.
    :param key: the option as it was given, with its part in front or without.
    """
    try:
        return check_options(group.owner, group.concept, values, partial=True)
    except InputError as error:
        raise error.renamed({name: Argument(key) for name in values}) from None


def _key(flag: str) -> str:
    """The option behind a flag, with its part in front or without."""
    return "n_latents" if flag == "--latents" else flag[2:].replace("-", "_")


def _flag(key: str, keys: Mapping[str, str], off: Mapping[str, str]) -> str:
    """The flag that was typed for a name."""
    return keys[key] if key in keys else next(keys[typed] for typed, name in off.items() if name == key)


def _homes(key: str, known: Mapping[str, Collection[str]]) -> list[str]:
    return [part for part, names in known.items() if key in names or key.removeprefix(f"{part}_") in names]


def _as_switch(value: object, *, is_off: bool) -> object:
    """The value of a switch; a text that is neither yes nor no stays, and is refused by its type."""
    if value is NO_VALUE:
        return not is_off
    return WORDS.get(value.lower(), value) if isinstance(value, str) and not is_off else value


def _refusal(
    flag: str, chosen: list[Group], every: Groups, own: Iterable[str], related: Collection[str]
) -> InputError:
    if related:
        commands = " and ".join(f"'polariscope {name}'" for name in related)
        return InputError(
            problem=f"no option {flag} here: it belongs to {commands}", remedy=f"leave {flag} out"
        )
    elsewhere = [group for group in every() if group.has(flag)]
    if elsewhere:
        homes = " and ".join(group.title for group in elsewhere)
        here = ", ".join(group.title for group in chosen if group.name)
        parts = [Argument(group.part, group.name) for group in elsewhere if group.part != "data"]
        add: list[Piece] = [piece for part in parts for piece in (" or ", part)]
        return InputError(
            problem=f"no option {flag} here: it belongs to {homes}, and the parts chosen are {here}",
            remedy=("add ", *add[1:], f", or leave {flag} out") if parts else f"leave {flag} out",
        )
    flags = [*own, *(known for group in chosen for known in group.flags)]
    # An option of a part that was not chosen is suggested too, with its part: --bta is --beta of objective beta.
    others: dict[str, str] = {}
    for group in every():
        for known in group.flags:
            if known not in flags and (known not in others or known == f"--{group.name}"):
                others[known] = group.title  # --beta is rather the option of objective beta than of another
    nearest = [known for known in flags if _initials(known) == flag.removeprefix("--")]  # --lr
    nearest = nearest or difflib.get_close_matches(flag, [*flags, *others], n=1)
    if not nearest:
        return InputError(
            problem=f"no option {flag}", remedy=(Argument("help_all"), " lists those there are")
        )
    home = f", an option of {others[nearest[0]]}" if nearest[0] in others else ""
    return InputError(problem=f"no option {flag}", remedy=f"did you mean {nearest[0]}{home}?")


def read_settings(family: Family, tokens: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The options of members given as ``NAME.OPTION=VALUE``, checked, by member.

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
    """Options of one member, checked; messages name them as they were typed."""
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
