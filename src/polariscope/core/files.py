"""Writing and reading files so that a killed process never leaves one that looks whole and is not."""

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
from polariscope.core.types import Recordable

try:
    import fcntl
except ImportError:  # Windows: leftovers stay, since nobody can tell them from what is being written
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import numpy as np
    import torch


NOT_WRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES)
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)


class WriteError(PolariscopeError, OSError):
    """There is no room, or no right, to write a file."""

    @classmethod
    def of(cls, path: Path, error: OSError) -> WriteError:
        """The error for a path, with the system's reason."""
        reason = os.strerror(error.errno) if error.errno else str(error)
        made = cls(
            f"{path} could not be written: {reason}. Nothing half-written was left; make room or choose another place, "
            "then give the same command again."
        )
        made.errno = error.errno  # a folder of files names itself, not the file inside
        return made

    def __str__(self) -> str:
        return str(self.args[0])


class _NoLocksError(Exception):
    """The file system has no locks, so nobody can tell leftovers from what is being written."""


def fsync_folder(folder: Path) -> None:
    """Make a rename inside ``folder`` last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


PART = ".polariscope.part"
"""End of the names of files that are being written."""
OLD = f".old{PART}"
"""End of the names of folders that are being replaced."""


def check_target(path: Path, argument: str | None = None, *, folder: bool = False) -> Path:
    """Where a file can be written whole: the path, or what a link leads to. Everything else is refused.

    A device or a pipe would be replaced by a plain file, so it is never a target. Commands ask before they work.

    :param path: what is to be written; it need not exist.
    :param argument: (default None) the argument that names it, for the message.
    :param folder: (default False) whether a folder is to be written instead of a file.
    """
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    try:
        mode = target.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return target  # nothing there yet, or a folder on the way that is none, which writing names
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
        remedy=f"what is written replaces what is there, so give the path of a {wanted} or a new one",
    )


KINDS_OF_FILE: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISLNK, "link that leads in a circle,"),
)

Guard = Callable[[], None]
"""Called right before a file gets its name; raises where the writer has lost the right to write."""


@contextlib.contextmanager
def atomic(path: Path, guard: Guard | None = None) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on success flush it to disk and rename it over ``path``.

    A link stays, and what it leads to is replaced. What exists and is no plain file (a device, a pipe, a folder) is
    refused. What a killed process left behind in the same folder is removed first.

    :param path: where the file goes.
    :param guard: (default None) called right before it gets its name.
    """
    path = check_target(path)
    with _writing(path, tempfile.mkstemp) as part:
        yield part
        part.chmod(0o666 & ~_umask())
        _flush(part)
        if guard is not None:
            guard()
        part.replace(path)
        fsync_folder(path.parent)


@contextlib.contextmanager
def atomic_folder(path: Path, guard: Guard | None = None) -> Iterator[Path]:
    """Yield a temporary folder; on success flush its files and rename it to ``path`` (replacing an old one).

    A link stays, and the folder it leads to is replaced; what is no folder is refused.

    :param path: where the folder goes.
    :param guard: (default None) called right before it gets its name.
    """
    path = check_target(path, folder=True)
    with _writing(path, lambda **where: (None, tempfile.mkdtemp(**where))) as part:
        yield part
        part.chmod(0o777 & ~_umask())
        for file in part.rglob("*"):
            if file.is_file():
                _flush(file)
        fsync_folder(part)
        if guard is not None:
            guard()
        old = part.with_name(f"{part.name.removesuffix(PART)}{OLD}")
        with _held(path):  # or another process would take it for a leftover and put it back
            if path.exists():
                path.rename(
                    old
                )  # deleting it in place could be cut short and leave half a folder under its name
            part.rename(path)
            fsync_folder(path.parent)
            shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _writing(path: Path, make: Callable[..., tuple[int | None, str]]) -> Iterator[Path]:
    """A part of ``path``, locked while it is written, so others can tell it from one that was left behind."""
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
                break  # else somebody took it for a leftover before it was locked
        try:
            yield part
        finally:
            _remove(part)
            if lock is not None:
                os.close(lock)
    except OSError as error:
        if error.errno not in NOT_WRITABLE:
            raise
        raise WriteError.of(path, error) from error


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder, by whatever name it goes, where it exists and locks do."""
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
    """Make a folder and those on the way; where that cannot be, say so in words.

    :param folder: the folder.
    :param wanted: (default: the folder) what is to be written, which the message names.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # also where nothing can be made at all, as in /proc
        raise WriteError.of(wanted or folder, error) from error


