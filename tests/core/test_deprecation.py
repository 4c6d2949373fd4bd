"""Deprecated names work for one release and name their replacement."""

from __future__ import annotations

import subprocess
import sys

import pytest

from polariscope.core.deprecation import DeprecatedWarning, deprecated, removal, warn_deprecated


@deprecated("new_name", since="0.3", old="old_name")
def add(one: int, other: int = 1) -> int:
    """Add two numbers."""
    return one + other


def test_a_deprecated_function_works_warns_at_the_caller_and_names_the_replacement():
    words = r"old_name is deprecated since 0\.3 .* removed in 0\.4; use new_name"
    with pytest.warns(DeprecatedWarning, match=words):
        assert add(2, other=3) == 5
    # With shapes checked, as in these tests, frames of the checker are between the function and its caller.
    script = (
        "from polariscope.core.deprecation import deprecated\nf = deprecated('g', since='0.3')(abs)\nf(-1)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.startswith("<string>:3: DeprecatedWarning: abs is deprecated since 0.3")


def test_its_docstring_begins_with_the_deprecation():
    assert add.__doc__ is not None
    assert add.__doc__.startswith("Deprecated since 0.3: use new_name.\n\nAdd two numbers.")


def test_python_shows_the_warning_by_default():
    assert issubclass(DeprecatedWarning, FutureWarning)
    with pytest.warns(FutureWarning):
        warn_deprecated("a", "b", "0.3")


@pytest.mark.parametrize("since", ["0.3.0", "3", "next", ""])
def test_a_version_must_name_a_minor_release(since: str):
    with pytest.raises(ValueError, match=r"MAJOR\.MINOR"):
        removal(since)
    with pytest.raises(ValueError, match=r"MAJOR\.MINOR"):
        deprecated("b", since=since)(add)
