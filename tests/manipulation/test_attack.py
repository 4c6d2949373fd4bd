r"""The attack on linear models, where its optimum is known.

Data of two uniform factors, x = (w₁, w₂, −½ w₁). The disentangled encoder reads w₁, the entangled one (w₁ + w₂)/√2,
both with noise σ². With affine decoders and square error the best reconstruction of x' from z is the regression on z,
whose residual is tr C_{x'x'} − tr C_{x'z} C_{zz}^{-1} C_{zx'} with C_{zz} = C_{μμ} + σ².
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from polariscope.data.dataset import AbstractDataset
from polariscope.data.own.arrays import from_arrays
from polariscope.manipulation.attack import AttackTask, Side, Sides, work_of_batch
from polariscope.manipulation.manipulation_settings import AttackSettings
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.linear import LinearNet
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.training.loop import train_task

VARIANCE = 0.1
DIRECTIONS = {"entangled": (math.sqrt(0.5), math.sqrt(0.5), 0.0), "disentangled": (1.0, 0.0, 0.0)}
LEVELS = 9


def linear_model(direction: tuple[float, ...]) -> Model:
    """Reads one direction of the data with noise; its decoder says 0."""
    blueprint = Blueprint(
        LinearNet(), DiagonalPosterior(), IsotropicPrior(), GaussianLikelihood(), n_latents=1, shape=(3,)
    )
    model = blueprint.build(seed=0).double()
    weights = {
        "encoder.head.mean.weight": torch.tensor([direction]),
        "encoder.head.mean.bias": torch.zeros(1),
        "encoder.head.log_variance.weight": torch.zeros(1, 3),
        "encoder.head.log_variance.bias": torch.full((1,), math.log(VARIANCE)),
    }
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights.get(name, torch.zeros_like(parameter)))
    return model.eval()


def sides() -> Sides:
    return Sides(*(Side([linear_model(DIRECTIONS[name])]) for name in ("entangled", "disentangled")))


class OneParameter(nn.Module):
    """m(w) = (0, 0, tanh(θ) w₁)."""

    def __init__(self) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.zeros((), dtype=torch.float64))

    @property
    def value(self) -> float:
        return math.tanh(float(self.theta.detach()))

    def forward(self, factors: Tensor) -> Tensor:
        third = torch.tanh(self.theta) * factors[:, 0]
        return torch.stack([torch.zeros_like(third), torch.zeros_like(third), third], dim=1)


@pytest.fixture(scope="module")
def data() -> AbstractDataset:
    grid = np.linspace(-1, 1, LEVELS)
    factors = np.array([[a, b] for a in grid for b in grid])
    return from_arrays(rows(factors), factors=factors)


def rows(factors: np.ndarray, change: float = 0.0) -> np.ndarray:
    w = factors.T
    return np.stack([w[0], w[1], (change - 0.5) * w[0]], axis=1)


def residual(data: AbstractDataset, name: str, change: float) -> float:
    """What the best affine decoder leaves of x' with a third value of (change − ½) w₁."""
    factors = data.factors(np.arange(len(data)))
    x, mean = rows(factors, change), rows(factors) @ np.array(DIRECTIONS[name])
    covariance = (x - x.mean(0)).T @ (mean - mean.mean()) / len(x)
    return float(x.var(axis=0).sum() - (covariance**2).sum() / (mean.var() + VARIANCE))


def expected_loss(data: AbstractDataset, side: Side, change: float) -> float:
    """½ E‖x' − Wz − b‖², taken over the noise in closed form."""
    layer = side.decoders[0].trunk.layers[0]
    linear = next(part for part in layer.modules() if isinstance(part, nn.Linear))
    weight, bias = linear.weight.detach().numpy(), linear.bias.detach().numpy()
    factors = data.factors(np.arange(len(data)))
    direction = side.models[0].encoder.head.mean.weight.detach().numpy()
    left = rows(factors, change) - rows(factors) @ direction.T @ weight.T - bias
    return 0.5 * float((left**2).sum(axis=1).mean() + VARIANCE * (weight**2).sum())


SETTINGS = {"epsilon": 1.0, "learning_rate": 1e-2, "batch_size": LEVELS**2, "steps": 300}


@dataclasses.dataclass(frozen=True)
class Played:
    """An attack that is over."""

    change: float
    """tanh θ."""
    players: Sides
    lines: list[dict[str, float]]


