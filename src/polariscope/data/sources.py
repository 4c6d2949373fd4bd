"""Creation of datasets from a name, a command line or a record."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from polariscope.core.errors import Argument, Either, InputError, PolariscopeError
from polariscope.core.options import build, options_of
from polariscope.core.paths import user_path
from polariscope.core.types import OptionValue
from polariscope.data.dataset import AbstractDataset, family

if TYPE_CHECKING:
    from polariscope.data.chain import VariantsLike

logger = logging.getLogger("polariscope")


def load_dataset(name: object, *, variants: VariantsLike = (), **options: OptionValue) -> AbstractDataset:
    """Create a dataset by name, or from a file or folder.

    :param name: name of a dataset ("sprites", a member of ``polariscope.datasets``), path of a file or folder
        ("table.csv"), or both ("arrays:data.npz").
    :param variants: (default none) members of ``polariscope.variants``, which are applied in this order:
        ``["colour", {"name": "subset", "n": 50_000}]``; see :func:`polariscope.apply_variants`.
    :param options: options of the dataset by name; ``polariscope list datasets NAME`` shows them.

    >>> load_dataset("sprites", image_size=32).shape
    (1, 32, 32)
    """
    if not isinstance(name, str | os.PathLike):
        raise InputError(
            "name",
            "be the name of a dataset or the path of a file or folder",
            got=f"{name!r}",
            remedy="use from_arrays or from_dataset for data in memory",
        )
    # A Path is never a name: Path("sprites") is a folder.
    member, path = name_and_path(name if isinstance(name, str) else os.path.join(".", name))
    if path is not None:
        if "path" not in options_of(family[member]):
            raise InputError(
                problem=f"dataset {member!r} does not read files, so write {member!r} without a path",
                got=f"{name!r}",
            )
        if "path" in options:
            raise InputError(
                problem=f"path was passed twice, in {name!r} and as an option {options['path']!r}",
                remedy="pass it once",
            )
        options = {**options, "path": path}
    data = build(family, member, options)
    if not variants:
        return data
    from polariscope.data.chain import apply_variants

    return apply_variants(data, variants)


def name_and_path(source: str) -> tuple[str, str | None]:
    """Return the dataset and the path in a source: ``sprites``, ``arrays:FILE.npz``, ``table.csv``, ``folder/``.

    The name of a dataset takes precedence over files in the current folder: write ``./sprites`` for a folder of that
    name. A source is a path if it contains a slash, has a known ending, or exists. The endings that datasets declare
    determine which of them reads it. A rendered dataset with a path, ``shapes3d:3dshapes.h5``, is replaced by its
    original, which it declares in its decorator as ``original="shapes3d-original"``.

    :param source: the text that the user typed.

    >>> name_and_path("sprites"), name_and_path("arrays:x.npz"), name_and_path("data/x.csv.gz")
    (('sprites', None), ('arrays', 'x.npz'), ('table', 'data/x.csv.gz'))
    """
    name, _, path = source.partition(":")
    if family.has(name):
        return (original_of(name), path) if path else (name, None)
    readers = {
        ending: member for member in family.working() for ending in family.traits(member).get("endings", ())
    }
    file = user_path(source, "data")
    # The longest ending wins, because one ending can be the end of another.
    ending = max((end for end in readers if source.lower().endswith(end)), key=len, default=None)
    if file.is_dir() and "/" in readers:
        return readers["/"], source
    if ending is not None and ending != "/":
        return readers[ending], source
    if file.is_file():
        raise InputError(
            problem=f"no dataset reads {file.name}",
            remedy=f"use a folder, or a file ending in {', '.join(sorted(end for end in readers if end != '/'))}",
        )
    if os.sep in source:
        raise InputError(problem=f"there is no file or folder {source}")
    return name, path or None


def source_name(source: str) -> str:
    """Return the name of the dataset in a source.

    :param source: NAME, PATH or NAME:PATH, as on the command line.

    >>> source_name("sprites"), source_name("arrays:rows.npz"), source_name("rows.npz")
    ('sprites', 'arrays', 'arrays')
    """
    return name_and_path(source)[0]


def parse_source(source: str, options: Mapping[str, object] | None = None) -> AbstractDataset:
    """Create the dataset of a command line with :func:`load_dataset`; raise an error if it requires a path.

    >>> len(parse_source("gaussian", {"n_samples": "100"}))
    100
    """
    name, path = name_and_path(source)
    arguments: dict[str, Any] = dict(options or {})
    reads = options_of(family[name]).get("path")
    if reads is not None and reads.required and path is None and "path" not in arguments:
        raise InputError(problem=f"dataset {name!r} reads files", remedy=f"give their path: {name}:PATH")
    return load_dataset(source, **arguments)


def original_of(name: str) -> str:
    """Return the original of a rendered dataset, its trait ``original="shapes3d-original"``; otherwise its own name.

    :param name: name of a dataset.
    """
    return family.traits(name).get("original", name)


def _with_variants(data: AbstractDataset, variants: Sequence[Any]) -> AbstractDataset:
    if not variants:
        return data
    from polariscope.data.chain import apply_variants

    return apply_variants(data, variants)


def load_recorded(record: Mapping[str, Any]) -> AbstractDataset:
    """Recreate the dataset that ``describe()`` recorded; raise an error if the data have changed since.

    >>> data = load_dataset("sprites", image_size=32)
    >>> load_recorded(data.describe()) == data
    True
    """
    if "name" not in record:
        raise InputError(
            problem="a dataset's record requires a 'name'",
            got=sorted(record),
            remedy="use the result of describe()",
        )
    if "path" in record and record["path"] is None:
        shape = tuple(record.get("shape", ()))
        raise InputError(
            problem=(
                f"the dataset was created from arrays in memory, of shape {shape}, and cannot be loaded again"
            ),
            remedy=Either(
                ("pass ", Argument("data"), " with the same arrays"),
                "open the run in Python and pass the same arrays to open_run or report",
            ),
        )
    options = {
        key: value
        for key, value in record.items()
        if key not in ("name", "shape", "fingerprint", "root_fingerprint")
    }
    variants = options.pop("variants", ())
    root = family[record["name"]].from_record(record["name"], options)
    data = _with_variants(root, variants)
    if record.get("fingerprint", data.fingerprint) != data.fingerprint:
        before = root.as_recorded_before()
        earlier = None if before is None else _with_variants(before, variants)
        if earlier is not None and earlier.fingerprint == record["fingerprint"]:
            logger.warning(
                "%s was recorded by version 0.2.0 with names and sizes of its files only, so a changed picture of the "
                "same size is not detected.",
                record.get("path") or record["name"],
            )
            return earlier
        raise PolariscopeError(
            f"{record.get('path', record['name'])} has changed since it was recorded; "
            "restore the old data, or start again with the new."
        )
    return data
