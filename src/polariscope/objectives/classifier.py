"""Classifier with the architecture of the encoder."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractGridDataset
from polariscope.data.labels import discrete_factors
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets import initialise
from polariscope.objectives import AbstractObjective, Step, Term, Terms, objective
from polariscope.objectives.support.paired_batches import refuse_conditional_prior

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


@objective("classifier")
@dataclasses.dataclass(frozen=True)
class ClassifierObjective(AbstractObjective):
    r"""Cross-entropy of every discrete factor, for an encoder without a decoder.

    .. math:: -\sum_k \log p_k(y_k | x), \qquad p_k(\cdot | x) = \mathrm{softmax}(A_k f(x) + b_k)

    with y_k the class of factor k and f(x) the input of the heads (A_k, b_k). If the heads are zero, it is Σ_k log n_k
    for factors of n_k classes; it is 0 if every class is certain. The terms ``accuracy …`` are accuracies, with a
    chance level of 1/n_k.

    The classifier serves to compare its layers with those of an encoder; ``input`` and ``encoder/1`` … are the same
    layers. In bonheme2023 App. C.3, and here by default, the classification layers replace the heads for mean and
    variance, and their input is the last layer of the encoder; the model's mean is then an untrained map of these
    features. With ``heads="mean"`` (ours) their input is the mean, a linear map, so the latents are trained as well,
    and the rank of the heads' output is at most the number of latents.
    """

    heads: Literal["features", "mean"] = "features"
    """Input of the classification layers: the encoder's last layer, or the latents."""

    needs = frozenset({"labels"})
    defaults = {"posterior": "deterministic"}
    needs_density = False
    trains_decoder = False
    companion_is_adversary = False

    @property
    def caution(self) -> str:
        """Caution shown in reports."""
        if self.heads == "mean":
            return ""
        return (
            "The classification layers replace the mean, so the latents shown are an untrained map of the encoder's "
            "last layer. Only the layers of the encoder were trained."
        )

    def check(self, data: AbstractDataset, blueprint: Blueprint, batch_size: int) -> None:
        refuse_conditional_prior("classifier", blueprint)
        classes = discrete_factors(data)
        # Factors of a grid are indices, which count from 0.
        if isinstance(data, AbstractGridDataset):
            return
        factors = data.factors(np.arange(len(data)))
        for name, size in classes.items():
            column = factors[:, data.factor_names.index(name)]
            if column.min() != 0 or column.max() != size - 1:
                raise InputError(
                    f"the {size} classes of factor {name!r}",
                    f"be numbered 0 … {size - 1}",
                    got=f"{column.min():g} … {column.max():g}",
                    remedy="number them from 0, for example with the inverse indices of np.unique",
                )

    def companion(
        self, model: Model, data: AbstractDataset, generator: torch.Generator
    ) -> ClassificationHeads:
        n_in = model.n_latents if self.heads == "mean" else model.encoder.trunk.out_features
        network = ClassificationHeads(n_in, discrete_factors(data), generator)
        return network.to(model.device, model.dtype)

    def terms(self, step: Step) -> Terms:
        model, batch = step.model, step.batch
        labels = batch.labels
        if labels is None:
            raise InputError(
                problem="objective 'classifier' requires the classes of the factors, and this batch has none"
            )
        features = model.encode(batch.x).mean if self.heads == "mean" else model.encoder.trunk(batch.x)
        logits = step.run_companion(features)
        losses = [
            functional.cross_entropy(scores, labels[:, k], reduction="none")
            for k, scores in enumerate(logits.values())
        ]
        accuracies = {
            f"accuracy {name}": Term((scores.argmax(1) == labels[:, k]).to(features.dtype), weight=0.0)
            for k, (name, scores) in enumerate(logits.items())
        }
        return {"classification": Term(torch.stack(losses, dim=1).sum(1)), **accuracies}


class ClassificationHeads(nn.Module):
    """Classification layers: an affine layer per factor, from features to a logit for each class."""

    def __init__(self, n_in: int, classes: dict[str, int], generator: torch.Generator) -> None:
        super().__init__()
        self.names = tuple(classes)
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator when constructed
            self.factors = nn.ModuleList(nn.Linear(n_in, size) for size in classes.values())
        initialise(self, "glorot", generator)

    def forward(self, features: Float[Tensor, "sample feature"]) -> dict[str, Float[Tensor, "sample class"]]:
        return {name: layer(features) for name, layer in zip(self.names, self.factors, strict=True)}
