"""Datasets of rendered bodies: a few images are drawn when asked for, many come from a file that is drawn once."""

from __future__ import annotations

import abc
import dataclasses
import itertools

import numpy as np
from jaxtyping import Int, UInt8
from numpy.typing import ArrayLike

from polariscope.core import files
from polariscope.core.progress import Task
from polariscope.data.cache import cache_folder, cached_array, is_cached
from polariscope.data.dataset import AbstractGridDataset
from polariscope.data.footprint import Footprint, batch_bytes

DIRECT = 2000
"""Different images that are drawn when asked for; one more, and all are drawn and stored in the cache folder."""
_REMEMBERED = 32 * 2**20
"""Bytes of images in memory while there is no file."""
_BODIES = 32 * 2**20
"""Bytes of the bodies that are remembered: at most 64 of half a megabyte."""


@dataclasses.dataclass
class _Memory:
    """What this process knows of the images of one dataset."""

    mapped: np.ndarray | None = None
    asked: set[int] = dataclasses.field(default_factory=set)
    images: dict[int, np.ndarray] = dataclasses.field(default_factory=dict)


_memories: dict[tuple[str, str], _Memory] = {}
"""By cache folder and key: one for all datasets that are equal, however often they are made."""


class AbstractScenes(AbstractGridDataset):
    """Images of bodies from all sides.

    A member says which factors decide the body, and draws one body in several ways. An image has the same bytes whether
    it is drawn alone or comes from the file. The file is made once, when more than 2,000 different images were asked
    for or by :meth:`prepare`; it is mapped into memory, not read.
    """

    image_size: int
    drawing: int
    """Edition of the drawing: raise it whenever an image changes. It is part of the fingerprint."""
    body_factors: tuple[str, ...]
    """Names of the factors that decide the body."""

    @abc.abstractmethod
    def draw(
        self, body: tuple[int, ...], factors: Int[np.ndarray, "sample factor"]
    ) -> UInt8[np.ndarray, "sample channel height width"]:
        """Images of one body.

        :param body: values of the factors that decide it.
        :param factors: all factors of each image.
        """

    @property
    def fingerprint(self) -> str:
        """Hash of the options and of the edition of the drawing: results of another edition are not taken over."""
        return files.digest({**self.describe(), "drawing": self.drawing})

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        indices = self.check_indices(indices)
        memory = self._memory
        if memory.mapped is None and is_cached(self._key):
            self.prepare()
        if memory.mapped is None:
            memory.asked.update(indices.tolist())
            if len(memory.asked) > min(DIRECT, len(self) // 2):
                self.prepare()
        return self._drawn(indices) if memory.mapped is None else memory.mapped[indices]

    def prepare(self) -> None:
        """Draw all images into the cache folder, unless they are there. Training does so by itself."""
        memory = self._memory
        if memory.mapped is None:
            message = f"{self.name}: drawing {len(self):,} images, once"
            memory.mapped = cached_array(
                self._key, (len(self), *self.shape), np.uint8, self._draw_all, message
            )
            memory.images.clear()

    def footprint(self) -> Footprint:
        """Memory of the images and bodies that are remembered and of a batch; disk of the file with all images."""
        note = "A few images are drawn when asked for; for many, all are drawn into the cache folder, once."
        held = min(_REMEMBERED, DIRECT * self.n_features) + _BODIES
        return Footprint(held + batch_bytes(self.n_features), len(self) * self.n_features, note)

    @property
    def _key(self) -> str:
        return f"{self.name}/{self.image_size}-{self.fingerprint[:16]}"

    @property
    def _memory(self) -> _Memory:
        return _memories.setdefault((str(cache_folder()), self._key), _Memory())

    def _drawn(self, indices: Int[np.ndarray, " sample"]) -> UInt8[np.ndarray, "sample channel height width"]:
        remembered = self._memory.images
        wanted, positions = np.unique(indices, return_inverse=True)
        new = np.array([index for index in wanted if int(index) not in remembered], dtype=np.int64)
        drawn = dict(zip(new.tolist(), self._render(new), strict=True))
        known = [drawn[index] if index in drawn else remembered[index] for index in wanted.tolist()]
        room = _REMEMBERED // self.n_features - len(remembered)
        remembered.update(itertools.islice(drawn.items(), max(0, room)))
        return np.array(known, dtype=np.uint8).reshape(-1, *self.shape)[positions]

    def _render(
        self, indices: Int[np.ndarray, " sample"]
    ) -> UInt8[np.ndarray, "sample channel height width"]:
        factors = self.factors(indices)
        columns = [self.factor_names.index(name) for name in self.body_factors]
        bodies, which = np.unique(factors[:, columns], axis=0, return_inverse=True)
        images = np.empty((len(indices), *self.shape), dtype=np.uint8)
        for number, body in enumerate(bodies.tolist()):
            rows = np.flatnonzero(which == number)
            images[rows] = self.draw(tuple(body), factors[rows])
        return images

    def _draw_all(self, array: np.ndarray, progress: Task) -> None:
        """Body after body, since making a body takes longer than looking at it."""
        numbers = np.arange(len(self)).reshape(self.factor_sizes)
        columns = [self.factor_names.index(name) for name in self.body_factors]
        by_body = np.moveaxis(numbers, columns, range(len(columns)))
        by_body = by_body.reshape(-1, len(self) // np.prod([self.factor_sizes[column] for column in columns]))
        for done, indices in enumerate(by_body):
            progress(done, len(by_body))
            array[indices] = self._render(indices)
        progress(len(by_body), len(by_body))
