"""Atomic writing and checked reading of files, so a killed process never leaves a partial file that looks complete."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.parsing import parse_json
from polariscope.core.paths import KINDS_OF_FILE, check_regular
from polariscope.core.types import Recordable

try:
    import fcntl
except ImportError:  # Windows: leftovers are not removed, since they look like files that are being written
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import numpy as np
    import torch


NOT_WRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES)
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)


class WriteError(PolariscopeError, OSError):
    """Error about a file that cannot be written: the disk is full, or permission is missing."""

    @classmethod
    def of(cls, path: Path, error: OSError) -> WriteError:
        """Return the error for a path, with the system's reason."""
        reason = os.strerror(error.errno) if error.errno else str(error)
        write_error = cls(
            f"{path} could not be written: {reason}. No partial file was left; free some space or choose another "
            "folder, then run the same command again."
        )
        # The number is kept, so a folder that is being written can replace the path of a file inside it by its own.
        write_error.errno = error.errno
        return write_error

    def __str__(self) -> str:
        return str(self.args[0])


class _NoLocksError(Exception):
    """The file system has no locks, so leftovers cannot be distinguished from files that are being written."""


def fsync_folder(folder: Path) -> None:
    """Flush a folder to disk, so a rename inside it survives a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


PART = ".polariscope.part"
"""Suffix of files that are being written."""
OLD = f".old{PART}"
"""Suffix of folders that are being replaced."""


def check_target(path: Path, argument: str | None = None, *, folder: bool = False) -> Path:
    """Return the path to write to: the path itself or the target of a link. Other kinds of files raise an error.

    A device or a pipe would be replaced by a regular file, so it is never a target. Commands call this function before
    they start to work.

    :param path: path of the file; it need not exist.
    :param argument: (default None) name of the argument, for the message.
    :param folder: (default False) if True, a folder is to be written instead of a file.
    """
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    try:
        mode = target.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return target  # the path is free, or a parent is not a folder, which writing reports
    except OSError as error:
        raise WriteError.of(path, error) from error
    if stat.S_ISDIR(mode) if folder else stat.S_ISREG(mode):
        return target
    wanted, wrong = ("folder", "file") if folder else ("file", "folder")
    kind = next((word for test, word in KINDS_OF_FILE if test(mode)), wrong)
    raise InputError(
        argument or str(path),
        f"be a {wanted}",
        got=f"the {kind} {path}",
        remedy=f"an existing {wanted} is replaced, so pass the path of a {wanted} or a new path",
    )


Guard = Callable[[], None]
"""A function called right before a file gets its final name; it raises if the writer has lost the right to write."""


@contextlib.contextmanager
def atomic(path: Path, guard: Guard | None = None) -> Iterator[Path]:
    """Yield a temporary path next to ``path``; on success flush it to disk and rename it to ``path``.

    If ``path`` is a link, the target of the link is replaced. An existing device, pipe or folder raises an error.
    Leftovers of killed processes in the same folder are removed first.

    :param path: path of the file.
    :param guard: (default None) function called right before the file gets its name.
    """
    path = check_target(path)
    with _writing(path, tempfile.mkstemp) as part:
        yield part
        # mkstemp creates files that only their owner can read.
        part.chmod(0o666 & ~_umask())
        # Flushed before it is renamed; after a power failure the name could otherwise refer to an empty file.
        _flush(part)
        if guard is not None:
            guard()
        part.replace(path)
        fsync_folder(path.parent)


@contextlib.contextmanager
def spare_copy(path: Path) -> Iterator[Path]:
    """Yield a hidden copy of a file, with which it can be restored even if the disk is full by then.

    :param path: the file, which is restored by renaming the copy; otherwise the copy is deleted at the end.
    """
    with _writing(path, tempfile.mkstemp) as part:
        part.write_bytes(path.read_bytes())
        part.chmod(path.stat().st_mode)
        _flush(part)
        yield part


@contextlib.contextmanager
def atomic_folder(path: Path, guard: Guard | None = None) -> Iterator[Path]:
    """Yield a temporary folder; on success flush its files and rename it to ``path`` (replacing an old one).

    If ``path`` is a link, the target of the link is replaced. Anything that is not a folder raises an error.

    :param path: path of the folder.
    :param guard: (default None) function called right before the folder gets its name.
    """
    path = check_target(path, folder=True)
    with _writing(path, lambda **where: (None, tempfile.mkdtemp(**where))) as part:
        yield part
        # mkdtemp creates folders that only their owner can open.
        part.chmod(0o777 & ~_umask())
        for file in part.rglob("*"):
            if file.is_file():
                _flush(file)
        fsync_folder(part)
        if guard is not None:
            guard()
        old = part.with_name(f"{part.name.removesuffix(PART)}{OLD}")
        # Without the lock, another process would treat the old folder as a leftover and restore it.
        with _held(path):
            # Renamed first, because deleting it in place could be interrupted and leave half a folder under its name.
            if path.exists():
                path.rename(old)
            part.rename(path)
            fsync_folder(path.parent)
            shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _writing(path: Path, make: Callable[..., tuple[int | None, str]]) -> Iterator[Path]:
    """Yield a temporary path, locked while it is written, so other processes do not treat it as a leftover."""
    make_folder(path.parent, path)
    try:
        remove_leftovers(path.parent)
        while True:
            handle, name = make(prefix=f".{path.name}.", suffix=PART, dir=path.parent)
            part = Path(name)
            if handle is not None:
                os.close(handle)
            try:
                lock = _lock(part)
            except _NoLocksError:
                lock = None
                break
            if lock is not None and part.exists():
                break  # otherwise another process removed it as a leftover before it was locked
        try:
            yield part
        finally:
            # Removed before the lock is released, so no other process sees it as a leftover. After a rename
            # there is nothing to remove.
            _remove(part)
            if lock is not None:
                os.close(lock)
    except OSError as error:
        # Other errors can come from the caller's code and are not about writing.
        if error.errno not in NOT_WRITABLE:
            raise
        raise WriteError.of(path, error) from error


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder, also while it is renamed; do nothing if it or locks do not exist."""
    try:
        lock = _lock(path)
    except _NoLocksError:
        lock = None
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def make_folder(folder: Path, wanted: Path | None = None) -> None:
    """Create a folder and its parents; raise a readable error if that is not possible.

    :param folder: the folder.
    :param wanted: (default: the folder) path that the message names.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # also for file systems such as /proc, in which nothing can be created
        raise WriteError.of(wanted or folder, error) from error


def remove_folder(path: Path) -> None:
    """Delete a folder such that a killed process never leaves part of it under its name.

    :param path: the folder.
    """
    gone = path.with_name(f".{path.name}.gone{PART}")
    with _held(path):
        # A leftover of a killed process under this name would make the rename fail.
        shutil.rmtree(gone, ignore_errors=True)
        path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def remove_leftovers(folder: Path) -> list[Path]:
    """Delete leftovers of killed processes in ``folder``; files that are being written are locked and stay.

    An old folder whose replacement was never completed is restored.
    """
    removed: list[Path] = []
    for part in sorted(folder.glob(f".*{PART}")):
        try:
            lock = _lock(part)
        except _NoLocksError:
            return removed
        if lock is None:
            continue
        try:
            target = _target(part) if part.name.endswith(OLD) else None
            if target is not None and not target.exists():
                part.rename(target)
            else:
                _remove(part)
            removed.append(part)
        except OSError:  # a read-only disk
            continue
        finally:
            os.close(lock)
    return removed


def _target(part: Path) -> Path | None:
    """Return the original path of a replaced folder, NAME of ``.NAME.RANDOM.old.polariscope.part``, or None."""
    name = part.name[1:].removesuffix(OLD).rpartition(".")[0]
    return part.with_name(name) if name else None


def _lock(part: Path) -> int | None:
    """Return an exclusive handle on a file or folder; None if another process has it, or if it is gone."""
    if fcntl is None:
        raise _NoLocksError
    try:
        # Read-only, because a folder cannot be opened for writing.
        handle = os.open(part, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if error.errno in NO_LOCKS:
            raise _NoLocksError from None
        return None
    return handle


def _remove(part: Path) -> None:
    if part.is_dir():
        shutil.rmtree(part, ignore_errors=True)
    else:
        part.unlink(missing_ok=True)


def _flush(file: Path) -> None:
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())


def _umask() -> int:
    # The mask can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: Path, text: str, guard: Guard | None = None) -> None:
    """Write ``text`` atomically."""
    with atomic(path, guard) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Recordable, guard: Guard | None = None) -> None:
    """Write indented JSON atomically; NaN and infinity raise an error, because JSON does not have them."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", guard)


