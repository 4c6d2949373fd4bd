"""The original smallNORB dataset."""

from __future__ import annotations

import dataclasses
import functools
import math
import struct
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge
from jaxtyping import Int, Shaped
from numpy.typing import ArrayLike

from polariscope.core import archives
from polariscope.core.errors import InputError
from polariscope.core.progress import Task
from polariscope.data.cache import content_digest
from polariscope.data.dataset import dataset
from polariscope.data.originals import AbstractPublishedDataset, Gigabytes, OriginalFile
from polariscope.data.published.support.decoding import resized

Kind = Literal["dat", "cat", "info"]
_HOME = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"
_PARTS = ("5x46789x9x18x6x2x96x96-training", "5x01235x9x18x6x2x96x96-testing")
_KINDS: tuple[Kind, ...] = ("dat", "cat", "info")
_LABELS = ("category", "instance", "elevation", "azimuth", "lighting")
_SIZES = (5, 10, 9, 18, 6)
_KINDS_OF_LABELS = ("categorical", "categorical", "ordinal", "cyclic", "categorical")
_TYPES: dict[int, np.dtype] = {0x1E3D4C55: np.dtype(np.uint8), 0x1E3D4C54: np.dtype("<i4")}
"""Type of the values of a file, by its first number."""
_MAX_IMAGES = 100_000  # images of a part; the originals have 24,300