@pytest.fixture(scope="module")
def played(data: AbstractDataset) -> Played:
    manipulation, players = OneParameter(), sides()
    lines: list[dict[str, float]] = []
    settings = AttackSettings(**SETTINGS)  # type: ignore[arg-type]
    train_task(
        AttackTask(manipulation, players, data, settings),
        listeners=(lambda step, line: lines.append(line) if line else None,),
    )
    return Played(manipulation.value, players, lines)


def test_trained_losses_are_the_residuals_of_least_squares(data: AbstractDataset, played: Played) -> None:
    for name, side in zip(DIRECTIONS, played.players.both, strict=True):
        best = 0.5 * residual(data, name, played.change)
        assert best - 1e-12 <= expected_loss(data, side, played.change) < best + 2e-3
        # What is logged has the constant of the density, and noise: a draw's loss has a standard deviation below ½,
        # and there are 405 of them in each of the 50 steps.
        logged = np.mean([line[name] for line in played.lines[-5:]]) - 1.5 * math.log(2 * math.pi)
        assert logged == pytest.approx(best, abs=5 * 0.5 / math.sqrt(405 * 50) + 2e-3)


def test_one_parameter_reaches_the_optimum_of_a_grid_search(data: AbstractDataset, played: Played) -> None:
    grid = np.linspace(-1, 1, 2001)
    gaps = np.array([residual(data, "entangled", t) - residual(data, "disentangled", t) for t in grid])
    optimum = grid[int(np.argmin(gaps))]
    assert optimum == pytest.approx(0.5, abs=1e-3)  # the change takes away what only w₁ explains
    assert gaps[1000] - gaps.min() > 0.02  # 0 is worse
    # The gap is quadratic: within 0.05 of the optimum it is within 1 % of all that can be gained.
    assert played.change == pytest.approx(optimum, abs=0.05)


def test_encoders_and_the_models_own_decoders_stay_as_they_are(data: AbstractDataset) -> None:
    players = sides()
    models = [model for side in players.both for model in side.models]
    before = [model.digest for model in models]
    decoders = [[p.clone() for p in side.decoders.parameters()] for side in players.both]
    settings = AttackSettings(**{**SETTINGS, "steps": 3})  # type: ignore[arg-type]
    train_task(AttackTask(OneParameter(), players, data, settings))
    assert [model.digest for model in models] == before
    for side, earlier in zip(players.both, decoders, strict=True):
        assert not all(torch.equal(a, b) for a, b in zip(side.decoders.parameters(), earlier, strict=True))
        assert all(p.grad is None for model in side.models for p in model.parameters())


def test_an_ensemble_of_equal_models_has_the_loss_of_one(data: AbstractDataset) -> None:
    x = torch.from_numpy(data.values(np.arange(20))).double()
    model = linear_model(DIRECTIONS["entangled"])
    one, four = Side([model]), Side([model] * 4)
    codes = one.codes(x, [None], 5, torch.Generator().manual_seed(0))
    assert codes[0].shape == (100, 1)
    alone, together = (side.loss(x, codes * len(side.models), trains=False) for side in (one, four))
    assert float(together) == pytest.approx(float(alone), rel=1e-12)


def test_decoders_get_three_batches_for_each_of_the_manipulation(data: AbstractDataset) -> None:
    seen = []

    class Counted(OneParameter):
        def forward(self, factors: Tensor) -> Tensor:
            seen.append(torch.is_grad_enabled())
            return super().forward(factors)

    settings = AttackSettings(**{**SETTINGS, "steps": 2, "batch_size": 20})  # type: ignore[arg-type]
    train_task(AttackTask(Counted(), sides(), data, settings))
    assert seen == [False, False, False, True] * 2


def test_the_work_of_a_batch_is_encoders_on_observations_and_decoders_on_every_draw(
    data: AbstractDataset,
) -> None:
    settings = AttackSettings(batch_size=7, draws=5)
    # On each side two heads of three weights see 7 observations, and the decoder of three weights 7 × 5 codes.
    linear = 2 * (7 * 2 * 3 + 7 * 5 * 3)
    assert work_of_batch(OneParameter(), sides(), data, settings) == linear
    layer = nn.Linear(2, 3).double()  # from two factors to three values, once for each observation
    assert work_of_batch(layer, sides(), data, settings) == linear + 7 * 2 * 3
    ensemble = Sides(*(Side([linear_model(DIRECTIONS[name]) for _ in range(4)]) for name in DIRECTIONS))
    assert work_of_batch(OneParameter(), ensemble, data, settings) == 4 * linear
