"""A linear VAE's decoder has principal directions for columns; a linear autoencoder's only their space."""

from __future__ import annotations

import numpy as np
import pytest

from geometry.models import codes, curved_model, optimal_model
from oracles import expected_loss, linear_model, minimise, random_rotation, symmetric_points
from polariscope.analysis.theory import linear_posterior, linear_vae
from polariscope.core.errors import InputError
from polariscope.geometry.orthogonality import decoder_orthogonality
from polariscope.geometry.pca import align_with_pca, pca_alignment
from polariscope.objectives.beta import BetaObjective

EIGENVALUES = np.array([9.0, 4.0, 2.0, 0.5])


def test_the_optimal_linear_vae_is_pca_up_to_signs_and_order():
    model, W, directions = optimal_model(EIGENVALUES, 3, gamma=0.5)
    x = symmetric_points(directions * EIGENVALUES @ directions.T)
    mean = linear_posterior(W, gamma=0.5).mean(x)
    found = align_with_pca(model, x, codes=mean)
    assert found.value == pytest.approx(1, abs=1e-12)
    assert found.components == (0, 1, 2)
    np.testing.assert_allclose(found.cosines, np.eye(3), atol=1e-7)
    np.testing.assert_allclose(found.correlations, np.eye(3), atol=1e-7)
    np.testing.assert_allclose(found.angles, 0, atol=1e-7)
    np.testing.assert_allclose(found.eigenvalues, EIGENVALUES[:3], rtol=1e-10)
    np.testing.assert_allclose(
        np.linalg.norm(W, axis=0), linear_vae(EIGENVALUES, 3, gamma=0.5).singular_values, rtol=1e-10
    )
    shuffled = pca_alignment(W[:, [2, 0, 1]] * [-1.0, 1.0, -1.0], x)
    assert shuffled.components == (2, 0, 1)
    assert shuffled.value == pytest.approx(1, abs=1e-12)


def test_training_from_a_random_start_ends_in_pca_and_in_an_orthogonal_decoder():
    # zietlow2022 Thm 2 and Tab. 3.3: a linear VAE has distance 0; before training it has not.
    directions = random_rotation(4, 0)
    covariance = directions * EIGENVALUES @ directions.T
    model = linear_model(4, 3, gamma=0.5, seed=3)
    x, at = symmetric_points(covariance), np.zeros((1, 3))
    before = decoder_orthogonality(model, at)
    assert before.value > 0.1
    minimise(lambda: expected_loss(BetaObjective(1.0), model, covariance), list(model.parameters()), 250)
    assert align_with_pca(model, x).value == pytest.approx(1, abs=1e-6)
    after = decoder_orthogonality(model, at)
    assert after.value == pytest.approx(0, abs=1e-3)
    assert after.overlap == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(
        after.singular_values[0], linear_vae(EIGENVALUES, 3, gamma=0.5).singular_values, rtol=1e-4
    )


def test_rotated_latents_keep_the_space_and_lose_the_directions():
    angle = 0.3
    turn = np.eye(3)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    directions = random_rotation(4, 0)
    x = symmetric_points(directions * EIGENVALUES @ directions.T)
    found = pca_alignment(directions[:, :3] @ turn, x)
    assert found.value == pytest.approx((2 * np.cos(angle) + 1) / 3, rel=1e-10)
    np.testing.assert_allclose(found.angles, 0, atol=1e-7)


def test_a_decoder_outside_the_principal_space_shows_in_the_angles():
    directions = random_rotation(4, 0)
    x = symmetric_points(directions * EIGENVALUES @ directions.T)
    tilted = directions[:, [0, 1]].copy()
    tilted[:, 1] = np.cos(0.4) * directions[:, 1] + np.sin(0.4) * directions[:, 3]
    np.testing.assert_allclose(pca_alignment(tilted, x).angles, [0.4, 0], atol=1e-7)


def test_passive_latents_are_removed_and_named_otherwise():
    model, _, directions = optimal_model(EIGENVALUES, 4, gamma=1.0)  # λ = 0.5 is below the noise
    x = symmetric_points(directions * EIGENVALUES @ directions.T)
    found = align_with_pca(model, x, types=["active", "active", "active", "passive"])
    assert found.latents == (0, 1, 2)
    assert found.value == pytest.approx(1, abs=1e-12)
    with pytest.raises(InputError, match="latent 3 has a column of zeros"):
        align_with_pca(model, x)


def test_equal_eigenvalues_are_noted():
    directions = random_rotation(4, 0)
    x = symmetric_points(directions * np.array([9.0, 4.0, 4.0, 0.5]) @ directions.T)
    assert any("Components 1 and 2" in note for note in pca_alignment(directions[:, :2], x).notes)
    clear = symmetric_points(directions * EIGENVALUES @ directions.T)
    assert pca_alignment(directions[:, :2], clear).notes == ()


@pytest.mark.usefixtures("unannotated")
def test_what_is_not_linear_or_does_not_fit_is_refused():
    x = codes(20, 7)
    with pytest.raises(InputError, match="not linear"):
        align_with_pca(curved_model(), x)
    with pytest.raises(InputError, match="same features"):
        pca_alignment(np.ones((3, 2)), x)
    with pytest.raises(InputError, match="as many principal directions"):
        pca_alignment(codes(7, 8), x)
    with pytest.raises(InputError, match="must be finite"):
        pca_alignment(np.full((7, 2), np.nan), x)