def digest(value: Recordable) -> str:
    """Return the SHA-256 of a JSON value, independent of the order of its keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def digest_array(array: np.ndarray) -> str:
    """Return the SHA-256 of an array: of its bytes, type and shape."""
    import numpy as np

    # A view of the bytes requires contiguous memory.
    array = np.ascontiguousarray(array)
    sha = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    sha.update(array.view(np.uint8).data if array.size else b"")
    return sha.hexdigest()


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with check_regular(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_arrays(path: Path, max_unpacked: float | None = None) -> dict[str, np.ndarray]:
    """Read the arrays of an npz file by name, or the array of an npy file as ``""``; pickled objects raise an error.

    :param path: the file.
    :param max_unpacked: (default none: 4 GB or 200 times the file) maximum size after unpacking, in gigabytes.
    """
    # NumPy is imported only when arrays are read.
    from polariscope.core import array_files

    return array_files.read_arrays(path, max_unpacked)


def write_tensors(
    path: Path,
    tensors: Mapping[str, torch.Tensor],
    metadata: Mapping[str, object],
    guard: Guard | None = None,
) -> None:
    """Write a safetensors file atomically, with a hash of the tensors and of ``metadata`` (a JSON value)."""
    from safetensors.torch import save

    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(metadata, allow_nan=False)
    record = {"metadata": text, "sha256": digest([text, digest_tensors(stored)])}
    with atomic(path, guard) as part:
        # There is only one key, because safetensors writes several keys in an order that varies between processes.
        # Bytes are written here, because its save_file uses a temporary file that a killed process would leave behind.
        part.write_bytes(save(stored, metadata={"polariscope": json.dumps(record)}))


def read_tensors(path: Path) -> tuple[dict[str, torch.Tensor], Any]:
    """Read a file written by :func:`write_tensors` and check its hash. Loading never executes code from the file."""
    from safetensors import SafetensorError, safe_open

    check_regular(path)
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except SafetensorError:
        raise PolariscopeError(f"{path} is damaged or not a safetensors file.") from None
    record = _record(path, header)
    try:
        is_whole = record["sha256"] == digest([record["metadata"], digest_tensors(tensors)])
    except (ValueError, KeyError, TypeError):  # the header itself is damaged
        is_whole = False
    if not is_whole:
        raise PolariscopeError(f"{path} is damaged: its hash does not match its contents.")
    return tensors, parse_json(record["metadata"], str(path))


def read_header(path: Path) -> Any:
    """Read the metadata of a file written by :func:`write_tensors`, without tensors and without checking the hash."""
    from safetensors import SafetensorError, safe_open

    check_regular(path)
    try:
        # Reading the header does not require PyTorch.
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
    except SafetensorError:
        raise PolariscopeError(f"{path} is damaged or not a safetensors file.") from None
    try:
        return parse_json(_record(path, header)["metadata"], str(path))
    except (ValueError, KeyError, TypeError):
        raise PolariscopeError(f"{path} is damaged: its header cannot be read.") from None


def _record(path: Path, header: Mapping[str, str]) -> Any:
    if "polariscope" not in header:
        raise PolariscopeError(f"{path} was not written by polariscope: its header has no hash.")
    try:
        return parse_json(header["polariscope"], str(path))
    except ValueError:
        raise PolariscopeError(f"{path} is damaged: its header cannot be read.") from None


def digest_tensors(tensors: Mapping[str, torch.Tensor]) -> str:
    """Return the SHA-256 of the names, types, shapes and bytes of named tensors."""
    import torch

    sha = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        sha.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)};".encode())
        if tensor.numel():
            # Viewed as bytes in PyTorch, because NumPy has no bfloat16. A scalar must be flattened for a view.
            sha.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return sha.hexdigest()
