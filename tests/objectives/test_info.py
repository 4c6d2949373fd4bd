"""InfoVAE: both ways to write its weights, and the signs that are refused."""

from __future__ import annotations

from typing import get_args

import pytest
import torch

from oracles import TinyDataset, directional_derivatives
from polariscope.core.errors import InputError
from polariscope.models.kernels import Kernel
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import AbstractObjective, Batch, Step, Terms, total
from polariscope.objectives.beta import BetaObjective
from polariscope.objectives.info import InfoObjective
from polariscope.objectives.vae import VaeObjective
from polariscope.objectives.wae import WaeObjective


@pytest.fixture
def model() -> Model:
    net = MlpNet((6,), (6,))
    blueprint = Blueprint(net, DiagonalPosterior(), IsotropicPrior(), GaussianLikelihood(), 3, (5,))
    return blueprint.build(seed=0).double()


def terms_of(objective: AbstractObjective, model: Model) -> Terms:
    x = torch.from_numpy(TinyDataset((5,), 8).values(range(8))).double()
    return objective.terms(Step(model, Batch(x, step=0), torch.Generator().manual_seed(0)))


@pytest.mark.parametrize(
    "unchanged",
    [
        InfoObjective(alpha=0.0, lambda_aggregate=1.0),
        InfoObjective(form="printed", lambda_rate=0.0, lambda_mmd=0.0),
    ],
    ids=["original", "printed"],
)
def test_no_change_is_the_vae(unchanged: InfoObjective, model: Model) -> None:
    assert torch.equal(total(terms_of(unchanged, model)), total(terms_of(VaeObjective(), model)))


@pytest.mark.parametrize(("alpha", "beta"), [(0.25, 0.75), (1.0, 0.0), (-2.0, 3.0)])
def test_without_the_discrepancy_alpha_is_one_minus_beta(alpha: float, beta: float, model: Model) -> None:
    info = InfoObjective(alpha=alpha, lambda_aggregate=1 - alpha)
    assert torch.equal(total(terms_of(info, model)), total(terms_of(BetaObjective(beta=beta), model)))


def test_without_the_rate_it_is_the_wasserstein_autoencoder(model: Model) -> None:
    info = terms_of(InfoObjective(alpha=1.0, lambda_aggregate=7.0), model)
    wae = terms_of(WaeObjective(lambda_mmd=7.0), model)
    torch.testing.assert_close(total(info), total(wae))


@pytest.mark.parametrize(("alpha", "lam"), [(0.0, 3.0), (0.5, 10.5), (1.0, 2.0), (-1.0, 4.0)])
def test_the_two_forms_are_equal_where_their_numbers_correspond(
    alpha: float, lam: float, model: Model
) -> None:
    original = InfoObjective(alpha=alpha, lambda_aggregate=lam)
    printed = InfoObjective(form="printed", lambda_rate=-alpha, lambda_mmd=alpha + lam - 1)
    assert original.weights == printed.weights
    assert torch.equal(total(terms_of(original, model)), total(terms_of(printed, model)))


def test_both_forms_mean_the_same_by_default() -> None:
    assert InfoObjective().weights == InfoObjective(form="printed").weights == (0.5, 10.0)


@pytest.mark.parametrize("kernel", get_args(Kernel))
def test_the_gradient_of_the_discrepancy_alone_is_right(kernel: Kernel, model: Model) -> None:
    objective = InfoObjective(kernel=kernel, kernel_width=1.0)
    analytic, difference = directional_derivatives(
        lambda: terms_of(objective, model)["aggregate"].value, list(model.encoder.parameters()), seed=0
    )
    assert abs(analytic) > 1e-3
    assert analytic == pytest.approx(difference, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"alpha": 1.5},
            "alpha must be at most 1, got 1.5: the rate's weight would be -0.5, so the loss",
        ),
        (
            {"alpha": 0.25, "lambda_aggregate": 0.5},
            "lambda_aggregate must be at least 1 - alpha = 0.75, got 0.5",
        ),
        (
            {"form": "printed", "lambda_rate": -1.5},
            "lambda_rate must be at least -1, got -1.5: the rate's weight",
        ),
        (
            {"form": "printed", "lambda_mmd": -1.0},
            "lambda_mmd must not be negative, got -1.0: the discrepancy's",
        ),
        (
            {"form": "printed", "alpha": 0.5},
            "alpha belongs to the form 'original', got 0.5 with form='printed'",
        ),
        (
            {"lambda_mmd": 1.0},
            "lambda_mmd belongs to the form 'printed'.*set alpha and lambda_aggregate, or form=",
        ),
        ({"alpha": float("nan")}, "alpha must be finite, got nan"),
        ({"lambda_aggregate": float("inf")}, "lambda_aggregate must be finite, got inf"),
        ({"kernel_width": -1.0}, "kernel_width must be positive, got -1.0"),
    ],
)
def test_weights_of_the_wrong_sign_and_numbers_of_the_other_form_are_refused(
    options: dict, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        InfoObjective(**options)
