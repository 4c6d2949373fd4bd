"""Deprecation of public names: the old name works for one minor release and warns.

The policy is in CONTRIBUTING.md ("Deprecation"): a name that is renamed or moved in version 0.N keeps working in all of
0.N, with a :class:`DeprecatedWarning` that names its replacement, and is removed in 0.N+1.
"""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class DeprecatedWarning(FutureWarning):
    """Warning about a name that the next minor release removes; Python shows it by default."""


def removal(since: str) -> str:
    """Return the version that removes a deprecated name: the next minor release.

    :param since: version of the deprecation, "0.3".

    >>> removal("0.3"), removal("0.9")
    ('0.4', '0.10')
    """
    if not re.fullmatch(r"\d+\.\d+", since):
        raise ValueError(f"since must be MAJOR.MINOR, got {since!r}")
    major, minor = since.split(".")
    return f"{major}.{int(minor) + 1}"


def deprecation(old: str, new: str, since: str) -> str:
    """Return the warning about a deprecated name.

    :param old: the deprecated name, as the user writes it.
    :param new: its replacement, as the user writes it.
    :param since: version of the deprecation.

    >>> deprecation("size --compare", "size-compare", "0.3")
    'size --compare is deprecated since 0.3 and will be removed in 0.4; use size-compare instead.'
    """
    return f"{old} is deprecated since {since} and will be removed in {removal(since)}; use {new} instead."


def warn_deprecated(old: str, new: str, since: str, stacklevel: int = 2) -> None:
    """Warn that a name is deprecated.

    :param old: the deprecated name, as the user writes it.
    :param new: its replacement, as the user writes it.
    :param since: version of the deprecation.
    :param stacklevel: (default 2: the caller) frame that the warning points to, as in :func:`warnings.warn`.
    """
    # One more frame, because this function is between the caller and the warning.
    warnings.warn(deprecation(old, new, since), DeprecatedWarning, stacklevel=stacklevel + 1)


def deprecated(new: str, *, since: str, old: str | None = None) -> Callable[[Function], Function]:
    """Decorate a function or property getter that remains available under its old name for one release.

    :param new: the replacement, as the user writes it.
    :param since: version of the deprecation, "0.3".
    :param old: (default: the function's name) the deprecated name, as the user writes it.

    >>> @deprecated("polariscope.encode", since="0.3")
    ... def embed(x):
    ...     return x
    >>> embed.__doc__
    'Deprecated since 0.3: use polariscope.encode.'
    """

    def decorate(function: Function) -> Function:
        name = old or function.__name__

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            warn_deprecated(name, new, since)
            return function(*args, **options)

        text = inspect.cleandoc(function.__doc__ or "")
        call.__doc__ = f"Deprecated since {since}: use {new}.\n\n{text}".rstrip()
        call.deprecated_since = since  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    removal(since)  # raises if since is not a version
    return decorate
