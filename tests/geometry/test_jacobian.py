"""Jacobians against weights, closed forms, differences and torch's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from geometry.models import codes, curved_model, optimal_model
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.data.rendered.square_nonlinear import SquareNonlinearDataset
from polariscope.geometry import jacobian
from polariscope.geometry.decoder_function import decode
from polariscope.geometry.jacobian import decoder_jacobian, decoder_metric
from polariscope.geometry.orthogonality import decoder_orthogonality
from polariscope.models.likelihoods.bernoulli import BernoulliLikelihood
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint
from polariscope.models.nets.conv import ConvNet
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior


def test_the_jacobian_of_a_linear_decoder_is_its_weights_everywhere():
    model, W, _ = optimal_model(np.array([9.0, 4.0, 2.0, 0.5]), 3)
    found = decoder_jacobian(model, codes(4, 3))
    np.testing.assert_allclose(found, np.broadcast_to(W, (4, 4, 3)), atol=1e-14)


def test_a_curved_decoder_agrees_with_central_differences():
    model, at, step = curved_model(), codes(5, 3), 1e-5
    moved = [
        (model_output(model, at + step * e) - model_output(model, at - step * e)) / (2 * step)
        for e in np.eye(3)
    ]
    # Central differences are off by f''' h²/6 ≈ 1e-11 and by rounding, 1e-16/h = 1e-11.
    np.testing.assert_allclose(decoder_jacobian(model, at), np.stack(moved, axis=2), atol=1e-9)


def model_output(model, z):
    with torch.inference_mode():
        return model.decode(torch.from_numpy(z)).mean.numpy()


def test_the_jacobian_of_a_known_network_has_its_closed_form():
    data = SquareNonlinearDataset(gain=2.0, n_samples=20)
    (A, a), (B, b) = ((torch.from_numpy(w), torch.from_numpy(bias)) for w, bias in data.layers)
    found = decoder_jacobian(lambda w: torch.tanh(w @ A.T + a) @ B.T + b, data.factors(range(20)))
    np.testing.assert_allclose(found, data.jacobian(range(20)), atol=1e-13)


def test_mean_and_logits_differ_by_the_slope_of_the_sigmoid():
    model, at = curved_model(), codes(6, 3)
    p = model_output(model, at)
    np.testing.assert_allclose(
        decoder_jacobian(model, at),
        (p * (1 - p))[:, :, None] * decoder_jacobian(model, at, output="logits"),
        atol=1e-13,
    )


@pytest.mark.parametrize("learned", ["no", "per-value"])
def test_a_gaussian_decoder_is_differentiated_through_its_mean_alone(learned):
    model = curved_model(likelihood=GaussianLikelihood(learned=learned))
    assert decoder_jacobian(model, codes(2, 3)).shape == (2, 7, 3)


def test_a_convolutional_decoder_agrees_with_torch_row_by_row():
    blueprint = Blueprint(
        ConvNet(), DiagonalPosterior(), IsotropicPrior(), BernoulliLikelihood(), 4, (1, 64, 64)
    )
    model = blueprint.build(0).to_device("cpu")
    at = codes(2, 4).astype(np.float32)
    forward = decoder_jacobian(model, at)
    # Backwards, from random combinations of the outputs: cᵀJ.
    for seed, (z, found) in enumerate(zip(at, forward, strict=True)):
        row = torch.from_numpy(z[None]).requires_grad_()
        outputs = model.decode(row).mean
        weights = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(seed))
        (expected,) = torch.autograd.grad(outputs, row, weights)
        scale = 1e-5 * np.abs(found).max() * len(found) ** 0.5  # float32, summed over 4096 outputs
        np.testing.assert_allclose(weights.flatten().numpy() @ found, expected[0].numpy(), atol=scale)


def test_blocks_do_not_change_the_result(monkeypatch):
    model, at = curved_model(), codes(10, 3)
    whole, metric = decoder_jacobian(model, at), decoder_metric(model, at)
    monkeypatch.setattr(jacobian, "MAX_VALUES", 3 * 7 * 3)  # three codes at a time, and one left over
    assert [len(block) for block in jacobian.jacobian_blocks(model, at)] == [3, 3, 3, 1]
    np.testing.assert_allclose(decoder_jacobian(model, at), whole, atol=1e-14)
    np.testing.assert_allclose(decoder_metric(model, at), metric, atol=1e-14)


def test_the_metric_is_the_jacobian_with_itself_and_measures_small_steps():
    model, at = curved_model(), codes(5, 3)
    J, metric = decoder_jacobian(model, at), decoder_metric(model, at)
    np.testing.assert_allclose(metric, J.transpose(0, 2, 1) @ J, atol=1e-14)
    step = 1e-4 * np.array([1.0, -2.0, 0.5])
    moved = ((model_output(model, at + step) - model_output(model, at)) ** 2).sum(axis=1)
    np.testing.assert_allclose(moved, np.einsum("i,nij,j->n", step, metric, step), rtol=1e-2)


def test_batch_statistics_do_not_mix_rows_and_the_mode_is_given_back():
    torch.manual_seed(0)
    decoder = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Tanh()).double()
    decoder.train()
    at = codes(3, 2)
    together = decoder_jacobian(decoder, at)
    alone = np.concatenate([decoder_jacobian(decoder, row[None]) for row in at])
    np.testing.assert_allclose(together, alone, atol=1e-14)
    np.testing.assert_allclose(decode(decoder, at)[:1], decode(decoder, at[:1]), atol=1e-7)
    assert decoder.training


def test_parameters_get_no_gradient_from_it():
    model = curved_model()
    decoder_jacobian(model, codes(2, 3))
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (np.zeros((2, 4)), r"shape \(sample, 3\)"),
        (np.zeros(3), r"shape \(sample, 3\)"),
        (np.zeros((0, 3)), "at least one"),
        (np.full((1, 3), np.nan), "3 NaN or infinite"),
        (np.zeros((1, 3), dtype=int), "must be floats"),
    ],
)
@pytest.mark.usefixtures("unannotated")
def test_codes_that_do_not_fit_are_refused(at, words):
    with pytest.raises(InputError, match=words):
        decoder_jacobian(curved_model(), at)


@pytest.mark.usefixtures("unannotated")
def test_decoders_that_cannot_be_looked_at_are_refused():
    with pytest.raises(InputError, match="must have a decoder"):
        decoder_jacobian(curved_model(decodes=False), codes(1, 3))
    with pytest.raises(InputError, match="Bernoulli likelihood"):
        decoder_jacobian(curved_model(likelihood=GaussianLikelihood()), codes(1, 3), output="logits")
    with pytest.raises(InputError, match="no output named 'logit'"):
        decoder_jacobian(curved_model(), codes(1, 3), output="logit")
    with pytest.raises(InputError, match="function from latents"):
        decoder_jacobian("model", codes(1, 3))
    with pytest.raises(InputError, match=r"a row of values for each code, got shape \(3,\)"):
        decoder_jacobian(lambda z: z.sum(dim=0), codes(2, 3))
    with pytest.raises(PolariscopeError, match="not finite"):
        decoder_jacobian(lambda z: torch.sqrt(z), np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("decoder", "words"),
    [
        (lambda z: z @ torch.ones(3, 2), r"type torch.float64 \(.* pass codes.astype\(np.float32\)"),
        (lambda z: z @ torch.ones(4, 2).double(), r"got an error for codes of shape \(.*, 3\)"),
        (
            lambda z: z.sum(dim=1),
            r"got shape \(.*; if there is a single value for each code, return outputs\[:, None\]",
        ),
        (lambda z: z.detach().numpy(), "return a tensor .* got ndarray"),
        (lambda z: None, "return a tensor .* got NoneType"),
        (lambda z: torch.from_numpy(z.numpy() * 2), "the decoder must take a batch of latents"),
    ],
    ids=["type", "width", "one value", "array", "nothing", "not differentiable"],
)
@pytest.mark.parametrize("analysis", [decoder_jacobian, decoder_metric, decoder_orthogonality, decode])
def test_a_foreign_decoder_that_does_not_fit_is_refused_in_words(decoder, words, analysis):
    if analysis is decode and words == "the decoder must take a batch of latents":
        assert decode(decoder, codes(2, 3)).shape == (2, 3)  # without a derivative, arrays do as well
        return
    with pytest.raises(InputError, match=words):
        analysis(decoder, codes(10, 3))


def test_a_single_value_in_an_axis_of_its_own_is_differentiated():
    found = decoder_jacobian(lambda z: z.sum(dim=1, keepdim=True), codes(4, 3))
    np.testing.assert_array_equal(found, np.ones((4, 1, 3)))
