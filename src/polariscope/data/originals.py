"""Datasets read from the files that their authors published."""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
from annotated_types import Gt
from jaxtyping import Int, Shaped, UInt8
from numpy.typing import ArrayLike

from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.paths import user_path
from polariscope.core.progress import Task
from polariscope.core.text import file_size
from polariscope.core.types import OptionValue
from polariscope.data.cache import cached_array, content_digest, is_cached, originals_folder
from polariscope.data.cached_array import CachedArray
from polariscope.data.dataset import AbstractDataset, AbstractGridDataset
from polariscope.data.footprint import Footprint, batch_bytes, held_bytes

Gigabytes: TypeAlias = Annotated[float, Gt(0)] | None
"""Maximum size of a file after unpacking."""


@dataclasses.dataclass(frozen=True)
class OriginalFile:
    """An original file of a dataset."""

    name: str
    """Name that its authors gave it."""
    url: str | None = None
    """Address for downloading; None if only a browser can download it."""
    md5: str | None = None
    """Published checksum of the file."""
    md5_unpacked: str | None = None
    """Published checksum of the contents, if the file is gzipped."""


class AbstractPublishedDataset(AbstractDataset):
    """Images from original files, unpacked once into the cache folder and memory-mapped from there.

    A member has the fields ``path`` and ``max_unpacked``. It checks the headers of its files when it is created
    (``_check_files``) and unpacks them when the first image is requested (``_write``).
    """

    originals: ClassVar[tuple[OriginalFile, ...]] = ()
    """The files of the dataset."""
    homepage: ClassVar[str] = ""
    """Address of the authors' description."""
    path: str | None
    max_unpacked: Gigabytes

    def __post_init__(self) -> None:
        folder = originals_folder(self.name) if self.path is None else user_path(self.path)
        # The dataclass is frozen, so the field cannot be assigned.
        object.__setattr__(self, "path", str(folder.resolve()))
        if not folder.exists():
            raise self._missing(self.files_for(**self._options()), folder)
        self._check_files()

    def _options(self) -> dict[str, Any]:
        assert dataclasses.is_dataclass(self)
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def files_for(cls, **options: OptionValue) -> tuple[OriginalFile, ...]:  # noqa: ARG003 (members use it)
        """Return the files that are needed with these options.

        :param options: options of the dataset.
        """
        return cls.originals

    @abc.abstractmethod
    def _check_files(self) -> None:
        """Find the files, check their headers, and read the number of images and their factors."""

    @abc.abstractmethod
    def _contents(self) -> list[object]:
        """Return the digests of the files and the options that determine the images."""

    @abc.abstractmethod
    def _write(self, array: np.ndarray, progress: Task) -> None:
        """Unpack the images into an array."""

    def _cached_shape(self) -> tuple[int, ...]:
        return (len(self), *self.shape)

    def locate(self, name: str) -> Path:
        """Return the path of an original file: ``path`` itself, or the file in that folder, gzipped or not.

        :param name: name that the authors gave the file.
        """
        assert self.path is not None
        base = Path(self.path)
        if base.is_file():
            if len(self.files_for(**self._options())) > 1:
                raise InputError(
                    "path",
                    f"be the folder with the files of {self.name}",
                    got=f"the file {base}",
                    remedy=f"the files are {', '.join(file.name for file in self.files_for(**self._options()))}",
                )
            return base
        # Browsers and users often unpack files.
        for candidate in (name, name.removesuffix(".gz"), f"{name}.gz"):
            if (base / candidate).is_file():
                return base / candidate
        raise self._missing([file for file in self.files_for(**self._options()) if file.name == name], base)

    def _missing(self, wanted: Sequence[OriginalFile], where: Path) -> InputError:
        names = ", ".join(file.name for file in wanted) or "its files"
        lacks = f"{where} does not contain it" if where.is_dir() else f"{where} does not exist"
        expected = originals_folder(self.name)
        get = (
            f"'polariscope data fetch {self.name}' downloads to {expected}"
            if all(file.url for file in wanted)
            else f"download from {self.homepage} to {expected}"
        )
        return InputError(
            problem=f"{self.name} needs {names}, but {lacks}",
            remedy=f"{get}. If you have it elsewhere, give its path: {self.name}:PATH",
        )

    @functools.cached_property
    def _key(self) -> str:
        return files.digest(self._contents())[:32]

    @functools.cached_property
    def _array(self) -> CachedArray:
        task = f"{self.name}: unpacking the images into the cache"
        return cached_array(f"{self.name}/{self._key}", self._cached_shape(), np.uint8, self._write, task)

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        return self._array[self.check_indices(indices)]

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the contents of the files and of the options that change the images."""
        return files.digest([self.name, self.factor_names, self._contents()])

    def describe(self) -> dict[str, Any]:
        """Return the options and the fingerprint, by which changed files are detected."""
        return {**super().describe(), "fingerprint": self.fingerprint}

    @property
    def original_files(self) -> tuple[Path, ...]:
        """Paths of the files on this machine."""
        return tuple(self.locate(file.name) for file in self.files_for(**self._options()))

    @property
    def cached_bytes(self) -> int:
        """Size in bytes of the unpacked images in the cache folder."""
        return math.prod(self._cached_shape())

    @property
    def is_unpacked(self) -> bool:
        """True if the images are in the cache folder."""
        return is_cached(f"{self.name}/{self._key}")

    def footprint(self) -> Footprint:
        """Return the memory of a batch and the labels, and the disk space of original files and unpacked images."""
        original = sum(file.stat().st_size for file in self.original_files)
        self.factors([0])  # loads labels that are read at first use
        held = held_bytes(tuple(vars(self).values()))
        state = (
            "are in the cache folder"
            if self.is_unpacked
            else "will be put into the cache folder at first use"
        )
        explanation = (
            f"{file_size(original)} of original files. {file_size(self.cached_bytes)} of unpacked images {state}; "
            "they are memory-mapped, not read into memory."
        )
        return Footprint(held + batch_bytes(self.n_features), original + self.cached_bytes, explanation)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the options only: another process opens the files itself and is not sent gigabytes of images."""
        return _open_again, (type(self), self._options())


