"""Flags that became commands: the old spelling is forwarded for one release, with a warning."""

from __future__ import annotations

import dataclasses

from polariscope.core.errors import InputError


@dataclasses.dataclass(frozen=True)
class Forward:
    """A flag that was replaced by a command."""

    command: str
    """Command that had the flag."""
    flag: str
    """The flag."""
    to: str
    """Command that replaces it."""
    value: str | None = None
    """Value of the flag that is forwarded. If None, the flag is forwarded with any value or without a value."""
    becomes: str = ""
    """Flag of the new command that receives the value."""
    last: bool = False
    """If True, the value becomes the last argument of the new command."""
    since: str = "0.3"
    """Version of the deprecation."""

    @property
    def old(self) -> str:
        """The old spelling, for messages."""
        return " ".join(filter(None, (self.command, self.flag, self.value)))

    @property
    def new(self) -> str:
        """The new spelling, for messages."""
        return f"{self.to} {self.becomes}".rstrip()

    def apply(self, tokens: list[str]) -> list[str] | None:
        """Return the arguments of the new command, or None if the flag is absent.

        :param tokens: arguments of the old command.

        >>> Forward("size", "--curve", "size-curve", becomes="--latents").apply(["digits", "--curve", "3,6"])
        ['digits', '--latents', '3,6']
        >>> Forward("size", "--target", "size-beta", value="beta").apply(["digits", "--target=beta"])
        ['digits']
        >>> Forward("study table", "--sql", "study sql", last=True).apply(["--sql", "select 1", "mine.toml"])
        ['mine.toml', 'select 1']
        """
        # Words after -- are arguments, not flags.
        end = tokens.index("--") if "--" in tokens else len(tokens)
        has_value = self.value is not None or bool(self.becomes) or self.last
        for index, word in enumerate(tokens[:end]):
            name, equals, value = word.partition("=")
            if name != self.flag:
                continue
            # --flag=value is one word, --flag value are two.
            after = index + 1 if equals or not has_value else index + 2
            value = value if equals else " ".join(tokens[index + 1 : after])
            if self.value is not None and value != self.value:
                continue
            becomes = [self.becomes, value] if self.becomes else []
            return [*tokens[:index], *becomes, *tokens[after:], *([value] if self.last else [])]
        return None


FORWARDS = (
    Forward("size", "--compare", "size-compare"),
    Forward("size", "--curve", "size-curve", becomes="--latents"),
    Forward("size", "--table", "size-table"),
    Forward("size", "--target", "size-beta", value="beta"),
    Forward("size", "--target", "size", value="latents"),
    Forward("table", "--stability", "stability"),
    Forward("study table", "--over-seeds", "study seeds"),
    Forward("study table", "--compare", "study compare", last=True),
    Forward("study table", "--extremes", "study extremes", last=True),
    Forward("study table", "--paper", "study paper"),
    Forward("study table", "--sql", "study sql", last=True),
)
"""All flags that became commands."""


def forward(tokens: list[str]) -> tuple[list[str], str]:
    """Replace deprecated flags by the new commands; return the new command line, and a warning or "".

    :param tokens: words of the command line.

    >>> forward(["size", "digits", "--compare", "--steps", "400"])[0]
    ['size-compare', 'digits', '--steps', '400']
    >>> forward(["size", "digits"])
    (['size', 'digits'], '')
    """
    matches = []
    for each in FORWARDS:
        parts = each.command.split()
        if tokens[: len(parts)] == parts and (rest := each.apply(tokens[len(parts) :])) is not None:
            matches.append((each, rest))
    targets = {each.to: each for each, _ in matches}
    if len(targets) > 1:
        first, second = list(targets.values())[:2]
        raise InputError(
            problem=f"{first.flag} and {second.flag} cannot be combined",
            remedy=f"use 'polariscope {first.to}' or 'polariscope {second.to}'",
        )
    if not matches:
        return tokens, ""
    from polariscope.core.deprecation import deprecation

    each, rest = matches[0]
    return [*each.to.split(), *rest], deprecation(each.old, each.new, each.since)
