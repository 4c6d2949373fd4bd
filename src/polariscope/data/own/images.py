"""A folder of picture files as a dataset."""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge
from jaxtyping import Bool, Shaped, UInt8
from numpy.typing import ArrayLike

from polariscope.core import files
from polariscope.core.errors import Argument, InputError
from polariscope.core.option_values import Advice
from polariscope.core.text import listed, plural
from polariscope.data.dataset import AbstractDataset, dataset
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.factors import Factors, known_factors
from polariscope.data.own.support.picture_bytes import (
    FORMATS,
    Channels,
    Facts,
    check_end,
    facts_of,
    has_end,
    opened,
    pixels,
)
from polariscope.data.own.support.separated import read_texts

FILE = "file"
"""The column of a table of labels that names the picture."""


@dataset("images", endings=("/",))
@dataclasses.dataclass(frozen=True, eq=False)
class FolderDataset(AbstractDataset):
    """Images from the picture files of a folder and its subfolders, in the order of their names.

    PNG, JPEG, BMP, GIF, TIFF and WebP are read. Names that begin with a dot are left out, linked folders are not
    entered, and a linked file outside the folder is refused. Images keep their size and channels, which must be
    the same for all, unless ``image_size`` (they are resized with an antialiasing filter) or ``channels`` is given.
    They are turned upright (EXIF) and set on black where they are transparent; palettes and CMYK become RGB; 16 bits
    become 8. Where the bytes of all files are 0 or 1, as in masks, 1 is white. Every header is looked at
    before anything else, so a folder that cannot be used is refused at once.

    A file is decoded when it is first asked for and then cached, as long as all images together fit
    ``cache_megabytes``; otherwise it is decoded each time.

    ``labels`` is a table (.csv, .tsv) with a column ``file`` and a column for each factor. Without it, when every
    file lies in a subfolder and there are at least two of these, the name of the first subfolder is the factor
    ``class``, in alphabetical order. The fingerprint is a hash of the options, the names and the bytes of all
    files, so it survives copying; each file is read once for it.
    """

    path: str
    """The folder."""
    image_size: Annotated[int, Ge(1)] | None = None
    """Height and width in pixels that images are brought to; none: as they are, all of one size."""
    mode: Literal["pad", "crop"] = "pad"
    """What makes an oblong image square where image_size is given: black bars, or cutting its ends off."""
    channels: Channels | None = None
    """1 for grey, 3 for colour; none: as they are, all alike."""
    labels: str | None = None
    """A table with a column 'file' and a column for each factor; none: classes are subfolders."""
    frame: Literal["first"] | None = None
    """Take the first frame of animated files; none: they are refused."""
    white: Literal[1, 255] | None = None
    """Which byte is white; none: 1 where the bytes of all files are 0 or 1, else 255."""
    cache_megabytes: Annotated[int, Ge(0), Advice("0 keeps nothing")] = 1024
    """Keep the decoded images in memory up to this size."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", str(Path(self.path).expanduser().resolve()))
        if self.labels is not None:
            object.__setattr__(self, "labels", str(Path(self.labels).expanduser().resolve()))
        factors = self._known
        object.__setattr__(self, "factor_names", factors.names)
        object.__setattr__(self, "factor_sizes", factors.sizes)
        object.__setattr__(self, "factor_kinds", factors.kinds)
        object.__setattr__(self, "factor_classes", factors.classes)
        object.__setattr__(self, "white", self._white())

    @functools.cached_property
    def file_names(self) -> tuple[str, ...]:
        """The files relative to the folder, sorted; at least one."""
        root = Path(self.path)
        if not root.is_dir():
            raise InputError("path", f"be a folder of pictures, but there is none at {root}")
        paths = []
        for folder, subfolders, names in os.walk(root, followlinks=False):
            subfolders[:] = [name for name in subfolders if not name.startswith(".")]
            for name in names:
                if name.startswith(".") or Path(name).suffix.lower() not in FORMATS:
                    continue
                file = Path(folder, name)
                if file.is_symlink() and not file.resolve().is_relative_to(root):
                    raise InputError(
                        problem=f"{file} is a link to a file outside {root}",
                        remedy="copy that file into the folder",
                    )
                paths.append(file.relative_to(root).as_posix())
        if not paths:
            raise InputError(
                "path", f"be a folder with files ending in {', '.join(FORMATS)}", remedy=f"{root} has none"
            )
        return tuple(sorted(paths))

    @functools.cached_property
    def class_names(self) -> tuple[str, ...]:
        """Names of the subfolders, sorted; empty unless every file lies in one."""
        if not all("/" in name for name in self.file_names):
            return ()
        return tuple(sorted({name.split("/", 1)[0] for name in self.file_names}))

    @functools.cached_property
    def _known(self) -> Factors:
        """Factors from the table of labels, or from the subfolders."""
        if self.labels is not None:
            return known_factors(Contents(None, read_labels(Path(self.labels), self.file_names)), len(self))
        if len(self.class_names) < 2:
            return Factors()
        folders = np.array([name.split("/", 1)[0] for name in self.file_names])
        return known_factors(Contents(None, {"class": folders}), len(self))

    @functools.cached_property
    def _headers(self) -> tuple[Facts, ...]:
        """What the header of each file says; damaged and animated ones are refused."""
        headers = []
        for name in self.file_names:
            file = Path(self.path, name)
            with opened(file) as image:
                headers.append(facts_of(image))
                # Decoding everything would be slow; where the end mark is missing, the file is decoded.
                if (headers[-1].is_animated and self.frame is None) or not has_end(file):
                    pixels(image, self.channels, self.frame)
                    check_end(file)
        return tuple(headers)

    @functools.cached_property
    def shape(self) -> tuple[int, ...]:
        if self.image_size is not None:
            size = (self.image_size, self.image_size)
        else:
            size = self._only(
                {name: (header.height, header.width) for name, header in self._by_name.items()},
                "sizes",
                lambda size: f"{size[0]}×{size[1]}",
                Argument("image_size", 64),
            )
        channels = self.channels or self._only(
            {name: header.channels for name, header in self._by_name.items()},
            "numbers of channels",
            str,
            Argument("channels", 3),
        )
        return (channels, *size)

    @property
    def _by_name(self) -> dict[str, Facts]:
        return dict(zip(self.file_names, self._headers, strict=True))

    def _only(self, values: dict[str, Any], noun: str, format_value: Any, remedy: Argument) -> Any:
        """What all files have in common; refused where they differ, with an example of each."""
        counts = collections.Counter(values.values())
        if len(counts) > 1:
            example = {value: name for name, value in reversed(values.items())}
            said = [
                f"{format_value(value)} ({plural(count, 'file')}, as {example[value]})"
                for value, count in counts.most_common()
            ]
            raise InputError(
                problem=f"the images of {self.path} have {len(counts)} {noun}: {listed(said, 3)}",
                remedy=("bring them to one with ", remedy),
            )
        return next(iter(counts))

    def _white(self) -> int:
        """Which byte is white: the files are decoded until one has a byte above 1."""
        self.shape  # noqa: B018 (refuses mixed sizes)
        if self.white is not None:
            return self.white
        highest = 0
        for name, header in zip(self.file_names, self._headers, strict=True):
            if FORMATS[Path(name).suffix.lower()] == "JPEG" or header.is_deep:
                return 255
            with opened(Path(self.path, name)) as image:
                highest = max(highest, int(pixels(image, header.channels, self.frame).max()))
            if highest > 1:
                return 255
        return 1 if highest == 1 else 255

    @functools.cached_property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        channels, height, width = self.shape
        made = "as they are," if self.image_size is None else "resized to"
        square = (
            ""
            if self.image_size is None
            else ", with black bars"
            if self.mode == "pad"
            else ", cut to squares"
        )
        said = [
            f"images {made} {height}×{width} pixels{square}",
            plural(channels, "channel"),
        ]
        headers = self._headers
        for is_so, choice in (
            (any(header.is_deep for header in headers), "16 bits reduced to 8"),
            (any(header.is_transparent for header in headers), "transparent parts black"),
            (any(header.is_cmyk for header in headers), "CMYK converted to RGB"),
            (any(header.is_animated for header in headers), "first frame of animated files"),
            (self.white == 1, "bytes 0 and 1 are black and white"),
        ):
            said += [choice] if is_so else []
        return tuple(said)

    def __len__(self) -> int:
        return len(self.file_names)

    def ids(self, indices: ArrayLike | int) -> Shaped[np.ndarray, " sample"]:
        """The names of the files."""
        return np.array([self.file_names[index] for index in self.check_indices(indices).tolist()], dtype=str)

    def factors(self, indices: ArrayLike | int) -> Shaped[np.ndarray, "sample factor"]:
        known = self._known.values
        return super().factors(indices) if known is None else known[self.check_indices(indices)]

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        indices = self.check_indices(indices)
        if len(self) * self.n_features > self.cache_megabytes * 2**20:
            images = np.empty((len(indices), *self.shape), dtype=np.uint8)
            for row, index in enumerate(indices.tolist()):
                images[row] = self._decode(index)
            return images
        cache, decoded = self._cache
        for index in np.unique(indices[~decoded[indices]]).tolist():
            cache[index] = self._decode(index)
            decoded[index] = True
        return cache[indices]

    @functools.cached_property
    def _cache(self) -> tuple[UInt8[np.ndarray, "sample channel height width"], Bool[np.ndarray, " sample"]]:
        return np.zeros((len(self), *self.shape), dtype=np.uint8), np.zeros(len(self), dtype=bool)

    def _decode(self, index: int) -> UInt8[np.ndarray, "channel height width"]:
        from PIL import Image, ImageOps

        channels, height, width = self.shape
        file = Path(self.path, self.file_names[index])
        with opened(file) as image:
            array = pixels(image, channels, self.frame)  # type: ignore[arg-type]
        if self.white == 1:
            if array.max() > 1:
                raise InputError(
                    problem=f"{file} has bytes above 1, and {self.path} was read with 1 as white",
                    remedy=("use ", Argument("white", 255)),
                )
            array = array * np.uint8(255)
        if self.image_size is not None:
            square = ImageOps.pad if self.mode == "pad" else ImageOps.fit
            picture = Image.fromarray(array[:, :, 0] if channels == 1 else array)
            picture = square(picture, (width, height), method=Image.Resampling.LANCZOS)
            array = np.asarray(picture).reshape(height, width, -1)
        elif array.shape[:2] != (height, width):
            raise InputError(
                problem=f"{file} is now of {array.shape[0]}×{array.shape[1]} pixels and was of {height}×{width}",
                remedy="do not change the folder while it is used",
            )
        return array.transpose(2, 0, 1)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the options, the factors, the names and the bytes of all files."""
        contents = [[name, files.digest_file(Path(self.path, name))] for name in self.file_names]
        known = self._known.values
        factors = None if known is None else [self.factor_names, self.factor_kinds, files.digest_array(known)]
        options = [self.image_size, self.mode, self.channels, self.frame, self.white]
        return files.digest([*options, factors, contents])

    def describe(self) -> dict[str, Any]:
        """The options, and the fingerprint, by which a folder that has changed is noticed."""
        return {**super().describe(), "fingerprint": self.fingerprint}


