"""What was measured of a run, each measurement a file of its own beside the model.

An artefact is named by its kind and a hash of its *key*: the model's digest, the data's fingerprint, the part of the
data, the step of the model and the settings. The same key is the same file; another key is another file, so nothing
is ever replaced. Files are numbered in the order in which they were made; the newest has the highest number.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

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

PATIENCE = 60
"""Seconds to wait for another process that writes artefacts."""
FILE_NAME = re.compile(r"([a-z]+(?:-[a-z]+)*)-([0-9a-f]{12})\.(json|safetensors)")


@dataclasses.dataclass(frozen=True)
class Key(AbstractStoredRecord):
    """What an artefact was made from. Equal keys, equal artefacts."""

    kind: str
    """What it is: "representation", "regime", "scores" …"""
    model: str | None
    """Digest of the model; None for what is about the data alone."""
    data: str
    """Fingerprint of the data."""
    part: str = "all"
    """Which part of the data's split."""
    step: int | None = None
    """Gradient steps the model had."""
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Everything else it depends on: number of samples, seed, α …"""
    polariscope: str = __version__
    """Version that made it: the formulas of another one may differ."""

    @property
    def digest(self) -> str:
        """Hash of the key."""
        return files.digest(self.to_dict())


@dataclasses.dataclass(frozen=True)
class Artefact:
    """One file beside a run's model, and what it is."""

    path: Path
    key: Key
    number: int
    """Rises in the order in which artefacts were made."""
    names: tuple[str, ...] = ()
    """Of what holds several things by name, the metrics of scores, those names."""

    @property
    def kind(self) -> str:
        return self.key.kind

    @property
    def n_bytes(self) -> int:
        return self.path.stat().st_size

    def matches(self, **settings: OptionValue) -> bool:
        """Whether it was made with these settings, whatever the others; None: without this one."""
        return all(self.key.settings.get(name) == to_plain(value) for name, value in settings.items())


