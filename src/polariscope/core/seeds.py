"""Independent streams of randomness from one seed.

Every random choice comes from a generator that is passed as an argument. Streams are identified by name, so adding
one (for example another validation pass) does not change the others.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
from jaxtyping import Float, Int, Shaped, UInt8, UInt32, UInt64

from polariscope.core.errors import InputError


def check_seed(seed: object) -> None:
    """Refuse a seed that is not an integer of at least 0.

    :param seed: the seed.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InputError("seed", "be an integer", got=f"{seed!r}")
    if seed < 0:
        raise InputError("seed", "not be negative", got=f"{seed}")


def derive(seed: int, *names: object) -> int:
    """Derive a 63-bit seed for the stream ``names`` of ``seed``, the same on every machine and Python version.

    >>> derive(0, "noise") == derive(0, "noise"), derive(0, "noise") == derive(1, "noise")
    (True, False)
    """
    check_seed(seed)
    # As JSON, the names ("a", "b") and ("ab",) are different texts.
    text = json.dumps([str(part) for part in (seed, *names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def generator(seed: int, *names: object) -> np.random.Generator:
    """Return a NumPy generator for the stream ``names`` of ``seed``."""
    # The generator is named, because NumPy can change the one behind default_rng.
    return np.random.Generator(np.random.PCG64(derive(seed, *names)))


def random_words(
    seed: int, *names: object, indices: Int[np.ndarray, " sample"], width: int
) -> UInt64[np.ndarray, "sample width"]:
    """Return words of 64 random bits that depend on the seed, the stream and each sample's index, not on the batch.

    Sample i gets the same ``width`` words in every batch. Each word is computed from its own counter,
    index · 2²⁰ + column (a higher power for more columns), by the finaliser of SplitMix64 (Steele et al., Fast
    Splittable Pseudorandom Number Generators, steele2014).

    >>> both = random_words(0, "noise", indices=np.array([7, 8]), width=3)
    >>> bool((random_words(0, "noise", indices=np.array([8]), width=3) == both[1]).all())
    True
    """
    # Counters of different samples must not overlap, so the index is shifted beyond the last column.
    room = np.uint64(max(20, (width - 1).bit_length()))
    columns = np.arange(width, dtype=np.uint64)
    counters: np.ndarray = (indices.astype(np.uint64)[:, None] << room) + columns
    with np.errstate(over="ignore"):  # overflow is intended: arithmetic is modulo 2⁶⁴
        bits: np.ndarray = (counters + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(
            derive(seed, *names)
        )
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return bits ^ (bits >> np.uint64(31))


def uniforms(
    seed: int, *names: object, indices: Int[np.ndarray, " sample"], width: int
) -> Float[np.ndarray, "sample width"]:
    """Return uniform numbers in the open interval (0, 1), by index as in :func:`random_words`."""
    bits = random_words(seed, *names, indices=indices, width=width)
    # The upper 53 bits fill the significand of a float; adding one half excludes 0 and 1.
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def normals(
    seed: int, *names: object, indices: Int[np.ndarray, " sample"], width: int
) -> Float[np.ndarray, "sample width"]:
    """Return standard normal numbers, by index as in :func:`random_words`: quantiles of uniform numbers."""
    from scipy.special import ndtri

    return ndtri(uniforms(seed, *names, indices=indices, width=width))


def random_bytes(
    seed: int, *names: object, indices: Int[np.ndarray, " sample"], width: int
) -> UInt8[np.ndarray, "sample width"]:
    """Return uniform bytes, by index as in :func:`random_words`; each word gives eight."""
    return _parts(random_words(seed, *names, indices=indices, width=-(-width // 8)), "u1")[:, :width]


def random_integers(
    seed: int, *names: object, indices: Int[np.ndarray, " sample"], width: int
) -> UInt32[np.ndarray, "sample width"]:
    """Return uniform integers from 0 to 2³² − 1, by index as in :func:`random_words`; each word gives two."""
    return _parts(random_words(seed, *names, indices=indices, width=-(-width // 2)), "<u4")[:, :width]


def _parts(bits: UInt64[np.ndarray, "sample width"], kind: str) -> Shaped[np.ndarray, "sample parts"]:
    """Split words into smaller ones, lowest bits first, on machines of either byte order."""
    parts = np.ascontiguousarray(bits, dtype="<u8").view(kind)
    return parts.astype(parts.dtype.newbyteorder("="), copy=False)
