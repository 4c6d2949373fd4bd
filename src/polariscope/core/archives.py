"""The one reader of compressed files and archives: zip (and npz), tar, gzip.

Nothing is unpacked before it has been looked at. Of an archive the entries are checked first: their number, their
names, their kinds and the sizes they declare; of an array its header. While an entry is read, never more than it
declared comes out of it, and what it holds beyond is damage. Nothing is ever unpickled or run, and no entry is written
under a name of its own.

A file may unpack to 4 GB, or to 200 times its own size where that is more. ``max_unpacked``, in gigabytes, replaces
this limit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from polariscope.core.errors import Argument, InputError
from polariscope.core.text import listed

GIGABYTE = 10**9
LIMIT = 4 * GIGABYTE
"""Bytes to which any file may unpack."""
RATIO = 200
"""Or this many times its size, where that is more."""
MAX_ENTRIES = 1_000_000
"""Entries that an archive may have; the largest we know, CelebA, has 202,599."""
LONGEST_HEADER = 2**20
"""Bytes of a tar header that describes another: a name, times."""
BLOCK = 2**20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DESCRIBING = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
DAMAGE = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, gzip.BadGzipFile),
    *(EOFError, struct.error, NotImplementedError, UnicodeDecodeError),
)
"""What Python raises at files that are not what they seem."""


@runtime_checkable
class Reader(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes: ...


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file in an archive."""

    name: str
    """Its path, with ``/``."""
    size: int
    """Bytes that it declares to unpack to."""


def unpacked_limit(path: Path, max_unpacked: float | None = None) -> int:
    """Bytes to which a file may unpack: 4 GB, or 200 times its size where that is more.

    :param path: the file.
    :param max_unpacked: (default none: as above) gigabytes to allow instead.
    """
    if max_unpacked is None:
        return max(LIMIT, RATIO * path.stat().st_size)
    if not max_unpacked > 0:
        raise InputError("max_unpacked", "be a positive number of gigabytes", got=max_unpacked)
    return int(max_unpacked * GIGABYTE)


class DamagedError(InputError):
    """A file is not whole, or not what it says."""


def damaged(path: Path, reason: object) -> DamagedError:
    """The error for a file that is not whole or not what it says.

    :param path: the file.
    :param reason: what was noticed.
    """
    return DamagedError(
        problem=f"{path} is damaged or not what it says: {str(reason).rstrip('.')}", remedy="get it again"
    )


def too_large(path: Path, limit: int, size: int | None = None) -> InputError:
    """The error for a file that unpacks to more than is allowed.

    :param path: the file.
    :param limit: bytes that are allowed.
    :param size: (default: more than the limit) bytes it would unpack to.
    """
    amount = f"{size / GIGABYTE:.1f} GB" if size else "more than that"
    return InputError(
        problem=(
            f"{path}, of {path.stat().st_size / GIGABYTE:.3g} GB, may unpack to {limit / GIGABYTE:.3g} GB and would "
            f"unpack to {amount}"
        ),
        remedy=(
            "a file that grows like this may be meant to fill your disk. If you trust it, allow more with ",
            Argument("max_unpacked"),
            f" (gigabytes; without it {LIMIT // GIGABYTE} GB, or {RATIO} times the file where that is more)",
        ),
    )


class _Bounded(io.RawIOBase):
    """A stream of which at most so many bytes may be read; more is refused by the error that is given."""

    def __init__(self, stream: Reader, limit: int, refusal: Callable[[], InputError]) -> None:
        self._stream, self._left, self._refusal = stream, limit, refusal

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        # One byte more than is left shows whether there is more.
        got = self._stream.read(min(len(view), self._left + 1))
        if len(got) > self._left:
            raise self._refusal()
        self._left -= len(got)
        view[: len(got)] = got
        return len(got)


class _TarInfo(tarfile.TarInfo):
    """Headers of a tar, of which those that are read into memory whole are not large."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _TarInfo:
        info = super().frombuf(buf, encoding, errors)
        if info.type in _DESCRIBING and info.size > LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {info.size:,} bytes")
        return info


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed with gzip, by its first bytes.

    :param path: the file.
    """
    return _begins(path, b"\x1f\x8b")


def is_zip(path: Path) -> bool:
    """Whether a file is a zip archive, as npz files are, by its first bytes.

    :param path: the file.
    """
    return _begins(path, b"PK\x03\x04", b"PK\x05\x06")


