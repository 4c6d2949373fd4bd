"""Corrupted and foreign observations: what must be kept, lost and refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from geometry.models import codes, curved_model, optimal_model
from oracles import STANDARD_ERRORS, symmetric_points
from polariscope.core.errors import InputError
from polariscope.data.sources import load_dataset
from polariscope.geometry.robustness.corruption_probe import corruption_probe
from polariscope.geometry.robustness.corruptions import (
    flip_pixels,
    invert,
    standard_corruptions,
    triangles,
    uniform_noise,
)
from polariscope.geometry.robustness.shift_probe import shift_probe

EIGENVALUES = np.array([9.0, 4.0, 2.0, 0.5])


def images(n=40):
    return np.random.default_rng(0).random((n, 1, 8, 8)).round().astype(np.float32)


def test_pixels_are_flipped_as_often_as_said_and_twice_is_never():
    x = images(200)
    for probability in (0.0, 0.05, 1.0):
        share = (flip_pixels(x, probability, np.random.default_rng(0)) != x).mean()
        error = math.sqrt(probability * (1 - probability) / x.size)
        assert share == pytest.approx(probability, abs=STANDARD_ERRORS * error)
    np.testing.assert_array_equal(invert(invert(x)), x)
    np.testing.assert_array_equal(flip_pixels(x, 1.0, np.random.default_rng(0)), invert(x))


def test_noise_stays_within_its_reach_and_the_interval():
    x = np.full((10, 1, 8, 8), 0.95, dtype=np.float32)
    noisy = uniform_noise(x, 0.1, np.random.default_rng(0))
    assert noisy.max() == 1
    assert noisy.min() >= 0.85 - 1e-6
    assert noisy.dtype == np.float32


def test_triangles_have_the_area_of_triangles_and_lie_inside():
    drawn = triangles(200, 128, np.random.default_rng(0))
    assert drawn.shape == (200, 1, 128, 128)
    # Area 3√3/4 R² with R uniform: E[R²] = (16² + 16·8 + 8²)/3 of 64 pixels, here twice that each way.
    areas = drawn.sum(axis=(1, 2, 3), dtype=np.float64)
    expected = 3 * math.sqrt(3) / 4 * 4 * (256 + 128 + 64) / 3
    error = areas.std() / math.sqrt(len(areas))
    assert areas.mean() == pytest.approx(expected, abs=STANDARD_ERRORS * error)
    radius = np.sqrt(areas / (3 * math.sqrt(3) / 4))
    assert radius.min() > 15.5
    assert radius.max() < 32.5


def test_nothing_is_lost_without_corruption():
    model = curved_model(shape=(1, 8, 8))
    found = corruption_probe(model, images(), {"none": lambda x, random: x})["none"]
    assert found.retained == 1
    assert found.spread == pytest.approx(1, rel=1e-12)
    assert found.recognised == 1
    assert found.error == found.clean_error
    np.testing.assert_allclose(found.shift, 0, atol=1e-12)


def test_one_image_for_all_keeps_nothing_and_spreads_nothing():
    model = curved_model(shape=(1, 8, 8))
    found = corruption_probe(model, images(), {"blank": lambda x, random: np.zeros_like(x)})["blank"]
    assert found.spread == pytest.approx(0, abs=1e-20)
    assert found.retained <= 0  # no constant is closer to the codes than their mean
    assert found.recognised == pytest.approx(1 / 40)


def test_a_linear_encoder_loses_what_the_closed_form_says():
    # x' = c x gives μ' = c μ: retained 1 − (1 − c)², spread c²; the posteriors differ by (1 − c)² μ²/2σ² nats.
    model, _, directions = optimal_model(EIGENVALUES, 3, gamma=0.5)
    x = symmetric_points(directions * EIGENVALUES @ directions.T).astype(np.float32)
    found = corruption_probe(model, x, {"fade": lambda x, random: 0.5 * x})["fade"]
    assert found.retained == pytest.approx(1 - 0.25, rel=1e-5)
    np.testing.assert_allclose(found.retained_by_latent, 0.75, rtol=1e-5)
    assert found.spread == pytest.approx(0.25, rel=1e-5)
    ratio = EIGENVALUES[:3] / 0.5 - 1  # Var[μ]/σ² = (1 − γ/λ)/(γ/λ)
    np.testing.assert_allclose(found.shift, 0.125 * ratio, rtol=1e-5)
    # KL = ½(σ² + μ'² − log σ² − 1) with E[μ'²] = (1 − γ/λ)/4.
    s = 0.5 / EIGENVALUES[:3]
    np.testing.assert_allclose(found.rate, 0.5 * (s + (1 - s) / 4 - np.log(s) - 1), rtol=1e-5)


def test_more_flipped_pixels_keep_less_and_a_run_is_repeated_by_its_seed():
    data = load_dataset("sprites", image_size=16)
    model = curved_model(shape=(1, 16, 16)).float()
    found = corruption_probe(model, data, n_samples=100)
    assert list(found) == list(standard_corruptions())
    kept = [found[name].retained for name in ("flip 0.001", "flip 0.01", "flip 0.05")]
    assert kept == sorted(kept, reverse=True)
    assert found["flip 0.05"].error > found["flip 0.05"].clean_error - 1e-3
    assert set(found["invert"].factor_accuracy) == set(data.factor_names)
    again = corruption_probe(model, data, n_samples=100)
    assert again["flip 0.05"].retained == found["flip 0.05"].retained


def test_the_same_domain_is_not_shifted_and_a_larger_one_is():
    model, _, directions = optimal_model(EIGENVALUES, 3, gamma=0.5)
    x = symmetric_points(directions * EIGENVALUES @ directions.T).astype(np.float32)
    same = shift_probe(model, x, x)
    assert same.error_ratio == pytest.approx(1)
    assert same.spread == pytest.approx(1)
    assert same.distance == pytest.approx(1, rel=1e-6)
    np.testing.assert_array_equal(same.rate, same.known_rate)
    # Everything is linear: 3 x has 9 times the variance and 9 times the error.
    wide = shift_probe(model, x, 3 * x)
    assert wide.error == pytest.approx(9 * same.error, rel=1e-5)
    assert wide.error_ratio == pytest.approx(1, rel=1e-5)
    assert wide.spread == pytest.approx(9, rel=1e-5)
    assert wide.distance == pytest.approx(3, rel=1e-5)


def test_a_direction_the_model_dropped_is_a_foreign_domain():
    model, _, directions = optimal_model(EIGENVALUES, 3, gamma=0.5)
    x = symmetric_points(directions * EIGENVALUES @ directions.T).astype(np.float32)
    others = np.linspace(-2, 2, 9)[:, None] * directions[:, 3]
    found = shift_probe(model, x, others.astype(np.float32))
    assert found.spread == pytest.approx(0, abs=1e-10)
    assert found.distance == pytest.approx(0, abs=1e-5)
    assert found.error_ratio > 5


def test_what_cannot_be_probed_is_refused():
    model = curved_model(shape=(1, 8, 8))
    with pytest.raises(InputError, match="corruption 'half' must return finite values of shape"):
        corruption_probe(model, images(), {"half": lambda x, random: x[:, :, :4]})
    with pytest.raises(InputError, match=r"values in \[0, 1\]"):
        corruption_probe(curved_model(), codes(20, 7).astype(np.float32))
    with pytest.raises(InputError, match="at least 2 observations"):
        corruption_probe(model, images(), n_samples=1)
    with pytest.raises(InputError, match="must have a decoder"):
        corruption_probe(curved_model(shape=(1, 8, 8), decodes=False), images())
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            parameter.zero_()
    with pytest.raises(InputError, match="all latents are passive"):
        corruption_probe(model, images())
    with pytest.raises(InputError, match="all latents are passive"):
        shift_probe(model, images(), images(20))
    with pytest.raises(InputError, match="between 0 and 1"):
        flip_pixels(images(), 1.5, np.random.default_rng(0))
    with pytest.raises(InputError, match="image_size at least 8"):
        triangles(1, 4, np.random.default_rng(0))


@pytest.mark.usefixtures("unannotated")
def test_images_in_bytes_are_rescaled_where_they_are_data_and_refused_where_they_are_values():
    model = curved_model(shape=(1, 8, 8))
    as_bytes, others = ((255 * part).astype(np.uint8) for part in (images(), images(60)[40:]))
    assert shift_probe(model, as_bytes, others).error == shift_probe(model, images(), images(60)[40:]).error
    # Black in bytes lies in [0, 1] too, and its noise would be rounded off.
    random = np.random.default_rng(0)
    for x in (as_bytes, 0 * as_bytes):
        for corrupt in (
            invert,
            lambda x: flip_pixels(x, 0.1, random),
            lambda x: uniform_noise(x, 0.1, random),
        ):
            with pytest.raises(InputError, match=r"floats in \[0, 1\], got uint8"):
                corrupt(x)
    with pytest.raises(InputError, match=r"corruption 'bytes' must return values .* got uint8; divide"):
        corruption_probe(model, as_bytes, {"bytes": lambda x, random: (255 * x).astype(np.uint8)})


def test_codes_thrown_to_the_other_side_retain_less_than_nothing():
    # x' = −x gives μ' = −μ: ‖μ' − μ‖² = 4‖μ‖², so that 1 − 4 is left; there is no lower bound.
    model, _, directions = optimal_model(EIGENVALUES, 3, gamma=0.5)
    x = symmetric_points(directions * EIGENVALUES @ directions.T).astype(np.float32)
    found = corruption_probe(model, x, {"mirror": lambda x, random: -x, "throw": lambda x, random: -9 * x})
    assert found["mirror"].retained == pytest.approx(-3, rel=1e-5)
    assert found["throw"].retained == pytest.approx(-99, rel=1e-5)
