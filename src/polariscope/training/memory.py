"""Reuse of the memory that a training step frees by the next step."""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # glibc's names for mallopt's parameters


def keep_freed_memory() -> bool:
    """Configure the C library not to return freed memory to the system; return True if this is supported (glibc).

    A convolutional step on the CPU allocates and frees some 100 MB of activations. By default glibc returns the top of
    its heap as soon as it is free, and the next step has to request every page again; benchmarks/train_step.py measures
    the cost. The process keeps at most the memory that training has used, until it ends.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    settings = {TRIM_THRESHOLD: 2**31 - 1, TOP_PAD: 64 * 2**20, MMAP_THRESHOLD: 32 * 2**20}
    return all(mallopt(ctypes.c_int(name), ctypes.c_int(value)) == 1 for name, value in settings.items())