def _open_again(kind: type, options: dict[str, Any]) -> AbstractPublishedDataset:
    return kind(**options)


class AbstractPublishedGrid(AbstractPublishedDataset, AbstractGridDataset):
    """A published dataset with every combination of its factors once, the last varying fastest.

    A file with fewer values of some factors is accepted if it has every combination of them.
    """

    original_sizes: ClassVar[tuple[int, ...]] = ()
    """Number of values of each factor in the published files."""

    def _take_sizes(self, sizes: Sequence[int], path: Path) -> None:
        """Set the sizes of the factors; none can exceed the published size."""
        sizes = tuple(int(size) for size in sizes)
        if len(sizes) != len(self.original_sizes) or any(
            # The lengths were compared before.
            size > maximum
            for size, maximum in zip(sizes, self.original_sizes, strict=False)
        ):
            raise InputError(
                str(path),
                f"have at most {'·'.join(map(str, self.original_sizes))} values of {', '.join(self.factor_names)}",
                got="·".join(map(str, sizes)),
            )
        object.__setattr__(self, "factor_sizes", sizes)
        if sizes != self.original_sizes:
            part = f"{math.prod(sizes):,} of the {math.prod(self.original_sizes):,} images"
            object.__setattr__(self, "choices", (f"the file contains a part of the original: {part}",))

    def _remember_sizes(self, path: Path, find: Callable[[], Sequence[int]]) -> None:
        """Set the sizes that ``find`` reads from a file, and cache them, because reading them takes time."""
        key = f"{self.name}/{content_digest(path)[:32]}-sizes"

        def write(array: np.ndarray, progress: Task) -> None:
            array[:] = find()
            progress(1, 1)

        shape = (len(self.original_sizes),)
        sizes = cached_array(key, shape, np.int64, write, f"{self.name}: reading the factors")
        self._take_sizes(sizes[...].tolist(), path)


def grid_sizes(path: Path, values: Shaped[np.ndarray, "sample factor"], name: str) -> tuple[int, ...]:
    """Return the number of values in each column of a table with every combination once, the last varying fastest.

    :param path: the file, for messages.
    :param values: factor values; they are indexed in ascending order.
    :param name: name of the table in the file, for messages.
    """
    columns = [np.unique(column, return_inverse=True) for column in values.T]
    sizes = tuple(len(distinct) for distinct, _ in columns)
    if math.prod(sizes) != len(values):
        raise InputError(
            str(path),
            f"contain every combination of its factors once in {name!r}",
            got=f"{len(values):,} rows for {'·'.join(map(str, sizes))} = {math.prod(sizes):,} combinations",
        )
    indices: Int[np.ndarray, "factor sample"] = np.stack([inverse for _, inverse in columns])
    if (np.ravel_multi_index(tuple(indices), sizes) != np.arange(len(values))).any():
        raise InputError(
            str(path),
            f"have its rows in the order of the original in {name!r}, the last factor varying fastest",
            remedy="download the original file again",
        )
    return sizes
