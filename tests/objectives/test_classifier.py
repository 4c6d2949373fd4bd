"""The classifier: cross-entropy in nats, layers that compare with an encoder's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from oracles import directional_derivatives
from polariscope.core.errors import InputError
from polariscope.data.own.arrays import from_arrays
from polariscope.data.sources import load_dataset
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors.deterministic import DeterministicPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import Batch, Step, total
from polariscope.objectives.classifier import ClassificationHeads, ClassifierObjective
from polariscope.training.plan import plan
from polariscope.training.train import train

CLASSES = {"shape": 3, "scale": 6}


@pytest.fixture
def model() -> Model:
    blueprint = Blueprint(
        MlpNet((6,), (), "tanh"),
        DeterministicPosterior(),
        IsotropicPrior(),
        GaussianLikelihood(),
        2,
        (5,),
        decodes=False,
    )
    return blueprint.build(seed=0).double()


def heads(n_in: int) -> ClassificationHeads:
    return ClassificationHeads(n_in, CLASSES, torch.Generator().manual_seed(1)).double()


def batch(n: int = 8) -> Batch:
    draw = torch.Generator().manual_seed(2)
    labels = torch.stack([torch.randint(size, (n,), generator=draw) for size in CLASSES.values()], dim=1)
    return Batch(torch.randn(n, 5, generator=draw, dtype=torch.float64), step=0, labels=labels)


def test_zero_heads_cost_the_logarithm_of_every_number_of_classes(model):
    companion = heads(6)
    with torch.no_grad():
        for parameter in companion.parameters():
            parameter.zero_()
    terms = ClassifierObjective().terms(Step(model, batch(), torch.Generator(), companion))
    expected = torch.full((8,), math.log(3) + math.log(6), dtype=torch.float64)
    torch.testing.assert_close(terms["classification"].value, expected)


@pytest.mark.parametrize(("seen", "n_in"), [("features", 6), ("mean", 2)])
def test_the_loss_is_minus_the_log_probability_of_the_right_classes(model, seen, n_in):
    given, companion = batch(), heads(n_in)
    terms = ClassifierObjective(heads=seen).terms(Step(model, given, torch.Generator(), companion))
    features = model.encoder.trunk(given.x) if seen == "features" else model.encode(given.x).mean
    expected = 0.0
    for k, layer in enumerate(companion.factors):
        probabilities = torch.softmax(layer(features), dim=1)
        expected = expected - probabilities[torch.arange(8), given.labels[:, k]].log()
        right = (probabilities.argmax(1) == given.labels[:, k]).double()
        assert torch.equal(terms[f"accuracy {list(CLASSES)[k]}"].value, right)
    torch.testing.assert_close(terms["classification"].value, expected)
    assert torch.equal(total(terms), terms["classification"].per_batch)


@pytest.mark.parametrize(("seen", "n_in"), [("features", 6), ("mean", 2)])
def test_the_gradient_is_that_of_the_loss_and_reaches_what_the_heads_see(model, seen, n_in):
    given, companion = batch(), heads(n_in)
    objective = ClassifierObjective(heads=seen)
    parameters = [*model.parameters(), *companion.parameters()]

    def loss() -> torch.Tensor:
        return total(objective.terms(Step(model, given, torch.Generator(), companion)))

    for seed in range(2):
        analytic, difference = directional_derivatives(loss, parameters, seed)
        assert analytic == pytest.approx(difference, rel=1e-7, abs=1e-7)
    loss().backward()
    assert all((p.grad != 0).any() for p in (*model.encoder.trunk.parameters(), *companion.parameters()))
    trains_mean = model.encoder.head.mean.weight.grad is not None
    assert trains_mean == (seen == "mean")
    assert bool(objective.caution) == (not trains_mean)


def test_its_layers_are_those_of_an_encoder():
    data = load_dataset("sprites", image_size=16)
    ours, theirs = (plan(data, objective=name).blueprint.build(0) for name in ("classifier", "vae"))
    x = torch.from_numpy(data.values(range(3)))
    layers = [
        {name: tuple(a.shape) for name, a in made.activations(x, torch.zeros(len(x), made.n_latents))}
        for made in (ours, theirs)
    ]
    assert [name for name in layers[0] if name.startswith("encoder/")] == [
        f"encoder/{i}" for i in range(1, 7)
    ]
    assert layers[0].items() <= layers[1].items()
    assert not any(name.startswith("decoder/") for name in layers[0])


def test_it_learns_the_classes_of_a_simple_dataset():
    # Two classes three standard deviations to either side of 0: the best rule is right in 99.9 %.
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=600)
    rows = rng.normal(size=(600, 4)) + 6 * (labels[:, None] - 0.5) * np.array([1, 0, 0, 0])
    lines = []
    train(
        from_arrays(rows.astype(np.float32), labels, factor_names=["side"]),
        objective="classifier",
        net={"name": "mlp", "encoder_widths": (16,)},
        steps=150,
        learning_rate=1e-2,
        log_every=50,
        validate_every=50,
        device="cpu",
        progress=lambda step, line: lines.append(line) if line else None,
    )
    assert lines[-1]["terms"]["accuracy side"] > 0.97
    assert lines[-1]["loss"] < 0.1 < math.log(2)
    assert lines[-1]["kl"] is None


def test_it_is_refused_without_labels(model):
    with pytest.raises(
        InputError,
        match="arrays has no discrete factors or labels to classify; pass integer factors",
    ):
        plan(from_arrays(np.zeros((20, 4))), objective="classifier")
    with pytest.raises(InputError, match="requires the classes of the factors, and this batch has none"):
        ClassifierObjective().terms(Step(model, Batch(batch().x, step=0), torch.Generator(), heads(6)))


@pytest.mark.parametrize("numbers", [(1, 2), (0, 2), (-1, 1), (-1, 0)])
def test_classes_that_are_not_numbered_from_0_without_a_gap_are_refused(numbers):
    data = from_arrays(np.zeros((20, 4)), np.array(numbers)[np.arange(20) % 2], factor_names=["side"])
    words = (
        rf"2 classes of factor 'side' must be numbered 0 … 1, got {numbers[0]} … {numbers[1]}; number them"
    )
    with pytest.raises(InputError, match=words):
        plan(data, objective="classifier")
