"""Where unpacked and rendered images are stored between runs: arrays on disk that are mapped, not read.

A compressed file cannot be mapped into memory, and rendering takes time. So what such a dataset holds is written once
into the cache folder as plain ``.npy`` files. Everything in this folder can be made again: it may be deleted at any
time with ``polariscope data clean``.
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
"""Bytes of room for the header of an array."""
LARGE = 64 * 2**20
"""Bytes from which the digest of a file is remembered."""
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")


def cache_folder() -> Path:
    """The folder of everything that is stored between runs: ``POLARISCOPE_CACHE``, or the user's cache folder."""
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
    """Where cached arrays are: ``NAME/…`` below it are those of the dataset of that name."""
    return cache_folder() / "arrays"


def array_file(key: str) -> Path:
    """The file of a cached array.

    :param key: the name of its dataset, a slash, and what identifies the array.
    """
    if not _KEY.fullmatch(key) or ".." in key:
        raise InputError("key", "be lower-case words joined by '/'")
    return arrays_folder() / f"{key}.npy"


def cached_array(
    key: str,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    write: Callable[[np.ndarray, Task], None],
    words: str,
) -> Shaped[np.ndarray, "..."]:
    """A read-only array that is mapped from the cache folder, and made first if it is not there.

    ``write(array, progress)`` fills an array of zeros and says how far it is by ``progress(done, total)``. The array
    appears under its name only once it is whole. While one process makes it, others that want it wait. A file that
    does not have the shape, type and size it must have is made again.

    :param key: the name of the dataset, a slash, and what identifies the array: ``"dsprites/1f0c…"``. The same key
        must always mean the same contents.
    :param shape: shape of the array.
    :param dtype: type of its values.
    :param write: what fills the array.
    :param words: what is being done, for the progress: "dsprites: unpacking the images".
    """
    path = array_file(key)
    cached = _map(path, shape, np.dtype(dtype))
    if cached is not None:
        return cached
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # one of its folders is a file, say
        raise _not_writable(error) from None
    try:
        _check_room(path, math.prod(shape) * np.dtype(dtype).itemsize)
        with filelock.FileLock(path.with_suffix(".lock")):
            cached = _map(path, shape, np.dtype(dtype))  # another process may have made it meanwhile
            if cached is not None:
                return cached
            with files.atomic(path) as part, shown_progress(words) as progress:
                array = np.lib.format.open_memmap(part, mode="w+", dtype=np.dtype(dtype), shape=shape)
                write(array, progress)
                array.flush()
                del array
    except OSError as error:
        if error.errno not in files.NOT_WRITABLE:
            raise
        raise _not_writable(error) from None
    made = _map(path, shape, np.dtype(dtype))
    if made is None:
        raise PolariscopeError(f"{path} was written but cannot be read back; check the disk.")
    return made


def _not_writable(error: OSError) -> InputError:
    return InputError(
        problem=f"the cache folder {cache_folder()} cannot be written ({os.strerror(error.errno or 0)})",
        remedy=f"set the environment variable {VARIABLE} to a folder with room",
    )


def is_cached(key: str) -> bool:
    """Whether an array is in the cache.

    :param key: what identifies it.
    """
    return array_file(key).is_file()


def _map(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """The array in a file, mapped; None where there is none, or not this one."""
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return mapped if mapped.shape == shape and mapped.dtype == dtype else None


def _check_room(path: Path, needed: int) -> None:
    """Refuse to begin what the disk cannot hold."""
    free = shutil.disk_usage(path.parent).free
    if needed + HEADER > free:
        raise InputError(
            problem=(
                f"the cache folder {cache_folder()} needs {file_size(needed)} more, and its disk has "
                f"{file_size(free)} free"
            ),
            remedy=f"free some, or set the environment variable {VARIABLE} to a folder on another disk",
        )


def originals_folder(name: str) -> Path:
    """Where the original files of a dataset are looked for when no path is given, and where they are fetched to.

    :param name: of the dataset.
    """
    return cache_folder() / "originals" / name


def content_digest(path: Path) -> str:
    """SHA-256 of a file's bytes; that of a large file is remembered by its path, size and time of change.

    :param path: the file.
    """
    state = path.stat()
    if state.st_size < LARGE:
        return files.digest_file(path)
    identity = files.digest([str(path.resolve()), state.st_size, state.st_mtime_ns])
    note = cache_folder() / "digests" / f"{identity[:40]}.json"
    if note.is_file():
        return str(files.read_json(note))
    with shown_progress(f"{path.name}: reading it once to know it again") as progress:
        progress(0, 1)
        digest = files.digest_file(path)
    with contextlib.suppress(OSError):  # where it cannot be written, it is computed again
        files.write_json(note, digest)
    return digest


@dataclasses.dataclass(frozen=True)
class CachedFile:
    """A file in the cache folder that belongs to a dataset."""

    dataset: str
    """Name of the dataset."""
    path: Path
    """Where it is."""
    n_bytes: int
    """Its size."""


def cached_files(name: str | None = None, originals: bool = False) -> list[CachedFile]:
    """List the cached files of datasets: arrays and, where asked for, original files.

    :param name: (default all datasets) of the dataset.
    :param originals: (default False) list fetched original files as well.
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
    """Delete files of the cache folder, and the folders that are empty then. Links are deleted, not what they lead to.

    :param cached: files that :func:`cached_files` returned.
    """
    root = cache_folder()
    for file in cached:
        file.path.unlink(missing_ok=True)
        for folder in file.path.parents:
            if folder == root or not folder.is_relative_to(root) or any(folder.iterdir()):
                break
            folder.rmdir()
