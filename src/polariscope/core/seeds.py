"""Independent streams of randomness from one seed.

Every random choice comes from a generator that was passed in. Streams are told apart by name, so adding
one (say, another validation pass) never shifts another.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
from jaxtyping import Float, Int


def derive(seed: int, *names: object) -> int:
    """A 63-bit seed for the stream ``names`` of ``seed``; the same on every machine and Python.

    >>> derive(0, "noise") == derive(0, "noise"), derive(0, "noise") == derive(1, "noise")
    (True, False)
    """
    text = json.dumps([str(part) for part in (seed, *names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def generator(seed: int, *names: object) -> np.random.Generator:
    """A NumPy generator for the stream ``names`` of ``seed``."""
    return np.random.Generator(np.random.PCG64(derive(seed, *names)))


def normals(
    seed: int, *names: object, indices: Int[np.ndarray, " sample"], width: int
) -> Float[np.ndarray, "sample width"]:
    """Standard normal numbers that depend on the seed, the stream and each sample's index, never on the batch.

    Sample i gets the same ``width`` numbers whichever samples are asked for with it. Each comes from a counter of its
    own, index · 2²⁰ + column, through the finaliser of SplitMix64 (Steele et al., Fast Splittable Pseudorandom Number
    Generators, steele2014), whose top 53 bits are read as a quantile.

    >>> both = normals(0, "noise", indices=np.array([7, 8]), width=3)
    >>> bool((normals(0, "noise", indices=np.array([8]), width=3) == both[1]).all())
    True
    """
    from scipy.special import ndtri

    columns = np.arange(width, dtype=np.uint64)
    counters: np.ndarray = (indices.astype(np.uint64)[:, None] << np.uint64(20)) + columns
    with np.errstate(over="ignore"):  # arithmetic modulo 2⁶⁴ is meant
        bits: np.ndarray = (counters + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(
            derive(seed, *names)
        )
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits = bits ^ (bits >> np.uint64(31))
    return ndtri(((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)
