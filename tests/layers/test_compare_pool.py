"""Layers with positions, compared by all their values or by the mean over positions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import polariscope as ps
from polariscope.core.errors import InputError

IMAGES = np.random.default_rng(0).random((120, 1, 8, 8)).astype(np.float32)


class Conv(nn.Module):
    """Codes of 2 channels at 4 × 4 positions."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 4, 3, 2, 1), nn.Conv2d(1, 4, 3, 2, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        codes = self.first(x)
        return codes[:, :2], codes[:, 2:]


class Shifted(Conv):
    """The same layers, with the positions of bright images moved; means over positions do not change."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean, log_variance = super().forward(x)
        moved = x.mean(dim=(1, 2, 3), keepdim=True) > 0.5
        return torch.where(moved, mean.roll(1, dims=-1), mean), log_variance


def test_means_over_positions_do_not_depend_on_the_order_of_positions():
    torch.manual_seed(0)
    model, other = Conv(), Shifted()
    other.load_state_dict(model.state_dict())
    pooled = ps.compare([model, other], IMAGES, pool="mean")
    flat = ps.compare([model, other], IMAGES)

    def score(result):
        labels = [(model, layer) for model, layers in enumerate(result.layers_of) for layer in layers]
        return result.matrix[labels.index((0, "mean")), labels.index((1, "mean"))]

    assert score(pooled) == pytest.approx(1, abs=1e-6)
    assert score(flat) < 0.999
    assert pooled.options == {"pool": "mean"}
    assert "pool" not in flat.options


def test_activations_without_positions_are_refused():
    layers = {"a": np.random.default_rng(0).random((50, 3))}
    with pytest.raises(InputError, match="pool is for models, and these activations have no positions"):
        ps.compare([layers], pool="mean")
