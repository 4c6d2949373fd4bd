"""Safe reading of compressed files and archives: zip (and npz), tar, gzip.

Files are checked before they are unpacked: the number, names, types and declared sizes of the entries of an archive,
and the header of an array. An entry never yields more bytes than it declares; further bytes count as damage. Nothing is
ever unpickled or executed, and the name of an entry is never used as the name of a file.

By default a file can unpack to 4 GB, or to 200 times its size if that is more. ``max_unpacked``, in gigabytes, replaces
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
from polariscope.core.paths import check_regular
from polariscope.core.text import listed

GIGABYTE = 10**9
LIMIT = 4 * GIGABYTE
"""Bytes to which any file can unpack."""
RATIO = 200
"""Multiple of its size to which a file can unpack, if that is more."""
MAX_ENTRIES = 1_000_000
"""Maximum number of entries of an archive; the largest known one, CelebA, has 202,599."""
MAX_HEADER = 2**20
"""Maximum size in bytes of a tar header that describes another one, with a long name or times."""
BLOCK = 2**20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DESCRIBING = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
# zipfile raises NotImplementedError for versions that it does not know, UnicodeDecodeError for names that are
# not UTF-8, and struct.error for headers that end early.
DAMAGE = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, gzip.BadGzipFile),
    *(EOFError, struct.error, NotImplementedError, UnicodeDecodeError),
)
"""Exceptions that Python raises for damaged files."""


@runtime_checkable
class Reader(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes: ...


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file in an archive."""

    name: str
    """Path in the archive, with ``/``."""
    size: int
    """Declared size in bytes after unpacking."""


def unpacked_limit(path: Path, max_unpacked: float | None = None) -> int:
    """Return the number of bytes to which a file can unpack: 4 GB, or 200 times its size if that is more.

    :param path: the file.
    :param max_unpacked: (default none) another limit, in gigabytes.
    """
    if max_unpacked is None:
        return max(LIMIT, RATIO * path.stat().st_size)
    if not max_unpacked > 0:
        raise InputError("max_unpacked", "be a positive number of gigabytes", got=max_unpacked)
    return int(max_unpacked * GIGABYTE)


class DamagedError(InputError):
    """Error about a file that is incomplete, or whose content does not match its format."""


def damaged(path: Path, reason: object) -> DamagedError:
    """Return the error about a damaged file.

    :param path: the file.
    :param reason: evidence of the damage.
    """
    return DamagedError(
        problem=f"{path} is damaged: {str(reason).rstrip('.')}", remedy="download or copy it again"
    )


def too_large(path: Path, limit: int, size: int | None = None) -> InputError:
    """Return the error about a file that unpacks to more than the limit.

    :param path: the file.
    :param limit: limit in bytes.
    :param size: (default: unknown) size after unpacking, in bytes.
    """
    amount = f"{size / GIGABYTE:.1f} GB, " if size else ""
    return InputError(
        problem=(
            f"{path} has {path.stat().st_size / GIGABYTE:.3g} GB and would unpack to {amount}more than the limit "
            f"of {limit / GIGABYTE:.3g} GB"
        ),
        remedy=(
            "it could be an attempt to fill your disk. If you trust it, raise the limit with ",
            Argument("max_unpacked"),
            f" (in gigabytes; default {LIMIT // GIGABYTE}, or {RATIO} times the size of the file if that is more)",
        ),
    )


class _Bounded(io.RawIOBase):
    """A stream with a maximum number of bytes; reading more raises the error made by ``refusal``."""

    def __init__(self, stream: Reader, limit: int, refusal: Callable[[], InputError]) -> None:
        self._stream, self._left, self._refusal = stream, limit, refusal

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        # Requesting one byte more than allowed reveals a stream that is too long.
        got = self._stream.read(min(len(view), self._left + 1))
        if len(got) > self._left:
            raise self._refusal()
        self._left -= len(got)
        view[: len(got)] = got
        return len(got)


class _TarInfo(tarfile.TarInfo):
    """Headers of a tar file; those that are read into memory as a whole have a maximum size."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _TarInfo:
        info = super().frombuf(buf, encoding, errors)
        if info.type in _DESCRIBING and info.size > MAX_HEADER:
            raise tarfile.ReadError(f"a header of {info.size:,} bytes")
        return info


def is_gzip(path: Path) -> bool:
    """Return True if a file is compressed with gzip, by its first bytes.

    :param path: the file.
    """
    return _begins(path, b"\x1f\x8b")


def is_zip(path: Path) -> bool:
    """Return True if a file is a zip archive, as npz files are, by its first bytes.

    :param path: the file.
    """
    return _begins(path, b"PK\x03\x04", b"PK\x05\x06")


def _begins(path: Path, *marks: bytes) -> bool:
    with check_regular(path).open("rb") as file:
        return file.read(4).startswith(marks)


@contextlib.contextmanager
def open_stream(path: Path, max_unpacked: float | None = None) -> Iterator[io.BufferedReader]:
    """Open a file as a stream of bytes, unpacking gzip; damage and excessive size raise an error while reading.

    The checksum is at the end, so damage is detected for certain only if the stream is read completely.

    :param path: the file.
    :param max_unpacked: (default none: 4 GB or 200 times the file) maximum size after unpacking, in gigabytes.
    """
    limit = unpacked_limit(path, max_unpacked)
    with translate_errors(path), contextlib.ExitStack() as stack:
        if not is_gzip(path):
            yield stack.enter_context(path.open("rb"))
            return
        unpacked = stack.enter_context(gzip.open(path, "rb"))
        # gzip stores the unpacked size modulo 2^32 only, so bytes are counted while they are read.
        bounded = _Bounded(unpacked, limit, lambda: too_large(path, limit))
        yield io.BufferedReader(bounded, BLOCK)


@contextlib.contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Translate Python's exceptions for damaged files into an error that names the file.

    :param path: the file.
    """
    try:
        yield
    except DAMAGE as error:
        raise damaged(path, error or type(error).__name__) from None


