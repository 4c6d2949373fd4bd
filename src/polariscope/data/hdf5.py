"""HDF5 files: a check that all their numbers are in the file itself, and the texts of AnnData."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polariscope.core.errors import InputError, not_installed
from polariscope.core.paths import check_regular


def check_contained(path: Path, file: Any) -> None:
    """Refuse an HDF5 file that reads other files: external links, external storage and virtual arrays.

    Such a file could copy the content of any file that its reader can open into the data.

    :param path: path of the file, for the message.
    :param file: the opened file, ``h5py.File``.
    """

    # Exceptions must not leave these functions, because h5py calls them from C; a result ends the visit.
    def by_link(name: str, link: Any) -> str | None:
        return f"a link to another file ({name!r})" if type(link).__name__ == "ExternalLink" else None

    def by_array(name: str, member: Any) -> str | None:
        is_elsewhere = getattr(member, "external", None) or getattr(member, "is_virtual", False)
        return f"an array stored in another file ({name!r})" if is_elsewhere else None

    if problem := file.visititems_links(by_link) or file.visititems(by_array):
        raise InputError(
            problem=f"{path} contains {problem}",
            remedy="write a file that contains all its numbers itself",
        )


@contextlib.contextmanager
def open_cells(path: Path) -> Iterator[Any]:
    """Open a file that AnnData wrote, ``h5py.File``; errors of h5py while it is read get a remedy.

    The file is not closed, because rows can be read from it later.

    :param path: path of an .h5ad file.
    """
    if not check_regular(path).is_file():
        raise InputError(problem=f"there is no file {path}")
    try:
        import h5py
    except ImportError:
        raise not_installed(f"reading {path.name}", "h5py", "hdf5") from None
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise InputError(
            problem=f"{path} is damaged or not an HDF5 file ({error})", remedy="download or write it again"
        ) from None
    try:
        check_contained(path, file)
        yield file
    # h5py raises any of these for files that AnnData did not write.
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            problem=f"{path} is damaged or not as AnnData writes it ({error})", remedy="write it again"
        ) from None


def index_name(group: Any) -> str:
    """Return the name of the column with the names of the rows, in a table that AnnData wrote.

    :param group: the group of the table, such as ``obs``.
    """
    name = group.attrs.get("_index", "_index")
    return name.decode() if isinstance(name, bytes) else str(name)


def texts_of(stored: Any) -> list[str]:
    """Return the texts of a column that AnnData wrote.

    :param stored: an array, or a group with the array and a mask, as newer versions write it.
    """
    values = stored["values"] if hasattr(stored, "keys") else stored
    return [text.decode() if isinstance(text, bytes) else str(text) for text in values[:].tolist()]
