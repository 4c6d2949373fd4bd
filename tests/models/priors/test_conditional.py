"""Normal prior that depends on an auxiliary variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

import polariscope as ps
from oracles import assert_mean_is
from polariscope.core.errors import InputError
from polariscope.data.own.arrays import from_arrays
from polariscope.models.posteriors import kl
from polariscope.models.posteriors.diagonal import DiagonalGaussian
from polariscope.models.priors.conditional import ConditionalPrior, ConditionalPriorModule


def built(
    recipe: ConditionalPrior, n_latents: int = 2, n_auxiliary: int = 3, seed: int = 0
) -> ConditionalPriorModule:
    return recipe.build(n_latents, None, n_auxiliary, torch.Generator().manual_seed(seed)).double()


def auxiliary(n: int = 5) -> Tensor:
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def by_hand(net: nn.Sequential, u: np.ndarray) -> np.ndarray:
    """Affine maps with leaky rectifiers of slope 0.1 between them."""
    layers = [layer for layer in net if isinstance(layer, nn.Linear)]
    for number, layer in enumerate(layers):
        u = u @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
        if number < len(layers) - 1:
            u = np.where(u > 0, u, 0.1 * u)
    return u


@pytest.mark.parametrize("mean", ["fixed", "learned"])
def test_its_moments_are_the_networks_of_the_auxiliary_variable(mean: str) -> None:
    made, u = built(ConditionalPrior(mean=mean)), auxiliary()
    with torch.no_grad():
        for parameter in made.parameters():  # biases too
            parameter.add_(0.1)
    found_mean, found_log_variance = (part.detach().numpy() for part in made.given(u).normal())
    np.testing.assert_allclose(found_log_variance, by_hand(made.log_variance, u.numpy()), rtol=1e-12)
    if mean == "fixed":
        assert (found_mean == 0).all()
    else:
        np.testing.assert_allclose(found_mean, by_hand(made.mean, u.numpy()), rtol=1e-12)
        assert np.abs(found_mean - found_log_variance).min() > 1e-6  # a network of its own


@pytest.mark.parametrize(("mean", "networks"), [("fixed", 1), ("learned", 2)])
def test_each_network_has_three_layers_of_fifty(mean: str, networks: int) -> None:
    made = built(ConditionalPrior(mean=mean), n_latents=30, n_auxiliary=5)
    each = (5 * 50 + 50) + 2 * (50 * 50 + 50) + (50 * 30 + 30)  # bonheme2023 Tab. A.2
    assert sum(parameter.numel() for parameter in made.parameters()) == networks * each


def test_no_hidden_layer_is_an_affine_map() -> None:
    made, u = built(ConditionalPrior(widths=())), auxiliary()
    assert len(made.log_variance) == 1
    np.testing.assert_allclose(
        made.given(u).log_variance.detach().numpy(), by_hand(made.log_variance, u.numpy())
    )


def test_weights_come_from_the_generator_alone() -> None:
    torch.manual_seed(1)
    first = built(ConditionalPrior(), seed=3).state_dict()
    torch.manual_seed(2)
    again, other = (built(ConditionalPrior(), seed=seed).state_dict() for seed in (3, 4))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_each_sample_is_scored_and_drawn_under_its_own_prior() -> None:
    made, u = built(ConditionalPrior(mean="learned")), auxiliary(3)
    mean, log_variance = (part.detach().numpy() for part in made.given(u).normal())
    z = np.random.default_rng(0).normal(size=(3, 2))
    found = made.given(u).log_density(torch.from_numpy(z)).detach().numpy()
    np.testing.assert_allclose(found, stats.norm.logpdf(z, mean, np.exp(log_variance / 2)), rtol=1e-12)
    n = 20_000
    draws = (
        made.given(u.repeat_interleave(n, 0)).sample(3 * n, torch.Generator().manual_seed(0)).detach().numpy()
    )
    for row in range(3):
        own = draws[row * n : (row + 1) * n]
        assert_mean_is(own, mean[row])
        assert_mean_is((own - mean[row]) ** 2, np.exp(log_variance[row]))


def test_the_rate_is_exact_and_zero_with_zero_gradient_when_the_posterior_is_the_prior() -> None:
    made, u = built(ConditionalPrior(mean="learned")), auxiliary()
    mean, log_variance = (part.detach() for part in made.given(u).normal())
    rate = kl(DiagonalGaussian(mean, log_variance), made.given(u), mean)
    assert (rate == 0).all()
    rate.sum().backward()
    assert all((parameter.grad == 0).all() for parameter in made.parameters())
    other = kl(DiagonalGaussian(mean + 1, log_variance), made.given(u), mean)
    np.testing.assert_allclose(other.detach().numpy(), np.exp(-log_variance.numpy()) / 2, rtol=1e-12)


def test_the_best_prior_of_a_fixed_mean_has_the_second_moments_of_the_posterior_given_u() -> None:
    # Σ†(u) = E[Σ + μ² | u] (objectives.md §12.4, derived). Two values of u; a line through them is exact.
    made = built(ConditionalPrior(widths=()), n_latents=1, n_auxiliary=1)
    u = torch.tensor([[0.0], [0.0], [1.0], [1.0]], dtype=torch.float64)
    q = DiagonalGaussian(
        torch.tensor([[1.0], [-3.0], [0.1], [0.2]], dtype=torch.float64),
        torch.tensor([[0.5], [0.1], [0.01], [0.03]], dtype=torch.float64).log(),
    )
    optimiser = torch.optim.LBFGS(made.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = kl(q, made.given(u), q.mean).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    found = made.given(u[[0, 2]]).log_variance.exp().detach().numpy()[:, 0]
    np.testing.assert_allclose(found, [(1 + 0.5 + 9 + 0.1) / 2, (0.01 + 0.01 + 0.04 + 0.03) / 2], rtol=1e-4)


QUESTIONS: list[Callable[[ConditionalPriorModule], Any]] = [
    lambda made: made.log_density(torch.zeros(1, 2, dtype=torch.float64)),
    lambda made: made.sample(3, torch.Generator()),
    lambda made: made.normal(),
    lambda made: made.passive_shape(),
    lambda made: made.given(None),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_without_the_auxiliary_variable_it_answers_nothing(
    question: Callable[[ConditionalPriorModule], Any],
) -> None:
    with pytest.raises(InputError, match=r"only for a given auxiliary variable; call given\(u\)"):
        question(built(ConditionalPrior()))


def test_a_draw_for_another_number_of_samples_is_refused() -> None:
    with pytest.raises(InputError, match="n_samples must be the number of rows of u, 5, got 4"):
        built(ConditionalPrior()).given(auxiliary()).sample(4, torch.Generator())


def test_encoding_collects_the_prior_of_each_sample() -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, size=(120, 1))
    data = from_arrays((random.normal(size=(120, 4)) + labels).astype(np.float32), factors=labels)
    model = ps.train(
        data, net="linear", n_latents=2, prior="conditional", mean="learned", steps=20, learning_rate=1e-2
    )
    representation = ps.encode(model, data)
    with torch.no_grad():
        u = torch.from_numpy(labels[representation.indices].astype(np.float32) / 2)  # scaled to [0, 1]
        mean, log_variance = model.prior.given(u).normal()
    np.testing.assert_allclose(representation.prior_mean, mean.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(representation.prior_variance, log_variance.exp().numpy(), rtol=1e-5)
    assert ps.diagnose(representation).prior == "conditional"


def test_data_without_factors_are_refused_before_training() -> None:
    with pytest.raises(
        InputError, match=r"a conditional prior requires auxiliary data, and .* has no factors"
    ):
        ps.train(np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32), prior="conditional")
    with pytest.raises(InputError, match="a conditional prior requires auxiliary values, got n_auxiliary=0"):
        built(ConditionalPrior(), n_auxiliary=0)


def test_widths_that_are_none_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"widths must be a list of integers, each at least 1, got \(50, 0\)"
    ):
        ConditionalPrior(widths=(50, 0))


@pytest.mark.parametrize(("mean", "centre"), [("fixed", "0"), ("learned", "μ(u)")])
def test_it_says_what_a_passive_latent_looks_like(mean: str, centre: str) -> None:
    assert built(ConditionalPrior(mean=mean)).meaning_of_passive == (
        f"its posterior is close to the prior N({centre}, Σ(u)) of its own auxiliary values u for every input; the "
        "variance Σ is learned and can be far from 1"
    )
