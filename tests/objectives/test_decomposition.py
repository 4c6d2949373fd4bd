"""L_{α,β}: overlap and structure, each with a weight."""

from __future__ import annotations

import itertools
from typing import get_args

import numpy as np
import pytest
import torch
from scipy import stats

from oracles import TinyDataset, assert_mean_is, directional_derivatives
from polariscope.core.errors import InputError
from polariscope.models.kernels import Kernel, mmd
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors.diagonal import DiagonalGaussian, DiagonalPosterior
from polariscope.models.priors import AbstractPrior
from polariscope.models.priors.isotropic import IsotropicPrior, IsotropicPriorModule
from polariscope.models.priors.mixture import MixturePrior
from polariscope.objectives import Batch, Step, Terms, total
from polariscope.objectives.beta import BetaObjective
from polariscope.objectives.decomposition import DecompositionObjective, Divergence, inclusive_kl
from polariscope.training.plan import plan

DIVERGENCES = get_args(Divergence)
MEANS, VARIANCES = np.array([-1.2, 0.1, 0.9]), np.array([0.2, 0.7, 0.4])


def model_with(prior: AbstractPrior) -> Model:
    net = MlpNet((6,), (6,))
    blueprint = Blueprint(net, DiagonalPosterior(), prior, GaussianLikelihood(), 2, (5,))
    return blueprint.build(seed=0).double()


def terms_of(objective: DecompositionObjective | BetaObjective, model: Model, seed: int = 0) -> Terms:
    x = torch.from_numpy(TinyDataset((5,), 8).values(range(8))).double()
    return objective.terms(Step(model, Batch(x, step=0), torch.Generator().manual_seed(seed)))


def mixture_posterior(n_copies: int = 1) -> DiagonalGaussian:
    """Three one-dimensional Gaussians, each ``n_copies`` times."""
    mean, variance = (torch.from_numpy(a).repeat(n_copies)[:, None] for a in (MEANS, VARIANCES))
    return DiagonalGaussian(mean, torch.log(variance))


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("prior", [IsotropicPrior(), MixturePrior()], ids=["isotropic", "mixture"])
@pytest.mark.parametrize("beta", [0.0, 1.0, 3.0])
def test_alpha_zero_is_the_beta_vae(divergence: Divergence, prior: AbstractPrior, beta: float) -> None:
    model = model_with(prior)
    ours = terms_of(DecompositionObjective(alpha=0.0, beta=beta, divergence=divergence), model)
    theirs = terms_of(BetaObjective(beta=beta), model)
    assert torch.equal(total(ours), total(theirs))
    assert list(ours) == ["reconstruction", "rate", "aggregate"]
    assert float(ours["aggregate"].value.detach()) != 0  # watched all the same


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_the_loss_is_affine_in_alpha_with_the_divergence_as_its_slope(divergence: Divergence) -> None:
    model = model_with(MixturePrior())
    none, some = (
        terms_of(DecompositionObjective(alpha=alpha, divergence=divergence), model) for alpha in (0.0, 7.0)
    )
    torch.testing.assert_close(total(some) - total(none), 7 * some["aggregate"].value)
    default = terms_of(DecompositionObjective(divergence=divergence), model)
    assert {name: term.weight for name, term in default.items()} == dict.fromkeys(default, 1)


@pytest.mark.parametrize(
    "prior", [IsotropicPrior(), MixturePrior(means=((-1.0,), (1.0,)))], ids=["one", "two"]
)
def test_the_inclusive_kl_agrees_with_quadrature(prior: AbstractPrior) -> None:
    module = prior.build(1, None, 0, torch.Generator()).double()
    z = np.linspace(-15, 15, 60_001)
    with torch.no_grad():
        log_p = module.log_density(torch.from_numpy(z[:, None]))[:, 0].numpy()
    log_q = np.log(stats.norm.pdf(z[:, None], MEANS, np.sqrt(VARIANCES)).mean(1))
    exact = np.trapezoid(np.exp(log_p) * (log_p - log_q), z)
    # Copies leave the mixture as it is, so that 3000 draws are compared with three components.
    found = inclusive_kl(mixture_posterior(1000), module, torch.Generator().manual_seed(0))
    assert exact > 0.05
    assert_mean_is(found.numpy(), exact)


def test_the_inclusive_kl_is_zero_at_every_draw_where_every_posterior_is_the_prior() -> None:
    module = IsotropicPrior().build(3, None, 0, torch.Generator()).double()
    posterior = DiagonalGaussian(torch.zeros(6, 3).double(), torch.zeros(6, 3).double())
    found = inclusive_kl(posterior, module, torch.Generator().manual_seed(0))
    torch.testing.assert_close(found, torch.zeros(6).double(), atol=1e-12, rtol=0)