@dataset("smallnorb")
@dataclasses.dataclass(frozen=True)
class SmallNORBDataset(AbstractPublishedDataset):
    """smallNORB from its binary matrices: photographs of toys under six lights.

    48,600 grey images of the left camera: the 24,300 training images, then the 24,300 test images, in the order of the
    files. Factors are category 5 (animal, human, plane, truck, car), elevation 9, azimuth 18 and lighting 6. The toy
    of a category (``instance``, 10 values) is a factor only if ``instance_factor`` is True. The training part has toys
    4, 6, 7, 8, 9 and the test part the others. Images of 96 × 96 pixels are resized with antialiasing.

    The six files can be gzipped. The images are unpacked once into the cache folder: 199 MB at 64 pixels. ``norb``
    renders look-alikes without a file.

    Reference: lecun2004.
    """

    path: str | None = None
    """Folder of the six files; None for the cache folder."""
    image_size: Annotated[int, Ge(8)] = 64
    """Height and width in pixels."""
    instance_factor: bool = False
    """If True, the toy of a category is the second factor, and every combination of the factors exists once."""
    max_unpacked: Gigabytes = None
    """Maximum size in gigabytes of a file after unpacking; None for 200 times the size of the file, but at least 4."""

    originals = tuple(
        OriginalFile(f"smallnorb-{part}-{kind}.mat.gz", f"{_HOME}smallnorb-{part}-{kind}.mat.gz")
        for part in _PARTS
        for kind in _KINDS
    )
    homepage = _HOME
    licence = "for research; may not be sold"
    citation = "lecun2004"

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.image_size, self.image_size)

    def __len__(self) -> int:
        return sum(self._counts)

    def _file(self, part: str, kind: Kind) -> Path:
        return self.locate(f"smallnorb-{part}-{kind}.mat.gz")

    @functools.cached_property
    def _counts(self) -> tuple[int, ...]:
        """Number of images in the training and in the test part, from the headers of the six files."""
        counts = []
        for part in _PARTS:
            headers = {}
            for kind in _KINDS:
                path = self._file(part, kind)
                with archives.open_stream(path, self.max_unpacked) as stream:
                    headers[kind] = _header(stream, path, kind)
            count = headers["dat"][0]
            for kind in _KINDS:
                if headers[kind][0] != count:
                    raise InputError(
                        str(self._file(part, kind)),
                        f"describe {count:,} images, as its -dat does",
                        got=headers[kind][0],
                    )
            counts.append(count)
        return tuple(counts)

    def _check_files(self) -> None:
        self._counts  # noqa: B018 (checks the headers)
        columns = range(5) if self.instance_factor else (0, 2, 3, 4)
        labels = {"factor_names": _LABELS, "factor_sizes": _SIZES, "factor_kinds": _KINDS_OF_LABELS}
        for attribute, values in labels.items():
            object.__setattr__(self, attribute, tuple(values[column] for column in columns))

    @functools.cached_property
    def _labels(self) -> Int[np.ndarray, "sample 5"]:
        """Category, instance, elevation, azimuth and lighting of every image."""
        rows = []
        for part in _PARTS:
            category = _matrix(self._file(part, "cat"), "cat", self.max_unpacked).reshape(-1, 1)
            info = _matrix(self._file(part, "info"), "info", self.max_unpacked)
            odd = info[:, 2] % 2 != 0
            if odd.any():
                raise InputError(
                    str(self._file(part, "info")),
                    "number the azimuths 0, 2 … 34",
                    got=int(info[odd.argmax(), 2]),
                )
            # The file numbers the azimuths in steps of 2.
            rows.append(np.concatenate([category, info // [1, 1, 2, 1]], axis=1))
        labels = np.concatenate(rows)
        for column, size in enumerate(_SIZES):
            if labels[:, column].min() < 0 or labels[:, column].max() >= size:
                raise InputError(
                    str(self.path),
                    f"number the values of its {_LABELS[column]} from 0 to {size - 1}",
                    got=f"{labels[:, column].min()} … {labels[:, column].max()}",
                )
        return labels.astype(np.int64)

    def factors(self, indices: ArrayLike | int) -> Int[np.ndarray, "sample factor"]:
        labels = self._labels if self.instance_factor else self._labels[:, [0, 2, 3, 4]]
        return labels[self.check_indices(indices)]

    @functools.cached_property
    def _indices(self) -> Int[np.ndarray, " combination"]:
        """Index of each combination of the five factors; −1 if it does not occur."""
        index_of_combination = np.full(math.prod(self.factor_sizes), -1)
        index_of_combination[np.ravel_multi_index(tuple(self._labels.T), self.factor_sizes)] = np.arange(
            len(self)
        )
        return index_of_combination

    def index_of(self, factors: ArrayLike) -> Int[np.ndarray, " sample"]:
        """Return the indices of the observations with these factor values, if the instance is a factor.

        :param factors: factor values, (sample, factor).
        """
        if not self.instance_factor:
            return super().index_of(factors)
        wanted = np.atleast_2d(np.asarray(factors))
        inside = wanted.ndim == 2 and wanted.shape[1] == 5 and np.issubdtype(wanted.dtype, np.integer)
        if not inside or (wanted < 0).any() or (wanted >= np.array(self.factor_sizes)).any():
            raise InputError(
                "factors",
                f"be integers of shape (sample, 5) below {self.factor_sizes}",
                got=f"shape {wanted.shape}",
            )
        indices = self._indices[np.ravel_multi_index(tuple(wanted.T), self.factor_sizes)]
        if (indices < 0).any():
            raise InputError(
                problem=f"{self.name} has no image with the factors {wanted[indices < 0][0].tolist()}"
            )
        return indices

    def parts(self) -> dict[str, Int[np.ndarray, " _"]] | None:
        """Return the official split: some toys for training, other toys for testing."""
        training, testing = self._counts
        return {"train": np.arange(training), "test": training + np.arange(testing)}

    def _contents(self) -> list[object]:
        return [[content_digest(file) for file in self.original_files], self.image_size]

    def _write(self, array: np.ndarray, progress: Task) -> None:
        done = 0
        for part, count in zip(_PARTS, self._counts, strict=True):
            path = self._file(part, "dat")
            with archives.open_stream(path, self.max_unpacked) as stream:
                _, _, height, width = _header(stream, path, "dat")
                for index in range(count):
                    pair = _exactly(stream, 2 * height * width, path)
                    # Each pair has the pictures of two cameras; the left one comes first.
                    left = np.frombuffer(pair, np.uint8, height * width).reshape(height, width)
                    array[done + index, 0] = resized(left, self.image_size)
                    progress(done + index + 1, len(array))
                _end(stream, path)
            done += count


def _header(stream: archives.Reader, path: Path, kind: Kind) -> tuple[int, ...]:
    """Read the shape of a binary matrix, check that it matches its kind, and leave the stream at the values."""
    # The first number is the type of the values, the second the number of axes; both are little-endian.
    magic, n_axes = struct.unpack("<Ii", _exactly(stream, 8, path))
    if magic not in _TYPES or not 1 <= n_axes <= 4:
        raise archives.damaged(
            path, f"it does not begin like a matrix of smallNORB (first number {magic:#x})"
        )
    # The format stores at least three sizes, also for matrices with fewer axes.
    axes = struct.unpack(f"<{max(3, n_axes)}i", _exactly(stream, 4 * max(3, n_axes), path))[:n_axes]
    ends = {"dat": (2, 96, 96), "cat": (), "info": (4,)}[kind]
    dtype = np.uint8 if kind == "dat" else np.int32
    if _TYPES[magic] != dtype or axes[1:] != ends or not 1 <= axes[0] <= _MAX_IMAGES:
        raise InputError(
            str(path),
            f"be a matrix of {np.dtype(dtype).name} of shape {('image', *ends)}",
            got=f"{_TYPES[magic].name} of shape {axes}",
        )
    return axes


def _matrix(path: Path, kind: Kind, max_unpacked: float | None) -> Shaped[np.ndarray, "..."]:
    """Return the values of a small matrix."""
    with archives.open_stream(path, max_unpacked) as stream:
        axes = _header(stream, path, kind)
        values = np.frombuffer(_exactly(stream, 4 * math.prod(axes), path), "<i4").reshape(axes)
        _end(stream, path)
    return values


def _exactly(stream: archives.Reader, size: int, path: Path) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise archives.damaged(path, "it is shorter than its header declares")
    return data


def _end(stream: archives.Reader, path: Path) -> None:
    """Raise an error if data follow. Reading to the end also checks the checksum of a gzipped file."""
    if stream.read(1):
        raise archives.damaged(path, "it is longer than its header declares")
