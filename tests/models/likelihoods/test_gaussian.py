"""Gaussian likelihood with fixed or learned variance."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from oracles import assert_mean_is, minimise
from polariscope.core.errors import InputError
from polariscope.core.options import build, to_record
from polariscope.data.own.arrays import from_arrays
from polariscope.data.rendered.gaussian import GaussianDataset
from polariscope.models.likelihoods import likelihood
from polariscope.models.likelihoods.gaussian import GaussianDistribution, GaussianLikelihood

SHAPE = (4, 2, 3, 5)


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("learned", ["no", "shared"])
@pytest.mark.parametrize("variance", [0.01, 1.0, 7.0])
def test_one_variance_gives_the_summed_normal_log_density(
    random: np.random.Generator, learned: str, variance: float
) -> None:
    mean, x = random.normal(size=SHAPE), random.normal(size=SHAPE)
    head = GaussianLikelihood(variance=variance, learned=learned).head().double()  # type: ignore[arg-type]
    found = head(torch.from_numpy(mean)).log_density(torch.from_numpy(x)).detach().numpy()
    by_scipy = stats.norm.logpdf(x, mean, np.sqrt(variance)).sum(axis=(1, 2, 3))
    # log γ is kept in float32: relative error 2⁻²⁴ of log γ, which enters the square as a factor.
    np.testing.assert_allclose(found, by_scipy, rtol=1e-6)


def test_a_variance_per_value_gives_the_summed_normal_log_density(random: np.random.Generator) -> None:
    mean, raw, x = (random.normal(size=SHAPE) for _ in range(3))
    head = GaussianLikelihood(variance=0.3, learned="per-value").head()
    distribution = head(torch.from_numpy(np.concatenate([mean, raw], axis=1)))
    above = np.sqrt(0.3) - 1e-3
    scale = np.log1p(np.exp(raw + np.log(np.expm1(above)))) + 1e-3  # softplus(raw + offset) + floor
    np.testing.assert_allclose(distribution.log_variance.numpy(), 2 * np.log(scale), rtol=1e-9, atol=1e-12)
    by_scipy = stats.norm.logpdf(x, mean, scale).sum(axis=(1, 2, 3))
    np.testing.assert_allclose(distribution.log_density(torch.from_numpy(x)).numpy(), by_scipy, rtol=1e-9)


@pytest.mark.parametrize("variance", [1e-4, 0.5, 1.0, 100.0])
@pytest.mark.parametrize("learned", ["no", "shared", "per-value"])
def test_every_kind_starts_at_the_given_variance(variance: float, learned: str) -> None:
    likelihood = GaussianLikelihood(variance=variance, learned=learned)  # type: ignore[arg-type]
    raw = torch.zeros(2, likelihood.n_parameters, 3, dtype=torch.float64)
    found = torch.exp(likelihood.head()(raw).log_variance.detach()).double()
    np.testing.assert_allclose(found.numpy(), variance, rtol=1e-5)  # float32 logarithm


def test_a_variance_per_value_never_reaches_zero() -> None:
    head = GaussianLikelihood(learned="per-value").head()
    distribution = head(torch.cat([torch.zeros(1, 3), torch.full((1, 3), -1e4)], dim=1))
    assert distribution.log_variance.exp().sqrt().min() >= 1e-3 * (1 - 1e-6)
    assert torch.isfinite(distribution.log_density(torch.zeros(1, 3))).all()


def test_a_sum_of_squares_is_variance_one_half_up_to_a_constant(random: np.random.Generator) -> None:
    x, a, b = (torch.from_numpy(random.normal(size=(3, 6))) for _ in range(3))
    head = GaussianLikelihood(variance=0.5).head().double()
    difference = head(a).log_density(x) - head(b).log_density(x)
    squares = ((x - b) ** 2).sum(1) - ((x - a) ** 2).sum(1)
    torch.testing.assert_close(difference, squares, rtol=1e-6, atol=0)
    half = GaussianLikelihood(variance=1.0).head().double()
    torch.testing.assert_close(2 * (half(a).log_density(x) - half(b).log_density(x)), squares)


def test_the_best_shared_variance_is_the_mean_square_error(random: np.random.Generator) -> None:
    # d/d log γ of ½(m log 2πγ + SSE/γ) = ½(m − SSE/γ) vanishes at γ = SSE/m.
    x, mean = (torch.from_numpy(random.normal(size=(40, 7))) for _ in range(2))
    head = GaussianLikelihood(learned="shared").head().double()
    error = ((x - mean) ** 2).mean()
    with torch.no_grad():
        head.log_variance.copy_(error.log())
    (gradient,) = torch.autograd.grad(head(mean).log_density(x).mean(), head.log_variance)
    assert abs(float(gradient)) < 1e-12
    with torch.no_grad():
        head.log_variance.fill_(3.0)
    assert minimise(lambda: -head(mean).log_density(x).mean(), [head.log_variance]) < 1e-8
    torch.testing.assert_close(head.log_variance.detach().exp(), error, rtol=1e-6, atol=0)


@pytest.mark.parametrize("log_variance", [torch.tensor(-1.0), torch.tensor([[-3.0, 0.0, 2.0]])])
def test_draws_have_the_mean_and_the_variance(log_variance: torch.Tensor) -> None:
    mean = torch.tensor([[-2.0, 0.0, 5.0]], dtype=torch.float64).expand(20_000, 3)
    distribution = GaussianDistribution(mean, log_variance.double())
    draws = distribution.sample(torch.Generator().manual_seed(0)).numpy()
    variance = np.broadcast_to(np.exp(log_variance.numpy()), (1, 3))[0]
    assert_mean_is(draws, np.array([-2.0, 0.0, 5.0]))
    assert_mean_is((draws - [-2.0, 0.0, 5.0]) ** 2, variance)


def test_only_a_learned_variance_is_a_parameter() -> None:
    assert not list(GaussianLikelihood().head().parameters())
    assert [p.numel() for p in GaussianLikelihood(learned="shared").head().parameters()] == [1]
    assert GaussianLikelihood(learned="per-value").n_parameters == 2
    assert GaussianLikelihood(learned="shared").n_parameters == 1


@pytest.mark.parametrize("variance", [0.0, -1.0, float("nan"), float("inf")])
def test_a_variance_that_is_none_is_refused(variance: float) -> None:
    with pytest.raises(InputError, match=r"variance must be (positive|finite), got"):
        GaussianLikelihood(variance=variance)


def test_a_variance_at_the_floor_cannot_start_a_learned_one_per_value() -> None:
    with pytest.raises(InputError, match="must exceed 1e-06 if it is learned per value"):
        GaussianLikelihood(variance=1e-6, learned="per-value")
    assert GaussianLikelihood(variance=1e-6, learned="shared").variance == 1e-6


# A floor, and a faster way.


def test_with_a_floor_it_starts_at_the_variance_and_never_goes_below_the_floor() -> None:
    head = GaussianLikelihood(variance=0.1, learned="shared", floor=1e-3).head().double()
    assert float(head.log_variance.detach().exp()) == pytest.approx(0.1, rel=1e-6)
    for travel in (-0.3, -1.0, -100.0):
        with torch.no_grad():
            head.travel.fill_(travel)
        exact = 1e-3 + 0.099 * np.exp(10 * travel)
        assert float(head.log_variance.detach().exp()) == pytest.approx(exact, rel=1e-5)


def test_at_the_floor_a_larger_error_still_raises_it() -> None:
    head = GaussianLikelihood(variance=0.1, learned="shared", floor=1e-3).head().double()
    with torch.no_grad():
        head.travel.fill_(-2.0)  # e⁻²⁰ of the way
    x = torch.ones(5, 4, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(-head(torch.zeros_like(x)).log_density(x).sum(), head.travel)
    assert float(gradient) < 0  # descent raises γ


def test_it_moves_ten_times_as_far_in_a_step_of_adam_as_a_weight() -> None:
    moved = {}
    x = torch.full((5, 4), 0.01)
    for floor in (None, 1e-9):
        head = GaussianLikelihood(variance=0.1, learned="shared", floor=floor).head()
        optimiser = torch.optim.Adam(head.parameters(), lr=1e-3)
        for _ in range(100):
            optimiser.zero_grad()
            (-head(torch.zeros_like(x)).log_density(x).sum()).backward()
            optimiser.step()
        moved[floor] = float(head.log_variance.detach()) - np.log(0.1)
    assert moved[None] == pytest.approx(-0.1, rel=0.01)  # one learning rate each
    assert moved[1e-9] == pytest.approx(-1.0, rel=0.01)


def test_a_floor_for_what_is_not_learned_and_one_above_the_start_are_refused() -> None:
    for learned in ("no", "per-value"):
        with pytest.raises(InputError, match="floor is for a variance that is learned, one number for all"):
            GaussianLikelihood(learned=learned, floor=0.1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"floor must be below variance, its initial value, got 0\.2 and"):
        GaussianLikelihood(variance=0.1, learned="shared", floor=0.2)


def test_without_a_floor_it_is_recorded_as_it_was_before_there_was_one() -> None:
    record = to_record(GaussianLikelihood(0.1, "shared"), likelihood)
    assert record == {"name": "gaussian", "variance": 0.1, "learned": "shared"}
    floored = GaussianLikelihood(0.1, "shared", 1e-4)
    assert build(likelihood, to_record(floored, likelihood)) == floored


def test_gamma_is_one_number_or_none() -> None:
    for options in ({}, {"learned": "shared"}, {"learned": "shared", "floor": 1e-3}):
        recipe = GaussianLikelihood(variance=0.2, **options)  # type: ignore[arg-type]
        assert recipe.gamma_of(recipe.head()) == pytest.approx(0.2, rel=1e-6)
    recipe = GaussianLikelihood(learned="per-value")
    assert recipe.gamma_of(recipe.head()) is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("shared", 0.4, 4e-4)),  # a tenth, and 1e-4, of the mean variance 4
        ({"learned": "shared"}, ("shared", 0.4, 4e-4)),
        ({"learned": "shared", "variance": 1e-4}, ("shared", 1e-4, 1e-5)),  # the floor stays below the start
        ({"floor": 0.1}, ("shared", 0.4, 0.1)),
        ({"variance": 0.5}, ("no", 0.5, None)),
        ({"learned": "no"}, ("no", 1.0, None)),
        ({"learned": "per-value"}, ("per-value", 1.0, None)),
    ],
)
def test_options_that_nobody_gave_come_from_the_data(given: dict, expected: tuple) -> None:
    data = GaussianDataset(eigenvalues=(8.0, 3.0, 1.0), n_samples=500)  # exact: the mean variance is 4
    found = GaussianLikelihood(**GaussianLikelihood.options_for(data, given))
    assert (found.learned, found.variance, found.floor) == expected


def test_for_data_in_the_unit_interval_the_variance_is_1_and_fixed_as_before() -> None:
    assert GaussianLikelihood.options_for(from_arrays(np.eye(4), unit_interval=True), {}) == {}
