"""Datasets of many small picture files, in a folder or in a zip archive."""

from __future__ import annotations

import abc
import copy
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Shaped, UInt8
from numpy.typing import ArrayLike

from polariscope.core import archives
from polariscope.core.errors import InputError
from polariscope.core.paths import check_regular, text_name
from polariscope.core.progress import Task
from polariscope.data.cache import content_digest, folder_digest
from polariscope.data.originals import AbstractPublishedDataset
from polariscope.data.published.support.decoding import Mode, decode

LARGEST_PICTURE = 50 * 2**20
"""Maximum size of a picture file in bytes."""
BY_SIZES = "_is_identified_by_sizes"
"""Attribute of a dataset whose fingerprint is that of version 0.2.0."""


class AbstractPicturesDataset(AbstractPublishedDataset):
    """Pictures in the order of their names; a member defines their folder and converts each to the common shape."""

    ending: ClassVar[str] = ""
    """Suffix of the names of the pictures."""
    formats: ClassVar[tuple[str, ...]] = ()
    """File formats, as Pillow names them."""
    colours: ClassVar[Mode] = "RGB"
    """Grey or colour."""

    @property
    @abc.abstractmethod
    def _root(self) -> Path:
        """Folder or archive of the pictures."""

    @abc.abstractmethod
    def _shaped(self, picture: np.ndarray) -> UInt8[np.ndarray, "height width *channel"]:
        """Convert a picture to the common shape."""

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the pictures in their folder or archive, sorted; at least one."""
        root = self._root
        if root.is_dir():
            names = [
                text_name(check_regular(file).relative_to(root)) for file in root.rglob(f"*{self.ending}")
            ]
        else:
            names = [entry.name for entry in self._archive.entries if entry.name.endswith(self.ending)]
        # macOS adds files such as ._name and __MACOSX to archives.
        shown = [name for name in names if not any(part.startswith((".", "__")) for part in name.split("/"))]
        if not shown:
            raise InputError(str(root), f"contain pictures, files that end in {self.ending}")
        return tuple(sorted(shown))

    @functools.cached_property
    def _archive(self) -> archives.Archive:
        return archives.open_archive(self._root, self.max_unpacked)

    def __len__(self) -> int:
        return len(self.names)

    def ids(self, indices: ArrayLike | int) -> Shaped[np.ndarray, " sample"]:
        """Return the names of the files.

        :param indices: indices of the observations, from 0.
        """
        return np.array(
            [self.names[index].rpartition("/")[2] for index in self.check_indices(indices)], dtype=str
        )

    def _files(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and bytes of every picture, in any order."""
        root = self._root
        if root.is_dir():
            for name in self.names:
                file = root / name
                # A link could copy the content of any file into the data.
                if not file.resolve().is_relative_to(root):
                    raise InputError(
                        problem=f"{file} is a link to a file outside {root}",
                        remedy="copy that file into the folder",
                    )
                yield name, file.read_bytes()
            return
        wanted = set(self.names)
        for entry, stream in self._archive.walk(lambda entry: entry.name in wanted):
            if entry.size > LARGEST_PICTURE:
                raise archives.damaged(
                    root, f"{entry.name!r} has {entry.size:,} bytes, too many for a picture"
                )
            yield entry.name, stream.read(entry.size)

    def _picture_digests(self) -> list[object]:
        """Return identifiers of the pictures: the digest of the archive, or of the files in the folder."""
        if self._root.is_file():
            return [content_digest(self._root)]
        if self.__dict__.get(BY_SIZES):
            return [[name, (self._root / name).stat().st_size] for name in self.names]
        return [folder_digest(self._root, self.names)]

    def as_recorded_before(self) -> AbstractPicturesDataset | None:
        """Return the dataset with its fingerprint of 0.2.0, of names and sizes of the files; None for an archive."""
        if self._root.is_file():
            return None
        earlier = copy.copy(self)
        earlier.__dict__.pop("fingerprint", None)
        # Cached images are still identified by the contents of the files.
        earlier.__dict__.update({BY_SIZES: True, "_key": self._key})
        return earlier

    def _write(self, array: np.ndarray, progress: Task) -> None:
        position = {name: index for index, name in enumerate(self.names)}
        for done, (name, data) in enumerate(self._files()):
            picture = np.asarray(decode(data, self._root, name, self.colours, self.formats))
            shaped = self._shaped(picture)
            array[position[name]] = shaped[np.newaxis] if shaped.ndim == 2 else shaped.transpose(2, 0, 1)
            progress(done + 1, len(array))
