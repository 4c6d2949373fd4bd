"""The original Shapes3D dataset."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polariscope.core import archives
from polariscope.core.errors import InputError, not_installed
from polariscope.core.progress import Task
from polariscope.data.cache import content_digest
from polariscope.data.dataset import dataset
from polariscope.data.hdf5 import check_contained
from polariscope.data.originals import (
    AbstractPublishedGrid,
    Gigabytes,
    OriginalFile,
    grid_sizes,
)

_CHUNK = 1024  # images, 12 MB
_FILTERS = (None, "gzip", "lzf")


@dataset("shapes3d-original")
@dataclasses.dataclass(frozen=True)
class Shapes3DOriginalDataset(AbstractPublishedGrid):
    """Shapes3D from its ``.h5`` file: an object in a coloured room, every combination of six factors once.

    480,000 colour images of 64 × 64 pixels: floor hue 10, wall hue 10, object hue 10, scale 8, shape 4, orientation 15;
    orientation varies fastest. Hues are cyclic. The orientation is that of the camera, from −30° to 30°, so it is not
    cyclic.

    The file is compressed, so its images are unpacked once into the cache folder: 5.9 GB. Reading it requires h5py.
    ``shapes3d`` renders a look-alike without a file.

    Reference: kim2018.
    """

    path: str | None = None
    """The file, or the folder that contains it; None for the cache folder."""
    max_unpacked: Gigabytes = None
    """Maximum size in gigabytes after unpacking; None for 200 times the size of the file, but at least 4."""

    factor_names = ("floor hue", "wall hue", "object hue", "scale", "shape", "orientation")
    factor_kinds = ("cyclic", "cyclic", "cyclic", "ordinal", "categorical", "ordinal")
    original_sizes = (10, 10, 10, 8, 4, 15)
    factor_sizes = original_sizes
    originals = (
        OriginalFile(
            "3dshapes.h5",
            "https://storage.googleapis.com/3d-shapes/3dshapes.h5",
            md5="099a2078d58cec4daad0702c55d06868",
        ),
    )
    homepage = "https://github.com/google-deepmind/3d-shapes"
    licence = "Apache 2.0"
    citation = "kim2018"

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, 64, 64)

    @property
    def _file(self) -> Path:
        return self.locate(self.originals[0].name)

    def _check_files(self) -> None:
        with self._open() as file:
            shape = self._member(file, "images", np.dtype(np.uint8).str, (64, 64, 3)).shape
        self._remember_sizes(self._file, self._find_sizes)
        if shape[0] != len(self):
            raise InputError(
                str(self._file), f"have {len(self):,} images, one for each row of 'labels'", got=shape[0]
            )

    def _find_sizes(self) -> Sequence[int]:
        with self._open() as file:
            labels = self._member(file, "labels", "", (6,))[:]
        return grid_sizes(self._file, labels, "labels")

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        try:
            h5py = importlib.import_module("h5py")
        except ImportError:
            raise not_installed(f"reading {self._file.name}", "h5py", "hdf5") from None
        try:
            with h5py.File(self._file, "r") as file:
                check_contained(self._file, file)
                yield file
        except OSError as error:
            raise archives.damaged(self._file, error) from None

    def _member(self, file: Any, name: str, dtype: str, row: tuple[int, ...]) -> Any:
        """Return a plain array of the file: it must not require an external filter."""
        array = file.get(name) if name in file else None
        if array is None or not hasattr(array, "dtype"):
            raise InputError(str(self._file), f"contain an array {name!r}", got=", ".join(file) or "nothing")
        # Other filters of HDF5 can be plug-ins, which run code from outside the file.
        if array.compression not in _FILTERS:
            raise InputError(
                str(self._file), f"contain the numbers of {name!r} itself, plain or compressed with gzip"
            )
        kind = array.dtype.str == dtype if dtype else array.dtype.kind in "fiu"
        if not kind or array.shape[1:] != row:
            raise InputError(
                str(self._file),
                f"contain {name!r} with rows of shape {row}",
                got=f"{array.dtype} of shape {array.shape}",
            )
        limit = archives.unpacked_limit(self._file, self.max_unpacked)
        if array.nbytes > limit:
            raise archives.too_large(self._file, limit, array.nbytes)
        return array

    def _contents(self) -> list[object]:
        return [content_digest(self._file)]

    def _write(self, array: np.ndarray, progress: Task) -> None:
        with self._open() as file:
            images = self._member(file, "images", np.dtype(np.uint8).str, (64, 64, 3))
            for begin in range(0, len(array), _CHUNK):
                chunk = images[begin : begin + _CHUNK]
                array[begin : begin + len(chunk)] = chunk.transpose(0, 3, 1, 2)
                progress(begin + len(chunk), len(array))
