"""Temporary arrays in memory up to a limit, and in files beyond it."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from polariscope.core.paths import user_path


class Scratch:
    """Allocator of temporary arrays, in memory up to a budget, then as memory-mapped files in a folder."""

    def __init__(self, folder: Path, budget: float | int) -> None:
        self.folder, self.budget = folder, budget
        self.used, self.n_files = 0, 0

    def array(self, shape: tuple[int, ...], dtype: np.dtype | type = np.float32) -> Shaped[np.ndarray, "..."]:
        """Return an uninitialised array."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if self.used + size <= self.budget:
            self.used += size
            return np.empty(shape, dtype)
        self.n_files += 1
        return np.memmap(self.folder / f"{self.n_files}.bin", dtype=dtype, mode="w+", shape=shape)


@contextlib.contextmanager
def scratch(folder: str | Path | None, budget: float | int) -> Iterator[Scratch]:
    """Create a :class:`Scratch` with files in a new folder inside ``folder`` (None: the system's temporary folder)."""
    if folder is not None:
        folder = user_path(folder, "folder")
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".polariscope-", dir=folder) as directory:
        yield Scratch(Path(directory), budget)
