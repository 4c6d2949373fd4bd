"""A folder of PNG and JPEG files as a dataset, resized to squares."""

from __future__ import annotations

import dataclasses
import functools
import os
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge
from jaxtyping import Bool, Int, UInt8
from numpy.typing import ArrayLike

from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.options import Advice
from polariscope.data.dataset import AbstractDataset, dataset

_ENDINGS = (".png", ".jpg", ".jpeg")


@dataset("images")
@dataclasses.dataclass(frozen=True, eq=False)
class FolderDataset(AbstractDataset):
    """Square images from the PNG and JPEG files of a folder and its subfolders, in the order of their names.

    Names that begin with a dot are left out, linked folders are not entered, and a linked file outside the
    folder is refused. Images are turned upright (EXIF), set on black where they are transparent, and resized
    with an antialiasing filter. A file is decoded when it is first asked for and then kept, as long as all
    images together fit ``cache_megabytes``; otherwise it is decoded each time.

    When every file lies in a subfolder, and there are at least two of these, the name of the first subfolder
    is the factor ``class``, in alphabetical order (``class_names``). The fingerprint is a hash of the
    options, the names and the bytes of all files, so it survives copying; each file is read once for it.
    """

    path: str
    """The folder."""
    image_size: Annotated[int, Ge(1)] = 64
    """Height and width in pixels."""
    mode: Literal["pad", "crop"] = "pad"
    """What makes an oblong image square: black bars, or cutting its ends off."""
    grey: bool = False
    """One channel instead of three."""
    cache_megabytes: Annotated[int, Ge(0), Advice("0 keeps nothing")] = 1024
    """Keep the decoded images in memory up to this size."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", str(Path(self.path).expanduser().resolve()))
        if len(self.class_names) > 1:
            object.__setattr__(self, "factor_names", ("class",))
            object.__setattr__(self, "factor_sizes", (len(self.class_names),))
            object.__setattr__(self, "factor_kinds", ("categorical",))

    @functools.cached_property
    def file_names(self) -> tuple[str, ...]:
        """The files relative to the folder, sorted; at least one."""
        root = Path(self.path)
        if not root.is_dir():
            raise InputError("path", f"be a folder of PNG or JPEG files, but there is none at {root}")
        found = []
        for folder, subfolders, names in os.walk(root, followlinks=False):
            subfolders[:] = [name for name in subfolders if not name.startswith(".")]
            for name in names:
                if name.startswith(".") or not name.lower().endswith(_ENDINGS):
                    continue
                file = Path(folder, name)
                if file.is_symlink() and not file.resolve().is_relative_to(root):
                    raise InputError(
                        problem=f"{file} is a link to a file outside {root}",
                        remedy="copy that file into the folder",
                    )
                found.append(file.relative_to(root).as_posix())
        if not found:
            raise InputError(
                "path", f"be a folder with files ending in {', '.join(_ENDINGS)}", remedy=f"{root} has none"
            )
        return tuple(sorted(found))

    @functools.cached_property
    def class_names(self) -> tuple[str, ...]:
        """Names of the subfolders, sorted; empty unless every file lies in one."""
        if not all("/" in name for name in self.file_names):
            return ()
        return tuple(sorted({name.split("/", 1)[0] for name in self.file_names}))

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        square = "with black bars" if self.mode == "pad" else "cut to squares"
        size = f"{self.image_size}×{self.image_size}"
        return (f"images resized to {size} pixels, {square}", "1 channel" if self.grey else "3 channels")

    @property
    def shape(self) -> tuple[int, ...]:
        return (1 if self.grey else 3, self.image_size, self.image_size)

    def __len__(self) -> int:
        return len(self.file_names)

    def factors(self, indices: ArrayLike | int) -> Int[np.ndarray, "sample factor"]:
        if not self.factor_names:
            return super().factors(indices)
        chosen = [self.file_names[index].split("/", 1)[0] for index in self.check_indices(indices)]
        return np.array([self.class_names.index(name) for name in chosen], dtype=np.int64).reshape(-1, 1)

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        indices = self.check_indices(indices)
        if len(self) * self.n_features > self.cache_megabytes * 2**20:
            images = np.empty((len(indices), *self.shape), dtype=np.uint8)
            for row, index in enumerate(indices.tolist()):
                images[row] = self._decode(index)
            return images
        kept, decoded = self._cache
        for index in np.unique(indices[~decoded[indices]]).tolist():
            kept[index] = self._decode(index)
            decoded[index] = True
        return kept[indices]

    @functools.cached_property
    def _cache(self) -> tuple[UInt8[np.ndarray, "sample channel height width"], Bool[np.ndarray, " sample"]]:
        return np.zeros((len(self), *self.shape), dtype=np.uint8), np.zeros(len(self), dtype=bool)

    def _decode(self, index: int) -> UInt8[np.ndarray, "channel height width"]:
        from PIL import Image, ImageOps

        file = Path(self.path, self.file_names[index])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                with Image.open(file, formats=("PNG", "JPEG")) as opened:
                    image = ImageOps.exif_transpose(opened)
        except (
            OSError,
            ValueError,
            SyntaxError,
            Image.DecompressionBombError,
            Image.DecompressionBombWarning,
        ) as error:
            raise PolariscopeError(
                f"{file} cannot be read as an image ({error}); replace or remove it."
            ) from None
        if image.mode.startswith(("I", "F")):
            raise PolariscopeError(
                f"{file} has more than 8 bits a channel (mode {image.mode}); convert it to 8 bits."
            )
        if image.has_transparency_data:
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, (0, 0, 0, 255)), image)
        image = image.convert("L" if self.grey else "RGB")
        square = ImageOps.pad if self.mode == "pad" else ImageOps.fit
        image = square(image, (self.image_size, self.image_size), method=Image.Resampling.LANCZOS)
        return np.asarray(image).reshape(self.image_size, self.image_size, -1).transpose(2, 0, 1)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the options, the names and the bytes of all files."""
        contents = [[name, files.digest_file(Path(self.path, name))] for name in self.file_names]
        return files.digest([self.image_size, self.mode, self.grey, contents])

    def describe(self) -> dict[str, Any]:
        """The options, and the fingerprint, by which a folder that has changed is noticed."""
        return {**super().describe(), "fingerprint": self.fingerprint}


def from_folder(
    path: str | os.PathLike[str],
    *,
    image_size: Annotated[int, Ge(1)] = 64,
    mode: Literal["pad", "crop"] = "pad",
    grey: bool = False,
    cache_megabytes: Annotated[int, Ge(0), Advice("0 keeps nothing")] = 1024,
) -> FolderDataset:
    """Make a dataset of the PNG and JPEG files in a folder; see :class:`FolderDataset`.

    :param path: the folder; its subfolders are searched too.
    :param image_size: (default 64) height and width in pixels that every image is brought to.
    :param mode: (default "pad") what happens to images that are not square: "pad" adds black bars, "crop" cuts the ends
        off.
    :param grey: (default False) one channel instead of three.
    :param cache_megabytes: (default 1024) decoded images are kept in memory if all of them fit this size.
    """
    return FolderDataset(os.fspath(path), image_size, mode, grey, cache_megabytes)