class Artefacts:
    """The artefacts of one run's folder."""

    def __init__(self, folder: Path, guard: files.Guard | None = None) -> None:
        self.folder = folder
        self.guard = guard
        self._index: dict[Path, tuple[tuple[int, ...], Artefact | str]] = {}

    def __iter__(self) -> Iterator[Artefact]:
        """All that can be read, in the order in which they were made; the rest is in :meth:`damaged`."""
        found, _ = self._look()
        return iter(sorted(found, key=lambda artefact: artefact.number))

    def damaged(self) -> dict[Path, str]:
        """Files that should hold an artefact and do not, with the reason."""
        return self._look()[1]

    def ask(self, path: Path) -> None:
        """Remember that an artefact was asked for now; a disk that cannot be written to remembers nothing."""
        with contextlib.suppress(OSError, PolariscopeError), self.writing():
            asked = self._asked()
            if asked[-1:] != [path.name]:
                names = [*(name for name in asked if name != path.name), path.name]
                documents.write_document(self.folder / layout.ASKED, "asked", names, guard=self.guard)

    def _asked(self) -> list[str]:
        """Names of the files that were asked for, the last one last."""
        try:
            return documents.read_document(self.folder / layout.ASKED, "asked").content
        except (OSError, PolariscopeError):
            return []

    def by_asking(self) -> list[Artefact]:
        """All that can be read, those that were asked for last at the end."""
        place = {name: number for number, name in enumerate(self._asked())}
        return sorted(self, key=lambda one: (place.get(one.path.name, -1), one.number))

    def file(self, key: Key, suffix: str = ".json") -> Path:
        """Where the artefact of a key is kept."""
        return self.folder / f"{key.kind}-{key.digest[:12]}{suffix}"

    # Records: JSON.

    def read(self, key: Key) -> Any | None:
        """The content that was kept under a key; None if there is none, or none that is whole."""
        path = self.file(key)
        if not path.exists():
            return None
        try:
            document = documents.read_document(path, key.kind)
            if document.about.get("key") != key.to_dict():
                raise DamagedError(f"{path} is damaged: it is about something else than its name says.")
        except (DamagedError, FormatError) as error:
            self.set_aside(path, error)
            return None
        return document.content

    def keep(
        self, key: Key, content: Recordable, join: Callable[[object, object], object] | None = None
    ) -> Any:
        """Keep a content under its key, and return what is kept there.

        If there is one already it stays; ``join(earlier, content)`` makes one of both where it grows.
        """
        with self.writing():
            earlier = self.read(key)
            if earlier is not None and join is None:
                return earlier
            number = self._number_of(self.file(key)) if earlier is not None else self._next_number()
            content = to_plain(content if earlier is None or join is None else join(earlier, content))
            if content != earlier:
                about = {"key": key.to_dict(), "number": number}
                documents.write_document(self.file(key), key.kind, content, about, self.guard)
            return content

    # Arrays: safetensors.

    def read_arrays(self, key: Key) -> tuple[dict[str, np.ndarray], Any] | None:
        """The arrays and the words that were kept under a key; None if there are none, or none that are whole."""
        path = self.file(key, ".safetensors")
        if not path.exists():
            return None
        try:
            tensors, header = files.read_tensors(path)
            if header.get("key") != key.to_dict():
                raise DamagedError(f"{path} is damaged: it is about something else than its name says.")
        except PolariscopeError as error:
            self.set_aside(path, error)
            return None
        return {name: tensor.numpy() for name, tensor in tensors.items()}, header["words"]

    def keep_arrays(self, key: Key, arrays: Mapping[str, np.ndarray], words: Recordable) -> None:
        """Keep arrays and a JSON value under a key, unless they are there."""
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
                "words": to_plain(words),
            }
            files.write_tensors(path, tensors, header, self.guard)

    # What both need.

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One writer at a time, so numbers are not given twice and what grows is read before it is written."""
        lock = self.folder / layout.ARTEFACT_LOCK
        try:
            with filelock.FileLock(lock, timeout=PATIENCE):
                files.remove_leftovers(self.folder)
                yield
        except filelock.Timeout:
            raise PolariscopeError(
                f"another process has been writing into {self.folder} for {PATIENCE} seconds; wait for it, or delete "
                f"{lock} if there is none."
            ) from None

    def set_aside(self, path: Path, error: Exception) -> None:
        """Rename a damaged file, so it is made again under its own name, and say so.

        :param path: the file.
        :param error: what is wrong with it, a sentence.
        """
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
        """The lowest that is free: what was damaged and is made again gets its number back."""
        taken = {artefact.number for artefact in self}
        return next(number for number in range(1, len(taken) + 2) if number not in taken)

    def _number_of(self, path: Path) -> int:
        return _artefact(path).number

    def _look(self) -> tuple[list[Artefact], dict[Path, str]]:
        """Return the artefacts of the folder, and the reasons of files that are damaged.

        A file is read again only if it has changed since it was last read through this object.
        """
        index = {}
        for path in sorted(self.folder.iterdir()) if self.folder.is_dir() else []:
            with contextlib.suppress(FileNotFoundError):  # another process has just renamed it
                if not FILE_NAME.fullmatch(path.name):
                    continue
                state = path.stat()
                stamp = (state.st_ino, state.st_mtime_ns, state.st_size)
                if path not in self._index or self._index[path][0] != stamp:
                    self._index[path] = stamp, _artefact_or_reason(path)
                index[path] = self._index[path]
        self._index = index
        found = [entry for _, entry in index.values() if isinstance(entry, Artefact)]
        return found, {path: entry for path, (_, entry) in index.items() if isinstance(entry, str)}


def _artefact(path: Path) -> Artefact:
    """What a file says of itself; of arrays the header only, since their hash is checked when they are read."""
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
        raise DamagedError(f"{path} is damaged: it does not say what it is about.") from None
    if key.digest[:12] != match[2] or key.kind != match[1]:
        raise DamagedError(f"{path} is damaged: it is about something else than its name says.")
    named = content.get(key.kind) if isinstance(content, dict) else None
    return Artefact(path, key, number, tuple(named) if isinstance(named, dict) else ())


def _artefact_or_reason(path: Path) -> Artefact | str:
    try:
        return _artefact(path)
    except PolariscopeError as error:
        return str(error)


def verify(path: Path) -> None:
    """Check the hash of all of an artefact's file; a damaged one is refused."""
    artefact = _artefact(path)
    if path.suffix == ".safetensors":
        files.read_tensors(artefact.path)
    else:
        json.dumps(documents.read_document(path, artefact.kind).content)
