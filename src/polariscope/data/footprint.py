"""Memory and disk space that a dataset needs."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path

import numpy as np

BATCH = 64
"""Number of observations of the batch that is included."""


@dataclasses.dataclass(frozen=True)
class Footprint:
    """Memory and disk space of a dataset on this machine."""

    memory_bytes: int
    """Memory in use while batches of 64 are drawn, including the batch. Memory-mapped files do not count, because the
    operating system frees their memory when it is needed."""
    disk_bytes: int
    """Disk space: the files of the dataset, and its files in the cache folder once it has been used."""
    words: str
    """Explanation of these numbers, in a sentence."""


def disk_bytes(path: str | os.PathLike[str] | None) -> int:
    """Return the size in bytes of a file, or of all files in a folder; 0 if it does not exist.

    :param path: the file or folder.
    """
    location = Path(path) if path is not None else None
    if location is None or not location.exists():
        return 0
    if location.is_file():
        return location.stat().st_size
    return sum(
        file.stat().st_size for file in location.rglob("*") if file.is_file() and not file.is_symlink()
    )


def batch_bytes(n_features: int, n_samples: int = BATCH) -> int:
    """Return the memory needed to create a batch: gathered bytes, a copy of them, floats, and floats divided by 255.

    :param n_features: number of values of one observation.
    :param n_samples: (default 64) number of observations in the batch.
    """
    return n_samples * n_features * (1 + 1 + 4 + 4) + 2**16


def held_bytes(value: object) -> int:
    """Return the memory of the arrays and strings in a value and, recursively, in its tuples, lists and dictionaries.

    Memory-mapped files are excluded.

    :param value: an array, a string, or a container of them. Other objects list what they contain in ``held``.
    """
    if isinstance(value, np.memmap):
        return 0
    if isinstance(value, np.ndarray):
        # Views of a memory map are ordinary arrays whose base is the map.
        return held_bytes(value.base) if isinstance(value.base, np.memmap) else value.nbytes
    if isinstance(value, str):
        return sys.getsizeof(value)
    if isinstance(value, dict):
        return sum(map(held_bytes, value.values()))
    return sum(map(held_bytes, value if isinstance(value, tuple | list) else getattr(value, "held", ())))
