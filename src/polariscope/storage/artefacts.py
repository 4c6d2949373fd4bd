"""Cached results of a run (artefacts), each in a file next to the model.

An artefact is named by its kind and a hash of its *key*: the model's digest, the data's fingerprint, the part of the
data, the step of the model and the settings. Each key has its own file, so results are never replaced. Files are
numbered in the order of their creation; the newest has the highest number.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import filelock
import numpy as np

from polariscope import __version__
from polariscope import storage as layout
from polariscope.core import files
from polariscope.core.errors import PolariscopeError
from polariscope.core.records import AbstractStoredRecord, to_plain
from polariscope.core.types import OptionValue, Recordable
from polariscope.storage import documents
from polariscope.storage.documents import DamagedError, FormatError

logger = logging.getLogger("polariscope")

Content = TypeVar("Content")

PATIENCE = 60
"""Maximum number of seconds to wait for another process that writes artefacts."""
FILE_NAME = re.compile(r"([a-z]+(?:-[a-z]+)*)-([0-9a-f]{12})\.(json|safetensors)")


@dataclasses.dataclass(frozen=True)
class Key(AbstractStoredRecord):
    """Inputs and settings of an artefact; equal keys give equal artefacts."""

    kind: str
    """Kind of the artefact: "representation", "regime", "scores" …"""
    model: str | None
    """Digest of the model; None for results that depend only on the data."""
    data: str
    """Fingerprint of the data."""
    part: str = "all"
    """Part of the data's split."""
    step: int | None = None
    """Gradient steps of the model."""
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """All other settings: number of samples, seed, α …"""
    polariscope: str = __version__
    """Version of polariscope, because formulas can differ between versions."""

    @property
    def digest(self) -> str:
        """Hash of the key."""
        return files.digest(self.to_dict())


@dataclasses.dataclass(frozen=True)
class Artefact:
    """File of one cached result, with its key."""

    path: Path
    key: Key
    number: int
    """Number in the order of creation."""
    names: tuple[str, ...] = ()
    """Names of its parts if it has several, such as the metrics of scores."""

    @property
    def kind(self) -> str:
        return self.key.kind

    @property
    def n_bytes(self) -> int:
        return self.path.stat().st_size

    def matches(self, **settings: OptionValue) -> bool:
        """Return True if it was made with these settings; None matches a setting that is missing."""
        return all(self.key.settings.get(name) == to_plain(value) for name, value in settings.items())


