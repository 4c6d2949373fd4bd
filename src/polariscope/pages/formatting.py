"""Formatting of settings on pages; numbers are formatted by :mod:`polariscope.core.text`."""

from __future__ import annotations

from collections.abc import Mapping


def concept(record: Mapping[str, object]) -> str:
    """Return the name of a part with its options.

    >>> concept({"name": "beta", "beta": 4.0}), concept({"name": "vae"})
    ('beta (beta = 4)', 'vae')
    """
    options = ", ".join(f"{key} = {value_of(value)}" for key, value in record.items() if key != "name")
    return f"{record['name']} ({options})" if options else str(record["name"])


def value_of(value: object) -> str:
    """Return a setting as text for people."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(value_of, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {value_of(item)}" for key, item in value.items())
    return str(value)
