"""Paths that users pass: checked once, with ``~`` as the home folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from polariscope.core.errors import InputError

KINDS_OF_FILE: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
    (stat.S_ISSOCK, "socket"),
    # Links are followed before the test, so only a circular one is still a link.
    (stat.S_ISLNK, "circular link"),
)
"""Kinds of files that are neither regular files nor folders, with a word for each."""


def user_path(path: object, argument: str = "path") -> Path:
    """Return a path that a user passed, with ``~`` expanded; other input raises an error.

    >>> user_path("~/runs/a") == Path.home() / "runs" / "a"
    True
    >>> user_path("")
    Traceback (most recent call last):
    polariscope.core.errors.InputError: path must not be empty, got ''; the current folder is '.'.

    :param path: a text or a path.
    :param argument: (default "path") name of the argument, for the message.
    """
    if isinstance(path, bytes) or not isinstance(path, str | os.PathLike):
        kind = type(path).__name__
        raise InputError(argument, "be the path of a file or folder", got=f"an object of type {kind}")
    text = os.fspath(path)
    if not isinstance(text, str):
        raise InputError(argument, "be the path of a file or folder as text", got=f"{text!r}")
    if not text:
        raise InputError(argument, "not be empty", got="''", remedy="the current folder is '.'")
    if "\0" in text:
        raise InputError(argument, "not contain the character NUL, which no file name has", got=f"{text!r}")
    if not _is_utf8(text):
        raise InputError(argument, "be a path in UTF-8", got=f"{text!r}", remedy="rename the file or folder")
    try:
        return Path(text).expanduser()
    except RuntimeError:  # there is no such user
        raise InputError(
            argument,
            "have the name of a user after ~",
            got=f"{text!r}, but there is no such user",
            remedy="write the folder in full, or begin with ./~ if its name begins with ~",
        ) from None


def existing_path(path: object, argument: str = "path") -> Path:
    """Return a path that a user passed, with ``~`` expanded; a missing file or folder raises an error.

    :param path: a text or a path.
    :param argument: (default "path") name of the argument, for the message.
    """
    checked = user_path(path, argument)
    if not os.path.lexists(checked):
        raise InputError(problem=f"there is no file or folder {checked}")
    return checked


def resolved_path(path: object, argument: str = "path") -> Path:
    """Return a path that a user passed as an absolute path without links; circular links raise an error.

    :param path: a text or a path.
    :param argument: (default "path") name of the argument, for the message.
    """
    given = user_path(path, argument)
    try:
        return given.resolve()
    except (
        RuntimeError,
        OSError,
    ):  # Python 3.11 raises the first for a circular link, later versions the second
        raise InputError(
            argument, "be the path of a file or folder", got=f"{str(given)!r}, a circular link"
        ) from None


def text_name(path: Path) -> str:
    """Return a path with ``/`` as text that can be stored; a name that is not UTF-8 raises an error.

    :param path: the path.
    """
    name = path.as_posix()
    if not _is_utf8(name):
        raise InputError(problem=f"the name of {name!r} is not UTF-8", remedy="rename the file")
    return name


def _is_utf8(text: str) -> bool:
    """Return False for a name whose bytes are not UTF-8: Python marks them by halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_regular(path: Path, argument: str | None = None) -> Path:
    """Return the path of a file to read; pipes, devices and sockets raise an error, because reading them can block.

    A path that does not exist or is a folder is returned unchanged, because its reader reports it.

    :param path: the file.
    :param argument: (default None) name of the argument, for the message.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return path
    kind = next((word for test, word in KINDS_OF_FILE if test(mode)), None)
    if kind is not None:
        raise InputError(
            argument or str(path),
            "be a file",
            got=f"the {kind} {path}",
            remedy="copy its content to a file first",
        )
    return path