class Artefacts:
    """Cached results in a run folder."""

    def __init__(self, folder: Path, guard: files.Guard | None = None) -> None:
        self.folder = folder
        self.guard = guard
        self.read_only = False
        """If True, a damaged file raises an error when it is read; otherwise it is renamed."""
        # For each file its stamp on disk, with the artefact or the reason why it is damaged.
        self._index: dict[Path, tuple[tuple[int, ...], Artefact | str]] = {}
        self._reported: set[Path] = set()

    def __iter__(self) -> Iterator[Artefact]:
        """Iterate over all readable artefacts in the order of creation, with one warning for each damaged file."""
        artefacts, damaged = self._scan()
        for path in sorted(damaged.keys() - self._reported):
            self._reported.add(path)
            logger.warning("%s It is left out.", damaged[path])
        return iter(sorted(artefacts, key=lambda artefact: artefact.number))

    def damaged(self) -> dict[Path, str]:
        """Return the files of artefacts that are damaged, with the reason."""
        return self._scan()[1]

    def check_all(self) -> None:
        """Check every hash of every artefact; raise an error about the first that is damaged."""
        for path in sorted(self.folder.iterdir()):
            if FILE_NAME.fullmatch(path.name):
                verify(path)

    def set_damaged_aside(self) -> None:
        """Rename all damaged artefacts, so they are computed again when they are needed, with a warning for each."""
        for path in sorted(self.folder.iterdir()):
            if FILE_NAME.fullmatch(path.name):
                try:
                    verify(path)
                except PolariscopeError as error:
                    self.set_aside(path, error)

    def touch(self, path: Path) -> None:
        """Record that an artefact is used now; on a disk that cannot be written, nothing is recorded."""
        with contextlib.suppress(OSError, PolariscopeError), self.writing():
            used = self._used()
            if used[-1:] != [path.name]:
                names = [*(name for name in used if name != path.name), path.name]
                documents.write_document(self.folder / layout.LAST_USED, "asked", names, guard=self.guard)

    def _used(self) -> list[str]:
        """Return the names of the files that were used, in the order of their last use.

        The record only selects what is shown first, so one that cannot be read counts as empty; it is written again
        when a result is used.
        """
        try:
            names = documents.read_document(self.folder / layout.LAST_USED, "asked").content
        except (OSError, PolariscopeError, ValueError, KeyError, TypeError, RecursionError):
            return []
        is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
        return names if is_list else []

    def by_last_use(self) -> list[Artefact]:
        """Return all readable artefacts in the order of their last use."""
        rank = {name: number for number, name in enumerate(self._used())}
        return sorted(self, key=lambda artefact: (rank.get(artefact.path.name, -1), artefact.number))

    def file(self, key: Key, suffix: str = ".json") -> Path:
        """Return the path of the artefact with a key."""
        return self.folder / f"{key.kind}-{key.digest[:12]}{suffix}"

    # Records: JSON.

    def read(self, key: Key, parse: Callable[[Any], Any] = lambda content: content) -> Any | None:
        """Return the content stored under a key; None if it does not exist or is damaged.

        :param key: key of the artefact.
        :param parse: (default: none) function that converts the content; if it fails, the file is damaged, although its
            hash is correct.
        """
        path = self.file(key)
        if not path.exists():
            return None
        try:
            document = documents.read_document(path, key.kind)
            # The name contains only part of the hash, and files can be renamed, so the whole key is compared.
            if document.about.get("key") != key.to_dict():
                raise DamagedError(f"{path} is damaged: its content does not match its name.")
            return _parsed(path, parse, document.content)
        except (DamagedError, FormatError) as error:
            self.set_aside(path, error)
            return None

    def keep(
        self, key: Key, content: Recordable, join: Callable[[object, object], object] | None = None
    ) -> Any:
        """Store a content under its key, and return the stored content.

        If the key already has a content, that is unchanged, unless ``join(earlier, content)`` merges both.
        """
        with self.writing():
            # Read under the lock, because another process can have stored the key since the caller looked.
            earlier = self.read(key)
            if earlier is not None and join is None:
                return earlier
            number = _artefact(self.file(key)).number if earlier is not None else self._next_number()
            content = to_plain(content if earlier is None or join is None else join(earlier, content))
            if content != earlier:
                about = {"key": key.to_dict(), "number": number}
                documents.write_document(self.file(key), key.kind, content, about, self.guard)
            return content

    # Arrays: safetensors.

    def read_arrays(
        self, key: Key, parse: Callable[[dict[str, np.ndarray], dict[str, object]], Content]
    ) -> Content | None:
        """Return the record of the arrays stored under a key; None if they do not exist or are damaged.

        :param key: key of the artefact.
        :param parse: function that makes the record from the arrays by name and their metadata; if it fails, the file
            is damaged, although its hash is correct.
        """
        path = self.file(key, ".safetensors")
        if not path.exists():
            return None
        try:
            tensors, header = files.read_tensors(path)
            if header.get("key") != key.to_dict():
                raise DamagedError(f"{path} is damaged: its content does not match its name.")
            arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
            return _parsed(path, lambda content: parse(arrays, content["words"]), header)
        except PolariscopeError as error:
            self.set_aside(path, error)
            return None

    def keep_arrays(self, key: Key, arrays: Mapping[str, np.ndarray], metadata: Recordable) -> None:
        """Store arrays and a JSON value under a key, unless it already has arrays."""
        # PyTorch is slow to import, and most artefacts are JSON.
        import torch

        with self.writing():
            path = self.file(key, ".safetensors")
            if path.exists():
                return
            tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
            header = {
                "format": layout.FORMAT,
                "key": key.to_dict(),
                "number": self._next_number(),
                "words": to_plain(metadata),
            }
            files.write_tensors(path, tensors, header, self.guard)

    # Shared by records and arrays.

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock for writing, so numbers are unique and a content that grows is read before it is written."""
        lock = self.folder / layout.ARTEFACT_LOCK
        try:
            with filelock.FileLock(lock, timeout=PATIENCE):
                files.remove_leftovers(self.folder)
                yield
        except filelock.Timeout:
            raise PolariscopeError(
                f"another process has been writing to {self.folder} for {PATIENCE} seconds; wait for it, or delete "
                f"{lock} if no such process exists."
            ) from None

    def set_aside(self, path: Path, error: Exception) -> None:
        """Rename a damaged file, so it is computed again, and log a warning.

        :param path: the file.
        :param error: description of the damage, a sentence.
        """
        if self.read_only:
            raise DamagedError(str(error)) from None
        if self.guard is not None:
            self.guard()
        aside = path.with_name(f"{path.name}{layout.ASIDE}")
        try:
            path.replace(aside)
        except OSError:  # a read-only disk
            logger.warning("%s It is computed again.", error)
        else:
            logger.warning("%s It is computed again; the damaged file is kept as %s.", error, aside.name)

    def _next_number(self) -> int:
        """Return the lowest free number, so an artefact that is computed again after damage gets the same number."""
        taken = {artefact.number for artefact in self}
        return next(number for number in range(1, len(taken) + 2) if number not in taken)

    def _scan(self) -> tuple[list[Artefact], dict[Path, str]]:
        """Return the artefacts of the folder, and the damaged files with the reason.

        A file is read again only if it has changed since it was last read through this object.
        """
        index = {}
        for path in sorted(self.folder.iterdir()) if self.folder.is_dir() else []:
            with contextlib.suppress(FileNotFoundError):  # another process has just renamed it
                if not FILE_NAME.fullmatch(path.name):
                    continue
                state = path.stat()
                # The inode differs if a file was replaced by one of the same size and time.
                stamp = (state.st_ino, state.st_mtime_ns, state.st_size)
                if path not in self._index or self._index[path][0] != stamp:
                    self._index[path] = stamp, _artefact_or_reason(path)
                index[path] = self._index[path]
        # Replaced as a whole, so files that no longer exist leave the index.
        self._index = index
        artefacts = [entry for _, entry in index.values() if isinstance(entry, Artefact)]
        return artefacts, {path: entry for path, (_, entry) in index.items() if isinstance(entry, str)}


def _parsed(path: Path, parse: Callable[[Any], Content], content: Any) -> Content:
    """Return the converted content of a file; raise an error if it is not what its kind contains."""
    try:
        return parse(content)
    except (PolariscopeError, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = str(error).rstrip(".") if isinstance(error, PolariscopeError) else repr(error)
        raise DamagedError(f"{path} is damaged: {reason}.") from None


def _artefact(path: Path) -> Artefact:
    """Read the key and number of a file; of arrays only the header, because their hash is checked on reading."""
    match = FILE_NAME.fullmatch(path.name)
    assert match is not None
    if path.suffix == ".json":
        document = documents.read_document(path, match[1])
        record, content = document.about, document.content
    else:
        record, content = files.read_header(path), None
    try:
        key = Key.from_dict(record["key"])
        number = int(record["number"])
    except (KeyError, TypeError, ValueError, PolariscopeError):
        raise DamagedError(f"{path} is damaged: its key is missing.") from None
    if key.digest[:12] != match[2] or key.kind != match[1]:
        raise DamagedError(f"{path} is damaged: its content does not match its name.")
    named = content.get(key.kind) if isinstance(content, dict) else None
    return Artefact(path, key, number, tuple(named) if isinstance(named, dict) else ())


def _artefact_or_reason(path: Path) -> Artefact | str:
    try:
        return _artefact(path)
    except PolariscopeError as error:
        return str(error)


def verify(path: Path) -> None:
    """Check the hash of the whole file of an artefact; raise an error if it is damaged."""
    # Reads a JSON file as a whole and checks its hash, but only the header of arrays.
    _artefact(path)
    if path.suffix == ".safetensors":
        files.read_tensors(path)
