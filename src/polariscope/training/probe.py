"""What the latents are doing while the model trains."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.data import AbstractDataset
from polariscope.model import Model
from polariscope.objectives import AbstractObjective, Batch
from polariscope.posteriors import kl
from polariscope.seeds import derive
from polariscope.variable_types import TYPES, classify

BATCH = 256


class Probe:
    """Looks at a model through fixed validation samples, with noise of its own.

    It draws nothing from the training's generators, so looking more or less often changes no weight.
    """

    def __init__(self, data: AbstractDataset, indices: np.ndarray, seed: int) -> None:
        self.data = data
        self.indices = indices
        self.seed = seed
        self._values: dict[tuple[int, int], Float[Tensor, "sample *shape"]] = {}

    def _batch(self, model: Model, start: int, stop: int) -> Float[Tensor, "sample *shape"]:
        """The samples of one batch, rendered or gathered once and kept."""
        if (start, stop) not in self._values:
            self._values[start, stop] = model.place(
                torch.from_numpy(self.data.values(self.indices[start:stop]))
            )
        return self._values[start, stop]

    def _generator(self, model: Model, name: str) -> torch.Generator:
        return torch.Generator(model.device).manual_seed(derive(self.seed, name))

    @torch.no_grad()
    def latents(self, model: Model, n_samples: int) -> dict[str, Any]:
        """KL and mean posterior variance of each latent, Σ E[σ²], and how many are of each type."""
        noise = self._generator(model, "probe")
        variances, rates = [], []
        n_samples = min(n_samples, len(self.indices))
        for start in range(0, n_samples, BATCH):
            q = model.encode(self._batch(model, start, min(start + BATCH, n_samples)))
            variances.append(q.variance)
            rates.append(kl(q, model.prior, q.sample(noise)))
        variance = torch.cat(variances).double().cpu().numpy()
        rate = torch.cat(rates).double().mean(0).cpu().numpy()
        relative = variance / prior_variance(model)
        types = classify(relative.mean(0), relative.var(0))
        return {
            "kl": rate.tolist(),
            "variance": variance.mean(0).tolist(),
            "trace": float(variance.mean(0).sum()),
            **{kind: types.count(kind) for kind in TYPES},
        }

    @torch.no_grad()
    def validation(self, model: Model, objective: AbstractObjective, step: int) -> dict[str, float]:
        """Mean of each term of the loss over all samples of the probe."""
        noise = self._generator(model, "validation")
        sums: dict[str, float] = {}
        for start in range(0, len(self.indices), BATCH):
            stop = min(start + BATCH, len(self.indices))
            terms = objective.terms(model, Batch(self._batch(model, start, stop), step), noise)
            for name, term in terms.items():
                sums[name] = sums.get(name, 0.0) + float(term.per_batch) * (stop - start) / len(self.indices)
        return sums


def prior_variance(model: Model) -> Float[np.ndarray, " latent"]:
    """Variance of the prior, by which posterior variances are judged; 1 where it has no closed form."""
    normal = model.prior.normal()
    if normal is None:
        return np.ones(model.n_latents)
    return np.exp(normal[1].detach().double().cpu().numpy())