def test_posteriors_that_make_up_the_clusters_match_a_clustered_prior() -> None:
    # q(z|x) in one component each: every rate is log 4, yet together they are the prior.
    prior = MixturePrior()
    module = prior.build(2, None, 0, torch.Generator()).double()
    means = torch.tensor(prior.centres).double()
    posterior = DiagonalGaussian(means, torch.full_like(means, np.log(prior.component_variance)))
    found = inclusive_kl(posterior, module, torch.Generator().manual_seed(0))
    torch.testing.assert_close(found, torch.zeros(4).double(), atol=1e-6, rtol=0)  # the prior is float32's


def test_a_small_batch_overestimates_the_inclusive_kl_and_the_whole_data_do_not() -> None:
    # −log is convex: its mean over every batch of two of four is at least its value at the mean mixture.
    z = torch.linspace(-2, 2, 9).double()[:, None]
    means = torch.tensor([-2.0, -0.5, 0.5, 2.0]).double()[:, None]
    whole = DiagonalGaussian(means, torch.full((4, 1), -1.0).double())

    class FixedDraws(IsotropicPriorModule):
        def sample(self, n_samples: int, generator: torch.Generator) -> torch.Tensor:
            return z

    fixed = FixedDraws(1, 1.0).double()
    generator = torch.Generator()
    exact = inclusive_kl(whole, fixed, generator)
    batches = [
        inclusive_kl(DiagonalGaussian(means[list(b)], whole.log_variance[list(b)]), fixed, generator)
        for b in itertools.combinations(range(4), 2)
    ]
    mean = torch.stack(batches).mean(0)
    assert (mean >= exact).all()
    assert (mean > exact + 0.1).any()


@pytest.mark.parametrize("kernel", get_args(Kernel))
def test_the_discrepancy_is_that_of_the_draws_and_the_prior(kernel: Kernel) -> None:
    model = model_with(MixturePrior())
    terms = terms_of(DecompositionObjective(divergence="mmd", kernel=kernel, kernel_width=0.6), model, seed=3)
    x = torch.from_numpy(TinyDataset((5,), 8).values(range(8))).double()
    generator = torch.Generator().manual_seed(3)
    z = model.encode(x).sample(generator)
    draws = model.prior.sample(8, generator)
    torch.testing.assert_close(terms["aggregate"].value, mmd(z, draws, kernel, 0.6))


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("prior", [IsotropicPrior(), MixturePrior()], ids=["isotropic", "mixture"])
def test_the_gradient_of_the_divergence_alone_is_right(divergence: Divergence, prior: AbstractPrior) -> None:
    model = model_with(prior)
    objective = DecompositionObjective(divergence=divergence)
    for seed in range(3):
        analytic, difference = directional_derivatives(
            lambda: terms_of(objective, model)["aggregate"].value, list(model.encoder.parameters()), seed
        )
        assert abs(analytic) > 1e-3
        assert analytic == pytest.approx(difference, rel=1e-6, abs=1e-8)


def test_a_batch_of_one_has_a_finite_divergence() -> None:
    model = model_with(MixturePrior())
    for divergence in DIVERGENCES:
        batch = Batch(torch.zeros(1, 5).double(), step=0)
        terms = DecompositionObjective(divergence=divergence).terms(Step(model, batch, torch.Generator()))
        assert torch.isfinite(terms["aggregate"].value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": -1.0}, "alpha must not be negative, got -1.0; 0 is the β-VAE"),
        ({"beta": -0.1}, "beta must not be negative, got -0.1"),
        ({"alpha": float("nan")}, "alpha must be finite, got nan"),
        ({"kernel_width": 0.0}, "kernel_width must be positive, got 0.0"),
        (
            {"kernel_scales": ()},
            "kernel_scales must be one or more positive numbers, got",
        ),
        (
            {"kernel_scales": (1.0, -1.0)},
            "kernel_scales must be (a list of numbers, each above 0|one or more)",
        ),
    ],
)
def test_wrong_settings_are_refused(options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        DecompositionObjective(**options)


def test_the_unbiased_discrepancy_of_single_samples_is_refused_before_training() -> None:
    data = TinyDataset((5,), 30)
    with pytest.raises(InputError, match="batch_size must be at least 2, got 1: the unbiased discrepancy"):
        plan(data, DecompositionObjective(divergence="mmd"), batch_size=1)
    plan(data, DecompositionObjective(divergence="mmd", estimator="biased"), batch_size=1)
    plan(data, DecompositionObjective(), batch_size=1)


def test_the_inclusive_kl_to_a_conditional_prior_is_refused_before_training() -> None:
    from polariscope.data.rendered.pinwheel import PinwheelDataset

    with pytest.raises(InputError, match=r"requires the same prior for all samples.*divergence='mmd'"):
        plan(PinwheelDataset(), DecompositionObjective(), n_latents=2, prior="conditional")
    plan(PinwheelDataset(), DecompositionObjective(divergence="mmd"), n_latents=2, prior="conditional")
