"""Theory checks across several packages: rotated latents, and the noise that is optimal for a linear decoder.

The closed forms of the linear β-VAE are in ``objectives/test_linear_theory.py``.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from oracles import (
    expected_loss,
    linear_model,
    linear_posterior,
    minimise,
    optimal_decoder,
    random_rotation,
    set_linear,
    standard_normal_draws,
    symmetric_points,
)
from polariscope.models.likelihoods.bernoulli import BernoulliLikelihood
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.linear import LinearNet
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors.diagonal import DiagonalGaussian, DiagonalPosterior
from polariscope.models.posteriors.full import FullGaussian, FullPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import Batch, Step, Terms, total
from polariscope.objectives.beta import BetaObjective
from polariscope.objectives.beta_full import BetaFullObjective

# --- The loss does not change when the latents are rotated (mathieu2019 Thm 2; zietlow2022 Props 2–3) ---


class RotatedEncoder(nn.Module):
    """Rotated encoder: μ → Rμ, S → RSRᵀ."""

    def __init__(self, encoder: nn.Module, rotation: Tensor) -> None:
        super().__init__()
        self.encoder, self.rotation = encoder, rotation

    def forward(self, x: Tensor, auxiliary: Tensor | None = None) -> FullGaussian:
        q = self.encoder(x, auxiliary)
        factor = torch.linalg.cholesky(self.rotation @ q.covariance @ self.rotation.T)
        diagonal = torch.diagonal(factor, dim1=1, dim2=2)
        return FullGaussian(q.mean @ self.rotation.T, 2 * diagonal.log(), torch.tril(factor, -1))


class RotatedDecoder(nn.Module):
    """Rotated decoder: Dec → Dec(Rᵀ·)."""

    def __init__(self, decoder: nn.Module, rotation: Tensor) -> None:
        super().__init__()
        self.decoder, self.rotation = decoder, rotation

    def forward(self, z: Tensor) -> object:
        return self.decoder(z @ self.rotation)


def rotated(model: Model, rotation: Tensor) -> Model:
    """Return the same model in rotated latents, with shared weights."""
    twin = model.blueprint.build(seed=0).double()
    twin.encoder = RotatedEncoder(model.encoder, rotation)  # type: ignore[assignment]
    twin.decoder = RotatedDecoder(model.decoder, rotation)  # type: ignore[assignment]
    return twin


def curved_model(posterior: object, scale: float = 1.0) -> Model:
    """Return a model with a non-linear decoder and posteriors that depend on the input and are not axis-aligned."""
    blueprint = Blueprint(
        MlpNet((7,), (7,), "tanh"),
        posterior,  # type: ignore[arg-type]
        IsotropicPrior(scale),
        BernoulliLikelihood(),
        3,
        (6,),
        initialisation="torch",
    )
    model = blueprint.build(seed=1).double()
    draw = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.encoder.head.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=draw, dtype=torch.float64), alpha=0.5)
    return model


def terms_with(model: Model, noise: Tensor, x: Tensor, beta: float) -> Terms:
    with standard_normal_draws(noise):
        return BetaFullObjective(beta=beta).terms(Step(model, Batch(x, step=0), torch.Generator()))


@pytest.mark.parametrize(("beta", "scale"), [(1.0, 1.0), (4.0, 1.0), (0.5, 2.0)])
def test_t4_rotating_mean_covariance_and_decoder_leaves_the_loss(beta: float, scale: float) -> None:
    model = curved_model(FullPosterior(), scale)
    R = torch.from_numpy(random_rotation(3, seed=5))
    twin = rotated(model, R)
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(8, 6, generator=draw, dtype=torch.float64)
    noise = torch.randn(8, 3, generator=draw, dtype=torch.float64)
    # With L' the factor of RSRᵀ, L'ε' = RLε for the noise ε' = Qε with Q = L'⁻¹RL, which is a rotation: as likely.
    Q = torch.linalg.solve(twin.encode(x).factor, R @ model.encode(x).factor)
    torch.testing.assert_close(Q @ Q.mT, torch.eye(3, dtype=torch.float64).expand(8, 3, 3))
    before = terms_with(model, noise, x, beta)
    after = terms_with(twin, (Q @ noise[:, :, None])[:, :, 0], x, beta)
    torch.testing.assert_close(
        after["reconstruction"].value, before["reconstruction"].value, rtol=1e-10, atol=0
    )
    torch.testing.assert_close(after["rate"].value.sum(1), before["rate"].value.sum(1), rtol=1e-10, atol=0)
    torch.testing.assert_close(total(after), total(before), rtol=1e-12, atol=0)


def test_t4_needs_an_isotropic_prior() -> None:
    model = curved_model(FullPosterior())
    q = model.encode(torch.rand(8, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    R = torch.from_numpy(random_rotation(3, seed=5))
    turned = RotatedEncoder(lambda x, u: q, R)(torch.zeros(1))
    uneven = torch.zeros(3).double(), torch.tensor([1.0, 0.0, -1.0]).double()
    rates = [float(posterior.kl_to_normal(*uneven).sum(1).mean().detach()) for posterior in (q, turned)]
    assert abs(rates[0] - rates[1]) > 0.1


def test_t4_a_diagonal_posterior_cannot_follow_the_rotation() -> None:
    # RSRᵀ is no longer diagonal; its diagonal keeps mean and trace, but has the larger determinant (Hadamard), so
    # that the rate is another one although nothing but the coordinates has changed.
    model = curved_model(DiagonalPosterior())
    q = model.encode(torch.rand(8, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    R = torch.from_numpy(random_rotation(3, seed=5))
    covariance = R @ q.covariance @ R.T
    nearest = DiagonalGaussian(q.mean @ R.T, covariance.diagonal(dim1=1, dim2=2).log())
    zeros = torch.zeros(3).double()
    gap = q.kl_to_normal(zeros, zeros).sum(1) - nearest.kl_to_normal(zeros, zeros).sum(1)
    torch.testing.assert_close(gap, 0.5 * (nearest.log_determinant - torch.logdet(covariance)))
    assert (gap > 1e-3).all()


@pytest.mark.parametrize("beta", [1.0, 3.0])
def test_t4_with_a_diagonal_posterior_the_rotated_optimum_is_strictly_worse(beta: float) -> None:
    # The linear optimum, rotated; mean map and variances are found anew through the objective. The loss exceeds the
    # optimum by the Hadamard gap ½β(Σ log A_jj − log det A), A = (WR)ᵀWR/βγ + I, while a full posterior pays nothing.
    gamma, eigenvalues = 0.2, np.array([4.0, 2.0, 1.0, 0.3])
    directions = random_rotation(4, seed=0)
    covariance = (directions * eigenvalues) @ directions.T
    W = optimal_decoder(eigenvalues, directions, 3, beta, gamma)
    R = random_rotation(3, seed=4)
    losses = {}
    for name, decoder in (("aligned", W), ("rotated", W @ R)):
        model = linear_model(4, 3, gamma)
        V, _ = linear_posterior(decoder, beta, gamma)
        set_linear(model, decoder, V, np.full(3, 0.5))
        head = model.encoder.head
        objective = BetaObjective(beta=beta)

        def loss(model: Model = model, objective: BetaObjective = objective) -> Tensor:
            return expected_loss(objective, model, covariance)

        minimise(loss, [head.mean.weight, head.log_variance.bias], n_iterations=200)
        losses[name] = float(loss().detach())
    A = (W @ R).T @ (W @ R) / (beta * gamma) + np.eye(3)
    gap = 0.5 * beta * (np.log(np.diag(A)).sum() - np.linalg.slogdet(A)[1])
    assert gap > 0.1
    assert losses["rotated"] - losses["aligned"] == pytest.approx(gap, abs=1e-8)


# --- How a linear decoder wants the posterior's noise allocated (zietlow2022 §3.2.4, Eqs 3.21–3.22) ---

M1 = np.array([[4.0, 1.0], [-3.0, 1.0], [5.0, -1.0]])
TURN = np.array([[1.0, -1.0], [1.0, 1.0]]) / math.sqrt(2)  # by 45°


def noise_in_reconstruction(decoder: np.ndarray, q: FullGaussian | DiagonalGaussian) -> Tensor:
    """Return the exact E‖Dec(z) − Dec(μ)‖² over z ~ q, through the model's decoder and the posterior's sampling."""
    blueprint = Blueprint(LinearNet(), FullPosterior(), IsotropicPrior(), GaussianLikelihood(), 2, (3,))
    model = blueprint.build(seed=0).double()
    with torch.no_grad():
        model.decoder.trunk.layers[0][0].weight.copy_(torch.from_numpy(decoder))
    with standard_normal_draws(torch.from_numpy(symmetric_points(np.eye(2)))):
        z = q.sample(torch.Generator())
    return ((model.decode(z).mean - model.decode(q.mean).mean) ** 2).sum(1).mean()


def best_diagonal(decoder: np.ndarray, budget: float) -> tuple[float, np.ndarray]:
    """Return the smallest noise over variances with Σ −log σ² = budget, and these variances."""
    share = torch.zeros(1, dtype=torch.float64, requires_grad=True)

    def posterior() -> DiagonalGaussian:
        log_variance = -budget / 2 + torch.cat([share, -share])
        return DiagonalGaussian(torch.zeros(4, 2).double(), log_variance.expand(4, 2))

    assert minimise(lambda: noise_in_reconstruction(decoder, posterior()), [share]) < 1e-8
    q = posterior()
    return float(noise_in_reconstruction(decoder, q).detach()), q.variance[0].detach().numpy()


@pytest.mark.parametrize("budget", [0.0, 3.0])
def test_t6_the_worked_example_costs_24_5_and_rotated_by_45_degrees_52_4(budget: float) -> None:
    # e^{−C/2}: the constraint is Σ −log σ_j² = C, and √(σ_x²σ_y²) = e^{−C/2}; the dissertation prints e^{−C}.
    factor = math.exp(-budget / 2)
    cost, variances = best_diagonal(M1, budget)
    assert cost == pytest.approx(2 * math.sqrt(150) * factor, rel=1e-9)
    assert cost / factor == pytest.approx(24.5, abs=0.05)
    assert variances[0] / variances[1] == pytest.approx(3 / 50, rel=1e-5)
    turned, _ = best_diagonal(M1 @ TURN, budget)
    assert turned / factor == pytest.approx(52.4, abs=0.05)
    assert turned == pytest.approx(2 * math.sqrt(61 / 2 * 45 / 2) * factor, rel=1e-9)


def test_t6_no_rotation_costs_less_than_23_15_and_there_the_columns_are_orthogonal() -> None:
    # Min over rotations of 2√(‖c_1‖²‖c_2‖²): by Hadamard 2√det(M₁ᵀM₁), reached where the columns are orthogonal.
    angle = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    M = torch.from_numpy(M1)

    def turned() -> Tensor:
        cos, sin = torch.cos(angle), torch.sin(angle)
        return M @ torch.stack([torch.cat([cos, -sin]), torch.cat([sin, cos])])

    assert minimise(lambda: 2 * torch.sqrt((turned() ** 2).sum(0).prod()), [angle]) < 1e-8
    best = turned().detach().numpy()
    cost, _ = best_diagonal(best, budget=0.0)
    assert cost == pytest.approx(2 * math.sqrt(134), rel=1e-9)
    assert cost == pytest.approx(23.15, abs=0.005)
    assert best[:, 0] @ best[:, 1] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("decoder", [M1, M1 @ TURN], ids=["as it is", "rotated"])
def test_t6_a_full_covariance_reaches_the_optimum_whatever_the_rotation(decoder: np.ndarray) -> None:
    # min tr(MSMᵀ) for log det S = −C is 2√det(MᵀM) e^{−C/2}: nothing is left that a rotation could improve.
    budget = 3.0
    free = torch.zeros(2, dtype=torch.float64, requires_grad=True)

    def posterior() -> FullGaussian:
        log_variance = -budget / 2 + torch.cat([free[:1], -free[:1]])
        below = torch.zeros(2, 2).double()
        below = torch.cat([below[:1], torch.cat([free[1:], torch.zeros(1).double()])[None]])
        return FullGaussian(torch.zeros(4, 2).double(), log_variance.expand(4, 2), below.expand(4, 2, 2))

    assert minimise(lambda: noise_in_reconstruction(decoder, posterior()), [free]) < 1e-6
    q = posterior()
    assert float(q.log_determinant[0].detach()) == pytest.approx(-budget, rel=1e-12)
    cost = float(noise_in_reconstruction(decoder, q).detach())
    assert cost == pytest.approx(2 * math.sqrt(134) * math.exp(-budget / 2), rel=1e-9)
