"""The annealed VAE: the batch's rate is drawn to a capacity that grows."""

from __future__ import annotations

import pytest
import torch

from long_training import unchecked
from oracles import TinyDataset, linear_model
from polariscope.core.errors import InputError
from polariscope.models.model import Model
from polariscope.objectives import Batch, Step, Terms, total
from polariscope.objectives.annealed import AnnealedObjective
from polariscope.objectives.beta import BetaObjective
from polariscope.training.train import train

X = torch.from_numpy(TinyDataset((5,), 6).values(range(6))).double()


@pytest.fixture
def model() -> Model:
    return linear_model(5, 3, gamma=0.5)


def terms_of(objective, model: Model, step: int = 0) -> Terms:
    return objective.terms(Step(model, Batch(X, step=step), torch.Generator().manual_seed(0)))


@pytest.mark.parametrize(
    ("step", "expected"), [(0, 0.0), (1, 0.25), (50, 12.5), (99, 24.75), (100, 25.0), (10**9, 25.0)]
)
def test_the_capacity_rises_linearly_and_stays_at_its_end(step: int, expected: float) -> None:
    assert AnnealedObjective(capacity=25.0, ramp_steps=100).capacity_at(step) == pytest.approx(
        expected, rel=1e-15
    )


def test_without_a_ramp_the_capacity_is_there_from_the_start() -> None:
    assert AnnealedObjective(capacity=7.0, ramp_steps=0).capacity_at(0) == 7.0


def test_the_mean_over_the_batch_is_taken_before_the_absolute_value(model: Model) -> None:
    rate = terms_of(BetaObjective(), model)["rate"].value.detach().sum(1)
    capacity = float(rate.mean())  # samples lie on both sides of it
    assert float(rate.min()) < capacity < float(rate.max())
    gap = terms_of(AnnealedObjective(capacity=capacity, ramp_steps=0), model)["capacity_gap"]
    assert float(gap.per_batch.detach()) == pytest.approx(0, abs=1e-15)
    for capacity, sign in ((0.1, 1), (30.0, -1)):
        gap = terms_of(AnnealedObjective(capacity=capacity, ramp_steps=0), model)["capacity_gap"]
        assert float(gap.per_batch.detach()) == pytest.approx(
            sign * (float(rate.mean()) - capacity), rel=1e-12
        )


def test_no_capacity_is_the_beta_vae_in_value_and_gradient(model: Model) -> None:
    for objective in (
        AnnealedObjective(gamma=5.0, capacity=0.0),
        AnnealedObjective(gamma=5.0),
    ):  # step 0: C = 0
        loss, beta = total(terms_of(objective, model)), total(terms_of(BetaObjective(beta=5.0), model))
        torch.testing.assert_close(loss, beta, rtol=1e-13, atol=0)
        for ours, theirs in zip(
            torch.autograd.grad(loss, list(model.parameters())),
            torch.autograd.grad(beta, list(model.parameters())),
            strict=True,
        ):
            torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-13)


def test_below_its_capacity_the_rate_is_rewarded(model: Model) -> None:
    generous = AnnealedObjective(gamma=5.0, capacity=1000.0, ramp_steps=0)
    loss, beta = total(terms_of(generous, model)), total(terms_of(BetaObjective(beta=0.0), model))
    mean_rate = terms_of(BetaObjective(), model)["rate"].per_batch
    torch.testing.assert_close(loss, beta + 5.0 * (1000.0 - mean_rate), rtol=1e-13, atol=0)


def test_the_rate_is_only_watched(model: Model) -> None:
    terms = terms_of(AnnealedObjective(), model)
    assert list(terms) == ["reconstruction", "rate", "capacity_gap"]
    assert terms["rate"].weight == 0
    assert terms["rate"].value.shape == (6, 3)
    assert terms["capacity_gap"].weight == 1000.0


@unchecked()
def test_training_brings_the_rate_to_the_capacity() -> None:
    import polariscope as ps

    data = ps.load_dataset("gaussian", eigenvalues=(4.0, 2.0, 1.0), n_samples=500)
    model = train(
        data, "annealed", "linear", 3, gamma=100.0, capacity=1.5, ramp_steps=300, likelihood="gaussian", variance=0.2,
        keep_units=True, steps=900, batch_size=64, learning_rate=1e-2, schedule="cosine", seed=0,
    )  # fmt: skip
    x = torch.from_numpy(data.values(range(500)))
    with torch.no_grad():
        rate = model.encode(x).kl_to_normal(*model.prior.normal()).sum(1)
    # Batches of 64 differ in their rate by about std/8, which the absolute value turns into a pull on the mean.
    assert abs(float(rate.mean()) - 1.5) < 3 * float(rate.std()) / 8
    assert abs(float(rate.mean()) - 1.5) < 0.15


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gamma": -1.0}, "gamma must not be negative, got -1.0; with 0 only the reconstruction is left"),
        ({"gamma": float("inf")}, "gamma must be finite, got inf"),
        ({"capacity": -5.0}, "capacity must not be negative, got -5.0; 0 nats is the β-VAE"),
        ({"capacity": float("nan")}, "capacity must be finite, got nan"),
        ({"ramp_steps": -1}, "ramp_steps must not be negative, got -1; 0 means full capacity from the start"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, words) -> None:
    with pytest.raises(InputError, match=words):
        AnnealedObjective(**options)
