"""Dataset of the picture files in a folder."""

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
from polariscope.core.paths import check_regular, resolved_path, text_name
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
"""The column of a table of labels that contains the file names."""


@dataset("images", endings=("/",))
@dataclasses.dataclass(frozen=True, eq=False)
class FolderDataset(AbstractDataset):
    """Images from the picture files of a folder and its subfolders, in the order of their names.

    PNG, JPEG, BMP, GIF, TIFF and WebP are read. Names that begin with a dot are skipped, linked folders are not
    entered, and a link to a file outside the folder raises an error. All images must have the same size and number of
    channels, unless ``image_size`` (resizing with an antialiasing filter) or ``channels`` is passed. They are turned
    upright (EXIF), and transparent parts become black. Palettes and CMYK are converted to RGB, and 16 bits to 8. If
    the bytes of all files are 0 or 1, as in masks, 1 is white. Every header is checked first, so an unsuitable
    folder raises an error at once.

    A file is decoded when it is first needed. It is then cached if all images together fit ``cache_megabytes``;
    otherwise it is decoded each time.

    ``labels`` is a table (.csv, .tsv) with a column ``file`` and a column for each factor. Without it, if every
    file lies in a subfolder and there are at least two subfolders, the name of the first subfolder is the factor
    ``class``, in alphabetical order. The fingerprint is a hash of the options, the names and the bytes of all
    files, so copying the folder does not change it; each file is read once to compute it.
    """

    path: str
    """The folder."""
    image_size: Annotated[int, Ge(1)] | None = None
    """Height and width in pixels after resizing; None to keep the size, which must be the same for all images."""
    mode: Literal["pad", "crop"] = "pad"
    """Way to make an image square if image_size is set: add black bars, or crop its ends."""
    channels: Channels | None = None
    """1 for grey, 3 for colour; None to keep the channels, which must be the same for all images."""
    labels: str | None = None
    """A table with a column 'file' and a column for each factor; None to use subfolders as classes."""
    frame: Literal["first"] | None = None
    """"first" uses the first frame of animated files; None refuses them."""
    white: Literal[1, 255] | None = None
    """Byte that is white: 1, 255, or None to choose 1 if the bytes of all files are 0 or 1, otherwise 255."""
    cache_megabytes: Annotated[int, Ge(0), Advice("0 keeps nothing")] = 1024
    """Maximum size in megabytes of decoded images that are kept in memory."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", str(resolved_path(self.path, "path")))
        if self.labels is not None:
            object.__setattr__(self, "labels", str(resolved_path(self.labels, "labels")))
        factors = self._known
        object.__setattr__(self, "factor_names", factors.names)
        object.__setattr__(self, "factor_sizes", factors.sizes)
        object.__setattr__(self, "factor_kinds", factors.kinds)
        object.__setattr__(self, "factor_classes", factors.classes)
        object.__setattr__(self, "white", self._white())

    @functools.cached_property
    def file_names(self) -> tuple[str, ...]:
        """Paths of the files relative to the folder, sorted; at least one."""
        root = Path(self.path)
        if not root.is_dir():
            raise InputError("path", f"be a folder of pictures, but {root} is not a folder")
        paths = []
        for folder, subfolders, names in os.walk(root, followlinks=False):
            # Changed in place, because os.walk then does not enter these folders.
            subfolders[:] = [name for name in subfolders if not name.startswith(".")]
            for name in names:
                if name.startswith(".") or Path(name).suffix.lower() not in FORMATS:
                    continue
                file = Path(folder, name)
                if file.is_symlink() and not resolved_path(file).is_relative_to(root):
                    raise InputError(
                        problem=f"{file} is a link to a file outside {root}",
                        remedy="copy that file into the folder",
                    )
                paths.append(text_name(check_regular(file).relative_to(root)))
        if not paths:
            raise InputError(
                "path",
                f"be a folder with files ending in {', '.join(FORMATS)}",
                remedy=f"{root} has no such file",
            )
        return tuple(sorted(paths))

    @functools.cached_property
    def class_names(self) -> tuple[str, ...]:
        """Names of the subfolders, sorted; empty if any file is not in a subfolder."""
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
        """Facts from the header of each file; damaged and animated files raise an error."""
        headers = []
        for name in self.file_names:
            file = Path(self.path, name)
            with opened(file) as image:
                headers.append(facts_of(image))
                # Decoding every file would be slow, so only files without an end mark are decoded.
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
        """Return the value that all files share; raise an error with an example of each if they differ."""
        counts = collections.Counter(values.values())
        if len(counts) > 1:
            # In reverse order, so the first file of each kind remains as the example.
            example = {value: name for name, value in reversed(values.items())}
            examples = [
                f"{format_value(value)} ({plural(count, 'file')}, such as {example[value]})"
                for value, count in counts.most_common()
            ]
            raise InputError(
                problem=f"the images of {self.path} have {len(counts)} {noun}: {listed(examples, 3)}",
                remedy=("convert them to one with ", remedy),
            )
        return next(iter(counts))

    def _white(self) -> int:
        """Return the byte that is white; files are decoded until one has a byte above 1."""
        self.shape  # noqa: B018 (raises an error for mixed sizes)
        if self.white is not None:
            return self.white
        highest = 0
        for name, header in zip(self.file_names, self._headers, strict=True):
            # Masks are not stored in lossy files or with 16 bits.
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
        made = "of their own size," if self.image_size is None else "resized to"
        square = (
            ""
            if self.image_size is None
            else ", with black bars"
            if self.mode == "pad"
            else ", cropped to squares"
        )
        choices = [
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
            choices += [choice] if is_so else []
        return tuple(choices)

    def __len__(self) -> int:
        return len(self.file_names)

    def ids(self, indices: ArrayLike | int) -> Shaped[np.ndarray, " sample"]:
        """Return the names of the files."""
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
        # Each file is decoded once, even if its index occurs several times.
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
            # Pillow returns grey images without a channel axis.
            array = np.asarray(picture).reshape(height, width, -1)
        elif array.shape[:2] != (height, width):
            raise InputError(
                problem=f"{file} now has {array.shape[0]}×{array.shape[1]} pixels but had {height}×{width}",
                remedy="do not change the folder while it is in use",
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
        """Return the options and the fingerprint, by which a changed folder is detected."""
        return {**super().describe(), "fingerprint": self.fingerprint}


def read_labels(table: Path, file_names: tuple[str, ...]) -> dict[str, Shaped[np.ndarray, " file"]]:
    """Read the factors of each picture, in the order of the pictures; raise an error if the table does not match.

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
    # A bare file name identifies a picture only if it occurs once.
    full = {name.rsplit("/", 1)[-1]: name for name in file_names if short[name.rsplit("/", 1)[-1]] == 1}
    known_names = set(file_names)
    strange, twice = [], []
    for row, name in enumerate(named):
        target = name if name in known_names else full.get(name)
        if target is None:
            strange.append(name)
        elif target in rows:
            twice.append(name)
        else:
            rows[target] = row
    lacking = [name for name in file_names if name not in rows]
    problems = [
        f"{problem} {listed(names, quoted=True)}"
        for problem, names in (
            ("there is no picture", strange),
            ("there is more than one row for", twice),
            ("there is no row for", lacking),
        )
        if names
    ]
    if problems:
        raise InputError(
            problem=f"{table} does not match the pictures: {'; '.join(problems)}",
            remedy="write one row for each picture",
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
    """Create a dataset from the picture files in a folder; see :class:`FolderDataset`.

    :param path: the folder; its subfolders are searched too.
    :param image_size: (default: unchanged, the same for all images) height and width in pixels after resizing.
    :param mode: (default "pad") way to make an image square if ``image_size`` is passed: "pad" adds black bars,
        "crop" crops its ends.
    :param channels: (default: unchanged, the same for all images) 1 for grey, 3 for colour.
    :param labels: (default: classes are subfolders) a table with a column ``file`` and a column for each factor.
    :param frame: (default: animated files are refused) "first" to use their first frame.
    :param white: (default: from the values) the byte that is white, 1 or 255.
    :param cache_megabytes: (default 1024) decoded images stay in memory if all of them fit this size.
    """
    table = None if labels is None else os.fspath(labels)
    return FolderDataset(os.fspath(path), image_size, mode, channels, table, frame, white, cache_megabytes)
