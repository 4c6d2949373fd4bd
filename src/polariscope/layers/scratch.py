"""Arrays that live in memory while there is room, and in files after that."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Shaped


class Scratch:
    """Makes arrays: in memory up to a budget, then as maps of files in a folder. Nothing in it is kept."""

    def __init__(self, folder: Path, budget: float | int) -> None:
        self.folder, self.budget = folder, budget
        self.used, self.n_files = 0, 0

    def array(self, shape: tuple[int, ...], dtype: np.dtype | type = np.float32) -> Shaped[np.ndarray, "..."]:
        """An array to be filled."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if self.used + size <= self.budget:
            self.used += size
            return np.empty(shape, dtype)
        self.n_files += 1
        return np.memmap(self.folder / f"{self.n_files}.bin", dtype=dtype, mode="w+", shape=shape)


@contextlib.contextmanager
def scratch(folder: str | Path | None, budget: float | int) -> Iterator[Scratch]:
    """A scratch whose files are in a new folder inside ``folder`` (None: the system's place for temporary files)."""
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".polariscope-", dir=folder) as directory:
        yield Scratch(Path(directory), budget)
