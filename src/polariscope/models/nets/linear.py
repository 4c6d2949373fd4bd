"""Linear encoder and decoder, for comparison with theory."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from torch import nn

from polariscope.models.nets import AbstractNet, Trunk, net, output_layer


@net("linear")
@dataclasses.dataclass(frozen=True)
class LinearNet(AbstractNet):
    """One affine map in each direction; the polarised regime it converges to is known in closed form.

    The encoder trunk only flattens, so the posterior head is the affine map. With decoder noise γ, data
    covariance with eigenvalues λ_i and weight β on the KL, component i is active if and only if λ_i > βγ
    (bonheme2023 §4.2).
    """

    # Adam moves a weight by at most one learning rate per step, and here single weights determine the log-variances.
    # Large steps do not prune useful latents, because there is a single optimum.
    sizing_rate: ClassVar[float | None] = 1e-2

    def encoder(self, shape: tuple[int, ...], n_auxiliary: int = 0) -> Trunk:
        return Trunk([nn.Flatten()], math.prod(shape) + n_auxiliary)

    def decoder(self, n_latents: int, shape: tuple[int, ...], n_parameters: int) -> Trunk:
        return Trunk([output_layer(n_latents, shape, n_parameters)], n_parameters * math.prod(shape))
