"""The original Cars3D dataset."""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge
from jaxtyping import UInt8

from polariscope.core import archives
from polariscope.core.errors import InputError
from polariscope.core.progress import Task
from polariscope.data.cache import content_digest
from polariscope.data.dataset import dataset
from polariscope.data.originals import AbstractPublishedGrid, Gigabytes, OriginalFile
from polariscope.data.published.support.decoding import resized


@dataset("cars3d")
@dataclasses.dataclass(frozen=True)
class Cars3DDataset(AbstractPublishedGrid):
    """Cars3D from its ``.mat`` files: renderings of cars on white, every combination of three factors once.

    17,568 colour images: elevation 4, azimuth 24, identity 183. The identity, in the order of the file names, varies
    fastest. Each file has the images ``im`` of one car, of shape (128, 128, 3, 24, 4). They are resized with
    antialiasing.

    The files are in ``data/cars`` of an archive ``.tar.gz`` of several datasets; its unpacked folder works too. The
    images are unpacked once into the cache folder: 216 MB at 64 pixels. ``cars`` renders similar images without a file.

    Reference: reed2015.
    """

    path: str | None = None
    """The archive, or the folder that contains it or the .mat files; None for the cache folder."""
    image_size: Annotated[int, Ge(8)] = 64
    """Height and width in pixels."""
    max_unpacked: Gigabytes = None
    """Maximum size in gigabytes after unpacking; None for 200 times the size of the file, but at least 4."""

    factor_names = ("elevation", "azimuth", "identity")
    factor_kinds = ("ordinal", "cyclic", "categorical")
    original_sizes = (4, 24, 183)
    factor_sizes = original_sizes
    originals = (
        OriginalFile(
            "nips2015-analogy-data.tar.gz", "http://www.scottreed.info/files/nips2015-analogy-data.tar.gz"
        ),
    )
    homepage = "https://github.com/reedscot/nips2015"
    licence = "none stated; published for research"
    citation = "reed2015"

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, self.image_size, self.image_size)

    def _folder(self) -> Path | None:
        """Return the folder of the unpacked ``.mat`` files; None if the archive is used."""
        assert self.path is not None
        base = Path(self.path)
        for folder in (base, base / "cars", base / "data" / "cars"):
            if base.is_dir() and any(folder.glob("*.mat")):
                return folder
        return None

    @property
    def original_files(self) -> tuple[Path, ...]:
        """The archive, or the unpacked files."""
        folder = self._folder()
        return (
            (self.locate(self.originals[0].name),) if folder is None else tuple(sorted(folder.glob("*.mat")))
        )

    def _check_files(self) -> None:
        folder = self._folder()
        if folder is None:
            self._remember_sizes(self.original_files[0], self._find_sizes)
        else:
            self._take_sizes(self._find_sizes(), folder)

    def _cars(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and bytes of every car's file, in the order of the archive or sorted."""
        folder = self._folder()
        if folder is not None:
            for file in sorted(folder.glob("*.mat")):
                yield file.name, file.read_bytes()
            return
        archive = archives.open_archive(self.original_files[0], self.max_unpacked)
        for entry, stream in archive.walk(lambda entry: _is_car(entry.name)):
            yield entry.name, stream.read(entry.size)

    def _find_sizes(self) -> Sequence[int]:
        shapes = {}
        for name, data in self._cars():
            shapes[name] = _check(self._root, name, data)
        if not shapes:
            raise InputError(str(self._root), "contain files of cars, data/cars/*.mat")
        first, *_ = shapes.values()
        for name, shape in shapes.items():
            if shape != first:
                raise InputError(
                    str(self._root), f"contain cars of one shape, {first}", got=f"{shape} in {name!r}"
                )
        return (first[4], first[3], len(shapes))

    @property
    def _root(self) -> Path:
        return self._folder() or self.original_files[0]

    def _contents(self) -> list[object]:
        return [[content_digest(file) for file in self.original_files], self.image_size]

    def _write(self, array: np.ndarray, progress: Task) -> None:
        elevations, azimuths, identities = self.factor_sizes
        grid = array.reshape(elevations, azimuths, identities, *self.shape)
        folder = self._folder()
        if folder is None:
            archive = archives.open_archive(self.original_files[0], self.max_unpacked)
            names = sorted(entry.name for entry in archive.entries if _is_car(entry.name))
        else:
            names = [file.name for file in self.original_files]
        for done, (name, data) in enumerate(self._cars()):
            images = _read(self._root, name, data)
            for elevation in range(elevations):
                for azimuth in range(azimuths):
                    picture = resized(np.ascontiguousarray(images[..., azimuth, elevation]), self.image_size)
                    # An archive is read in its own order, so each car is put at the place of its name.
                    grid[elevation, azimuth, names.index(name)] = picture.transpose(2, 0, 1)
            progress(done + 1, identities)


def _is_car(name: str) -> bool:
    return name.endswith(".mat") and "cars" in name.split("/")[:-1]


def _check(root: Path, name: str, data: bytes) -> tuple[int, ...]:
    """Return the shape of the images in a ``.mat`` file from its header; only plain arrays are accepted."""
    from scipy.io import whosmat

    variables = {variable: (shape, kind) for variable, shape, kind in _parsed(root, name, whosmat, data)}
    shape, kind = variables.get("im", ((), "nothing"))
    if kind != "uint8" or len(shape) != 5 or shape[2] != 3 or shape[0] != shape[1]:
        raise InputError(
            str(root),
            f"contain in {name!r} bytes 'im' of shape (pixels, pixels, 3, azimuth, elevation)",
            got=f"{kind} of shape {tuple(shape)}",
        )
    # A short header can declare any shape.
    if math.prod(shape) > archives.LIMIT:
        raise InputError(str(root), f"contain in {name!r} images of a car", got=f"shape {tuple(shape)}")
    return tuple(shape)


def _read(root: Path, name: str, data: bytes) -> UInt8[np.ndarray, "side side 3 azimuth elevation"]:
    from scipy.io import loadmat

    shape = _check(root, name, data)
    images = _parsed(root, name, loadmat, data, variable_names=["im"])["im"]
    if images.shape != shape or images.dtype != np.uint8:
        raise archives.damaged(root, f"{name!r} does not contain what its header declares")
    return images


def _parsed(root: Path, name: str, parse: Any, data: bytes, **options: object) -> Any:
    """Parse a MATLAB file with SciPy, which runs and unpickles nothing but raises errors of any type at damage."""
    try:
        return parse(io.BytesIO(data), **options)
    except Exception as error:
        raise archives.damaged(root, f"{name!r} cannot be read as a MATLAB file ({error})") from None
