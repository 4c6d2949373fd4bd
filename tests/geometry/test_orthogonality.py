"""Distance to orthogonality: closed forms, invariances, and honesty where it means nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from geometry.models import codes, curved_model, optimal_model
from oracles import assert_mean_is, random_rotation
from polariscope.core.errors import InputError
from polariscope.geometry.jacobian import decoder_jacobian
from polariscope.geometry.orthogonality import (
    decoder_orthogonality,
    distance_to_orthogonality,
    haar_distance,
    haar_rotations,
)

SINGULAR = np.array([4.0, 2.0, 1.0])


def jacobians(n_samples=6, turn=None, singular=SINGULAR, n_values=8):
    """U diag(singular) Vᵀ with random U; V = ``turn``, or a signed permutation."""
    d = len(singular)
    V = np.eye(d)[::-1] * np.where(np.arange(d) % 2, -1, 1) if turn is None else turn
    U = np.stack([random_rotation(n_values, seed)[:, :d] for seed in range(n_samples)])
    return U * singular @ V.T


def test_orthogonal_columns_have_distance_and_overlap_0():
    found = distance_to_orthogonality(jacobians())
    assert found.value == pytest.approx(0, abs=1e-12)
    assert found.overlap == pytest.approx(0, abs=1e-24)
    assert found.degenerate == 0
    assert found.notes == ()
    np.testing.assert_allclose(found.singular_values, np.tile(SINGULAR, (6, 1)), rtol=1e-12)


@pytest.mark.parametrize("angle", [0.1, 0.5, math.pi / 4])
def test_a_rotation_of_two_latents_has_the_closed_form(angle):
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    found = distance_to_orthogonality(jacobians(turn=turn, singular=np.array([3.0, 1.0])))
    assert found.value == pytest.approx(math.sqrt(4 - 4 * math.cos(angle)), rel=1e-10)
    # G = V diag(9, 1) Vᵀ: G_12 = 8 sin cos, G_11 = 9 cos² + sin², G_22 = 9 sin² + cos².
    s, c = math.sin(angle) ** 2, math.cos(angle) ** 2
    assert found.overlap == pytest.approx(64 * s * c / ((9 * c + s) * (9 * s + c)), rel=1e-10)


def test_sign_and_order_of_latents_and_rotations_of_the_output_do_not_matter():
    J = jacobians(turn=random_rotation(3, 5))
    moved = (random_rotation(8, 9) @ J)[:, :, [2, 0, 1]] * [1.0, -1.0, -1.0]
    first, second = distance_to_orthogonality(J), distance_to_orthogonality(moved)
    assert first.value > 0.1
    assert second.value == pytest.approx(first.value, rel=1e-10)
    assert second.overlap == pytest.approx(first.overlap, rel=1e-10)


def test_scale_of_all_latents_does_not_matter_but_that_of_one_does():
    J = jacobians(turn=random_rotation(3, 5))
    value = distance_to_orthogonality(J).value
    assert distance_to_orthogonality(1e-8 * J).value == pytest.approx(value, rel=1e-8)
    scaled = distance_to_orthogonality(J * [10.0, 1.0, 1.0])
    assert abs(scaled.value - value) > 0.01
    assert scaled.overlap == pytest.approx(distance_to_orthogonality(J).overlap, rel=1e-10)


def test_random_rotations_have_the_haar_value():
    Q = haar_rotations(500, 5, np.random.default_rng(0))
    J = np.linspace(5, 1, 5)[None, :, None] * Q.transpose(0, 2, 1)
    found = distance_to_orthogonality(J)
    assert_mean_is(found.distances, haar_distance(5).mean)
    assert found.relative == pytest.approx(1, abs=5 * found.haar_deviation / found.haar / math.sqrt(500))
    assert found.interval[0] < found.value < found.interval[1]
    # Overlaps of 500 rotations against 500 others, with the standard error of both.
    assert found.overlap == pytest.approx(found.random_overlap, rel=0.05)


def test_equal_singular_values_are_noted_and_the_overlap_stays_0():
    # Orthonormal columns: any V is a right one, and rounding decides.
    J = np.stack([random_rotation(8, seed)[:, :4] for seed in range(20)])
    found = distance_to_orthogonality(J)
    assert found.degenerate == 1
    assert found.overlap == pytest.approx(0, abs=1e-24)
    assert any("100% of neighbouring singular values" in note for note in found.notes)


def test_a_linear_vae_is_orthogonal_where_its_autoencoder_twin_is_not():
    eigenvalues = np.array([9.0, 4.0, 2.0, 0.5])
    model, _, _ = optimal_model(eigenvalues, 3, gamma=0.1)
    assert decoder_orthogonality(model, codes(10, 3)).value == pytest.approx(0, abs=1e-7)
    twin, _, _ = optimal_model(eigenvalues, 3, gamma=0.1, turn=random_rotation(3, 1))
    found = decoder_orthogonality(twin, codes(10, 3))
    assert found.value > 0.5
    assert found.overlap > 0.01


def test_passive_latents_are_removed_by_type_or_by_name():
    # The second of three eigenvalues at the noise floor: its column is 0, and noise in it would count.
    J = jacobians()
    noisy = np.concatenate([J, 1e-9 * codes(6 * 8, 2).reshape(6, 8, 2)], axis=2)
    whole = distance_to_orthogonality(noisy)
    assert any("latent 3, 4" in note for note in whole.notes)
    kept = distance_to_orthogonality(noisy, types=["active", "mixed", "active", "passive", "passive"])
    assert kept.latents == (0, 1, 2)
    assert kept.value == pytest.approx(0, abs=1e-12)
    assert kept.value == distance_to_orthogonality(noisy, keep=[0, 1, 2]).value


def test_a_model_and_its_jacobians_give_the_same_answer_for_the_same_points():
    model, at = curved_model(n_latents=4), codes(30, 4)
    by_model = decoder_orthogonality(model, at, keep=[0, 2, 3], output="logits")
    by_arrays = distance_to_orthogonality(decoder_jacobian(model, at, output="logits"), keep=[0, 2, 3])
    np.testing.assert_allclose(by_model.distances, by_arrays.distances, atol=1e-9)
    assert by_model.overlap == pytest.approx(by_arrays.overlap, rel=1e-12)


def test_points_are_drawn_from_the_seed():
    model, at = curved_model(), codes(50, 3)
    first, again, other = (decoder_orthogonality(model, at, n_points=10, seed=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.distances, again.distances)
    assert len(first.distances) == 10
    assert not np.array_equal(first.distances, other.distances)


def test_a_column_of_zeros_is_orthogonal_to_all_and_dead_points_are_left_out():
    J = jacobians()
    J[:, :, 1] = 0
    J[0] = 0
    found = distance_to_orthogonality(J)
    assert len(found.distances) == 5
    assert found.overlap == pytest.approx(0, abs=1e-24)
    assert any("1 points" in note for note in found.notes)


def test_a_single_latent_and_a_single_point_say_what_they_cannot():
    found = distance_to_orthogonality(jacobians(n_samples=1), keep=[1])
    assert found.value == 0
    assert found.relative == 0
    assert found.interval is None
    assert any("single latent" in note for note in found.notes)


def test_more_latents_than_outputs_are_noted():
    assert any("2 outputs" in n for n in distance_to_orthogonality(codes(6, 3).reshape(3, 2, 3)).notes)


@pytest.mark.parametrize(
    ("J", "options", "words"),
    [
        (np.zeros((2, 4, 3)), {}, "all are passive"),
        (np.full((1, 4, 3), np.nan), {}, "must be finite"),
        (np.zeros((0, 4, 3)), {}, "at least one of each"),
        (np.ones((1, 4, 3)), {"types": ["passive"] * 3}, "all 3 latents are passive"),
        (np.ones((1, 4, 3)), {"types": ["active"] * 2}, "each of the 3 latents"),
        (np.ones((1, 4, 3)), {"types": ["active"] * 2 + ["pasive"]}, "Did you mean 'passive'"),
        (np.ones((1, 4, 3)), {"types": ["active"] * 3, "keep": [0]}, "both passed"),
        (np.ones((1, 4, 3)), {"keep": [0, 0]}, "distinct latents"),
        (np.ones((1, 4, 3)), {"keep": [3]}, "from 0 to 2"),
        (np.ones((1, 4, 3)), {"keep": []}, "at least one"),
    ],
)
@pytest.mark.usefixtures("unannotated")
def test_what_has_no_answer_is_refused(J, options, words):
    with pytest.raises(InputError, match=words):
        distance_to_orthogonality(J, **options)


def test_a_decoder_that_ignores_its_latents_is_refused():
    with pytest.raises(InputError, match="does not depend on any"):
        decoder_orthogonality(lambda z: torch.zeros(len(z), 4) + 0 * z.sum(dim=1, keepdim=True), codes(3, 2))
    with pytest.raises(InputError, match="n_points"):
        decoder_orthogonality(curved_model(), codes(3, 3), n_points=0)