def _begins(path: Path, *marks: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(4).startswith(marks)


@contextlib.contextmanager
def open_stream(path: Path, max_unpacked: float | None = None) -> Iterator[io.BufferedReader]:
    """The bytes of a file, unpacked on the way where it is gzipped; damage and too much are refused while reading.

    Only who reads to the end knows that the file is whole: there its checksum is.

    :param path: the file.
    :param max_unpacked: (default none: 4 GB or 200 times the file) gigabytes that may come out.
    """
    limit = unpacked_limit(path, max_unpacked)
    with translate_errors(path), contextlib.ExitStack() as stack:
        if not is_gzip(path):
            yield stack.enter_context(path.open("rb"))
            return
        unpacked = stack.enter_context(gzip.open(path, "rb"))
        bounded = _Bounded(unpacked, limit, lambda: too_large(path, limit))
        yield io.BufferedReader(bounded, BLOCK)


@contextlib.contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn the errors of Python about a damaged file into one that names the file.

    :param path: the file.
    """
    try:
        yield
    except DAMAGE as error:
        raise damaged(path, error or type(error).__name__) from None


class Archive:
    """A zip or tar (gzipped or not) whose entries have been checked; see :func:`open_archive`."""

    def __init__(self, path: Path, max_unpacked: float | None = None) -> None:
        self.path = path
        self.limit = unpacked_limit(path, max_unpacked)
        self.is_zip = is_zip(path)
        with translate_errors(path):
            self.entries = tuple(self._zip_entries() if self.is_zip else self._tar_entries())

    def _zip_entries(self) -> Iterator[Entry]:
        with zipfile.ZipFile(self.path) as file:
            check = _Check(self.path, self.limit)
            for info in file.infolist():
                name = info.filename
                check.name(name, info.orig_filename)
                if info.flag_bits & 0x1:
                    raise damaged(self.path, f"its entry {name!r} is encrypted")
                if info.compress_type not in _METHODS:
                    raise damaged(
                        self.path,
                        f"its entry {name!r} is packed by a method ({info.compress_type}) not used here",
                    )
                if stat.S_ISLNK(info.external_attr >> 16):
                    raise damaged(self.path, f"its entry {name!r} is a link")
                check.size(name, info.file_size)
                if not info.is_dir():
                    yield Entry(name, info.file_size)

    def _tar_entries(self) -> Iterator[Entry]:
        check = _Check(self.path, self.limit)
        for info, _ in self._tar():
            check.name(info.name, info.name)
            if not (info.isdir() or info.type in (tarfile.REGTYPE, tarfile.AREGTYPE)):
                raise damaged(self.path, f"its entry {info.name!r} is a link, a device or no plain file")
            check.size(info.name, info.size)
            if not info.isdir():
                yield Entry(info.name, info.size)

    def _tar(self) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
        """The headers of a tar, one after the other: a gzipped one can only be read from its beginning."""
        with open_stream(self.path, self.limit / GIGABYTE) as stream:
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=_TarInfo) as file:
                for info in file:
                    yield info, file
            while stream.read(BLOCK):  # to the checksum of gzip
                pass

    def walk(
        self, wanted: Callable[[Entry], bool] | None = None
    ) -> Generator[tuple[Entry, Reader], None, None]:
        """The files of the archive in its order, each with a stream that gives exactly the bytes it declared.

        :param wanted: (default all) whether an entry is read.
        """
        chosen = [entry for entry in self.entries if wanted is None or wanted(entry)]
        with translate_errors(self.path):
            if self.is_zip:
                with zipfile.ZipFile(self.path) as file:
                    for entry in chosen:
                        with file.open(entry.name) as stream:
                            yield entry, _Exact(self.path, entry, cast(Reader, stream))
                return
            left = {entry.name: entry for entry in chosen}
            for info, tar in self._tar():
                if info.name in left:
                    extracted = tar.extractfile(info)
                    assert extracted is not None
                    yield left[info.name], _Exact(self.path, left[info.name], cast(Reader, extracted))

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[Reader]:
        """A stream of one entry.

        :param name: of the entry.
        """
        if name not in {entry.name for entry in self.entries}:
            raise InputError(
                str(self.path),
                f"hold {name!r}",
                got=listed(entry.name for entry in self.entries) or "nothing",
            )
        with contextlib.closing(self.walk(lambda entry: entry.name == name)) as entries:
            _, stream = next(entries)
            with translate_errors(self.path):
                yield stream


class _Check:
    """What must hold of the entries of an archive."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.limit = path, limit
        self.total = 0
        self.names: set[str] = set()

    def name(self, name: str, raw: str) -> None:
        parts = name.replace("\\", "/").split("/")
        shown = repr(parts[-1] or parts[0])
        if name.startswith(("/", "\\")) or ".." in parts or parts[0].endswith(":") or "\0" in raw:
            raise damaged(self.path, f"its entry {shown} would lie outside of the archive")
        if name in self.names:
            raise damaged(self.path, f"it has two entries {shown}")
        self.names.add(name)
        if len(self.names) > MAX_ENTRIES:
            raise damaged(self.path, f"it has more than {MAX_ENTRIES:,} entries")

    def size(self, name: str, size: int) -> None:
        if size < 0:
            raise damaged(self.path, f"its entry {name!r} declares a negative size")
        self.total += size
        if self.total > self.limit:
            raise too_large(self.path, self.limit, self.total)


class _Exact:
    """A stream that gives the declared number of bytes, neither more nor fewer, and then checks its checksum."""

    def __init__(self, path: Path, entry: Entry, stream: Reader) -> None:
        self._path, self._entry, self._stream, self._left = path, entry, stream, entry.size

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; fewer only at the end.

        :param size: how many.
        """
        with translate_errors(self._path):
            parts = []
            wanted = min(size, self._left)
            while wanted > 0:
                part = self._stream.read(min(wanted, BLOCK))
                if not part:
                    raise damaged(
                        self._path,
                        f"{self._entry.name!r} declares {self._entry.size:,} bytes and holds fewer",
                    )
                parts.append(part)
                wanted -= len(part)
                self._left -= len(part)
            if self._left == 0 and self._stream.read(1):
                raise damaged(
                    self._path, f"{self._entry.name!r} declares {self._entry.size:,} bytes and holds more"
                )
            return b"".join(parts)


def open_archive(path: Path, max_unpacked: float | None = None) -> Archive:
    """A zip or tar archive, gzipped or not, whose entries have been checked; nothing is unpacked yet.

    Refused: more than a million entries, names that lead elsewhere, links and devices, encrypted entries, two entries
    of one name, sizes that add up to more than the limit.

    :param path: the file.
    :param max_unpacked: (default none: 4 GB or 200 times the file) gigabytes to which it may unpack.
    """
    if not path.is_file():
        raise InputError(problem=f"there is no file {path}", remedy="give the path of the archive")
    return Archive(path, max_unpacked)