class Archive:
    """A zip or tar archive (gzipped or not) with checked entries; see :func:`open_archive`."""

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
                # zipfile cuts a name at its first NUL, so the raw name is checked as well.
                check.name(name, info.orig_filename)
                # Bit 0 of the flags marks encryption.
                if info.flag_bits & 0x1:
                    raise damaged(self.path, f"its entry {name!r} is encrypted")
                if info.compress_type not in _METHODS:
                    raise damaged(
                        self.path,
                        f"its entry {name!r} uses a compression method ({info.compress_type}) that is not supported",
                    )
                # The upper 16 bits contain the Unix mode of the file.
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
                raise damaged(self.path, f"its entry {info.name!r} is not a regular file")
            check.size(info.name, info.size)
            if not info.isdir():
                yield Entry(info.name, info.size)

    def _tar(self) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
        """Yield the headers of a tar file in order, because a gzipped one can only be read from its beginning."""
        with open_stream(self.path, self.limit / GIGABYTE) as stream:
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=_TarInfo) as file:
                for info in file:
                    yield info, file
            while stream.read(BLOCK):  # gzip verifies the checksum at the end of the stream
                pass

    def walk(
        self, wanted: Callable[[Entry], bool] | None = None
    ) -> Generator[tuple[Entry, Reader], None, None]:
        """Yield the files of the archive in order, each with a stream of exactly its declared number of bytes.

        :param wanted: (default all) function that returns True for entries to read.
        """
        selected = [entry for entry in self.entries if wanted is None or wanted(entry)]
        with translate_errors(self.path):
            if self.is_zip:
                with zipfile.ZipFile(self.path) as file:
                    for entry in selected:
                        with file.open(entry.name) as stream:
                            yield entry, _Exact(self.path, entry, cast(Reader, stream))
                return
            by_name = {entry.name: entry for entry in selected}
            # In stream mode an entry can only be read before the next header, so it is yielded here.
            for info, tar in self._tar():
                if info.name in by_name:
                    extracted = tar.extractfile(info)
                    assert extracted is not None
                    entry = by_name[info.name]
                    yield entry, _Exact(self.path, entry, cast(Reader, extracted))

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[Reader]:
        """Open one entry as a stream.

        :param name: name of the entry.
        """
        if name not in {entry.name for entry in self.entries}:
            raise InputError(
                str(self.path),
                f"contain {name!r}",
                got=listed(entry.name for entry in self.entries) or "nothing",
            )
        # Closing the generator closes the archive, also if the caller stops reading early.
        with contextlib.closing(self.walk(lambda entry: entry.name == name)) as entries:
            _, stream = next(entries)
            with translate_errors(self.path):
                yield stream


class _Check:
    """Checks of the names and sizes of the entries of an archive."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.limit = path, limit
        self.total = 0
        self.names: set[str] = set()

    def name(self, name: str, raw: str) -> None:
        parts = name.replace("\\", "/").split("/")
        shown = repr(parts[-1] or parts[0])
        # A part that ends in a colon is a drive of Windows (C:).
        if name.startswith(("/", "\\")) or ".." in parts or parts[0].endswith(":") or "\0" in raw:
            raise damaged(self.path, f"its entry {shown} would be outside the archive")
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
    """A stream of exactly the declared number of bytes, whose checksum is verified at the end."""

    def __init__(self, path: Path, entry: Entry, stream: Reader) -> None:
        self._path, self._entry, self._stream, self._left = path, entry, stream, entry.size

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes; fewer only at the end.

        :param size: maximum number of bytes.
        """
        with translate_errors(self._path):
            parts = []
            wanted = min(size, self._left)
            while wanted > 0:
                part = self._stream.read(min(wanted, BLOCK))
                if not part:
                    raise damaged(
                        self._path,
                        f"{self._entry.name!r} declares {self._entry.size:,} bytes and contains fewer",
                    )
                parts.append(part)
                wanted -= len(part)
                self._left -= len(part)
            # Reading beyond the last byte also makes zipfile verify the checksum.
            if self._left == 0 and self._stream.read(1):
                raise damaged(
                    self._path, f"{self._entry.name!r} declares {self._entry.size:,} bytes and contains more"
                )
            return b"".join(parts)


def open_archive(path: Path, max_unpacked: float | None = None) -> Archive:
    """Open a zip or tar archive, gzipped or not, and check its entries; nothing is unpacked yet.

    An error is raised for more than a million entries, names outside the archive, links and devices, encrypted entries,
    two entries with the same name, and a total size above the limit.

    :param path: the file.
    :param max_unpacked: (default none: 4 GB or 200 times the file) maximum size after unpacking, in gigabytes.
    """
    if not check_regular(path).is_file():
        raise InputError(problem=f"there is no file {path}", remedy="pass the path of an archive")
    return Archive(path, max_unpacked)
