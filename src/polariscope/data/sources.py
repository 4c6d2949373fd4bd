"""From a name, a command line or a record to a dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polariscope.core.errors import Argument, Either, InputError, PolariscopeError
from polariscope.core.options import build, options_of
from polariscope.core.types import OptionValue
from polariscope.data.dataset import AbstractDataset, family

if TYPE_CHECKING:
    from polariscope.data.chain import Given


def load_dataset(name: object, *, variants: Given = (), **options: OptionValue) -> AbstractDataset:
    """Make a dataset by name, or from a file or folder, with its options.

    :param name: a member of ``polariscope.datasets``, "sprites"; the path of a file or folder, "table.csv"; or both,
        "arrays:data.npz".
    :param variants: (default none) members of ``polariscope.variants`` over it, the first one innermost, as
        :func:`polariscope.apply_variants` takes them: ``["colour", {"name": "subset", "n": 50_000}]``.
    :param options: the options of that dataset by name; ``polariscope data list`` shows them.

    >>> load_dataset("sprites", image_size=32).shape
    (1, 32, 32)
    """
    if not isinstance(name, str | os.PathLike):
        raise InputError(
            "name",
            "be the name of a dataset or the path of a file or folder",
            got=f"{name!r}",
            remedy="use from_arrays or from_dataset for what is in memory",
        )
    # A Path is never a name: Path("sprites") is a folder.
    member, path = name_and_path(name if isinstance(name, str) else os.path.join(".", name))
    if path is not None:
        if "path" not in options_of(family[member]):
            raise InputError(
                problem=f"dataset {member!r} reads no file, so write {member!r} without a path",
                got=f"{name!r}",
            )
        if "path" in options:
            raise InputError(
                problem=f"path was given twice, in {name!r} and as an option {options['path']!r}",
                remedy="give it once",
            )
        options = {**options, "path": path}
    data = build(family, member, options)
    if not variants:
        return data
    from polariscope.data.chain import apply_variants

    return apply_variants(data, variants)


def name_and_path(source: str) -> tuple[str, str | None]:
    """The dataset a source names, and the path in it: ``sprites``, ``arrays:FILE.npz``, ``table.csv``, ``folder/``.

    A name that exists is that dataset, whatever lies in the current folder: write ``./sprites`` for a folder of that
    name. A path is known by its slash, its ending or by being there; which dataset reads it is said by the
    endings that datasets declare. A look-alike with a path, ``shapes3d:3dshapes.h5``, is its original, which it
    declares in its decorator by ``original="shapes3d-original"``.

    :param source: what a user typed.

    >>> name_and_path("sprites"), name_and_path("arrays:x.npz"), name_and_path("data/x.csv.gz")
    (('sprites', None), ('arrays', 'x.npz'), ('table', 'data/x.csv.gz'))
    """
    name, _, path = source.partition(":")
    if family.has(name):
        return (original_of(name), path) if path else (name, None)
    readers = {
        ending: member for member in family.working() for ending in family.traits(member).get("endings", ())
    }
    file = Path(source).expanduser()
    ending = max((end for end in readers if source.lower().endswith(end)), key=len, default=None)
    if file.is_dir() and "/" in readers:
        return readers["/"], source
    if ending is not None and ending != "/":
        return readers[ending], source
    if file.is_file():
        raise InputError(
            problem=f"nothing here reads {file.name}",
            remedy=f"it reads folders and files ending in {', '.join(sorted(end for end in readers if end != '/'))}",
        )
    if os.sep in source:
        raise InputError(problem=f"there is no file or folder {source}")
    return name, path or None


def source_name(source: str) -> str:
    """The dataset that a source names.

    :param source: what a command line has: NAME, PATH or NAME:PATH.

    >>> source_name("sprites"), source_name("arrays:rows.npz"), source_name("rows.npz")
    ('sprites', 'arrays', 'arrays')
    """
    return name_and_path(source)[0]


def parse_source(source: str, options: Mapping[str, object] | None = None) -> AbstractDataset:
    """Make the dataset that a command line names, as :func:`load_dataset` does, or say where its files must be given.

    >>> len(parse_source("gaussian", {"n_samples": "100"}))
    100
    """
    name, path = name_and_path(source)
    arguments: dict[str, Any] = dict(options or {})
    reads = options_of(family[name]).get("path")
    if reads is not None and reads.required and path is None and "path" not in arguments:
        raise InputError(problem=f"dataset {name!r} reads files", remedy=f"say where they are: {name}:PATH")
    return load_dataset(source, **arguments)


def original_of(name: str) -> str:
    """The dataset whose look-alike this is, by its trait ``original="shapes3d-original"``; else itself.

    :param name: of a dataset.
    """
    return family.traits(name).get("original", name)


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
    variants = options.pop("variants", ())
    data = family[record["name"]].from_record(record["name"], options)
    if variants:
        from polariscope.data.chain import apply_variants

        data = apply_variants(data, variants)
    if record.get("fingerprint", data.fingerprint) != data.fingerprint:
        raise PolariscopeError(
            f"{record.get('path', record['name'])} has changed since it was recorded; "
            "put the old data back, or start again with the new."
        )
    return data
