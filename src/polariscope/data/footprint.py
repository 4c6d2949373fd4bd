"""How much memory and disk a dataset takes."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path

import numpy as np

BATCH = 64
"""Observations of the batch that is counted in."""


@dataclasses.dataclass(frozen=True)
class Footprint:
    """What a dataset takes on this machine."""

    memory_bytes: int
    """Memory that it holds while batches of 64 are drawn from it, the batch included; files that are mapped do not
    count, since the system gives their memory back when it is needed."""
    disk_bytes: int
    """Room on disk: its files, and what it keeps in the cache folder once it has been used."""
    words: str
    """Where this comes from, in a sentence."""


def disk_bytes(path: str | os.PathLike[str] | None) -> int:
    """Bytes of a file, or of all files in a folder; 0 where there is none.

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
    """Memory of a batch while it is made: gathered bytes, a copy of them, floats, and floats divided by 255.

    :param n_features: values of one observation.
    :param n_samples: (default 64) observations in the batch.
    """
    return n_samples * n_features * (1 + 1 + 4 + 4) + 2**16


def held_bytes(value: object) -> int:
    """Memory of the arrays and words in a value and in the tuples, lists and dictionaries in it, but of no mapped file.

    :param value: an array, a word, or anything that may hold some; other objects say by ``held`` which they hold.
    """
    if isinstance(value, np.memmap):
        return 0
    if isinstance(value, np.ndarray):
        return held_bytes(value.base) if isinstance(value.base, np.memmap) else value.nbytes
    if isinstance(value, str):
        return sys.getsizeof(value)
    if isinstance(value, dict):
        return sum(map(held_bytes, value.values()))
    return sum(map(held_bytes, value if isinstance(value, tuple | list) else getattr(value, "held", ())))
