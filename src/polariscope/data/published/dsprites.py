"""The original dSprites dataset."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from numpy.typing import ArrayLike

from polariscope.core import archives, array_files
from polariscope.core.errors import InputError
from polariscope.core.progress import Task
from polariscope.data.cache import content_digest
from polariscope.data.dataset import dataset
from polariscope.data.originals import (
    AbstractPublishedGrid,
    Gigabytes,
    OriginalFile,
    grid_sizes,
)

_SIDE = 64
_CHUNK = 4096  # images, 16 MB


@dataset("dsprites")
@dataclasses.dataclass(frozen=True)
class DSpritesDataset(AbstractPublishedGrid):
    """dSprites from its ``.npz`` file: white shapes on black, every combination of five factors once.

    737,280 images of 64 × 64 pixels: shape 3 (square, ellipse, heart), scale 6, orientation 40, x 32, y 32; y varies
    fastest. Pixels are 0 and 1 in the file; here white is 255. The colour has a single value and is not a factor. The
    file contains a pickled description, which is never opened.

    The file is compressed, so its images are unpacked once into the cache folder, eight pixels to a byte: 377 MB.
    ``sprites`` renders the same images without a file.

    Reference: matthey2017.
    """

    path: str | None = None
    """The file, or the folder that contains it; None for the cache folder."""
    max_unpacked: Gigabytes = None
    """Maximum size in gigabytes after unpacking; None for 200 times the size of the file, but at least 4."""

    factor_names = ("shape", "scale", "orientation", "x", "y")
    factor_kinds = ("categorical", "ordinal", "cyclic", "ordinal", "ordinal")
    original_sizes = (3, 6, 40, 32, 32)
    factor_sizes = original_sizes
    originals = (
        OriginalFile(
            "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
            "https://github.com/google-deepmind/dsprites-dataset/raw/master/"
            "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
            md5="7da33b31b13a06f4b04a70402ce90c2e",
        ),
    )
    homepage = "https://github.com/google-deepmind/dsprites-dataset"
    licence = "zlib/libpng"
    citation = "matthey2017"

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, _SIDE, _SIDE)

    @property
    def _file(self) -> Path:
        return self.locate(self.originals[0].name)

    def _check_files(self) -> None:
        path = self._file
        archive = archives.open_archive(path, self.max_unpacked)
        header = _header(archive)
        self._remember_sizes(path, lambda: self._find_sizes(path))
        if header.shape[0] != len(self):
            raise InputError(
                str(path),
                f"have {len(self):,} images, one for each row of 'latents_classes'",
                got=header.shape[0],
            )

    def _find_sizes(self, path: Path) -> Sequence[int]:
        arrays = array_files.read_arrays(path, self.max_unpacked, wanted=("latents_classes",))
        classes = arrays.get("latents_classes", np.zeros(0))
        if classes.ndim != 2 or classes.shape[1] != 6 or classes.dtype.kind not in "iu":
            raise InputError(
                str(path),
                "contain 'latents_classes', integers of shape (image, 6)",
                got=f"{classes.dtype} of shape {classes.shape}",
            )
        colour, *sizes = grid_sizes(path, classes, "latents_classes")
        if colour != 1:
            raise InputError(str(path), "have one colour", got=colour)
        return sizes

    def _contents(self) -> list[object]:
        return [content_digest(self._file)]

    def _cached_shape(self) -> tuple[int, ...]:
        return (len(self), _SIDE, _SIDE // 8)

    def _write(self, array: np.ndarray, progress: Task) -> None:
        path = self._file
        archive = archives.open_archive(path, self.max_unpacked)
        with archive.open("imgs.npy") as stream:
            # Reading the header moves the stream to the pixels.
            array_files.read_array_header(stream, path, "imgs")
            for begin in range(0, len(array), _CHUNK):
                count = min(_CHUNK, len(array) - begin)
                pixels = np.frombuffer(stream.read(count * _SIDE**2), np.uint8).reshape(count, _SIDE, _SIDE)
                if pixels.max() > 1:
                    raise InputError(
                        str(path), "contain pixels 0 and 1, as dSprites does", got=int(pixels.max())
                    )
                array[begin : begin + count] = np.packbits(pixels, axis=2)
                progress(begin + count, len(array))

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        return self._pixels(indices) * np.uint8(255)

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample channel height width"]:
        return self._pixels(indices).astype(np.float32)

    def _pixels(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        """Return pixels 0 and 1."""
        return np.unpackbits(self._array[self.check_indices(indices)], axis=2)[:, np.newaxis]


def _header(archive: archives.Archive) -> array_files.ArrayHeader:
    """Read the header of the images and check that it matches dSprites."""
    with archive.open("imgs.npy") as stream:
        header = array_files.read_array_header(stream, archive.path, "imgs")
    if header.dtype != np.uint8 or header.shape[1:] != (_SIDE, _SIDE) or header.fortran_order:
        raise InputError(
            str(archive.path),
            f"contain 'imgs', bytes of shape (image, {_SIDE}, {_SIDE})",
            got=f"{header.dtype} of shape {header.shape}",
        )
    return header
