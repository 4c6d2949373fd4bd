"""The layers of a model, taken from batches as they pass, so the data are read and the model is loaded once."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int

from polariscope.core.seeds import normals
from polariscope.layers.scratch import Scratch
from polariscope.models.inference import EncodedBatch
from polariscope.models.protocol import AbstractModel


class LayerTap:
    """Collects every layer, flattened, in float32, at some of the observations that a model is shown.

    Call it with each batch, inside :func:`~polariscope.models.inference.inference_mode`. The noise of the sampled layer
    depends on the seed, the stream and the observation's index.

    :param model: the model.
    :param rows: which of the observations, by their index, ascending.
    :param seed: seed of the noise.
    :param stream: names of the stream of noise, one for each run that is compared: noise in common would make the
        sampled layers of two collapsed models alike.
    :param arrays: makes the arrays, in memory or in files.
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

    def __call__(self, seen: EncodedBatch) -> None:
        first, last = np.searchsorted(self.rows, [seen.rows.start, seen.rows.stop])
        if first == last:
            return
        inside = self.rows[first:last] - seen.rows.start
        chosen = torch.from_numpy(inside).to(seen.x.device)
        mean = seen.posterior.mean
        noise = normals(self.seed, *self.stream, indices=seen.indices[inside], width=mean.shape[1])
        auxiliary = None if seen.auxiliary is None else seen.auxiliary[chosen]
        x = self.model.place(seen.x[chosen])
        for name, activation in self.model.activations(x, torch.from_numpy(noise).to(mean), auxiliary):
            flat = activation.flatten(1).to(torch.float32).cpu().numpy()
            if name not in self.layers:
                self.layers[name] = self.arrays.array((len(self.rows), flat.shape[1]))
            self.layers[name][first:last] = flat
