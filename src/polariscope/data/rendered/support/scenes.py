"""Datasets of rendered bodies: a few images are rendered on request, many are rendered once into a file."""

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
from polariscope.data.cached_array import CachedArray
from polariscope.data.dataset import AbstractGridDataset
from polariscope.data.footprint import Footprint, batch_bytes

DIRECT = 2000
"""Number of different images that are rendered on request; beyond it, all are rendered into the cache folder."""
_IMAGE_BYTES = 32 * 2**20
"""Maximum size of cached images in memory before the file exists."""
_BODIES = 32 * 2**20
"""Size of the cached bodies: at most 64 of half a megabyte."""


@dataclasses.dataclass
class _Memory:
    """Images of one dataset in this process."""

    mapped: CachedArray | None = None
    requested: set[int] = dataclasses.field(default_factory=set)
    images: dict[int, np.ndarray] = dataclasses.field(default_factory=dict)


_memories: dict[tuple[str, str], _Memory] = {}
"""Caches by cache folder and key, shared by all equal datasets, however often they are created."""


class AbstractScenes(AbstractGridDataset):
    """Images of bodies from all sides.

    A member names the factors that determine the body, and renders one body in several ways. An image has the same
    bytes whether it is rendered alone or read from the file. The file is created by :meth:`prepare`, or as soon as more
    than 2,000 different images were requested. It is memory-mapped, not read.
    """

    image_size: int
    drawing: int
    """Version of the renderer, part of the fingerprint; increase it whenever an image changes."""
    body_factors: tuple[str, ...]
    """Names of the factors that determine the body."""

    @abc.abstractmethod
    def draw(
        self, body: tuple[int, ...], factors: Int[np.ndarray, "sample factor"]
    ) -> UInt8[np.ndarray, "sample channel height width"]:
        """Render images of one body.

        :param body: values of the factors that determine it.
        :param factors: all factors of each image.
        """

    @property
    def fingerprint(self) -> str:
        """Hash of the options and of the version of the renderer: results of another version are not reused."""
        return files.digest({**self.describe(), "drawing": self.drawing})

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        indices = self.check_indices(indices)
        memory = self._memory
        # Another process can have rendered the file meanwhile.
        if memory.mapped is None and is_cached(self._key):
            self.prepare()
        if memory.mapped is None:
            memory.requested.update(indices.tolist())
            # For a small dataset, half of its images are the limit.
            if len(memory.requested) > min(DIRECT, len(self) // 2):
                self.prepare()
        return self._drawn(indices) if memory.mapped is None else memory.mapped[indices]

    def prepare(self) -> None:
        """Render all images into the cache folder, unless they are there. Training does this automatically."""
        memory = self._memory
        if memory.mapped is None:
            message = f"{self.name}: rendering {len(self):,} images, once"
            memory.mapped = cached_array(
                self._key, (len(self), *self.shape), np.uint8, self._draw_all, message
            )
            memory.images.clear()

    def footprint(self) -> Footprint:
        """Return the memory of cached images and bodies and of a batch, and the disk space of all images."""
        note = "A few images are rendered on request; if many are needed, all are rendered once into the cache folder."
        held = min(_IMAGE_BYTES, DIRECT * self.n_features) + _BODIES
        return Footprint(held + batch_bytes(self.n_features), len(self) * self.n_features, note)

    @property
    def _key(self) -> str:
        return f"{self.name}/{self.image_size}-{self.fingerprint[:16]}"

    @property
    def _memory(self) -> _Memory:
        # A test or a user can change the cache folder while the process runs.
        return _memories.setdefault((str(cache_folder()), self._key), _Memory())

    def _drawn(self, indices: Int[np.ndarray, " sample"]) -> UInt8[np.ndarray, "sample channel height width"]:
        cached = self._memory.images
        wanted, positions = np.unique(indices, return_inverse=True)
        new = np.array([index for index in wanted if int(index) not in cached], dtype=np.int64)
        drawn = dict(zip(new.tolist(), self._render(new), strict=True))
        images = [drawn[index] if index in drawn else cached[index] for index in wanted.tolist()]
        room = _IMAGE_BYTES // self.n_features - len(cached)
        # Images beyond the limit are rendered again when they are needed.
        cached.update(itertools.islice(drawn.items(), max(0, room)))
        return np.array(images, dtype=np.uint8).reshape(-1, *self.shape)[positions]

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
        """Render body after body, since creating a body takes longer than rendering it."""
        numbers = np.arange(len(self)).reshape(self.factor_sizes)
        columns = [self.factor_names.index(name) for name in self.body_factors]
        by_body = np.moveaxis(numbers, columns, range(len(columns)))
        by_body = by_body.reshape(-1, len(self) // np.prod([self.factor_sizes[column] for column in columns]))
        for done, indices in enumerate(by_body):
            progress(done, len(by_body))
            array[indices] = self._render(indices)
        progress(len(by_body), len(by_body))
