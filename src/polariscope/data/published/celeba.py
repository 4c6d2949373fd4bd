"""The original CelebA dataset."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge
from jaxtyping import Bool, Int, UInt8
from numpy.typing import ArrayLike

from polariscope.core.errors import InputError
from polariscope.data.cache import content_digest
from polariscope.data.dataset import dataset
from polariscope.data.originals import Gigabytes, OriginalFile
from polariscope.data.published.support.picture_archives import AbstractPicturesDataset

_PICTURES = "img_align_celeba"
_ATTRIBUTES = "list_attr_celeba.txt"
_PARTITION = "list_eval_partition.txt"
_CROP = 148  # side in pixels of the centre crop, from 178 × 218


@dataset("celeba")
@dataclasses.dataclass(frozen=True)
class CelebADataset(AbstractPicturesDataset):
    """CelebA from its JPEG files: faces of celebrities with 40 binary attributes.

    202,599 colour images of 178 × 218 pixels. ``mode`` makes them square: ``pad`` scales the whole image and adds black
    bars at its sides, as bonheme2023 does; ``centre-crop`` first crops the central 148 × 148 pixels, as is common
    elsewhere. Both resize with antialiasing. The attributes (−1 and 1 in the file, 0 and 1 here) are labels, not
    generative factors.

    One folder must contain ``img_align_celeba`` (the folder, or the ``.zip``) and ``list_attr_celeba.txt``, directly or
    in ``Anno``. The official split is available if ``list_eval_partition.txt`` is there too. The images are decoded
    once into the cache folder: 2.5 GB at 64 pixels. Files in a folder are identified by their names and
    contents, which are read once.

    Reference: liu2015.
    """

    path: str | None = None
    """Folder of the images and the list of attributes; None for the cache folder."""
    image_size: Annotated[int, Ge(8)] = 64
    """Height and width in pixels."""
    mode: Literal["pad", "centre-crop"] = "pad"
    """Way to make the images square: add black bars, or crop the centre."""
    max_unpacked: Gigabytes = None
    """Maximum size in gigabytes after unpacking; None for 200 times the size of the file, but at least 4."""

    originals = (OriginalFile(f"{_PICTURES}.zip"), OriginalFile(_ATTRIBUTES))
    homepage = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
    licence = "for non-commercial research only"
    citation = "liu2015"
    ending = ".jpg"
    formats = ("JPEG",)

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, self.image_size, self.image_size)

    @property
    def _root(self) -> Path:
        assert self.path is not None
        for folder in (Path(self.path), Path(self.path, "Img")):
            if (folder / _PICTURES).is_dir():
                return folder / _PICTURES
            if (folder / f"{_PICTURES}.zip").is_file():
                return folder / f"{_PICTURES}.zip"
        raise self._missing(self.originals[:1], Path(self.path))

    def _list(self, name: str) -> Path | None:
        """Return a text file in the folder or in its folders of annotations, if it exists."""
        assert self.path is not None
        candidates = (Path(self.path, name), Path(self.path, "Anno", name), Path(self.path, "Eval", name))
        return next((file for file in candidates if file.is_file()), None)

    @property
    def original_files(self) -> tuple[Path, ...]:
        """The archive or the pictures, and the list of attributes."""
        root = self._root
        pictures = (root,) if root.is_file() else tuple(root / name for name in self.names)
        return (*pictures, self._attributes_file)

    @property
    def _attributes_file(self) -> Path:
        assert self.path is not None
        file = self._list(_ATTRIBUTES)
        if file is None:
            raise self._missing(self.originals[1:], Path(self.path))
        return file

    def _check_files(self) -> None:
        count, names = _head(self._attributes_file)
        if count != len(self.names):
            raise InputError(
                str(self._attributes_file),
                f"have a row for each of the {len(self.names):,} images",
                got=f"{count:,}",
            )
        object.__setattr__(self, "factor_names", names)
        object.__setattr__(self, "factor_sizes", (2,) * len(names))
        object.__setattr__(self, "factor_kinds", ("categorical",) * len(names))

    @functools.cached_property
    def _labels(self) -> Bool[np.ndarray, "sample attribute"]:
        """Attributes of each image, in the order of the images."""
        rows = _rows(self._attributes_file, skip=2)
        order = [name.rpartition("/")[2] for name in self.names]
        # Names that are in only one of the two.
        lost = set(order) ^ set(rows)
        if lost:
            raise InputError(
                str(self._attributes_file),
                "list exactly the existing files",
                got=f"{len(lost)} without a counterpart, such as {min(lost)}",
            )
        values = np.zeros((len(order), len(self.factor_names)), dtype=np.int8)
        for number, name in enumerate(order):
            flags = rows[name].split()
            if len(flags) == len(self.factor_names) and set(flags) <= {"-1", "1"}:
                values[number] = [int(flag) for flag in flags]
        # A row that is not as expected has stayed 0, which is neither −1 nor 1.
        if not values.all():
            raise InputError(
                str(self._attributes_file), f"have {len(self.factor_names)} numbers −1 or 1 for each file"
            )
        return values > 0

    def factors(self, indices: ArrayLike | int) -> Int[np.ndarray, "sample factor"]:
        """Return the attributes of faces: 1 if present, otherwise 0.

        :param indices: indices of the observations, from 0.
        """
        return self._labels[self.check_indices(indices)].astype(np.int64)

    def parts(self) -> dict[str, Int[np.ndarray, " _"]] | None:
        """Return the official split if its file exists, otherwise None."""
        file = self._list(_PARTITION)
        if file is None:
            return None
        rows = _rows(file, skip=0)
        order = [name.rpartition("/")[2] for name in self.names]
        if set(order) - set(rows):
            raise InputError(str(file), "list every image", got=f"no line for {min(set(order) - set(rows))}")
        numbers = np.array([rows[name].split()[0] for name in order])
        names = {"train": "0", "validation": "1", "test": "2"}
        return {part: np.flatnonzero(numbers == number) for part, number in names.items()}

    def _contents(self) -> list[object]:
        return [self._picture_digests(), content_digest(self._attributes_file), self.image_size, self.mode]

    def _shaped(self, picture: np.ndarray) -> UInt8[np.ndarray, "height width 3"]:
        from PIL import Image, ImageOps

        image = Image.fromarray(picture)
        if self.mode == "centre-crop":
            # The crop is a square, so padding below does not add bars.
            left, top = (image.width - _CROP) // 2, (image.height - _CROP) // 2
            image = image.crop((left, top, left + _CROP, top + _CROP))
        size = (self.image_size, self.image_size)
        return np.asarray(ImageOps.pad(image, size, method=Image.Resampling.LANCZOS))


def _head(file: Path) -> tuple[int, tuple[str, ...]]:
    """Return the number of images and the names of the attributes from the first two lines."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        first, second = next(lines, "").strip(), next(lines, "").split()
    if not first.isdigit() or not second or len(set(second)) != len(second):
        raise InputError(str(file), "begin with the number of images and a line of names of attributes")
    return int(first), tuple(second)


def _rows(file: Path, skip: int) -> dict[str, str]:
    """Return the text after the name in each line, by name."""
    rows = {}
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines):
            name, _, rest = line.strip().partition(" ")
            if number < skip or not name:
                continue
            if not rest or name in rows:
                raise InputError(str(file), "have one line for each file: its name and numbers")
            rows[name] = rest
    return rows
