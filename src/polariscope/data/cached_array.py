"""Memory-mapped arrays of the cache folder, with a digest of every block that is checked before the block is used.

A cached array is a ``.npy`` file with a *seal* after the data: the SHA-256 of each 16 MB of data, and the SHA-256 of
the key, the header and these digests. The seal of the file is checked when it is opened, and each block once in a
process, when a row of it is first read. Checking costs about 10 ms per block (SHA-256 at 1.7 GB/s); blocks that are
never read cost nothing, and blocks that were checked before cost a comparison.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import EllipsisType

import numpy as np
from jaxtyping import Bool, Int, Shaped

from polariscope.core.errors import PolariscopeError
from polariscope.core.progress import Task, shown_progress

BLOCK = 16 * 2**20
"""Size in bytes of the blocks that have a digest each."""
HEADER = 4096
"""Maximum size in bytes of the header of an array."""
_DIGEST = hashlib.sha256().digest_size


class DamagedCacheError(PolariscopeError):
    """Error about a cached file that cannot be trusted; the message gives the reason."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """Identity and size of a cached array."""

    key: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def n_bytes(self) -> int:
        """Size of the data."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def row_bytes(self) -> int:
        """Size of one row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.n_bytes // BLOCK)

    @property
    def seal_bytes(self) -> int:
        """Size of the seal."""
        return (self.n_blocks + 1) * _DIGEST

    def seal(self, header: bytes, digests: bytes) -> bytes:
        """Return the last digest of the file, which also distinguishes it from the array of another key."""
        # The separator keeps "ab" + "c" and "a" + "bc" apart.
        return hashlib.sha256(b"\0".join((self.key.encode(), header, digests))).digest()


@dataclasses.dataclass
class MappedFile:
    """An open cached file, and which of its blocks were checked."""

    layout: Layout
    data: Shaped[np.ndarray, "..."]
    digests: bytes
    checked: Bool[np.ndarray, " block"]
    identity: tuple[int, int]
    """Device and inode, which change if the file is replaced."""

    def is_whole(self, block: int) -> bool:
        """Return whether a block has its digest; a block that has is not read again."""
        if not self.checked[block]:
            expected = self.digests[block * _DIGEST : (block + 1) * _DIGEST]
            self.checked[block] = _block_digest(self.data, block) == expected
        return bool(self.checked[block])


def _block_digest(array: Shaped[np.ndarray, "..."], block: int) -> bytes:
    data = array.reshape(-1).view(np.uint8)
    return hashlib.sha256(data[block * BLOCK : (block + 1) * BLOCK].data).digest()


def write_sealed(path: Path, layout: Layout, write: Callable[[np.ndarray, Task], None], task: Task) -> None:
    """Write an array and its seal.

    The function that writes fills rows in any order, so the digests are computed when it has finished.

    :param path: new path of the file.
    :param layout: key, shape and type of the array.
    :param write: function that fills the array.
    :param task: progress of writing.
    """
    array = np.lib.format.open_memmap(path, mode="w+", dtype=layout.dtype, shape=layout.shape)
    write(array, task)
    digests = b"".join(_block_digest(array, block) for block in range(layout.n_blocks))
    array.flush()
    # The mapping is closed before the file is extended.
    del array
    with path.open("rb+") as file:
        # The header is all that comes before the data.
        header = file.read(path.stat().st_size - layout.n_bytes)
        file.seek(0, os.SEEK_END)
        file.write(digests + layout.seal(header, digests))


def open_sealed(path: Path, layout: Layout, *, checked: bool = False) -> MappedFile | None:
    """Map a cached array; return None if there is no file, and raise an error if it cannot be trusted.

    :param path: the file.
    :param layout: key, shape and type that the array must have.
    :param checked: (default False) if True, the blocks were written by this process and are not checked again.
    """
    try:
        with path.open("rb") as file:
            # The state of the open file, because the path can be replaced meanwhile.
            state = os.fstat(file.fileno())
            length = state.st_size - layout.n_bytes - layout.seal_bytes
            has_room = 0 < length <= HEADER
            header = file.read(length) if has_room else b""
            file.seek(length + layout.n_bytes if has_room else 0)
            digests, seal = file.read(layout.seal_bytes - _DIGEST) if has_room else b"", file.read(_DIGEST)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    if not has_room or seal != layout.seal(header, digests):
        raise DamagedCacheError(f"The cached file {path} {_problem(path, state.st_size - layout.n_bytes)}.")
    data = np.memmap(path, layout.dtype, "r", length, layout.shape) if layout.n_bytes else _empty(layout)
    identity = (state.st_dev, state.st_ino)
    return MappedFile(layout, data, digests, np.full(layout.n_blocks, checked), identity)


def _empty(layout: Layout) -> Shaped[np.ndarray, "..."]:
    """Return an array without values, because an empty part of a file cannot be mapped."""
    return np.empty(layout.shape, layout.dtype)


def _problem(path: Path, excess: int) -> str:
    with path.open("rb") as file:
        head = file.read(10)
    # In version 1 of the format, bytes 8 and 9 contain the length of the header.
    if head[:6] == b"\x93NUMPY" and 10 + int.from_bytes(head[8:10], "little") == excess:
        return "was written by an earlier version, without digests"
    return "is damaged or belongs to other data"


Rows = Int[np.ndarray, "..."] | int | slice | EllipsisType


class CachedArray:
    """A read-only array in the cache folder, indexed by rows; a damaged block is never returned.

    :param file: the open file.
    :param renew: function that replaces a damaged file and opens the new one.
    """

    def __init__(self, file: MappedFile, renew: Callable[[MappedFile, str], MappedFile]) -> None:
        self._file, self._renew = file, renew
        self.shape, self.dtype = file.layout.shape, file.layout.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Rows) -> Shaped[np.ndarray, "..."]:
        # A renewed file is checked too, because another block of it can be damaged.
        while (damaged := self._damaged_block(rows)) is not None:
            first, last = damaged * BLOCK, min((damaged + 1) * BLOCK, self._file.layout.n_bytes)
            self._file = self._renew(self._file, f"bytes {first:,} to {last:,} do not match their digest")
        return self._file.data[rows]

    def _damaged_block(self, rows: Rows) -> int | None:
        unchecked = self._unchecked_blocks(rows)
        if not len(unchecked):
            return None
        with shown_progress(f"{self._file.layout.key.partition('/')[0]}: checking cached images") as progress:
            for done, block in enumerate(unchecked.tolist()):
                progress(done, len(unchecked))
                if not self._file.is_whole(block):
                    return int(block)
        return None

    def _unchecked_blocks(self, rows: Rows) -> Int[np.ndarray, " block"]:
        if self._file.checked.all():
            return np.empty(0, np.int64)
        indices = np.atleast_1d(rows) if isinstance(rows, np.ndarray | int) else np.arange(len(self))[rows]
        wanted = np.zeros(len(self._file.checked), bool)
        # The remainder makes negative indices positive.
        for first, last in _ranges(np.unique(indices % len(self)), self._file.layout.row_bytes):
            wanted[first : last + 1] = True
        return np.flatnonzero(wanted & ~self._file.checked)


def _ranges(rows: Int[np.ndarray, " row"], row_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last block of each row, without repetitions."""
    first, last = rows * row_bytes // BLOCK, ((rows + 1) * row_bytes - 1) // BLOCK
    yield from {(int(begin), int(end)) for begin, end in zip(first, last, strict=True)}
