"""Small grey images with one class each, in IDX files: MNIST and datasets in its format."""

from __future__ import annotations

import functools
import math
import struct
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Int, UInt8
from numpy.typing import ArrayLike

from polariscope.core import archives
from polariscope.core.errors import InputError
from polariscope.core.progress import Task
from polariscope.data.cache import content_digest
from polariscope.data.originals import AbstractPublishedDataset, OriginalFile

PARTS = ("train", "t10k")
_MAX_IMAGES = 10_000_000  # images of a part
_BLOCK = 2**20


def idx_files(
    folder: str, md5: tuple[str, str, str, str], md5_unpacked: tuple[str, str, str, str]
) -> tuple[OriginalFile, ...]:
    """Return the four files of MNIST's format, with their published checksums.

    :param folder: address of their folder.
    :param md5: checksums of the gzipped files: training images and labels, test images and labels.
    :param md5_unpacked: checksums of the unpacked files.
    """
    names = [f"{part}-{kind}-ubyte.gz" for part in PARTS for kind in ("images-idx3", "labels-idx1")]
    return tuple(
        OriginalFile(name, f"{folder}{name}", packed, unpacked)
        for name, packed, unpacked in zip(names, md5, md5_unpacked, strict=True)
    )


class AbstractIdxDataset(AbstractPublishedDataset):
    """Images and labels of a training and a test part, in this order."""

    class_count: ClassVar[int] = 10

    @functools.cached_property
    def _heads(self) -> tuple[tuple[int, ...], ...]:
        """Shape of the images of each part, from the headers; the number of labels must match."""
        shapes = []
        for part in PARTS:
            path = self._images_file(part)
            with archives.open_stream(path, self.max_unpacked) as stream:
                shape = read_idx_header(stream.read(16), path, 3)
            path = self._labels_file(part)
            with archives.open_stream(path, self.max_unpacked) as stream:
                (count,) = read_idx_header(stream.read(8), path, 1)
            if count != shape[0]:
                raise InputError(
                    str(path), f"have a label for each of the {shape[0]:,} images", got=f"{count:,}"
                )
            shapes.append(shape)
        if shapes[0][1:] != shapes[1][1:]:
            raise InputError(
                str(self.path),
                "have images of one size in both parts",
                got=f"{shapes[0][1:]} and {shapes[1][1:]}",
            )
        return tuple(shapes)

    def _check_files(self) -> None:
        self._heads  # noqa: B018 (checks the headers)

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, *self._heads[0][1:])

    def __len__(self) -> int:
        return sum(count for count, *_ in self._heads)

    def _images_file(self, part: str) -> Path:
        return self.locate(f"{part}-images-idx3-ubyte.gz")

    def _labels_file(self, part: str) -> Path:
        return self.locate(f"{part}-labels-idx1-ubyte.gz")

    @functools.cached_property
    def _labels(self) -> Int[np.ndarray, "sample 1"]:
        labels = np.concatenate([read_idx(self._labels_file(part), 1, self.max_unpacked) for part in PARTS])
        if labels.max() >= self.class_count:
            raise InputError(str(self.path), f"have labels below {self.class_count}", got=int(labels.max()))
        return labels.astype(np.int64)[:, np.newaxis]

    def factors(self, indices: ArrayLike | int) -> Int[np.ndarray, "sample factor"]:
        return self._labels[self.check_indices(indices)]

    def parts(self) -> dict[str, Int[np.ndarray, " _"]] | None:
        """Return the official split into training and test images."""
        training, testing = (count for count, *_ in self._heads)
        return {"train": np.arange(training), "test": training + np.arange(testing)}

    def _contents(self) -> list[object]:
        # Digests of the unpacked bytes, because gzipped and unpacked files are the same data.
        return [_unpacked_digest(file, self.max_unpacked) for file in self.original_files]

    def _write(self, array: np.ndarray, progress: Task) -> None:
        begin = 0
        for part in PARTS:
            images = read_idx(self._images_file(part), 3, self.max_unpacked)
            array[begin : begin + len(images), 0] = images
            begin += len(images)
            progress(begin, len(array))


def read_idx_header(data: bytes, path: Path, n_axes: int) -> tuple[int, ...]:
    """Read the shape of the bytes in an IDX file.

    :param data: its first 4 + 4 · n_axes bytes.
    :param path: the file, for messages.
    :param n_axes: required number of axes.
    """
    # Two zeros, the type 8 for unsigned bytes, and the number of axes.
    if len(data) < 4 + 4 * n_axes or data[:3] != b"\0\0\x08" or data[3] != n_axes:
        raise archives.damaged(path, f"it does not begin like an IDX file of bytes with {n_axes} axes")
    shape = struct.unpack(f">{n_axes}I", data[4 : 4 + 4 * n_axes])
    if not 1 <= shape[0] <= _MAX_IMAGES or (n_axes == 3 and not all(1 <= side <= 1024 for side in shape[1:])):
        raise archives.damaged(path, f"it declares the shape {shape}")
    return shape


def read_idx(path: Path, n_axes: int, max_unpacked: float | None = None) -> UInt8[np.ndarray, "..."]:
    """Read the bytes of an IDX file, gzipped or not, and check that their number is the declared one.

    :param path: the file.
    :param n_axes: required number of axes.
    :param max_unpacked: (default None: 200 times the size of the file, but at least 4 GB) maximum size in gigabytes
        after unpacking.
    """
    with archives.open_stream(path, max_unpacked) as stream:
        shape = read_idx_header(stream.read(4 + 4 * n_axes), path, n_axes)
        size = math.prod(shape)
        data = stream.read(size)
        if len(data) != size or stream.read(1):
            raise archives.damaged(path, f"it declares {size:,} bytes but contains another number")
    return np.frombuffer(data, np.uint8).reshape(shape)


def _unpacked_digest(path: Path, max_unpacked: float | None) -> str:
    import hashlib

    if not archives.is_gzip(path):
        return content_digest(path)
    sha = hashlib.sha256()
    with archives.open_stream(path, max_unpacked) as stream:
        while block := stream.read(_BLOCK):
            sha.update(block)
    return sha.hexdigest()
