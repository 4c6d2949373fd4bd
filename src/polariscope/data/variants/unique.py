"""Each observation once."""

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
    """Duplicates removed: of equal observations the first is kept, in the order of the base.

    Observations are equal when networks see the same values, bit for bit. Estimators of the intrinsic dimension need
    it: duplicates are at distance 0. All observations are read once, in batches, and told apart by a hash of 128 bits.

    Reference: bonheme2023 estimates dimensions from unique samples.
    """

    def choose(self) -> Int[np.ndarray, " sample"]:
        # + 0 makes −0 to 0, which equals it
        hashes = b"".join(
            hashlib.blake2b((row + np.float32(0)).tobytes(), digest_size=16).digest()
            for values in batches(self.base)
            for row in values
        )
        _, first = np.unique(np.frombuffer(hashes, dtype="V16"), return_index=True)
        return np.sort(first).astype(np.int64)
