"""Errors, with messages that users can act on.

An :class:`InputError` stores its parts, so its message can be formatted for its reader: an argument is ``net='mlp'`` in
Python and ``--net mlp`` on the command line. Messages therefore name arguments by :class:`Argument`, never in free
text.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard, overload


class PolariscopeError(Exception):
    """Error of a job; the message contains the reason and a remedy. The command line exits with 1."""


class DivergedError(PolariscopeError):
    """Error raised if training produces a value that is not finite; the message names the term.

    :param message: the term, the last checkpoint and what to try.
    :param step: (default None) step at which it happened.
    """

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message)
        self.step = step


class _Absent:
    """Marker for a missing value, because None can be a value."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __reduce__(self) -> str:  # an error that is sent to another process keeps the same object
        return "ABSENT"


ABSENT = _Absent()


@dataclass(frozen=True)
class Argument:
    """An argument in a message, optionally with a recommended value."""

    name: str
    """Its name in Python: ``n_latents``."""
    value: object = ABSENT
    """Recommended value."""


class Call:
    """A call recommended by a message: a function of the package, or the command of the same name."""

    def __init__(self, name: str, *places: str, **settings: object) -> None:
        self.name = name
        self.places = places
        """Positional arguments: ``data``."""
        self.settings = settings


@dataclass(frozen=True)
class Either:
    """Advice that differs between Python and the command line."""

    python: Text
    """Advice for callers of a function."""
    command: Text
    """Advice for users of a command."""


Piece: TypeAlias = "str | Argument | Call | Either"
Text: TypeAlias = "Piece | Sequence[Piece]"
"""Text of a message: a string, or a sequence of strings and arguments."""


class Spelling:
    """Notation of arguments in messages: that of Python here; the command line has a subclass."""

    def name(self, name: str) -> str:
        """Return the name of an argument."""
        return name

    def setting(self, name: str, value: object) -> str:
        """Return an argument with its value."""
        return f"{name}={value!r}"

    def call(self, call: Call) -> str:
        """Return a call."""
        settings = (self.setting(name, value) for name, value in call.settings.items())
        return f"polariscope.{call.name}({', '.join((*call.places, *settings))})"

    def either(self, advice: Either) -> Text:
        """Return the advice for this notation."""
        return advice.python

    def text(self, text: Text) -> str:
        """Return a text with its arguments in this notation."""
        if isinstance(text, str):
            return text
        if isinstance(text, Argument):
            return self.name(text.name) if text.value is ABSENT else self.setting(text.name, text.value)
        if isinstance(text, Call):
            return self.call(text)
        if isinstance(text, Either):
            return self.text(self.either(text))
        return "".join(map(self.text, text))


PYTHON = Spelling()


class Worded(str):
    """A text with arguments, in Python's notation, that can be converted to another notation.

    :param text: a sequence of strings and arguments.

    >>> Worded(("use ", Argument("net", "mlp")))
    "use net='mlp'"
    """

    text: Text

    def __new__(cls, text: Text) -> Worded:
        worded = super().__new__(cls, PYTHON.text(text))
        worded.text = text
        return worded

    # The default of str would restore the text without its arguments.
    def __reduce__(self) -> tuple[object, ...]:
        return Worded, (self.text,)

    @staticmethod
    def worded(text: str, spelling: Spelling) -> str:
        """Return a text in a notation; a text without arguments is unchanged.

        :param text: the text.
        :param spelling: notation of arguments.
        """
        return spelling.text(text.text) if isinstance(text, Worded) else text


class InputError(PolariscopeError, ValueError):
    """Error about invalid input: the argument, the rule, the value received and the remedy. Exits with 2.

    Either an argument violates a rule, or there is a problem that concerns no single argument:

    >>> print(InputError("alpha", "lie between 0 and 0.5", got=0.7, remedy="0.1 is usual"))
    alpha must lie between 0 and 0.5, got 0.7; 0.1 is usual.
    >>> print(InputError(problem="net 'conv' requires images", remedy=("use ", Argument("net", "mlp"))))
    net 'conv' requires images; use net='mlp'.

    :param argument: name of the argument, several names joined by "and", or another subject ("factor 'x'").
    :param must: the rule, as it follows the word *must*.
    :param problem: description of a problem that concerns no single argument.
    :param got: the value received, or a description of it.
    :param remedy: recommended action.
    """

    @overload
    def __init__(
        self, argument: Text, must: Text, *, got: object = ABSENT, remedy: Text | None = None
    ) -> None: ...

    @overload
    def __init__(self, *, problem: Text, got: object = ABSENT, remedy: Text | None = None) -> None: ...

    def __init__(
        self,
        argument: Text | None = None,
        must: Text | None = None,
        *,
        problem: Text | None = None,
        got: object = ABSENT,
        remedy: Text | None = None,
    ) -> None:
        if (problem is None) == (argument is None or must is None):
            raise TypeError("an InputError requires an argument and its rule, or a problem")
        self.argument = _arguments(argument) if isinstance(argument, str) else argument
        self.must = must
        self.problem = problem
        self.got = got
        self.remedy = remedy
        super().__init__(self.worded(PYTHON))

    def worded(self, spelling: Spelling) -> str:
        """Return the message in a notation.

        :param spelling: notation of arguments.
        """
        if self.problem is not None:
            message = spelling.text(self.problem)
        else:
            assert self.argument is not None
            assert self.must is not None
            message = f"{spelling.text(self.argument)} must {spelling.text(self.must)}"
        if self.got is not ABSENT:
            message += f", got {spelling.text(self.got) if _is_text(self.got) else self.got}"
        if self.remedy is not None:
            message += f"; {spelling.text(self.remedy)}"
        return message if message.endswith((".", "?")) else f"{message}."

    def renamed(self, names: Mapping[str, Argument]) -> InputError:
        """Return the same error with other names of arguments, if the user passed them under other names.

        >>> error = InputError("scale", "be positive", got=-1)
        >>> print(error.renamed({"scale": Argument("prior_scale")}))
        prior_scale must be positive, got -1.

        :param names: the user's name of each argument.
        """
        argument, must, problem, remedy = (
            _renamed(text, names) for text in (self.argument, self.must, self.problem, self.remedy)
        )
        return _rebuild(argument, must, problem, self.got, remedy)

    def __reduce__(self) -> tuple[object, ...]:  # errors cross processes by their parts, not by their message
        return _rebuild, (self.argument, self.must, self.problem, self.got, self.remedy)


