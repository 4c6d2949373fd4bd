"""What can go wrong, in words a user can act on.

An :class:`InputError` keeps its parts, and is worded for its reader: an argument is ``net='mlp'`` in Python and
``--net mlp`` on the command line, so a message names arguments by :class:`Argument`, never in free text.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard, overload


class PolariscopeError(Exception):
    """The job failed; the message says why and what to do. The command line exits with 1."""


class DivergedError(PolariscopeError):
    """Training produced a value that is not finite; the message names the term.

    :param message: the term, the last checkpoint and what to try.
    :param step: (default None) step at which it happened.
    """

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message)
        self.step = step


class _Absent:
    """No value, where None could be one."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __reduce__(self) -> str:  # stays the one there is when an error goes to another process
        return "ABSENT"


ABSENT = _Absent()


@dataclass(frozen=True)
class Argument:
    """An argument that a message speaks of, with a value where it says what to give."""

    name: str
    """Its name in Python: ``n_latents``."""
    value: object = ABSENT
    """What to set it to."""


class Call:
    """A call that a message advises: a function of the package, and the command of the same name."""

    def __init__(self, name: str, *places: str, **settings: object) -> None:
        self.name = name
        self.places = places
        """What comes first, in words: ``data``."""
        self.settings = settings


@dataclass(frozen=True)
class Either:
    """Advice that is not the same in Python and on the command line."""

    python: Text
    """For readers who called a function."""
    command: Text
    """For readers who typed a command."""


Piece: TypeAlias = "str | Argument | Call | Either"
Text: TypeAlias = "Piece | Sequence[Piece]"
"""What a message says: a text, or texts and arguments one after the other."""


class Spelling:
    """How a reader writes arguments; this is Python's way, the command line has its own."""

    def name(self, name: str) -> str:
        """An argument that a message is about."""
        return name

    def setting(self, name: str, value: object) -> str:
        """An argument with the value to give it."""
        return f"{name}={value!r}"

    def call(self, call: Call) -> str:
        """A call as it is written."""
        settings = (self.setting(name, value) for name, value in call.settings.items())
        return f"polariscope.{call.name}({', '.join((*call.places, *settings))})"

    def either(self, advice: Either) -> Text:
        """The advice for this reader."""
        return advice.python

    def text(self, text: Text) -> str:
        """A text with its arguments spelled out."""
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
    """A text that names arguments: it reads as in Python, and can be worded for another reader.

    :param text: texts and arguments one after the other.

    >>> Worded(("use ", Argument("net", "mlp")))
    "use net='mlp'"
    """

    text: Text

    def __new__(cls, text: Text) -> Worded:
        worded = super().__new__(cls, PYTHON.text(text))
        worded.text = text
        return worded

    def __reduce__(self) -> tuple[object, ...]:
        return Worded, (self.text,)

    @staticmethod
    def worded(text: str, spelling: Spelling) -> str:
        """Return a text for a reader; one that names no arguments is the same for all.

        :param text: the text.
        :param spelling: how this reader writes arguments.
        """
        return spelling.text(text.text) if isinstance(text, Worded) else text


class InputError(PolariscopeError, ValueError):
    """The call was wrong: what must hold of which argument, what came, and the remedy. Exits with 2.

    Either an argument does not hold what it must, or there is a problem that is no single argument's:

    >>> print(InputError("alpha", "lie between 0 and 0.5", got=0.7, remedy="0.1 is usual"))
    alpha must lie between 0 and 0.5, got 0.7; 0.1 is usual.
    >>> print(InputError(problem="net 'conv' needs images", remedy=("use ", Argument("net", "mlp"))))
    net 'conv' needs images; use net='mlp'.

    :param argument: The argument's name, or several joined by "and"; or what else is spoken of ("factor 'x'").
    :param must: What must hold of it, after the word *must*.
    :param problem: What is wrong, where it is not one argument's value.
    :param got: What came instead: a value, or a text that describes it.
    :param remedy: What to do about it.
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
            raise TypeError("an InputError has an argument and what must hold of it, or a problem")
        self.argument = _arguments(argument) if isinstance(argument, str) else argument
        self.must = must
        self.problem = problem
        self.got = got
        self.remedy = remedy
        super().__init__(self.worded(PYTHON))

    def worded(self, spelling: Spelling) -> str:
        """The message for a reader.

        :param spelling: how this reader writes arguments.
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
        """The same about arguments as the reader gave them, where one was given under another name.

        >>> error = InputError("scale", "be positive", got=-1)
        >>> print(error.renamed({"scale": Argument("prior_scale")}))
        prior_scale must be positive, got -1.

        :param names: how the reader calls each argument.
        """
        argument, must, problem, remedy = (
            _renamed(text, names) for text in (self.argument, self.must, self.problem, self.remedy)
        )
        return _rebuild(argument, must, problem, self.got, remedy)

    def __reduce__(self) -> tuple[object, ...]:  # errors cross processes by their parts, not by their message
        return _rebuild, (self.argument, self.must, self.problem, self.got, self.remedy)


def _renamed(text: Text | None, names: Mapping[str, Argument]) -> Text | None:
    """A text with its arguments under other names; one with a value to give keeps it."""
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
    """Whether what came is described by arguments; a shape, say, is a tuple as well."""
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
    """The arguments a subject names; a text that is none (``factor 'shape'``) stays as it is.

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
    """The error where an optional package is missing.

    >>> print(not_installed("reading cells.h5ad", "h5py", "hdf5"))
    reading cells.h5ad needs h5py, which is not installed; install it with pip install 'polariscope[hdf5]'.

    :param what: What needs it, the beginning of the sentence.
    :param package: The package's name.
    :param extra: The extra of polariscope that brings it.
    :param instead: (default none) What to do without it.
    """
    install = f"install it with pip install 'polariscope[{extra}]'"
    return InputError(
        problem=f"{what} needs {package}, which is not installed",
        remedy=f"{install}, or {instead}" if instead else install,
    )


def check_word(name: str, word: object, choices: Iterable[str]) -> None:
    """Refuse a word that is none of the choices.

    :param name: What kind of thing the word names.
    :param word: What was given.
    :param choices: The words there are.
    """
    if word not in (choices := tuple(choices)):
        raise unknown(name, str(word), choices)


def unknown(noun: str, word: str, choices: Iterable[str], remedy: Text = "") -> InputError:
    """The error for a name that does not exist, with the nearest one that does.

    >>> print(unknown("metric", "migg", ["dci", "mig", "sap"]))
    no metric named 'migg'; there are dci, mig, sap. Did you mean 'mig'?

    :param noun: What kind of thing the word names.
    :param word: What was given.
    :param choices: The names there are.
    :param remedy: More advice, a sentence.
    """
    choices = sorted(choices)
    there = f"there are {', '.join(choices)}." if choices else "there are none."
    nearest = difflib.get_close_matches(word, choices, n=1)
    if nearest:
        there += f" Did you mean {nearest[0]!r}?"
    if not remedy:
        return InputError(problem=f"no {noun} named {word!r}", remedy=there)
    more: Sequence[Piece] = (remedy,) if isinstance(remedy, str | Argument | Call | Either) else remedy
    return InputError(problem=f"no {noun} named {word!r}", remedy=(there, " ", *more))
