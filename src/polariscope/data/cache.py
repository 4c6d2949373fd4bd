"""Cache of unpacked and rendered images: arrays on disk that are memory-mapped instead of read.

A compressed file cannot be memory-mapped, and rendering takes time. The images of such a dataset are therefore written
once into the cache folder as plain ``.npy`` files. Everything in this folder can be recreated, and
``polariscope data clean`` deletes it at any time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import filelock
import numpy as np
from numpy.typing import DTypeLike

from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.parsing import read_json
from polariscope.core.paths import resolved_path
from polariscope.core.progress import Task, shown_progress
from polariscope.core.text import file_size
from polariscope.data.cached_array import (
    HEADER,
    CachedArray,
    DamagedCacheError,
    Layout,
    MappedFile,
    open_sealed,
    write_sealed,
)

logger = logging.getLogger(__name__)

VARIABLE = "POLARISCOPE_CACHE"
"""Environment variable with the cache folder."""
LARGE = 64 * 2**20
"""Size in bytes from which the digest of a file is cached."""
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")


def cache_folder() -> Path:
    """Return the cache folder: ``POLARISCOPE_CACHE`` if it is set, otherwise the user's cache folder."""
    if folder := os.environ.get(VARIABLE):
        return resolved_path(folder, "folder")
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
    # The pattern allows dots, so the parent folder is excluded separately.
    if not _KEY.fullmatch(key) or ".." in key:
        raise InputError("key", "be lower-case words joined by '/'")
    return arrays_folder() / f"{key}.npy"


def cached_array(
    key: str,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    write: Callable[[np.ndarray, Task], None],
    task: str,
) -> CachedArray:
    """Map a read-only array from the cache folder, and create it first if it is missing.

    ``write(array, progress)`` fills an array of zeros and reports progress through ``progress(done, total)``. The array
    appears under its name only once it is complete. While one process creates it, others that need it wait. A file
    that is damaged, that belongs to another key, or that an earlier version wrote without digests is created again,
    with a warning. Digests are checked block by block, when rows are read (:mod:`polariscope.data.cached_array`).

    :param key: the name of the dataset, a slash, and an identifier of the array: ``"dsprites/1f0c…"``. The same key
        must always mean the same contents.
    :param shape: shape of the array.
    :param dtype: type of its values.
    :param write: function that fills the array.
    :param task: description of the work, for the progress display: "dsprites: unpacking the images".
    """
    path, layout = array_file(key), Layout(key, shape, np.dtype(dtype))

    def renew(damaged: MappedFile | None = None, reason: str = "") -> MappedFile:
        return _create(path, layout, write, task, damaged, reason)

    # A damaged file is opened again under the lock, which also warns about it.
    try:
        cached = open_sealed(path, layout)
    except DamagedCacheError:
        cached = None
    return CachedArray(renew() if cached is None else cached, renew)


def _create(
    path: Path,
    layout: Layout,
    write: Callable[[np.ndarray, Task], None],
    task: str,
    damaged: MappedFile | None,
    reason: str,
) -> MappedFile:
    """Create a cached file and open it, unless another process has done so meanwhile."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # for example, if one of the parent folders is a file
        raise _not_writable(error) from None
    try:
        with filelock.FileLock(path.with_suffix(".lock")):
            try:
                # Another process can have created it while this one waited for the lock.
                cached = open_sealed(path, layout)
            except DamagedCacheError as error:
                logger.warning("%s It is created again.", error)
                cached = None
            # The same device and inode: it is still the file in which a damaged block was found.
            if cached is not None and (damaged is None or cached.identity != damaged.identity):
                return cached
            if cached is not None:
                logger.warning("The cached file %s is damaged: %s. It is created again.", path, reason)
            _check_room(path, layout.n_bytes)
            with files.atomic(path) as part, shown_progress(task) as progress:
                write_sealed(part, layout, write, progress)
            created = open_sealed(path, layout, checked=True)
    except OSError as error:
        if error.errno not in files.NOT_WRITABLE:
            raise
        raise _not_writable(error) from None
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
    """Return the SHA-256 of a file; that of a large file is cached until the file is changed or replaced.

    The cached digest is used only if path, size, inode and both times of change are those of the file, and if its own
    checksum is correct. Otherwise, the file is read again.

    :param path: the file.
    """
    if path.stat().st_size < LARGE:
        return files.digest_file(path)

    def compute(progress: Task) -> str:
        progress(0, 1)
        return files.digest_file(path)

    return _once(path, lambda: _state(path), compute)


def folder_digest(root: Path, names: Sequence[str]) -> str:
    """Return the SHA-256 of the names and contents of files; it is cached until one of them is changed or replaced.

    :param root: folder of the files.
    :param names: names of the files in the folder.
    """

    def state() -> dict[str, Any]:
        states = [_state(root / name) for name in names]
        return {"path": str(root.resolve()), "size": len(names), "files": files.digest(states)}

    def compute(progress: Task) -> str:
        digests = []
        for number, name in enumerate(names):
            progress(number, len(names))
            digests.append([name, files.digest_file(root / name)])
        return files.digest(digests)

    return _once(root, state, compute)


def _once(path: Path, find_state: Callable[[], dict[str, Any]], compute: Callable[[Task], str]) -> str:
    """Return the cached digest of a file or folder in its present state; otherwise compute and cache it."""
    state = find_state()
    # A digest of the path is a valid file name of bounded length.
    note = cache_folder() / "digests" / f"{files.digest(str(path.resolve()))[:40]}.json"
    if (cached := _cached_digest(note, state)) is not None:
        return cached
    with shown_progress(f"{path.name}: computing its digest, once") as progress:
        digest = compute(progress)
    if find_state() == state:  # otherwise the content was changed while it was read
        with contextlib.suppress(OSError):  # if it cannot be stored, the next call computes it again
            files.write_json(note, {**state, "sha256": digest, "check": files.digest([state, digest])})
    return digest


def _state(path: Path) -> dict[str, Any]:
    """Return what identifies a version of a file; the inode and ctime also change if mtime is set back."""
    state = path.stat()
    return {
        "path": str(path.resolve()),
        "size": state.st_size,
        "inode": state.st_ino,
        "mtime": state.st_mtime_ns,
        "ctime": state.st_ctime_ns,
    }


def _cached_digest(note: Path, state: dict[str, Any]) -> str | None:
    """Return the digest in a file of the cache folder; None if it is missing, damaged or of another file."""
    try:
        record = read_json(note)
    # A note that cannot be read is treated as missing: the digest is computed again.
    except (OSError, PolariscopeError, ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(digest := record.get("sha256"), str):
        return None  # version 0.2.0 stored only the digest
    return digest if record == {**state, "sha256": digest, "check": files.digest([state, digest])} else None


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
                    # A link without a target is not a file, but it can be deleted.
                    path
                    for path in sorted(dataset_folder.rglob("*"))
                    if path.is_file() or path.is_symlink()
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
            # Folders outside the cache, and the cache folder itself, are never removed.
            if folder == root or not folder.is_relative_to(root) or any(folder.iterdir()):
                break
            folder.rmdir()
