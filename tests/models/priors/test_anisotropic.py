"""Normal priors with the data's principal variances, fixed and learned."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

import polariscope as ps
from oracles import assert_mean_is, random_rotation
from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractDataset
from polariscope.data.rendered.gaussian import GaussianDataset
from polariscope.models.posteriors import kl
from polariscope.models.posteriors.diagonal import DiagonalGaussian
from polariscope.models.priors.anisotropic import AnisotropicPrior
from polariscope.models.priors.anisotropic_learned import AnisotropicLearnedPrior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.models.priors.support.diagonal_normal import (
    MAX_SAMPLES,
    SMALLEST_SHARE,
    AbstractAnisotropicPrior,
    AnisotropicPriorModule,
    principal_shares,
)
from polariscope.runs.run import load_model

BOTH = [AnisotropicPrior, AnisotropicLearnedPrior]


def built(
    recipe: AbstractAnisotropicPrior, n_latents: int, data: AbstractDataset | None = None
) -> AnisotropicPriorModule:
    return recipe.build(n_latents, data, 0, torch.Generator().manual_seed(0))


def variances_of(made: AnisotropicPriorModule) -> np.ndarray:
    return made.passive_shape()[1].detach().double().numpy()


@dataclasses.dataclass(frozen=True)
class Rows(AbstractDataset):
    """Rows given by the test; it remembers which were asked for."""

    rows: Any = None
    asked: list = dataclasses.field(default_factory=list)

    name = "rows"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.rows.shape[1:]

    def __len__(self) -> int:
        return len(self.rows)

    def values(self, indices: Any) -> np.ndarray:
        self.asked.append(np.asarray(indices))
        return self.rows[self.check_indices(indices)]


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("scale", [1.0, 0.5, 2.0])
def test_variances_are_those_of_the_data_rescaled_to_the_total_of_the_isotropic_prior(
    kind: type[AbstractAnisotropicPrior], scale: float
) -> None:
    data = GaussianDataset(eigenvalues=(4.0, 2.0, 1.0, 0.5, 0.25), n_samples=500)
    found = variances_of(built(kind(scale=scale), 3, data))
    np.testing.assert_allclose(found, 3 * scale**2 * np.array([4, 2, 1]) / 7, rtol=1e-5)  # data in float32


@pytest.mark.parametrize("shape", [(30,), (2, 4, 5)])
def test_they_are_the_squared_singular_values_of_the_centred_data(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(200, *shape)) * np.geomspace(1, 0.05, shape[-1]) + 10 * random.normal(
        size=shape
    )
    data = Rows(rows.astype(np.float32))
    flat = data.rows.reshape(200, -1).astype(np.float64)
    squares = np.linalg.svd(flat - flat.mean(0), compute_uv=False)[:4] ** 2
    found = principal_shares(data, 4, torch.Generator().manual_seed(3)).numpy()
    # 4 + 10 of 30 or 40 directions and six iterations: (s₁₅/s₄)^26 of what is left out, below 1e-4 here.
    np.testing.assert_allclose(found, squares / squares[0], rtol=1e-4)
    variances = variances_of(built(AnisotropicPrior(), 4, data))
    np.testing.assert_allclose(variances, 4 * squares / squares.sum(), rtol=1e-4)
    assert (np.diff(variances) < 0).all()


def test_they_come_from_a_bounded_part_of_the_data_that_the_generator_draws() -> None:
    random = np.random.default_rng(0)
    data = Rows(random.normal(size=(12_000, 2)).astype(np.float32))
    first, again, other = (
        principal_shares(data, 2, torch.Generator().manual_seed(seed)).numpy() for seed in (0, 0, 1)
    )
    assert all(len(np.unique(indices)) == MAX_SAMPLES for indices in data.asked)
    assert (first == again).all()
    assert (first != other).any()


def test_latents_beyond_the_rank_of_the_data_have_a_thousandth_of_the_largest_variance() -> None:
    data = GaussianDataset(eigenvalues=(1.0, 0.5), width=4, n_samples=100)
    shares = principal_shares(data, 6, torch.Generator()).numpy()
    np.testing.assert_allclose(shares, [1.0, 0.5, *[SMALLEST_SHARE] * 4], rtol=1e-5)
    assert variances_of(built(AnisotropicPrior(), 6, data)).sum() == pytest.approx(6, rel=1e-6)


def test_fewer_observations_than_latents_will_do() -> None:
    rows = np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]], dtype=np.float32)
    shares = principal_shares(Rows(rows), 3, torch.Generator()).numpy()
    np.testing.assert_allclose(shares, [1.0, SMALLEST_SHARE, SMALLEST_SHARE])


@pytest.mark.parametrize("value", [0.0, 0.1, 1234567.8])
def test_data_that_never_vary_are_refused(value: float) -> None:
    data = Rows(np.full((50, 3), value, dtype=np.float32))
    with pytest.raises(InputError, match=r"rows never varies in 50 observations.*check the data"):
        built(AnisotropicPrior(), 2, data)


@pytest.mark.parametrize("kind", BOTH)
def test_given_variances_are_taken_as_they_are(kind: type[AbstractAnisotropicPrior]) -> None:
    made = built(kind(variances=(0.1, 5.0)), 2)
    np.testing.assert_allclose(variances_of(made), [0.1, 5.0], rtol=1e-6)
    assert made.meaning_of_passive == (
        "its posterior is close to its own prior N(0, s²) for every input, with a variance s² that differs between "
        "latents, from 0.1 to 5"
    )


def test_equal_variances_are_the_isotropic_prior() -> None:
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 3)))
    equal = built(AnisotropicPrior(variances=(0.49,) * 3), 3).double()
    isotropic = IsotropicPrior(0.7).build(3, None, 0, torch.Generator()).double()
    torch.testing.assert_close(equal.log_density(z), isotropic.log_density(z), rtol=1e-6, atol=0)


def test_rotating_the_latents_changes_the_density_unless_the_variances_are_equal() -> None:
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 3)))
    rotated = z @ torch.from_numpy(random_rotation(3, seed=1))
    equal = built(AnisotropicPrior(variances=(2.0, 2.0, 2.0)), 3).double()
    other = built(AnisotropicPrior(variances=(3.0, 2.0, 1.0)), 3).double()
    torch.testing.assert_close(equal.log_density(rotated).sum(1), equal.log_density(z).sum(1))
    assert ((other.log_density(rotated).sum(1) - other.log_density(z).sum(1)).abs() > 0.01).all()


def test_draws_have_the_variances_without_correlation() -> None:
    made = built(AnisotropicPrior(variances=(3.0, 0.2)), 2).double()
    draws = made.sample(20_000, torch.Generator().manual_seed(0)).numpy()
    assert_mean_is(draws, 0.0)
    assert_mean_is((draws[:, :, None] * draws[:, None, :]).reshape(-1, 4), np.array([3.0, 0, 0, 0.2]))


def test_the_fixed_one_has_no_weights_to_train_and_the_learned_one_has() -> None:
    fixed, learned = (built(kind(), 3) for kind in BOTH)
    assert not list(fixed.parameters())
    assert [name for name, _ in learned.named_parameters()] == ["logits"]
    assert set(fixed.state_dict()) == set(learned.state_dict()) == {"logits"}


def test_the_rate_trains_the_learned_variances_towards_the_posterior_and_keeps_their_total() -> None:
    made = built(AnisotropicLearnedPrior(scale=2.0), 3).double()
    mean = torch.zeros(1, 3, dtype=torch.float64)
    target = torch.tensor([[6.0, 4.0, 2.0]], dtype=torch.float64)  # the same total, 3 · 2²
    optimiser = torch.optim.LBFGS([made.logits], max_iter=50, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        rate = kl(DiagonalGaussian(mean, target.log()), made, mean).sum()
        rate.backward()
        return rate

    optimiser.step(closure)
    np.testing.assert_allclose(variances_of(made), [6.0, 4.0, 2.0], rtol=1e-4)
    assert variances_of(made).sum() == pytest.approx(12, rel=1e-7)


@pytest.mark.parametrize("name", ["anisotropic", "anisotropic-learned"])
def test_training_moves_the_learned_variances_only_and_a_loaded_model_has_them(
    name: str, tmp_path: Any
) -> None:
    data = GaussianDataset(eigenvalues=(2.0, 0.5), n_samples=200)
    model = ps.train(
        data, net="linear", n_latents=2, prior=name, steps=20, learning_rate=0.05, out=tmp_path / "run"
    )
    variances = variances_of(model.prior)
    moved = np.abs(variances - [1.6, 0.4]).max()
    assert moved > 0.01 if name == "anisotropic-learned" else moved < 1e-5
    assert variances.sum() == pytest.approx(2, rel=1e-6)
    loaded = load_model(tmp_path / "run")
    assert torch.equal(loaded.prior.log_variance, model.prior.log_variance)
    assert loaded.prior.meaning_of_passive == model.prior.meaning_of_passive


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0.0}, r"scale must be positive, got 0.0; 1 has the total of N\(0, I\)"),
        ({"scale": float("inf")}, "scale must be finite, got inf"),
        (
            {"variances": (1.0, 0.0)},
            r"variances must be a list of numbers, each above 0, got \(1.0, 0.0\)",
        ),
        ({"variances": ()}, "variances must be positive numbers"),
        ({"variances": (1.0, float("nan"))}, "variances must contain finite numbers"),
        (
            {"variances": (1.0, 2.0), "scale": 2.0},
            "scale must be 1 if variances are passed, got 2.0; scale the",
        ),
    ],
)
@pytest.mark.parametrize("kind", BOTH)
def test_bad_options_are_refused(
    kind: type[AbstractAnisotropicPrior], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        kind(**options)


def test_variances_for_another_number_of_latents_are_refused_before_training(tmp_path: Any) -> None:
    data = GaussianDataset(n_samples=50)
    with pytest.raises(InputError, match="one per latent, got 2 for 3 latents; set n_latents=2 or pass 3"):
        ps.train(data, n_latents=3, prior="anisotropic", variances="1,2", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
