"""The reduced SymSol dataset."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Annotated

import numpy as np
from annotated_types import Ge
from jaxtyping import Int, UInt8
from numpy.typing import ArrayLike

from polariscope.core.errors import InputError
from polariscope.data.dataset import dataset
from polariscope.data.originals import Gigabytes, OriginalFile
from polariscope.data.published.support.decoding import resized
from polariscope.data.published.support.picture_archives import AbstractPicturesDataset

SHAPES = ("tet", "cube", "icosa", "cone", "cyl")
"""Parts of file names that identify the shape; each name contains exactly one."""


@dataset("symsol")
@dataclasses.dataclass(frozen=True)
class SymSolDataset(AbstractPicturesDataset):
    """SymSol reduced, from its zip of PNG files: five symmetric solids in many orientations.

    112,791 grey images of 64 × 64 pixels, in the order of their names. The factor is the shape: tet, cube, icosa, cone
    or cyl, from the name of the file. The orientation is not in the files. bonheme2023 left out rotations that give the
    same image, and solids with marks.

    The images are decoded once into the cache folder: 462 MB. Files in a folder are identified by their names and
    sizes, not by their bytes. ``solids`` renders look-alikes, with their rotations, without a file.

    Reference: murphy2021; bonheme2023 for the reduced version.
    """

    path: str | None = None
    """The zip file, or the folder that contains it or its PNG files; None for the cache folder."""
    image_size: Annotated[int, Ge(8)] = 64
    """Height and width in pixels; files of another size are resized with antialiasing."""
    max_unpacked: Gigabytes = None
    """Maximum size in gigabytes after unpacking; None for 200 times the size of the file, but at least 4."""

    factor_names = ("shape",)
    factor_sizes = (5,)
    factor_kinds = ("categorical",)
    originals = (OriginalFile("symsol_reduced.zip"),)
    homepage = "https://data.kent.ac.uk/436"
    licence = "see https://data.kent.ac.uk/436"
    citation = "murphy2021"
    ending = ".png"
    formats = ("PNG",)
    colours = "L"

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.image_size, self.image_size)

    @property
    def _root(self) -> Path:
        assert self.path is not None
        base = Path(self.path)
        if base.is_file():
            return base
        zips = sorted(base.glob("*.zip"))
        if len(zips) > 1:
            raise InputError(
                "path", "be a folder with one zip file, or the file", got=f"{base} with {len(zips)}"
            )
        if not zips and not any(base.rglob("*.png")):
            raise self._missing(self.originals, base)
        return zips[0] if zips else base

    @property
    def original_files(self) -> tuple[Path, ...]:
        """The archive, or the pictures."""
        root = self._root
        return (root,) if root.is_file() else tuple(root / name for name in self.names)

    def _check_files(self) -> None:
        self._labels  # noqa: B018 (checks the names)

    @functools.cached_property
    def _labels(self) -> Int[np.ndarray, "sample 1"]:
        labels = []
        for name in self.names:
            matches = [shape for shape in SHAPES if shape in name.rpartition("/")[2].lower()]
            if len(matches) != 1:
                raise InputError(
                    str(self._root),
                    f"contain files with one of {', '.join(SHAPES)} in their names",
                    got=f"{name.rpartition('/')[2]!r}",
                )
            labels.append(SHAPES.index(matches[0]))
        return np.array(labels, dtype=np.int64)[:, np.newaxis]

    def factors(self, indices: ArrayLike | int) -> Int[np.ndarray, "sample factor"]:
        return self._labels[self.check_indices(indices)]

    def _contents(self) -> list[object]:
        return [self._picture_digests(), self.image_size]

    def _shaped(self, picture: np.ndarray) -> UInt8[np.ndarray, "height width"]:
        if picture.shape[0] != picture.shape[1]:
            raise InputError(str(self._root), "contain square pictures", got=f"one of shape {picture.shape}")
        return resized(picture, self.image_size)
