"""Cache of unpacked and rendered images: arrays on disk that are memory-mapped instead of read.

A compressed file cannot be memory-mapped, and rendering takes time. The images of such a dataset are therefore written
once into the cache folder as plain ``.npy`` files. Everything in this folder can be recreated, and
``polariscope data clean`` deletes it at any time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import filelock
import numpy as np
from jaxtyping import Shaped
from numpy.typing import DTypeLike

from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.progress import Task, shown_progress
from polariscope.core.text import file_size

VARIABLE = "POLARISCOPE_CACHE"
"""Environment variable with the cache folder."""
HEADER = 4096
"""Bytes reserved for the header of an array."""
LARGE = 64 * 2**20
"""Size in bytes from which the digest of a file is cached."""
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")


def cache_folder() -> Path:
    """Return the cache folder: ``POLARISCOPE_CACHE`` if it is set, otherwise the user's cache folder."""
    if folder := os.environ.get(VARIABLE):
        return Path(folder).expanduser().resolve()
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "polariscope"


def arrays_folder() -> Path:
    """Return the folder of cached arrays, with one subfolder for each dataset, named after it."""
    return cache_folder() / "arrays"


def array_file(key: str) -> Path:
    """Return the path of a cached array.

    :param key: the name of its dataset, a slash, and an identifier of the array.
    """
    if not _KEY.fullmatch(key) or ".." in key:
        raise InputError("key", "be lower-case words joined by '/'")
    return arrays_folder() / f"{key}.npy"


def cached_array(
    key: str,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    write: Callable[[np.ndarray, Task], None],
    task: str,
) -> Shaped[np.ndarray, "..."]:
    """Map a read-only array from the cache folder, and create it first if it is missing.

    ``write(array, progress)`` fills an array of zeros and reports progress through ``progress(done, total)``. The array
    appears under its name only once it is complete. While one process creates it, others that need it wait. A file
    with the wrong shape, type or size is created again.

    :param key: the name of the dataset, a slash, and an identifier of the array: ``"dsprites/1f0c…"``. The same key
        must always mean the same contents.
    :param shape: shape of the array.
    :param dtype: type of its values.
    :param write: function that fills the array.
    :param task: description of the work, for the progress display: "dsprites: unpacking the images".
    """
    path = array_file(key)
    cached = _map(path, shape, np.dtype(dtype))
    if cached is not None:
        return cached
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # for example, if one of the parent folders is a file
        raise _not_writable(error) from None
    try:
        _check_room(path, math.prod(shape) * np.dtype(dtype).itemsize)
        with filelock.FileLock(path.with_suffix(".lock")):
            cached = _map(path, shape, np.dtype(dtype))  # another process might have created it meanwhile
            if cached is not None:
                return cached
            with files.atomic(path) as part, shown_progress(task) as progress:
                array = np.lib.format.open_memmap(part, mode="w+", dtype=np.dtype(dtype), shape=shape)
                write(array, progress)
                array.flush()
                del array
    except OSError as error:
        if error.errno not in files.NOT_WRITABLE:
            raise
        raise _not_writable(error) from None
    created = _map(path, shape, np.dtype(dtype))
    if created is None:
        raise PolariscopeError(f"{path} was written but cannot be read back; check the disk.")
    return created


def _not_writable(error: OSError) -> InputError:
    return InputError(
        problem=f"the cache folder {cache_folder()} cannot be written ({os.strerror(error.errno or 0)})",
        remedy=f"set the environment variable {VARIABLE} to a folder with room",
    )


def is_cached(key: str) -> bool:
    """Return whether an array is in the cache.

    :param key: key of the array.
    """
    return array_file(key).is_file()


def _map(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Map the array in a file; return None if the file is missing or contains another array."""
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return mapped if mapped.shape == shape and mapped.dtype == dtype else None


def _check_room(path: Path, needed: int) -> None:
    """Raise an error if the disk is too small for an array, before anything is written."""
    free = shutil.disk_usage(path.parent).free
    if needed + HEADER > free:
        raise InputError(
            problem=(
                f"the cache folder {cache_folder()} needs {file_size(needed)} more, and its disk has "
                f"{file_size(free)} free"
            ),
            remedy=f"free some space, or set the environment variable {VARIABLE} to a folder on another disk",
        )


def originals_folder(name: str) -> Path:
    """Return the default folder of a dataset's original files, to which they are also downloaded.

    :param name: name of the dataset.
    """
    return cache_folder() / "originals" / name


def content_digest(path: Path) -> str:
    """Return the SHA-256 of a file; that of a large file is cached by its path, size and time of change.

    :param path: the file.
    """
    state = path.stat()
    if state.st_size < LARGE:
        return files.digest_file(path)
    identity = files.digest([str(path.resolve()), state.st_size, state.st_mtime_ns])
    note = cache_folder() / "digests" / f"{identity[:40]}.json"
    if note.is_file():
        return str(files.read_json(note))
    with shown_progress(f"{path.name}: computing its digest, once") as progress:
        progress(0, 1)
        digest = files.digest_file(path)
    with contextlib.suppress(OSError):  # if it cannot be stored, the next call computes it again
        files.write_json(note, digest)
    return digest


@dataclasses.dataclass(frozen=True)
class CachedFile:
    """A file in the cache folder that belongs to a dataset."""

    dataset: str
    """Name of the dataset."""
    path: Path
    """Path of the file."""
    n_bytes: int
    """Size of the file."""


def cached_files(name: str | None = None, originals: bool = False) -> list[CachedFile]:
    """List the cached files of datasets: arrays and, on request, original files.

    :param name: (default all datasets) name of the dataset.
    :param originals: (default False) if True, also list downloaded original files.
    """
    listed = []
    for folder in (arrays_folder(), cache_folder() / "originals")[: 2 if originals else 1]:
        for dataset_folder in sorted(folder.iterdir()) if folder.is_dir() else ():
            if (
                dataset_folder.is_dir()
                and not dataset_folder.is_symlink()
                and name in (None, dataset_folder.name)
            ):
                files_in = (
                    path for path in sorted(dataset_folder.rglob("*")) if path.is_file() or path.is_symlink()
                )
                listed += [CachedFile(dataset_folder.name, path, path.lstat().st_size) for path in files_in]
    return listed


def remove_cached(cached: list[CachedFile]) -> None:
    """Delete files of the cache folder and the folders that become empty; a link is deleted, but not its target.

    :param cached: files that :func:`cached_files` returned.
    """
    root = cache_folder()
    for file in cached:
        file.path.unlink(missing_ok=True)
        for folder in file.path.parents:
            if folder == root or not folder.is_relative_to(root) or any(folder.iterdir()):
                break
            folder.rmdir()
