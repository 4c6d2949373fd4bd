"""The split of the reconstruction loss adds up, and is exact where the decoder is linear."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from geometry.models import codes, curved_model, optimal_model
from oracles import STANDARD_ERRORS, symmetric_points
from polariscope.analysis.theory import linear_vae
from polariscope.core.errors import InputError
from polariscope.data.own.arrays import from_arrays
from polariscope.geometry.loss_split import LossSplit, split_reconstruction
from polariscope.models import inference
from polariscope.models.likelihoods.gaussian import GaussianLikelihood

EIGENVALUES = np.array([9.0, 4.0, 2.0, 0.5])


def test_a_linear_gaussian_model_splits_in_closed_form():
    # Data with covariance diag λ exactly; noise ±√n e_j has mean 0 and covariance I exactly.
    gamma, n_latents = 0.5, 3
    model, _, directions = optimal_model(EIGENVALUES, n_latents, gamma)
    x = symmetric_points(directions * EIGENVALUES @ directions.T).astype(np.float32)
    noise = torch.from_numpy(symmetric_points(np.eye(n_latents)))
    prepared = iter(noise)
    with pytest.MonkeyPatch.context() as patch:
        rows = lambda seed, *names, indices, width: np.tile(next(prepared), (len(indices), 1))  # noqa: E731
        patch.setattr(inference, "normals", rows)
        found = split_reconstruction(model, x, n_samples=None, n_draws=len(noise), linearise=True)
    # μ shrinks component i by 1 − γ/λ, so that ‖Dec(μ) − x‖² has γ²/λ of it, or λ where it is dropped; the noise
    # σ² = γ/λ along a column of squared length λ − γ adds γ(λ − γ)/λ.
    kept, rest = EIGENVALUES[:n_latents], EIGENVALUES[n_latents:]
    assert found.deterministic == pytest.approx((gamma**2 / kept).sum() + rest.sum(), rel=1e-6)
    assert found.stochastic == pytest.approx((gamma * (kept - gamma) / kept).sum(), rel=1e-6)
    assert found.interaction == pytest.approx(0, abs=1e-12)
    assert found.linearised == pytest.approx(found.stochastic, rel=1e-6)
    # Together, the distortion of the closed form: ½(m log 2πγ + total/γ).
    known = linear_vae(EIGENVALUES, n_latents, gamma=gamma)
    expected = 0.5 * (4 * math.log(2 * math.pi * gamma) + found.total / gamma)
    assert known.distortion == pytest.approx(expected, rel=1e-6)


def test_mirrored_draws_leave_no_interaction_in_a_linear_model_whatever_the_noise():
    model, _, _ = optimal_model(EIGENVALUES, 3, 0.5)
    found = split_reconstruction(model, codes(50, 4).astype(np.float32), n_draws=1)
    assert found.interaction == pytest.approx(0, abs=1e-12)
    assert found.total == pytest.approx(found.deterministic + found.stochastic, rel=1e-12)


def test_the_parts_add_up_to_the_square_error_of_draws_in_a_curved_model():
    model = curved_model(likelihood=GaussianLikelihood())
    x = codes(40, 7).astype(np.float32)
    found = split_reconstruction(model, x, n_samples=None, n_draws=50)
    assert found.total == pytest.approx(found.deterministic + found.stochastic + found.interaction, rel=1e-12)
    assert abs(found.interaction) > 1e-6
    with torch.inference_mode():
        q = model.encode(torch.from_numpy(x).double())
        draws = torch.stack([q.sample(torch.Generator().manual_seed(s)) for s in range(400)])
        outputs = model.decode(draws.flatten(0, 1)).mean.unflatten(0, draws.shape[:2])
        errors = ((outputs - torch.from_numpy(x)) ** 2).sum(dim=2).mean(dim=1).numpy()
    # Ours has 100 draws for each observation, the direct average 400.
    error = errors.std(ddof=1) * math.sqrt(1 / 400 + 1 / 100)
    assert found.total == pytest.approx(errors.mean(), abs=STANDARD_ERRORS * error)


def test_little_noise_costs_what_the_linear_approximation_says():
    model = curved_model(likelihood=GaussianLikelihood())
    with torch.no_grad():
        model.encoder.head.log_variance.weight.zero_()
        model.encoder.head.log_variance.bias.fill_(math.log(1e-6))
    found = split_reconstruction(model, codes(200, 7).astype(np.float32), n_draws=20, linearise=True)
    # 200 · 20 draws of a sum of three squares: relative error below √(2/4000) = 2 %.
    assert found.linearised == pytest.approx(found.stochastic, rel=0.1)
    assert found.stochastic_share < 1e-4


def test_images_and_datasets_are_taken_and_draws_depend_on_the_seed_alone():
    model = curved_model(shape=(1, 4, 4)).float()
    images = np.random.default_rng(0).integers(0, 255, size=(30, 1, 4, 4)).astype(np.uint8)
    first = split_reconstruction(model, from_arrays(images), n_samples=10)
    assert first.n_samples == 10
    assert first.total == split_reconstruction(model, images, n_samples=10).total
    assert first.total != split_reconstruction(model, images, n_samples=10, seed=1).total
    assert first.interval[0] < first.total < first.interval[1]


def test_what_cannot_be_split_is_refused():
    x = codes(5, 7).astype(np.float32)
    with pytest.raises(InputError, match="must have a decoder"):
        split_reconstruction(curved_model(decodes=False), x)
    with pytest.raises(InputError, match=r"shape \(7,\)"):
        split_reconstruction(curved_model(), x[:, :5])
    with pytest.raises(InputError, match="n_draws"):
        split_reconstruction(curved_model(), x, n_draws=0)
    with pytest.raises(InputError, match="n_samples"):
        split_reconstruction(curved_model(), x, n_samples=0)
    with pytest.raises(InputError, match=r"must have an encoder and a decoder.*polariscope\.wrap"):
        split_reconstruction(lambda z: z, x)


def test_a_large_interaction_has_a_note():
    parts = {"interval": None, "linearised": None, "deviation": (0.1, 0.1, 0.1), "n_samples": 100}
    small = LossSplit(3.9, deterministic=2.0, stochastic=2.0, interaction=-0.1, **parts)
    assert small.notes == ()
    lucky = LossSplit(
        2.0, deterministic=2.0, stochastic=2.0, interaction=-2.0, **{**parts, "deviation": (1.0, 1.0, 1.0)}
    )
    assert lucky.notes == ()
    large = LossSplit(2.0, deterministic=2.0, stochastic=2.0, interaction=-2.0, **parts)
    assert "the total is 50% less than the sum of the two losses" in large.notes[0]
