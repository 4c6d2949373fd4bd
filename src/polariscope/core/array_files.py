"""Arrays of npy and npz files, read without unpickling: headers are checked before data are read."""

from __future__ import annotations

import dataclasses
import math
import struct
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


@dataclasses.dataclass(frozen=True)
class ArrayHeader:
    """What a ``.npy`` says of its array before the array begins."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran_order: bool
    length: int
    """Bytes of the header itself."""

    @property
    def n_bytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_array_header(stream: Reader, path: Path, name: str) -> ArrayHeader:
    """The header of a ``.npy``, from its first bytes; arrays of objects, which hold pickles, are refused.

    :param stream: where it begins.
    :param path: the file it is in, for messages.
    :param name: what the array is called, for messages.
    """
    counted = _Counted(stream)
    try:
        version = np.lib.format.read_magic(cast(BinaryIO, counted))
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
            (3, 0): np.lib.format.read_array_header_2_0,  # as 2.0, names of fields in UTF-8
        }[version]
        shape, fortran_order, dtype = read(cast(BinaryIO, counted))
    except (ValueError, KeyError, SyntaxError, TypeError, UnicodeDecodeError):
        raise not_arrays(path, f"{name!r} has no header of an array") from None
    if dtype.hasobject:
        raise not_arrays(path, f"{name!r} holds Python objects")
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
    """The error for a file that does not hold plain arrays.

    :param path: the file.
    :param reason: what it holds instead.
    """
    # NumPy's own words would advise to load it unsafely.
    return InputError(
        str(path),
        "be an npz file of plain arrays",
        remedy=f"{reason.rstrip('.')}. Write it with numpy.savez and no object arrays",
    )


def read_arrays(
    path: Path, max_unpacked: float | None = None, wanted: Collection[str] | None = None
) -> dict[str, np.ndarray]:
    """The arrays of an npz file by name, or the one of an npy file as ``""``; objects (pickles) are refused.

    :param path: the file.
    :param max_unpacked: (default none: 4 GB or 200 times the file) gigabytes to which it may unpack.
    :param wanted: (default all) names of the arrays to read; the others are not opened.
    """
    if not path.is_file():
        raise InputError(problem=f"there is no file {path}", remedy="give the path of an .npz file")
    if not is_zip(path):
        with path.open("rb") as file:
            header = read_array_header(file, path, path.name)
            if header.length + header.n_bytes != path.stat().st_size:
                raise not_arrays(path, f"its header says {header.n_bytes:,} bytes, and there are others")
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
    """The header of an array in an archive, checked against the size that its entry declares.

    :param path: the archive.
    :param entry: the entry.
    :param stream: its bytes from the beginning.
    """
    header = read_array_header(stream, path, entry.name)
    if header.length + header.n_bytes != entry.size:
        raise not_arrays(
            path,
            f"{entry.name!r} declares an array of {header.n_bytes:,} bytes in an entry of {entry.size:,}",
        )
    return header


def _read_array(stream: Reader, header: ArrayHeader) -> np.ndarray:
    array = np.empty(math.prod(header.shape), dtype=header.dtype)
    if header.n_bytes:
        view = array.view(np.uint8)
        for begin in range(0, header.n_bytes, BLOCK):
            part = stream.read(min(BLOCK, header.n_bytes - begin))
            view[begin : begin + len(part)] = np.frombuffer(part, np.uint8)
    return array.reshape(header.shape, order="F" if header.fortran_order else "C")


def map_stored_array(path: Path, name: str) -> np.ndarray | None:
    """An array of an npz file, mapped read-only where it was stored without compression; None where it was not.

    Its checksum is not checked, since that would mean to read it all.

    :param path: the npz file.
    :param name: of the array.
    """
    archive = open_archive(path, path.stat().st_size / GIGABYTE * RATIO)
    with translate_errors(path), zipfile.ZipFile(path) as file:
        info = file.getinfo(f"{name}.npy")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            return None
        with archive.open(info.filename) as stream:
            header = array_entry(path, Entry(info.filename, info.file_size), stream)
    if header.fortran_order or not header.n_bytes:
        return None
    with path.open("rb") as raw:
        raw.seek(info.header_offset)
        local = raw.read(30)
        if local[:4] != b"PK\x03\x04":
            raise damaged(path, f"{name!r} does not begin where it should")
        begin = info.header_offset + 30 + sum(struct.unpack("<HH", local[26:30])) + header.length
        if begin + header.n_bytes > path.stat().st_size:
            raise damaged(path, f"{name!r} ends after the file")
    return np.memmap(path, dtype=header.dtype, mode="r", offset=begin, shape=header.shape)
