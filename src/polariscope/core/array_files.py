"""Reading of arrays in npy and npz files without unpickling; headers are checked before data are read."""

from __future__ import annotations

import dataclasses
import math
import struct
import tokenize
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from polariscope.core.archives import (
    BLOCK,
    GIGABYTE,
    RATIO,
    DamagedError,
    Entry,
    Reader,
    damaged,
    is_zip,
    open_archive,
    translate_errors,
)
from polariscope.core.errors import InputError
from polariscope.core.paths import check_regular


@dataclasses.dataclass(frozen=True)
class ArrayHeader:
    """Header of a ``.npy`` file."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran_order: bool
    length: int
    """Size of the header in bytes."""

    @property
    def n_bytes(self) -> int:
        """Size of the array in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_array_header(stream: Reader, path: Path, name: str) -> ArrayHeader:
    """Read the header of a ``.npy`` file; arrays of objects, which contain pickles, raise an error.

    :param stream: stream at the beginning of the header.
    :param path: path of the file, for messages.
    :param name: name of the array, for messages.
    """
    counted = _Counted(stream)
    try:
        version = np.lib.format.read_magic(cast(BinaryIO, counted))
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
            (
                3,
                0,
            ): np.lib.format.read_array_header_2_0,  # 3.0 differs from 2.0 only in that names of fields are UTF-8
        }[version]
        shape, fortran_order, dtype = read(cast(BinaryIO, counted))
    except (ValueError, KeyError, SyntaxError, TypeError, RecursionError, MemoryError, tokenize.TokenError):
        # NumPy parses the header as a Python literal, so hostile text can raise any error of Python's parser.
        raise not_arrays(path, f"{name!r} does not have the header of an array") from None
    if dtype.hasobject:
        raise not_arrays(path, f"{name!r} contains Python objects")
    if any(length < 0 for length in shape):
        raise not_arrays(path, f"{name!r} declares the shape {shape}")
    return ArrayHeader(tuple(shape), dtype, bool(fortran_order), counted.count)


class _Counted:
    def __init__(self, stream: Reader) -> None:
        self._stream, self.count = stream, 0

    def read(self, size: int, /) -> bytes:
        got = self._stream.read(size)
        self.count += len(got)
        return got


def not_arrays(path: Path, reason: str) -> InputError:
    """Return the error about a file that does not contain plain arrays.

    :param path: the file.
    :param reason: description of its content.
    """
    # NumPy's own message would advise unsafe loading (allow_pickle=True).
    return InputError(
        str(path),
        "be an npz file of plain arrays",
        remedy=f"{reason.rstrip('.')}. Write it with numpy.savez, without object arrays",
    )


def read_arrays(
    path: Path, max_unpacked: float | None = None, wanted: Collection[str] | None = None
) -> dict[str, np.ndarray]:
    """Read the arrays of an npz file by name, or the array of an npy file as ``""``; pickled objects raise an error.

    :param path: the file.
    :param max_unpacked: (default none: 4 GB or 200 times the file) maximum size after unpacking, in gigabytes.
    :param wanted: (default all) names of the arrays to read; the others are not opened.
    """
    if not check_regular(path).is_file():
        raise InputError(problem=f"there is no file {path}", remedy="pass the path of an .npz file")
    if not is_zip(path):
        with path.open("rb") as file:
            header = read_array_header(file, path, path.name)
            # The size is checked before memory is reserved, because a short header can declare any shape.
            if header.length + header.n_bytes != path.stat().st_size:
                raise not_arrays(
                    path, f"its header declares {header.n_bytes:,} bytes, and the file has another size"
                )
            return {"": _read_array(file, header)}
    try:
        archive = open_archive(path, max_unpacked)
    except DamagedError as error:
        raise not_arrays(path, str(error.problem)) from None
    arrays = {}
    for entry, stream in archive.walk(
        lambda entry: wanted is None or entry.name.removesuffix(".npy") in wanted
    ):
        header = array_entry(path, entry, stream)
        arrays[entry.name.removesuffix(".npy")] = _read_array(stream, header)
    return arrays


def array_entry(path: Path, entry: Entry, stream: Reader) -> ArrayHeader:
    """Read the header of an array in an archive and check it against the declared size of its entry.

    :param path: the archive.
    :param entry: the entry.
    :param stream: stream at the beginning of the entry.
    """
    header = read_array_header(stream, path, entry.name)
    if header.length + header.n_bytes != entry.size:
        raise not_arrays(
            path,
            f"{entry.name!r} declares an array of {header.n_bytes:,} bytes in an entry of {entry.size:,}",
        )
    return header


def _read_array(stream: Reader, header: ArrayHeader) -> np.ndarray:
    # A flat array is filled block by block, so the data are in memory only once.
    array = np.empty(math.prod(header.shape), dtype=header.dtype)
    if header.n_bytes:
        view = array.view(np.uint8)
        for begin in range(0, header.n_bytes, BLOCK):
            part = stream.read(min(BLOCK, header.n_bytes - begin))
            view[begin : begin + len(part)] = np.frombuffer(part, np.uint8)
    return array.reshape(header.shape, order="F" if header.fortran_order else "C")


def map_stored_array(path: Path, name: str) -> np.ndarray | None:
    """Map an array of an npz file into memory, read-only; return None if it is compressed.

    The checksum is not verified, because that would require reading the whole array.

    :param path: the npz file.
    :param name: name of the array.
    """
    archive = open_archive(path, path.stat().st_size / GIGABYTE * RATIO)
    with translate_errors(path), zipfile.ZipFile(path) as file:
        info = file.getinfo(f"{name}.npy")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            return None
        with archive.open(info.filename) as stream:
            header = array_entry(path, Entry(info.filename, info.file_size), stream)
    # A length of 0 cannot be mapped.
    if header.fortran_order or not header.n_bytes:
        return None
    with path.open("rb") as raw:
        raw.seek(info.header_offset)
        local = raw.read(30)
        if local[:4] != b"PK\x03\x04":
            raise damaged(path, f"{name!r} does not begin at the declared offset")
        # The local header has its own lengths of name and extra field (bytes 26–29), which can differ from
        # those in the directory of the archive.
        begin = info.header_offset + 30 + sum(struct.unpack("<HH", local[26:30])) + header.length
        if begin + header.n_bytes > path.stat().st_size:
            raise damaged(path, f"{name!r} extends beyond the end of the file")
    return np.memmap(path, dtype=header.dtype, mode="r", offset=begin, shape=header.shape)
