"""FactorVAE: an optimal discriminator gives the total correlation, and trains nothing but itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import polariscope as ps
from oracles import STANDARD_ERRORS, TinyDataset, assert_mean_is, linear_model, set_linear
from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.models.model import Model
from polariscope.objectives import Batch, Step, total
from polariscope.objectives.factor import FactorObjective, permute_latents
from polariscope.objectives.vae import VaeObjective
from polariscope.training.train import train

DATA = TinyDataset((5,), 6)
X = torch.from_numpy(DATA.values(range(6))).double()
CORRELATION = 0.6


class OptimalDiscriminator(torch.nn.Module):
    """Logits whose difference is scale · (log q(z) − Σ log q(z_j)) for unit variances and correlation ρ.

    By hand for a pair: −½ log(1 − ρ²) − (ρ²(a² + b²) − 2ρab) / (2(1 − ρ²)).
    """

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(scale, dtype=torch.float64))

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        rho, (a, b) = CORRELATION, z.T
        square = (rho**2 * (a**2 + b**2) - 2 * rho * a * b) / (2 * (1 - rho**2))
        ratio = -0.5 * math.log(1 - rho**2) - square
        return torch.stack([self.scale * ratio, torch.zeros_like(a)], dim=1)


def correlated_batch(n_samples: int = 40_000) -> tuple[Model, Batch]:
    """z ~ N(0, [[1, ρ], [ρ, 1]]): standard normal x, means Vx, posterior variance ¼."""
    model = linear_model(2, 2, gamma=1.0)
    covariance = np.array([[0.75, CORRELATION], [CORRELATION, 0.75]])
    set_linear(model, np.eye(2), np.linalg.cholesky(covariance), np.full(2, 0.25))
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(n_samples, 2)))
    return model, Batch(x, step=0, n_data=n_samples)


def test_an_optimal_discriminator_gives_the_total_correlation() -> None:
    model, batch = correlated_batch()
    terms = FactorObjective().terms(
        Step(model, batch, torch.Generator().manual_seed(0), OptimalDiscriminator())
    )
    assert_mean_is(terms["total_correlation"].value.detach().numpy(), -0.5 * math.log(1 - CORRELATION**2))


def test_no_multiple_of_the_optimal_logit_discriminates_better() -> None:
    model, batch = correlated_batch()
    discriminator = OptimalDiscriminator()
    losses = {}
    for scale in (-1.0, 0.0, 0.8, 1.0, 1.25):
        discriminator.scale.data.fill_(scale)
        terms = FactorObjective().terms(Step(model, batch, torch.Generator().manual_seed(0), discriminator))
        losses[scale] = total(terms, "companion").detach()
    assert min(losses, key=losses.get) == 1.0
    assert float(losses[0.0]) == pytest.approx(math.log(2), rel=1e-12)


def test_the_optimal_logit_is_a_stationary_point_of_the_discriminators_loss() -> None:
    """d/dc of ½E_q log(1 + e^{−cf}) + ½E_p log(1 + e^{cf}) is ½(E_p[f s] − E_q[f (1 − s)]) = 0 at s = q/(p + q)."""
    model, batch = correlated_batch()
    slopes = []
    for seed in range(8):
        discriminator = OptimalDiscriminator()
        terms = FactorObjective().terms(
            Step(model, batch, torch.Generator().manual_seed(seed), discriminator)
        )
        slopes.append(float(torch.autograd.grad(total(terms, "companion"), discriminator.scale)[0]))
    assert abs(np.mean(slopes)) < STANDARD_ERRORS * np.std(slopes, ddof=1)  # one batch's error: x is shared
    assert abs(np.mean(slopes)) < 0.005


def test_the_two_classes_count_half_each() -> None:
    class Fixed(torch.nn.Module):
        def forward(self, z: torch.Tensor) -> torch.Tensor:
            n = len(z) // 2
            rows = [[1.0, -0.5]] * n + [[0.3, 0.1]] * (len(z) - n)
            return torch.tensor(rows, dtype=z.dtype)

    terms = FactorObjective().terms(
        Step(linear_model(5, 3, 1.0), Batch(X, 0), torch.Generator().manual_seed(0), Fixed())
    )
    joint = -math.log(math.exp(1.0) / (math.exp(1.0) + math.exp(-0.5)))
    permuted = -math.log(math.exp(0.1) / (math.exp(0.3) + math.exp(0.1)))
    assert float(terms["discriminator"].per_batch) == pytest.approx((joint + permuted) / 2, rel=1e-12)


def test_permuting_keeps_every_marginal_and_moves_each_latent_on_its_own() -> None:
    z = torch.arange(60, dtype=torch.float64).reshape(20, 3)
    permuted = permute_latents(z, torch.Generator().manual_seed(0))
    assert torch.equal(permuted.sort(0).values, z)
    orders = [permuted[:, j] - permuted[:, j].min() for j in range(3)]
    assert not torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[1], orders[2])


def test_every_order_of_every_latent_is_as_likely() -> None:
    n = 36_000
    z = torch.arange(3.0)[:, None].repeat(1, 2 * n)
    permuted = permute_latents(z, torch.Generator().manual_seed(0))
    code = (permuted * torch.tensor([9.0, 3.0, 1.0])[:, None]).sum(0).reshape(2, n)
    pairs = torch.unique(code[0] * 100 + code[1], return_counts=True)[1].numpy()
    assert len(pairs) == 36  # 6 orders of one latent with 6 of another
    assert np.abs(pairs - 1000).max() < STANDARD_ERRORS * math.sqrt(1000)


def test_gamma_zero_is_the_vae() -> None:
    model, objective = linear_model(5, 3, 1.0), FactorObjective(gamma=0.0, width=8)
    companion = objective.companion(model, DATA, torch.Generator().manual_seed(1))
    losses = [
        total(one.terms(Step(model, Batch(X, 0), torch.Generator().manual_seed(0), companion)))
        for one in (objective, VaeObjective())
    ]
    assert torch.equal(*losses)


def test_a_dependence_is_penalised_and_not_rewarded() -> None:
    model, batch = correlated_batch(2000)
    losses = [
        float(
            total(
                FactorObjective(gamma=gamma).terms(
                    Step(model, batch, torch.Generator().manual_seed(0), OptimalDiscriminator())
                )
            ).detach()
        )
        for gamma in (0.0, 10.0)
    ]
    assert losses[1] - losses[0] > 1  # ten times −½ log(1 − 0.36) = 2.2


def test_the_discriminators_loss_does_not_see_the_encoder() -> None:
    model, objective = linear_model(5, 3, 1.0), FactorObjective(width=8)
    companion = objective.companion(model, DATA, torch.Generator().manual_seed(1))
    terms = objective.terms(Step(model, Batch(X, 0), torch.Generator().manual_seed(0), companion))
    parameters = [*model.parameters(), *companion.parameters()]
    found = torch.autograd.grad(total(terms, "companion"), parameters, allow_unused=True)
    n = len(list(model.parameters()))
    assert all(gradient is None for gradient in found[:n])
    assert all(gradient is not None for gradient in found[n:])


def test_the_total_correlation_trains_the_encoder_through_the_draw() -> None:
    """At the optimal logits the slope by z is that of log q(z) − Σ log q(z_j), by hand for a pair of latents."""
    model, batch = correlated_batch(3)
    terms = FactorObjective().terms(
        Step(model, batch, torch.Generator().manual_seed(0), OptimalDiscriminator())
    )
    bias = model.encoder.head.mean.bias
    a, b = model.encode(batch.x).sample(torch.Generator().manual_seed(0)).detach().T
    rho = CORRELATION
    by_hand = [-(rho**2 * p - rho * q).mean() / (1 - rho**2) for p, q in ((a, b), (b, a))]
    found = torch.autograd.grad(terms["total_correlation"].per_batch, bias)[0]
    torch.testing.assert_close(found, torch.stack(by_hand))


@pytest.mark.parametrize(("depth", "millions"), [(6, 5.02), (5, 4.02)])
def test_the_discriminator_has_the_published_size_and_draws_from_its_generator(depth, millions) -> None:
    model = linear_model(5, 10, 1.0)
    objective = FactorObjective(depth=depth)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    made = [objective.companion(model, DATA, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert torch.equal(torch.get_rng_state(), before)
    assert sum(p.numel() for p in made[0].parameters()) / 1e6 == pytest.approx(millions, abs=0.005)
    assert sum(isinstance(layer, torch.nn.LeakyReLU) for layer in made[0].modules()) == depth
    z = X[:, :3].repeat(1, 4)[:, :10]
    first, again, other = (module(z) for module in made)
    assert first.shape == (6, 2)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    optimiser = objective.companion_optimiser(made[0].parameters())
    assert (optimiser.defaults["lr"], optimiser.defaults["betas"]) == (1e-4, (0.5, 0.9))


def test_the_discriminator_is_kept_in_checkpoints_and_resumed_to_the_byte(tmp_path) -> None:
    data = ps.load_dataset("gaussian", n_samples=200)
    settings = {"width": 16, "log_every": 1, "validate_every": 1, "checkpoint_every": 1}
    train(data, "factor", "linear", 3, steps=6, out=tmp_path / "whole", **settings)

    class KilledError(Exception):
        pass

    def kill(step, line):
        if step == 4:
            raise KilledError

    with pytest.raises(KilledError):
        train(data, "factor", "linear", 3, steps=6, out=tmp_path / "killed", progress=kill, **settings)
    train(data, "factor", "linear", 3, steps=6, out=tmp_path / "killed", **settings)
    file = "checkpoints/step-6/state.safetensors"
    assert (tmp_path / "killed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    tensors, _ = files.read_tensors(tmp_path / "whole" / file)
    earlier, _ = files.read_tensors(tmp_path / "whole" / file.replace("step-6", "step-5"))
    weights = [name for name in tensors if name.startswith("companion/")]
    moments = [name for name in tensors if name.startswith("optimiser/companion/")]
    assert len(weights) == 14
    assert len(moments) == 3 * 14  # step, mean and square of Adam
    assert any(not torch.equal(tensors[name], earlier[name]) for name in weights)


def test_training_learns_the_total_correlation_that_it_weighs() -> None:
    """A narrow discriminator on a model that stands still (γ = 0 and a tiny learning rate) finds TC > 0."""
    model, batch = correlated_batch(512)
    objective = FactorObjective(gamma=0.0, width=32, depth=2)
    companion = objective.companion(model, DATA, torch.Generator().manual_seed(0))
    optimiser = torch.optim.Adam(companion.parameters(), lr=3e-3)
    noise = torch.Generator().manual_seed(0)
    found = []
    for _ in range(300):
        terms = objective.terms(Step(model, batch, noise, companion))
        optimiser.zero_grad()
        total(terms, "companion").backward()
        optimiser.step()
        found.append(float(terms["total_correlation"].per_batch.detach()))
    truth = -0.5 * math.log(1 - CORRELATION**2)
    # The spread of log-ratios over 512 samples gives ±0.05; a learner that is not at its optimum stays below.
    assert np.mean(found[-50:]) == pytest.approx(truth, rel=0.35)
    assert found[0] < 0.5 * truth  # it did not know before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gamma": -10.0}, "gamma must not be negative, got -10.0; 0 is the VAE"),
        ({"gamma": float("nan")}, "gamma must be finite, got nan"),
        ({"depth": 0}, "depth must be at least 1, got 0"),
        ({"width": 0}, "width must be at least 1, got 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, words) -> None:
    with pytest.raises(InputError, match=words):
        FactorObjective(**options)


def test_one_sample_per_batch_is_refused() -> None:
    with pytest.raises(InputError, match="batch_size must be at least 2, got 1: the discriminator compares"):
        train(ps.load_dataset("gaussian", n_samples=50), "factor", "linear", 3, batch_size=1, steps=1)
