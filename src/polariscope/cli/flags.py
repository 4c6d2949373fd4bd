"""Options of concepts as flags: every field of a dataset, objective, net … is a flag by the same name.

Which flags there are depends on the concepts chosen on the same line, so they are taken off the line before
it is parsed, and given to their parts afterwards.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand

from polariscope.core.errors import InputError
from polariscope.core.options import Option, check_options, options_of, show
from polariscope.core.registry import Family

KEY = "polariscope.flags"
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


def groups_of(part: str, family: Family) -> list[Group]:
    """The options of every concept of a family; where files are is said in the source, NAME:PATH."""
    found = []
    for name in family:
        options = {key: option for key, option in options_of(family[name]).items() if key != "path"}
        found.append(Group(part, name, options))
    return found


def is_switch(option: Option) -> bool:
    """Whether an option is on or off, so that its flag needs no value."""
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

    def groups(self) -> list[Group]:
        """The options that may be given, those of every concept that could be chosen."""
        from polariscope.data.dataset import family as datasets

        return groups_of("data", datasets)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
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

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The options of each concept, below the command's own."""
        for group in self.groups():
            if group.options:
                with formatter.section(f"Options of {group.title}"):
                    formatter.write_dl(
                        [
                            (show_flag(option, flag), f"{explain(option)} [{show_default(option)}]".strip())
                            for flag, name in self.shown_flags(group).items()
                            for option in [group.options[name]]
                        ]
                    )
        super().format_epilog(ctx, formatter)


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
            raise InputError(_refusal(flag, chosen, every, own))
        if len(matches) > 1:
            forms = " or ".join(f"--{part}{spelling(name)[1:]}" for part, name in matches)
            raise InputError(f"{flag} belongs to more than one part; say {forms}.")
        part, name = matches[0]
        if value is NO_VALUE:
            raise InputError(f"{flag} needs a value: {flag} VALUE.")
        shared[part][name] = value
    return shared


def _refusal(flag: str, chosen: list[Group], every: Iterable[Group], own: Iterable[str]) -> str:
    elsewhere = [group for group in every if flag in group.flags]
    if elsewhere:
        homes = " and ".join(group.title for group in elsewhere)
        here = ", ".join(group.title for group in chosen if group.name)
        flags = [f"--{group.part} {group.name}" for group in elsewhere if group.part != "data"]
        remedy = f" Add {' or '.join(flags)}, or leave {flag} out." if flags else f" Leave {flag} out."
        return f"no option {flag} here: it belongs to {homes}, and the parts chosen are {here}.{remedy}"
    choices = [*own, *(known for group in chosen for known in group.flags)]
    nearest = difflib.get_close_matches(flag, choices, n=1)
    return f"no option {flag}; " + (
        f"did you mean {nearest[0]}?" if nearest else "--help lists those there are."
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
            raise InputError(f"--set must be NAME.OPTION=VALUE, got {word!r}.")
        family[name]  # refuses unknown names
        given.setdefault(name, {})[option.replace("-", "_")] = value.strip()
    return {
        name: check_options(f"{family.noun} {name!r}", family[name], options)
        for name, options in given.items()
    }


def in_flag_spelling(message: str, names: Iterable[str]) -> str:
    """A message of the package, which speaks of arguments, in the words of the command line.

    >>> in_flag_spelling("beta must not be negative; 1 is the VAE (objective 'beta').", ["beta"])
    "--beta must not be negative; 1 is the VAE (objective 'beta')."
    >>> in_flag_spelling("option learning_rate of training must be a number", ["learning_rate"])
    'option --learning-rate of training must be a number'
    >>> in_flag_spelling("use likelihood='gaussian'.", ["likelihood"])
    'use --likelihood gaussian.'
    """
    for name in names:
        # A single word may be prose or a concept's name further on; with an underscore it is an argument.
        place = r"(?<![\w'-])()" if "_" in name else r"^(option |)"
        message = re.sub(rf"\b{name}='([^']*)'", rf"{spelling(name)} \1", message)
        message = re.sub(rf"{place}{name}(?![\w'])", rf"\g<1>{spelling(name)}", message)
    return message