def remove_folder(path: Path) -> None:
    """Delete a folder of files so that a kill never leaves half of it under its name.

    :param path: the folder.
    """
    gone = path.with_name(f".{path.name}.gone{PART}")
    with _held(path):
        shutil.rmtree(gone, ignore_errors=True)
        path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def remove_leftovers(folder: Path) -> list[Path]:
    """Delete what killed processes left in ``folder``; what is being written now is locked and stays.

    A folder that was put aside for a new one that never came is put back.
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
    """Whose folder was put aside: ``.NAME.RANDOM.old.polariscope.part`` is of NAME; None where no name is left."""
    name = part.name[1:].removesuffix(OLD).rpartition(".")[0]
    return part.with_name(name) if name else None


def _lock(part: Path) -> int | None:
    """A handle on a file or folder that only one process can have; None when another has it, or it is gone."""
    if fcntl is None:
        raise _NoLocksError
    try:
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
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: Path, text: str, guard: Guard | None = None) -> None:
    """Write ``text`` atomically."""
    with atomic(path, guard) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Recordable, guard: Guard | None = None) -> None:
    """Write readable JSON atomically; NaN and infinity are refused, since they are not JSON."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", guard)


def read_json(path: Path) -> Any:
    """Read a JSON file; a damaged one is named."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise PolariscopeError(f"{path} is damaged: it is not JSON ({error}).") from None


def digest(value: Recordable) -> str:
    """SHA-256 of a JSON value, whatever the order of its keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def digest_array(array: np.ndarray) -> str:
    """SHA-256 of an array: its bytes, type and shape."""
    import numpy as np

    array = np.ascontiguousarray(array)
    sha = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    sha.update(array.view(np.uint8).data if array.size else b"")
    return sha.hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_arrays(path: Path, max_unpacked: float | None = None) -> dict[str, np.ndarray]:
    """The arrays of an npz file by name, or the one of an npy file as ``""``; objects (pickles) are refused.

    :param path: the file.
    :param max_unpacked: (default none: 4 GB or 200 times the file) gigabytes to which it may unpack.
    """
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
        # One key only: safetensors writes several in an order that changes from process to process. And bytes:
        # its save_file writes through a temporary file of its own, which would be left behind by a kill.
        part.write_bytes(save(stored, metadata={"polariscope": json.dumps(record)}))


def read_tensors(path: Path) -> tuple[dict[str, torch.Tensor], Any]:
    """Read what :func:`write_tensors` wrote, and check it. Loading never runs code from the file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except SafetensorError:
        raise PolariscopeError(f"{path} is damaged or not a safetensors file.") from None
    record = _record(path, header)
    try:
        whole = record["sha256"] == digest([record["metadata"], digest_tensors(tensors)])
    except (ValueError, KeyError, TypeError):  # the header itself is damaged
        whole = False
    if not whole:
        raise PolariscopeError(f"{path} is damaged: its hash does not match its contents.")
    return tensors, json.loads(record["metadata"])


def read_header(path: Path) -> Any:
    """The metadata of what :func:`write_tensors` wrote, without reading the tensors: not checked against the hash."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
    except SafetensorError:
        raise PolariscopeError(f"{path} is damaged or not a safetensors file.") from None
    try:
        return json.loads(_record(path, header)["metadata"])
    except (ValueError, KeyError, TypeError):
        raise PolariscopeError(f"{path} is damaged: its header cannot be read.") from None


def _record(path: Path, header: Mapping[str, str]) -> Any:
    if "polariscope" not in header:
        raise PolariscopeError(f"{path} was not written by polariscope: its header has no hash.")
    try:
        return json.loads(header["polariscope"])
    except ValueError:
        raise PolariscopeError(f"{path} is damaged: its header cannot be read.") from None


def digest_tensors(tensors: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 over the names, types, shapes and bytes of named tensors."""
    import torch

    sha = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        sha.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)};".encode())
        if tensor.numel():
            sha.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return sha.hexdigest()