def read_labels(table: Path, file_names: tuple[str, ...]) -> dict[str, Shaped[np.ndarray, " file"]]:
    """The factors of each picture, in the order of the pictures; a table that does not match is refused.

    :param table: a .csv or .tsv file with a column ``file``: paths inside the folder, or names that occur once.
    :param file_names: the pictures, relative to their folder.
    """
    columns = read_texts(table, FILE)
    if FILE not in columns or len(columns) < 2:
        raise InputError(
            str(table),
            f"have a column {FILE!r} and a column for each factor",
            got=", ".join(columns) or "no columns",
        )
    named = [Path(str(name)).as_posix() for name in columns.pop(FILE).tolist()]
    short = collections.Counter(name.rsplit("/", 1)[-1] for name in file_names)
    rows: dict[str, int] = {}
    full = {name.rsplit("/", 1)[-1]: name for name in file_names if short[name.rsplit("/", 1)[-1]] == 1}
    there = set(file_names)
    strange, twice = [], []
    for row, name in enumerate(named):
        target = name if name in there else full.get(name)
        if target is None:
            strange.append(name)
        elif target in rows:
            twice.append(name)
        else:
            rows[target] = row
    lacking = [name for name in file_names if name not in rows]
    said = [
        f"{words} {listed(names, quoted=True)}"
        for words, names in (
            ("no picture is called", strange),
            ("more than one row is of", twice),
            ("no row is of", lacking),
        )
        if names
    ]
    if said:
        raise InputError(
            problem=f"{table} does not match the pictures: {'; '.join(said)}", remedy="give one row for each"
        )
    order = np.array([rows[name] for name in file_names])
    return {name: column[order] for name, column in columns.items()}


