"""Datasets that are read from the files their authors published."""

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
from polariscope.core.progress import Task
from polariscope.core.text import file_size
from polariscope.core.types import OptionValue
from polariscope.data.cache import array_file, cached_array, content_digest, originals_folder
from polariscope.data.dataset import AbstractDataset, AbstractGridDataset
from polariscope.data.footprint import Footprint, batch_bytes, held_bytes

Gigabytes: TypeAlias = Annotated[float, Gt(0)] | None
"""How much a file may unpack to."""


@dataclasses.dataclass(frozen=True)
class OriginalFile:
    """A file that a dataset is made of."""

    name: str
    """What its authors call it."""
    url: str | None = None
    """Where it can be fetched; none where only a browser can."""
    md5: str | None = None
    """Published checksum of the file."""
    md5_unpacked: str | None = None
    """Published checksum of the bytes in it, where it is gzipped."""


class AbstractPublishedDataset(AbstractDataset):
    """Images from original files, unpacked once into the cache folder and mapped from there.

    A member has the fields ``path`` and ``max_unpacked``. It looks at the headers of its files when it is made
    (``_look``) and unpacks them when the first image is asked for (``_write``).
    """

    originals: ClassVar[tuple[OriginalFile, ...]] = ()
    """The files it is made of."""
    homepage: ClassVar[str] = ""
    """Where its authors describe it."""
    path: str | None
    max_unpacked: Gigabytes

    def __post_init__(self) -> None:
        folder = originals_folder(self.name) if self.path is None else Path(self.path).expanduser()
        object.__setattr__(self, "path", str(folder.resolve()))
        if not folder.exists():
            raise self._missing(self.files_for(**self._options()), folder)
        self._look()

    def _options(self) -> dict[str, Any]:
        assert dataclasses.is_dataclass(self)
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def files_for(cls, **options: OptionValue) -> tuple[OriginalFile, ...]:  # noqa: ARG003 (members may ask)
        """The files that are needed with these options.

        :param options: of the dataset.
        """
        return cls.originals

    @abc.abstractmethod
    def _look(self) -> None:
        """Find the files, check their headers, and learn how many images of which factors there are."""

    @abc.abstractmethod
    def _contents(self) -> list[object]:
        """Digests of the files, and the options, that decide what the images are."""

    @abc.abstractmethod
    def _write(self, array: np.ndarray, progress: Task) -> None:
        """Unpack the images into an array."""

    def _cached_shape(self) -> tuple[int, ...]:
        return (len(self), *self.shape)

    def locate(self, name: str) -> Path:
        """The file of this original name: what was given, or in the folder that was given, gzipped or not.

        :param name: of the file, as its authors call it.
        """
        assert self.path is not None
        base = Path(self.path)
        if base.is_file():
            if len(self.files_for(**self._options())) > 1:
                raise InputError(
                    "path",
                    f"be the folder with the files of {self.name}",
                    got=f"the file {base}",
                    remedy=f"there are {', '.join(file.name for file in self.files_for(**self._options()))}",
                )
            return base
        for candidate in (name, name.removesuffix(".gz"), f"{name}.gz"):
            if (base / candidate).is_file():
                return base / candidate
        raise self._missing([file for file in self.files_for(**self._options()) if file.name == name], base)

    def _missing(self, wanted: Sequence[OriginalFile], where: Path) -> InputError:
        names = ", ".join(file.name for file in wanted) or "its files"
        lacks = f"{where} does not have it" if where.is_dir() else f"there is no {where}"
        expected = originals_folder(self.name)
        get = (
            f"'polariscope data fetch {self.name}' downloads to {expected}"
            if all(file.url for file in wanted)
            else f"download from {self.homepage} to {expected}"
        )
        return InputError(
            problem=f"{self.name} needs {names}, and {lacks}",
            remedy=f"{get}. If you have it elsewhere, say where: {self.name}:PATH",
        )

    @functools.cached_property
    def _key(self) -> str:
        return files.digest(self._contents())[:32]

    @functools.cached_property
    def _array(self) -> Shaped[np.ndarray, "sample ..."]:
        words = f"{self.name}: unpacking the images into the cache"
        return cached_array(f"{self.name}/{self._key}", self._cached_shape(), np.uint8, self._write, words)

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        return self._array[self.check_indices(indices)]

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the contents of the files and of the options that change the images."""
        return files.digest([self.name, self.factor_names, self._contents()])

    def describe(self) -> dict[str, Any]:
        """The options, and the fingerprint, by which files that have changed are noticed."""
        return {**super().describe(), "fingerprint": self.fingerprint}

    @property
    def original_files(self) -> tuple[Path, ...]:
        """The files that are there."""
        return tuple(self.locate(file.name) for file in self.files_for(**self._options()))

    @property
    def cached_bytes(self) -> int:
        """Bytes that the images take in the cache folder once they are unpacked."""
        return math.prod(self._cached_shape())

    @property
    def is_unpacked(self) -> bool:
        """Whether the images are in the cache folder."""
        return array_file(f"{self.name}/{self._key}").is_file()

    def footprint(self) -> Footprint:
        """Memory for a batch and the labels; on disk the original files and the unpacked images."""
        original = sum(file.stat().st_size for file in self.original_files)
        self.factors([0])  # labels that are read at first use are held then
        held = held_bytes(tuple(vars(self).values()))
        state = (
            "are in the cache folder"
            if self.is_unpacked
            else "will be put into the cache folder at first use"
        )
        words = (
            f"{file_size(original)} of original files. {file_size(self.cached_bytes)} of unpacked images {state}; "
            "they are mapped, not read into memory."
        )
        return Footprint(held + batch_bytes(self.n_features), original + self.cached_bytes, words)

    def __reduce__(self) -> tuple[object, ...]:
        """Another process opens the files itself, instead of being sent gigabytes of mapped images."""
        return _open_again, (type(self), self._options())


def _open_again(kind: type, options: dict[str, Any]) -> AbstractPublishedDataset:
    return kind(**options)


class AbstractPublishedGrid(AbstractPublishedDataset, AbstractGridDataset):
    """A published dataset that has every combination of its factors once, the last varying fastest.

    A file with fewer values of some factors is welcome, as long as it has every combination of them.
    """

    original_sizes: ClassVar[tuple[int, ...]] = ()
    """Number of values of each factor in the published files."""

    def _take_sizes(self, sizes: Sequence[int], path: Path) -> None:
        """Set the sizes of the factors, none larger than published."""
        sizes = tuple(int(size) for size in sizes)
        if len(sizes) != len(self.original_sizes) or any(
            size > most for size, most in zip(sizes, self.original_sizes, strict=False)
        ):
            raise InputError(
                str(path),
                f"have at most {'·'.join(map(str, self.original_sizes))} values of {', '.join(self.factor_names)}",
                got="·".join(map(str, sizes)),
            )
        object.__setattr__(self, "factor_sizes", sizes)
        if sizes != self.original_sizes:
            part = f"{math.prod(sizes):,} of the {math.prod(self.original_sizes):,} images"
            object.__setattr__(self, "choices", (f"the file holds a part of the original: {part}",))

    def _remember_sizes(self, path: Path, find: Callable[[], Sequence[int]]) -> None:
        """Set the sizes that ``find`` finds in a file; cached, since finding them takes time."""
        key = f"{self.name}/{content_digest(path)[:32]}-sizes"

        def write(array: np.ndarray, progress: Task) -> None:
            array[:] = find()
            progress(1, 1)

        shape = (len(self.original_sizes),)
        sizes = cached_array(key, shape, np.int64, write, f"{self.name}: reading the factors")
        self._take_sizes(sizes.tolist(), path)


def grid_sizes(path: Path, values: Shaped[np.ndarray, "sample factor"], name: str) -> tuple[int, ...]:
    """Number of values in each column of a table that must have every combination once, the last varying fastest.

    :param path: the file, for messages.
    :param values: factor values in any numbers; the order of their indices is that of their size.
    :param name: of the table in the file, for messages.
    """
    columns = [np.unique(column, return_inverse=True) for column in values.T]
    sizes = tuple(len(distinct) for distinct, _ in columns)
    if math.prod(sizes) != len(values):
        raise InputError(
            str(path),
            f"hold every combination of its factors once in {name!r}",
            got=f"{len(values):,} rows for {'·'.join(map(str, sizes))} = {math.prod(sizes):,} combinations",
        )
    indices: Int[np.ndarray, "factor sample"] = np.stack([inverse for _, inverse in columns])
    if (np.ravel_multi_index(tuple(indices), sizes) != np.arange(len(values))).any():
        raise InputError(
            str(path),
            f"have its rows in the order of the original in {name!r}, the last factor varying fastest",
            remedy="get the original file again",
        )
    return sizes
