"""Collection of the layers of a model during encoding, so data and model are loaded once."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int

from polariscope.core.seeds import normals
from polariscope.layers.scratch import Scratch
from polariscope.models.inference import EncodedBatch
from polariscope.models.protocol import AbstractModel


class LayerTap:
    """Collector of all layers, flattened, in float32, at some of the observations that a model encodes.

    Call it with each batch, inside :func:`~polariscope.models.inference.inference_mode`. The noise of the sampled layer
    depends on the seed, the stream and the observation's index.

    :param model: model to encode with.
    :param rows: rows of the observations to collect, ascending.
    :param seed: seed of the noise.
    :param stream: names of the stream of noise, one for each run, because common noise would make the sampled layers of
        two collapsed models similar.
    :param arrays: allocator of the arrays.
    """

    def __init__(
        self,
        model: AbstractModel,
        rows: Int[np.ndarray, " row"],
        seed: int,
        stream: tuple[object, ...],
        arrays: Scratch,
    ) -> None:
        self.model, self.rows, self.seed, self.stream, self.arrays = model, rows, seed, stream, arrays
        self.layers: dict[str, Float[np.ndarray, "row _"]] = {}

    def __call__(self, encoded: EncodedBatch) -> None:
        # Rows are ascending, so those of a batch are a slice.
        first, last = np.searchsorted(self.rows, [encoded.rows.start, encoded.rows.stop])
        if first == last:
            return
        inside = self.rows[first:last] - encoded.rows.start
        selected = torch.from_numpy(inside).to(encoded.x.device)
        mean = encoded.posterior.mean
        noise = normals(self.seed, *self.stream, indices=encoded.indices[inside], width=mean.shape[1])
        auxiliary = None if encoded.auxiliary is None else encoded.auxiliary[selected]
        x = self.model.place(encoded.x[selected])
        for name, activation in self.model.activations(x, torch.from_numpy(noise).to(mean), auxiliary):
            flat = activation.flatten(1).to(torch.float32).cpu().numpy()
            # The width of a layer is known after its first batch.
            if name not in self.layers:
                self.layers[name] = self.arrays.array((len(self.rows), flat.shape[1]))
            self.layers[name][first:last] = flat
