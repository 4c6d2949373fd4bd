"""Order of the training data."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from polariscope.core.seeds import generator


class DataOrder:
    """A new permutation of the training indices for every epoch, divided into batches.

    The batch of a step is a function of the seed and the step alone, so a resumed run uses the same batches. An
    incomplete batch at the end of an epoch is dropped. A split smaller than a batch is one batch.
    """

    def __init__(self, indices: Int[np.ndarray, " sample"], batch_size: int, seed: int) -> None:
        self.indices = indices
        self.batch_size = min(batch_size, len(indices))
        self.batches_per_epoch = len(indices) // self.batch_size
        self.seed = seed
        self._epoch = -1
        self._permuted = indices

    def batch(self, step: int) -> Int[np.ndarray, " batch"]:
        epoch, number = divmod(step, self.batches_per_epoch)
        # Steps come in order, so only the permutation of the current epoch is kept.
        if epoch != self._epoch:
            self._permuted = generator(self.seed, "order", epoch).permutation(self.indices)
            self._epoch = epoch
        return self._permuted[number * self.batch_size : (number + 1) * self.batch_size]
