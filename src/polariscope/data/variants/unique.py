"""Removal of duplicate observations."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
from jaxtyping import Int

from polariscope.data.streamed_statistics import batches
from polariscope.data.variants import variant
from polariscope.data.variants.support.subsets import AbstractSelection


@variant("unique", of="anything")
@dataclasses.dataclass(frozen=True)
class UniqueVariant(AbstractSelection):
    """Observations without duplicates: the first of equal observations is kept, in the order of the base.

    Observations are equal if their values, as a network receives them, agree bit for bit. Estimators of the intrinsic
    dimension require this, since duplicates are at distance 0. All observations are read once, in batches, and compared
    by a hash of 128 bits.

    Reference: bonheme2023 estimates dimensions from unique samples.
    """

    def choose(self) -> Int[np.ndarray, " sample"]:
        # Adding 0 turns −0 into 0, so the two have the same bytes.
        hashes = b"".join(
            hashlib.blake2b((row + np.float32(0)).tobytes(), digest_size=16).digest()
            for values in batches(self.base)
            for row in values
        )
        # Bytes of fixed length are sorted without interpretation.
        _, first = np.unique(np.frombuffer(hashes, dtype="V16"), return_index=True)
        return np.sort(first).astype(np.int64)
