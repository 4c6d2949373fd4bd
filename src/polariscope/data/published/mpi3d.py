"""The original MPI3D dataset."""

from __future__ import annotations

import dataclasses
import functools
import math
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import UInt8
from numpy.typing import ArrayLike

from polariscope.core import archives, array_files
from polariscope.core.errors import InputError
from polariscope.core.progress import Task
from polariscope.core.text import file_size
from polariscope.core.types import OptionValue
from polariscope.data.cache import content_digest
from polariscope.data.dataset import dataset
from polariscope.data.footprint import Footprint, batch_bytes
from polariscope.data.originals import AbstractPublishedGrid, Gigabytes, OriginalFile

Edition = Literal["toy", "realistic", "real", "complex"]
_FOLDER = "https://storage.googleapis.com/mpi3d_disentanglement_dataset/data/"
_FILES: dict[Edition, OriginalFile] = {
    "toy": OriginalFile("mpi3d_toy.npz", f"{_FOLDER}mpi3d_toy.npz"),
    "realistic": OriginalFile("mpi3d_realistic.npz", f"{_FOLDER}mpi3d_realistic.npz"),
    "real": OriginalFile("mpi3d_real.npz", f"{_FOLDER}mpi3d_real.npz"),
    "complex": OriginalFile("real3d_complicated_shapes_ordered.npz"),
}
_PIXELS = (64, 64, 3)
_CHUNK = 1024  # images, 12 MB


@dataset("mpi3d")
@dataclasses.dataclass(frozen=True)
class MPI3DDataset(AbstractPublishedGrid):
    """MPI3D from its ``.npz`` files: a robot arm that holds an object, every combination of seven factors once.

    1,036,800 colour images of 64 × 64 pixels (toy, realistic, real): object colour 6, object shape 6, object size 2,
    camera height 3, background colour 3, horizontal axis 40, vertical axis 40; the vertical axis varies fastest. The
    complex edition has 4 colours and 4 shapes: 460,800 images. The number of images determines the grid.

    An uncompressed file is memory-mapped. A compressed one is unpacked once into the cache folder: 12.7 GB.

    Reference: gondal2019.
    """

    path: str | None = None
    """A file, or the folder that contains it; None for the cache folder."""
    edition: Edition = "toy"
    """File of the folder: simple renderings, realistic ones, photographs, or photographs of everyday objects."""
    max_unpacked: Gigabytes = None
    """Maximum size in gigabytes after unpacking; None for 200 times the size of the file, but at least 4."""

    factor_names = (
        *("object colour", "object shape", "object size", "camera height", "background colour"),
        *("horizontal axis", "vertical axis"),
    )
    factor_kinds = (
        *("categorical", "categorical", "ordinal", "ordinal", "categorical"),
        *("ordinal", "ordinal"),
    )
    original_sizes = (6, 6, 2, 3, 3, 40, 40)
    factor_sizes = original_sizes
    grids: ClassVar[tuple[tuple[int, ...], ...]] = ((6, 6, 2, 3, 3, 40, 40), (4, 4, 2, 3, 3, 40, 40))
    """The grids of the published files."""
    originals = tuple(_FILES.values())
    homepage = "https://github.com/rr-learning/disentanglement_dataset"
    licence = "CC BY 4.0"
    citation = "gondal2019"

    @classmethod
    def files_for(cls, **options: OptionValue) -> tuple[OriginalFile, ...]:
        """Return the file of the edition.

        :param options: options of the dataset.
        """
        return tuple(file for edition, file in _FILES.items() if edition == options.get("edition", "toy"))

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, 64, 64)

    @property
    def _file(self) -> Path:
        return self.locate(_FILES[self.edition].name)

    def _check_files(self) -> None:
        path = self._file
        archive = archives.open_archive(path, self.max_unpacked)
        with archive.open("images.npy") as stream:
            header = array_files.read_array_header(stream, path, "images")
        counts = {math.prod(sizes): sizes for sizes in self.grids}
        # There can be one axis for all images, or one for each factor.
        count = math.prod(header.shape[:-3])
        if (
            header.dtype != np.uint8
            or header.shape[-3:] != _PIXELS
            or header.fortran_order
            or count not in counts
        ):
            raise InputError(
                str(path),
                f"contain 'images', bytes of shape {' or '.join(str((number, *_PIXELS)) for number in counts)}",
                got=f"{header.dtype} of shape {header.shape}",
            )
        object.__setattr__(self, "factor_sizes", counts[count])

    def _contents(self) -> list[object]:
        return [content_digest(self._file)]

    @functools.cached_property
    def _mapped(self) -> UInt8[np.ndarray, "sample 64 64 3"] | None:
        """The images in the file itself; None if it is compressed."""
        mapped = array_files.map_stored_array(self._file, "images")
        return None if mapped is None else mapped.reshape(-1, *_PIXELS)

    def _write(self, array: np.ndarray, progress: Task) -> None:
        archive = archives.open_archive(self._file, self.max_unpacked)
        with archive.open("images.npy") as stream:
            array_files.read_array_header(stream, self._file, "images")
            for begin in range(0, len(array), _CHUNK):
                count = min(_CHUNK, len(array) - begin)
                pixels = np.frombuffer(stream.read(count * math.prod(_PIXELS)), np.uint8)
                array[begin : begin + count] = pixels.reshape(count, *_PIXELS).transpose(0, 3, 1, 2)
                progress(begin + count, len(array))

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        if self._mapped is None:
            return super().images(indices)
        return np.ascontiguousarray(self._mapped[self.check_indices(indices)].transpose(0, 3, 1, 2))

    def footprint(self) -> Footprint:
        """Return the memory and disk space; a memory-mapped file needs no space in the cache folder."""
        if self._mapped is None:
            return super().footprint()
        size = self._file.stat().st_size
        explanation = f"{file_size(size)} of original files, which are uncompressed and memory-mapped."
        return Footprint(batch_bytes(self.n_features), size, explanation)
