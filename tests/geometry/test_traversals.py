"""Moved codes, grids, eigenfaces and paths between observations."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from geometry.models import codes, curved_model, optimal_model
from oracles import symmetric_points
from polariscope.core.errors import InputError
from polariscope.geometry.decoder_function import decode
from polariscope.geometry.eigenfaces import eigenfaces
from polariscope.geometry.interpolation import codes_between, interpolate, interpolate_observations
from polariscope.geometry.steps_of_latents import range_of
from polariscope.geometry.traversals import traverse_code, traverse_observation, traverse_plane
from polariscope.models.posteriors.deterministic import DeterministicPosterior
from polariscope.runs.encode import encode

EIGENVALUES = np.array([9.0, 4.0, 2.0, 0.5])


def linear_data(directions):
    return symmetric_points(directions * EIGENVALUES @ directions.T).astype(np.float32)


def test_a_row_moves_one_latent_from_the_centre_in_deviations():
    model, at = curved_model(), codes(1, 3)[0]
    centre, deviation, values = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 2.0]), np.array([-1.0, 2.0])
    found = traverse_code(model, at, (2, 0), values, centre=centre, deviation=deviation)
    expected = at.copy()
    expected[0] = 1 + 2.0 * 0.5
    np.testing.assert_allclose(found[1, 1], decode(model, expected[None])[0], atol=1e-6)
    expected = at.copy()
    expected[2] = 3 - 2.0
    np.testing.assert_allclose(found[0, 0], decode(model, expected[None])[0], atol=1e-6)


def test_a_plane_moves_the_first_latent_along_rows_and_the_second_along_columns():
    model, at = curved_model(), codes(1, 3)[0]
    plane = traverse_plane(model, at, (2, 1), n_steps=4, reach=2.0, deviation=0.5)
    assert plane.outputs.shape == (4, 4, 7)
    expected = at.copy()
    expected[2], expected[1] = 0.5 * plane.values[3], 0.5 * plane.values[1]
    np.testing.assert_allclose(plane.outputs[3, 1], decode(model, expected[None])[0], atol=1e-6)
    np.testing.assert_allclose(plane.values, [-2, -2 / 3, 2 / 3, 2])


def test_a_plane_of_a_linear_decoder_is_a_plane():
    model, W, _ = optimal_model(EIGENVALUES, 3)
    plane = traverse_plane(model, np.zeros(3), (0, 1), n_steps=5)
    expected = plane.values[:, None, None] * W[:, 0] + plane.values[None, :, None] * W[:, 1]
    np.testing.assert_allclose(plane.outputs, expected, atol=1e-5)


def test_an_observation_is_moved_from_its_own_code_over_the_prior():
    model, x = curved_model(), codes(1, 7).astype(np.float32)
    found = traverse_observation(model, x[0], (2, 0), n_steps=3, reach=2.0)
    moved = encode(model, x).mean[0].astype(np.float64)
    moved[0] = -2.0
    np.testing.assert_allclose(found[1, 0], decode(model, moved[None])[0], atol=1e-6)
    with pytest.raises(InputError, match="have an encoder and a decoder"):
        traverse_observation(lambda z: z, x[0], (0,))
    with pytest.raises(InputError, match=r"shape \(7,\)"):
        traverse_observation(model, x[0, :5], (0,))


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 8, 8), (2, 8, 8)], ids=str)
def test_an_image_in_bytes_is_the_same_as_in_floats_from_0_to_1(shape):
    model = curved_model(shape=shape)
    image = np.random.default_rng(0).integers(256, size=shape).astype(np.uint8)
    expected = traverse_observation(model, image / np.float32(255), (0, 2))
    assert np.ptp(expected) > 0.01
    np.testing.assert_array_equal(traverse_observation(model, image, (0, 2)), expected)


@pytest.mark.parametrize(
    ("convert", "words"),
    [
        (
            lambda image: image.astype(np.float32),
            r"floats must lie in \[0, 1\], got 0.0 … 255.0; divide by 255",
        ),
        (lambda image: image.astype(np.int64), "must be uint8 or floats"),
        (lambda image: np.full(image.shape, np.nan), "must be finite"),
        (lambda image: image[:, :4], r"observations of shape \(1, 8, 8\), got data of shape \(1, 4, 8\)"),
    ],
    ids=["floats to 255", "integers", "nan", "shape"],
)
def test_an_observation_unlike_the_data_is_refused(convert, words):
    image = np.random.default_rng(0).integers(256, size=(1, 8, 8)).astype(np.uint8)
    image[0, 0, :2] = 0, 255
    with pytest.raises(InputError, match=words):
        traverse_observation(curved_model(shape=(1, 8, 8)), convert(image), (0,))


def test_the_range_is_that_of_the_prior():
    model, _, directions = optimal_model(EIGENVALUES, 3)
    centre, deviation, scale = range_of(model, encode(model, linear_data(directions)))
    assert scale == "prior"
    np.testing.assert_allclose(centre, 0)
    np.testing.assert_allclose(deviation, 1)


@pytest.mark.parametrize("centre", ["mean-of-codes", "code-of-mean"])
def test_eigenfaces_of_a_linear_vae_are_multiples_of_principal_directions(centre):
    model, _, directions = optimal_model(EIGENVALUES[[2, 0, 3, 1]], 3)
    # W's columns are sorted by eigenvalue, so that the most precise latent is the first.
    order = np.argsort(EIGENVALUES[[2, 0, 3, 1]])[::-1]
    x = symmetric_points(directions * EIGENVALUES[[2, 0, 3, 1]] @ directions.T).astype(np.float32)
    found = eigenfaces(model, x, n_faces=2, centre=centre)
    assert found.latents == (0, 1)
    np.testing.assert_allclose(found.mean, 0, atol=1e-5)
    for face, component, eigenvalue in zip(found.faces, order, EIGENVALUES, strict=False):
        expected = 2.5 * math.sqrt(eigenvalue - 1) * directions[:, component]
        np.testing.assert_allclose(face[1], -face[0], atol=1e-5)
        np.testing.assert_allclose(np.abs(face[1]), np.abs(expected), atol=1e-5)
    np.testing.assert_allclose(found.deviations, 1 / np.sqrt(EIGENVALUES[:2]), rtol=1e-6)


def test_faces_are_around_the_mean_code_whatever_it_is():
    model, x = curved_model(shape=(7,)), codes(20, 7).astype(np.float32)
    found = eigenfaces(model, x, n_faces=3, reach=1.5)
    rep = encode(model, x)
    order = np.sqrt(rep.variance.astype(np.float64)).mean(axis=0).argsort()
    assert found.latents == tuple(order)
    moved = rep.mean.mean(axis=0).astype(np.float64)
    np.testing.assert_allclose(found.code, moved, atol=1e-6)
    moved[order[1]] += 1.5
    np.testing.assert_allclose(found.faces[1, 1], decode(model, moved[None])[0], atol=1e-6)


def test_faces_that_have_no_order_or_number_are_refused():
    model = curved_model()
    x = codes(20, 7).astype(np.float32)
    with pytest.raises(InputError, match="n_faces"):
        eigenfaces(model, x, n_faces=0)
    point = dataclasses.replace(model.blueprint, posterior=DeterministicPosterior()).build(0)
    with pytest.raises(InputError, match="deterministic encoder"):
        eigenfaces(point, x)


def test_a_linear_path_through_a_linear_decoder_is_straight_and_even():
    model, _, _ = optimal_model(EIGENVALUES, 3)
    a, b = codes(2, 3)
    found = interpolate(model, a, b, n_steps=7)
    ends = decode(model, np.stack([a, b]))
    np.testing.assert_allclose(found.outputs, np.linspace(*ends, 7), atol=1e-5)
    assert found.evenness == pytest.approx(1, abs=1e-5)


def test_a_sudden_jump_is_uneven_and_nothing_moving_is_even():
    step = lambda z: torch.sigmoid(1000 * z)  # noqa: E731
    found = interpolate(step, np.array([-1.0]), np.array([1.0]), n_steps=12)
    assert found.evenness == pytest.approx(1 / 11, rel=1e-3)
    assert interpolate(step, np.array([1.0]), np.array([1.0])).evenness == 1


def test_a_spherical_path_turns_at_a_constant_rate_and_changes_length_linearly():
    a, b = np.array([2.0, 0.0, 0.0]), np.array([1.0, 1.0, 2.0])
    path = codes_between(a, b, 9, "spherical")
    lengths = np.linalg.norm(path, axis=1)
    np.testing.assert_allclose(lengths, np.linspace(2, np.sqrt(6), 9), rtol=1e-12)
    unit = path / lengths[:, None]
    turns = np.arccos((unit[:-1] * unit[1:]).sum(axis=1))
    np.testing.assert_allclose(turns, np.arccos(2 / (2 * np.sqrt(6))) / 8, rtol=1e-9)
    np.testing.assert_allclose(path[[0, -1]], [a, b], atol=1e-12)


def test_paths_between_parallel_codes_agree():
    a = np.array([1.0, 2.0])
    np.testing.assert_allclose(codes_between(a, 3 * a, 5, "spherical"), codes_between(a, 3 * a, 5), rtol=1e-9)


def test_observations_are_interpolated_from_their_posterior_means():
    model, x = curved_model(), codes(20, 7).astype(np.float32)
    found = interpolate_observations(model, x, 3, 11, n_steps=4)
    mean = encode(model, x, n_samples=None).mean
    np.testing.assert_allclose(found.codes[[0, -1]], mean[[3, 11]], atol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: codes_between(np.zeros(2), np.ones(2), 5, "spherical"), "not 0"),
        (lambda: codes_between(-np.ones(2), np.ones(2), 5, "spherical"), "not opposite"),
        (lambda: codes_between(np.ones(2), np.ones(2), 1), "n_steps"),
        (lambda: codes_between(np.ones(2), np.ones(3), 5), "codes of the same model"),
        (lambda: codes_between(np.ones(2), np.ones(2), 5, "round"), "'linear' or 'spherical'"),
        (lambda: traverse_plane(curved_model(), np.zeros(3), (1, 1)), "distinct latents"),
        (lambda: traverse_plane(curved_model(), np.zeros(3), (0, 1, 2)), "two latents"),
        (lambda: traverse_plane(curved_model(), np.zeros(3), (0, 1), n_steps=1), "n_steps"),
        (lambda: traverse_plane(curved_model(), np.full(3, np.nan), (0, 1)), "must be finite"),
    ],
)
@pytest.mark.usefixtures("unannotated")
def test_impossible_paths_are_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
