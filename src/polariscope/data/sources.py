"""From a name, a command line or a record to a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from polariscope.core.errors import Argument, Either, InputError, PolariscopeError
from polariscope.core.options import build, options_of
from polariscope.data.dataset import AbstractDataset, family

if TYPE_CHECKING:
    from polariscope.data.chain import Given


def load_dataset(name: str, *, variants: Given = (), **options: object) -> AbstractDataset:
    """Make a dataset by name, with its options.

    :param name: a member of ``polariscope.datasets``: "sprites".
    :param variants: (default none) members of ``polariscope.variants`` over it, the first one innermost, as
        :func:`polariscope.apply_variants` takes them: ``["colour", {"name": "subset", "n": 50_000}]``.
    :param options: the options of that dataset by name; ``polariscope data list`` shows them.

    >>> load_dataset("sprites", image_size=32).shape
    (1, 32, 32)
    """
    data = build(family, name, options)
    if not variants:
        return data
    from polariscope.data.chain import apply_variants

    return apply_variants(data, variants)


def parse_source(source: str, options: Mapping[str, object] | None = None) -> AbstractDataset:
    """Make the dataset that a command line names: ``sprites``, ``arrays:FILE.npz`` or ``images:FOLDER``.

    What follows the first ``:`` is the ``path`` of a dataset that reads files.

    >>> len(parse_source("gaussian", {"n_samples": "100"}))
    100
    """
    name, colon, path = source.partition(":")
    if name not in family and ("/" in source or "." in source):
        raise InputError(
            "data",
            "be a dataset's name",
            got=f"the path {source!r}",
            remedy="write arrays:FILE or images:FOLDER",
        )
    takes_path = "path" in options_of(family[name])
    if colon and not takes_path:
        raise InputError(
            problem=f"dataset {name!r} reads no file, so write {name!r} without a path", got=f"{source!r}"
        )
    given: dict[str, Any] = dict(options or {})
    if takes_path:
        if path and "path" in given:
            raise InputError(
                problem=f"path was given twice, in {source!r} and as an option {given['path']!r}",
                remedy="give it once",
            )
        given = {**given, "path": path} if path else given
        if "path" not in given:
            raise InputError(
                problem=f"dataset {name!r} reads files", remedy=f"say where they are: {name}:PATH"
            )
    return load_dataset(name, **given)


def load_recorded(record: Mapping[str, Any]) -> AbstractDataset:
    """Make the dataset again that ``describe()`` recorded; data that have changed since are refused.

    >>> data = load_dataset("sprites", image_size=32)
    >>> load_recorded(data.describe()) == data
    True
    """
    if "name" not in record:
        raise InputError(
            problem="a dataset's record needs a 'name'",
            got=sorted(record),
            remedy="use what describe() returns",
        )
    if "path" in record and record["path"] is None:
        shape = tuple(record.get("shape", ()))
        raise InputError(
            problem=(
                f"the dataset was made from arrays in memory, of shape {shape}, and cannot be loaded again"
            ),
            remedy=Either(
                ("pass ", Argument("data"), " with the same arrays"),
                "look at the run in Python, where open_run and report take the same arrays beside it",
            ),
        )
    options = {
        key: value
        for key, value in record.items()
        if key not in ("name", "shape", "fingerprint", "root_fingerprint")
    }
    data = load_dataset(record["name"], **options)
    if record.get("fingerprint", data.fingerprint) != data.fingerprint:
        raise PolariscopeError(
            f"{record.get('path', record['name'])} has changed since it was recorded; "
            "put the old data back, or start again with the new."
        )
    return data


def as_dataset(data: object) -> AbstractDataset:
    """The dataset given, or an array of observations as one; a name is refused, since options may belong to it."""
    if isinstance(data, str):
        raise InputError(
            "data", "be a dataset or an array", got=f"{data!r}", remedy=f"use load_dataset({data!r})"
        )
    if isinstance(data, AbstractDataset):
        return data
    from polariscope.data.own.arrays import from_arrays

    return from_arrays(data)