def _renamed(text: Text | None, names: Mapping[str, Argument]) -> Text | None:
    """Return a text with renamed arguments; recommended values are unchanged."""
    if isinstance(text, Argument):
        renamed = names.get(text.name, text)
        return (
            renamed
            if text.value is ABSENT or renamed.value is not ABSENT
            else Argument(renamed.name, text.value)
        )
    if text is None or isinstance(text, str | Call | Either):
        return text
    return tuple(
        piece for each in text if isinstance(piece := _renamed(each, names), str | Argument | Call | Either)
    )


def _is_text(got: object) -> TypeGuard[Text]:
    """Return True if the value received is a text with arguments; other tuples, such as shapes, are not."""
    pieces = got if isinstance(got, tuple) else (got,)
    return any(isinstance(piece, Argument | Call | Either) for piece in pieces)


def _rebuild(
    argument: Text | None, must: Text | None, problem: Text | None, got: object, remedy: Text | None
) -> InputError:
    if problem is not None:
        return InputError(problem=problem, got=got, remedy=remedy)
    assert argument is not None
    assert must is not None
    return InputError(argument, must, got=got, remedy=remedy)


def _arguments(subject: str) -> Text:
    """Return the arguments that a subject names; other text (``factor 'shape'``) is unchanged.

    >>> _arguments("mean and variance")
    (Argument(name='mean', value=ABSENT), ' and ', Argument(name='variance', value=ABSENT))
    """
    names = subject.replace(" and ", ", ").split(", ")
    if not all(name.isidentifier() for name in names):
        return subject
    pieces: list[Piece] = []
    for number, name in enumerate(names):
        if number:
            pieces.append(" and " if number == len(names) - 1 else ", ")
        pieces.append(Argument(name))
    return tuple(pieces)


def not_installed(what: str, package: str, extra: str, instead: str = "") -> InputError:
    """Return the error about a missing optional package.

    >>> print(not_installed("reading cells.h5ad", "h5py", "hdf5"))
    reading cells.h5ad requires h5py, which is not installed; install it with pip install 'polariscope[hdf5]'.

    :param what: the task that requires the package, at the beginning of the sentence.
    :param package: name of the package.
    :param extra: the extra of polariscope that installs it.
    :param instead: (default none) alternative without the package.
    """
    install = f"install it with pip install 'polariscope[{extra}]'"
    return InputError(
        problem=f"{what} requires {package}, which is not installed",
        remedy=f"{install}, or {instead}" if instead else install,
    )


def check_word(name: str, word: object, choices: Iterable[str]) -> None:
    """Check that a word is one of the choices.

    :param name: noun for the choices in the message.
    :param word: the word to check.
    :param choices: allowed words.
    """
    if word not in (choices := tuple(choices)):
        raise unknown(name, str(word), choices)


def unknown(noun: str, word: str, choices: Iterable[str], remedy: Text = "") -> InputError:
    """Return the error about an unknown name, with the most similar known name.

    >>> print(unknown("metric", "migg", ["dci", "mig", "sap"]))
    no metric named 'migg'; there are dci, mig, sap. Did you mean 'mig'?

    :param noun: noun for the choices in the message.
    :param word: the unknown name.
    :param choices: known names.
    :param remedy: (default none) further advice, a sentence.
    """
    choices = sorted(choices)
    there = f"there are {', '.join(choices)}." if choices else "there are none."
    nearest = difflib.get_close_matches(str(word), choices, n=1)
    if nearest:
        there += f" Did you mean {nearest[0]!r}?"
    if not remedy:
        return InputError(problem=f"no {noun} named {word!r}", remedy=there)
    more: Sequence[Piece] = (remedy,) if isinstance(remedy, str | Argument | Call | Either) else remedy
    return InputError(problem=f"no {noun} named {word!r}", remedy=(there, " ", *more))
