"""What is logged of the latents while training is what the diagnosis says afterwards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import polariscope as ps
from long_training import unchecked
from polariscope.analysis.regime.latent_types import TYPES
from polariscope.analysis.representation import Representation
from polariscope.models.posteriors.diagonal import DiagonalGaussian
from polariscope.models.priors.conditional import ConditionalNormal
from polariscope.objectives import Batch
from polariscope.training.monitor import Probe

N_SAMPLES = 300  # more than one batch of the probe


class KnownPosteriors:
    """Stands for a feed and its model: posterior and prior of each sample are given, and u is its index."""

    def __init__(
        self, mean: np.ndarray, variance: np.ndarray, prior_mean: np.ndarray, prior_variance: np.ndarray
    ):
        arrays = (mean, np.log(variance), prior_mean, np.log(prior_variance))
        self.mean, self.log_variance, self.prior_mean, self.prior_log_variance = map(torch.from_numpy, arrays)
        self.seed = 0
        self.data = SimpleNamespace(n_features=1)
        self.model: Any = SimpleNamespace(
            gamma=None,
            device="cpu",
            encode=lambda x, u: DiagonalGaussian(self.mean[x], self.log_variance[x]),
            prior=SimpleNamespace(
                given=lambda u: ConditionalNormal(self.prior_mean[u], self.prior_log_variance[u])
            ),
            has_density=True,
        )

    def batch(self, indices: np.ndarray, step: int, stream: str) -> Any:
        chosen = torch.from_numpy(indices)
        return Batch(chosen, step, auxiliary=chosen)


def test_types_under_a_conditional_prior_are_those_of_the_diagnosis() -> None:
    """Four latents that the rule for a fixed prior cannot tell apart in pairs.

    σ²/Σ† = 1 in the first two, but the second posterior lies off its prior: not passive. σ²/Σ† = 0.01 in the last two,
    but the mean of the fourth moves no more than its noise: not active.
    """
    draw = np.random.default_rng(0)
    prior_variance = np.exp(draw.normal(size=(N_SAMPLES, 4)))
    prior_mean = draw.normal(size=(N_SAMPLES, 4))
    variance = prior_variance * [1.0, 1.0, 0.01, 0.01]
    mean = prior_mean + np.sqrt(prior_variance) * [0.0, 1.0, 0.0, 0.0]
    mean[:, 2] = 10 * draw.normal(size=N_SAMPLES)
    mean[:, 3] = 0.1 * draw.normal(size=N_SAMPLES)
    feed: Any = KnownPosteriors(mean, variance, prior_mean, prior_variance)
    with unchecked():  # no real feed
        told = Probe(feed, np.arange(N_SAMPLES)).latents(N_SAMPLES)
    representation = Representation(
        mean, variance, mean, prior_mean=prior_mean, prior_variance=prior_variance
    )
    regime = ps.diagnose(representation)
    assert list(regime.types) == ["passive", "mixed", "active", "mixed"]
    assert {kind: told[kind] for kind in TYPES} == {"active": 1, "mixed": 2, "passive": 1}
    assert told["variance"] == pytest.approx(variance.mean(axis=0), rel=1e-12)


@pytest.mark.parametrize("prior", ["isotropic", "student-t", "conditional"])
def test_the_last_line_of_the_log_has_the_counts_of_the_diagnosis(prior: str, tmp_path: Any) -> None:
    draw = np.random.default_rng(0)
    factors = draw.integers(3, size=(400, 1))
    data = ps.from_arrays(
        (factors + draw.normal(size=(400, 4)) * [2, 1, 0.1, 0.1]).astype(np.float32), factors
    )
    settings = {
        "steps": 60,
        "log_every": 20,
        "validate_every": 20,
        "learning_rate": 1e-2,
        "train_fraction": 0.5,
    }
    model = ps.train(data, "vae", "linear", 3, prior=prior, out=tmp_path / "run", **settings)
    # The probe sees all 100 validation samples.
    regime = ps.diagnose(ps.encode(model, data, None, part="validation"))
    line = ps.open_run(tmp_path / "run", data).log()[-1]
    assert line["step"] == 60
    assert [line[kind] for kind in TYPES] == [regime.types.count(kind) for kind in TYPES]
    assert line["delta_kl"] == pytest.approx(regime.polarisation.delta, rel=1e-5)
    assert line["std"] == pytest.approx([latent.std_of_mean for latent in regime.latents], rel=1e-5)


def test_delta_is_the_share_of_the_kl_that_the_active_latents_alone_miss() -> None:
    """Latent 0: μ = ±1, σ² = v; latent 1 is the prior: Δ = (v/2) / KL with KL = (1 + v − log v − 1)/2."""
    v = 0.1
    mean = np.stack([np.resize([1.0, -1.0], N_SAMPLES), np.zeros(N_SAMPLES)], axis=1)
    variance = np.tile([v, 1.0], (N_SAMPLES, 1))
    feed: Any = KnownPosteriors(mean, variance, np.zeros_like(mean), np.ones_like(mean))
    with unchecked():
        told = Probe(feed, np.arange(N_SAMPLES)).latents(N_SAMPLES)
    assert told["delta_kl"] == pytest.approx(v / (v - np.log(v)), rel=1e-12)
    assert told["std"] == [1.0, 0.0]


def test_what_is_not_finite_is_none_in_the_log() -> None:
    mean = np.tile([np.inf, 0.0], (N_SAMPLES, 1))
    feed: Any = KnownPosteriors(mean, np.ones_like(mean), np.zeros_like(mean), np.ones_like(mean))
    with unchecked():
        told = Probe(feed, np.arange(N_SAMPLES)).latents(N_SAMPLES)
    assert told["delta_kl"] is None
    assert told["std"] == [None, 0.0]
