"""What can go wrong, in words a user can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PolariscopeError(Exception):
    """The job failed; the message says why and what to do. The command line exits with 1."""


class InputError(PolariscopeError, ValueError):
    """The call was wrong: names the argument, what must hold, what came and the remedy. Exits with 2."""


class DivergedError(PolariscopeError):
    """Training produced a value that is not finite; the message names the term."""


def check_word(name: str, word: object, choices: Iterable[str]) -> None:
    """Refuse a word that is none of the choices."""
    if word not in (choices := tuple(choices)):
        raise InputError(unknown(name, str(word), choices))


def unknown(noun: str, word: str, choices: Iterable[str]) -> str:
    """Message for a name that does not exist, with the nearest one that does.

    >>> unknown("metric", "migg", ["dci", "mig", "sap"])
    "no metric named 'migg'; there are dci, mig, sap. Did you mean 'mig'?"
    """
    choices = sorted(choices)
    message = f"no {noun} named {word!r}; "
    message += f"there are {', '.join(choices)}." if choices else "there are none."
    nearest = difflib.get_close_matches(word, choices, n=1)
    return message + (f" Did you mean {nearest[0]!r}?" if nearest else "")
