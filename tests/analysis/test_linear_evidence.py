"""Held-out evidence of linear VAEs against the closed form and data of known rank."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from polariscope.analysis.linear_evidence import cross_validate, held_out_losses, n_latents_at_most
from polariscope.analysis.theory import linear_size, linear_vae
from polariscope.core.errors import InputError


def table(n_samples: int, n_features: int, variances: list[float], seed: int = 0) -> np.ndarray:
    """Rows with noise of variance 1 and a few directions of larger variance."""
    draw = np.random.default_rng(seed)
    directions = np.linalg.qr(draw.normal(size=(n_features, n_features)))[0][:, : len(variances)]
    signal = draw.normal(size=(n_samples, len(variances))) * np.sqrt(variances)
    return signal @ directions.T + draw.normal(size=(n_samples, n_features))


def test_the_held_out_loss_is_that_of_the_normal_distribution_of_probabilistic_pca() -> None:
    training, held_out = table(300, 6, [9.0, 4.0]), table(50, 6, [9.0, 4.0], seed=1)
    covariance = np.cov(training.T, bias=True)
    values, vectors = np.linalg.eigh(covariance)
    gamma = values[:4].mean()
    model = vectors[:, 4:] @ np.diag(values[4:] - gamma) @ vectors[:, 4:].T + gamma * np.eye(6)
    expected = -multivariate_normal(training.mean(axis=0), model).logpdf(held_out).mean()
    assert held_out_losses(training, held_out)[2] == pytest.approx(expected, rel=1e-12)


def test_on_its_own_training_data_the_loss_is_that_of_the_linear_vae() -> None:
    rows = table(500, 8, [20.0, 10.0, 5.0])
    values = np.linalg.eigvalsh(np.cov(rows.T, bias=True))
    losses = held_out_losses(rows, rows)
    assert len(losses) == n_latents_at_most(500, 8) + 1 == 8
    for n_latents in (1, 3, 7):
        assert losses[n_latents] == pytest.approx(linear_vae(values, n_latents, gamma=None).loss, rel=1e-10)


def test_with_many_observations_cross_validation_agrees_with_the_closed_form() -> None:
    rows = table(20_000, 12, [30.0, 8.0, 3.0])
    values = np.linalg.eigvalsh(np.cov(rows.T, bias=True))
    found, exact = cross_validate(rows), linear_size(values)
    assert found.n_latents == exact.n_latents == 3
    # A moment of 20,000 samples has a standard error of 1 %; directions within the noise are not ordered alike.
    np.testing.assert_allclose(found.gammas[:3], exact.gammas[:3], rtol=0.03)
    np.testing.assert_allclose(found.traces[:3], exact.traces[:3], rtol=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_eigenvalues_of_noise_that_look_like_signal_do_not_generalise(seed: int) -> None:
    rows = table(80, 60, [40.0], seed=seed)
    values = np.linalg.eigvalsh(np.cov(rows.T, bias=True))
    found = cross_validate(rows)
    assert linear_size(values, 1.0, 80).n_latents > 1  # in training the largest noise passes
    assert found.n_latents == 1
    assert found.losses.argmin() == 1
    assert found.has_noise_floor
    assert found.interval[0] <= 1 <= found.interval[1]


def test_data_without_a_noise_floor_are_recognised() -> None:
    spectrum = 100.0 * 0.5 ** np.arange(10)
    rows = np.random.default_rng(0).normal(size=(2000, 10)) * np.sqrt(spectrum)
    assert not cross_validate(rows).has_noise_floor  # each further direction improves the held-out loss


def test_units_and_the_order_of_features_do_not_change_the_answer() -> None:
    rows = table(200, 15, [12.0, 9.0, 6.0])
    first, second = cross_validate(rows), cross_validate(-0.01 * rows[:, ::-1] + 3)
    assert first.n_latents == second.n_latents == 3
    np.testing.assert_allclose(first.traces, second.traces, rtol=1e-8)
    np.testing.assert_allclose(first.losses + 15 * np.log(0.01), second.losses, rtol=1e-8)


def test_constant_and_repeated_features_have_defined_values() -> None:
    rows = np.hstack([table(60, 4, [20.0]), np.ones((60, 2))])
    found = cross_validate(np.hstack([rows, rows]))
    assert np.isfinite(found.losses).all()
    assert np.isfinite(found.traces).all()


def test_too_few_observations_and_folds_are_refused() -> None:
    with pytest.raises(InputError, match="rows must have at least 3 observations, got 2"):
        cross_validate(np.eye(2))
    with pytest.raises(InputError, match="n_folds must be at least 2, got 1"):
        cross_validate(np.eye(4), n_folds=1)
    with pytest.raises(InputError, match="got 5 and 0"):
        held_out_losses(np.eye(5), np.eye(5)[:0])