def from_folder(
    path: str | os.PathLike[str],
    *,
    image_size: Annotated[int, Ge(1)] | None = None,
    mode: Literal["pad", "crop"] = "pad",
    channels: Channels | None = None,
    labels: str | os.PathLike[str] | None = None,
    frame: Literal["first"] | None = None,
    white: Literal[1, 255] | None = None,
    cache_megabytes: Annotated[int, Ge(0), Advice("0 keeps nothing")] = 1024,
) -> FolderDataset:
    """Make a dataset of the picture files in a folder; see :class:`FolderDataset`.

    :param path: the folder; its subfolders are searched too.
    :param image_size: (default: as they are, all of one size) height and width in pixels that images are brought to.
    :param mode: (default "pad") what happens to images that are not square where ``image_size`` is given: "pad" adds
        black bars, "crop" cuts the ends off.
    :param channels: (default: as they are, all alike) 1 for grey, 3 for colour.
    :param labels: (default: classes are subfolders) a table with a column ``file`` and a column for each factor.
    :param frame: (default: animated files are refused) "first" to take their first frame.
    :param white: (default: recognised) the byte that is white, 1 or 255.
    :param cache_megabytes: (default 1024) decoded images stay in memory if all of them fit this size.
    """
    table = None if labels is None else os.fspath(labels)
    return FolderDataset(os.fspath(path), image_size, mode, channels, table, frame, white, cache_megabytes)
