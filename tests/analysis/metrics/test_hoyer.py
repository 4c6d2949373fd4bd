"""Hoyer's sparsity: extremes, the closed form for a Gaussian, what is left out."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.metrics.known import noise
from polariscope.analysis.metrics.hoyer import hoyer
from polariscope.core.errors import InputError


def test_one_latent_at_a_time_scores_one_and_all_alike_zero() -> None:
    one = np.vstack([np.eye(4), -np.eye(4)])
    assert hoyer(one).value == pytest.approx(1, abs=1e-12)
    signs = np.array([[1.0, 1.0, -1.0], [-1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [-1.0, -1.0, -1.0]])
    assert hoyer(signs, variant="raw").value == pytest.approx(0, abs=1e-12)


def test_it_follows_the_formula() -> None:
    codes = np.array([[3.0, 4.0], [1.0, 0.0]])  # ‖z‖₁/‖z‖₂ = 7/5 and 1
    expected = np.mean((np.sqrt(2) - np.array([7 / 5, 1])) / (np.sqrt(2) - 1))
    assert hoyer(codes, variant="raw").value == pytest.approx(expected)
    assert hoyer(codes / codes.std(axis=0), variant="raw").value == pytest.approx(hoyer(codes).value)


def test_the_interval_is_that_of_a_mean_and_sizes_are_means_too() -> None:
    for codes in (noise(30, 3), np.vstack([np.eye(3), -np.eye(3), [[0.1, 0.1, 0.9]]])):
        lengths = np.linalg.norm(codes, axis=1)
        each = (np.sqrt(3) - np.abs(codes).sum(axis=1) / lengths) / (np.sqrt(3) - 1)
        score = hoyer(codes, variant="raw")
        half = 1.959964 * each.std(ddof=1) / np.sqrt(len(codes))
        expected = (max(0, each.mean() - half), min(1, each.mean() + half))
        assert score.interval == pytest.approx(expected, abs=1e-6)
        np.testing.assert_allclose(score.per_latent, np.abs(codes).mean(axis=0))
        assert score.notes == ()
    assert score.interval[1] == 1 > score.value  # type: ignore[index]


@pytest.mark.parametrize("d", [2, 5, 30])
def test_gaussian_codes_score_the_stated_chance(d: int) -> None:
    codes = noise(20_000, d)
    score = hoyer(codes, variant="raw")
    half = (score.interval[1] - score.interval[0]) / 2  # type: ignore[index]
    assert abs(score.value - score.chance) < 5 / 1.96 * half  # type: ignore[operator]


def test_collapsed_latents_look_sparse_only_when_raw() -> None:
    codes = noise(5000, 10) * np.array([1.0] * 2 + [1e-3] * 8)
    assert hoyer(codes, variant="raw").value > 0.6
    score = hoyer(codes)
    assert score.value == pytest.approx(score.chance, abs=0.01)


def test_constant_latents_and_empty_samples_are_left_out_and_said_so() -> None:
    codes = np.array([[1.0, 0.0, 5.0], [0.0, 2.0, 5.0], [-1.0, 0.0, 5.0], [0.0, 0.0, 5.0]])
    score = hoyer(codes)
    assert score.value == pytest.approx(1)
    assert score.details["n_latents"] == 2
    assert score.notes == (
        "Constant latents are left out: 1.",
        "Samples whose codes are all 0 are left out: 1.",
    )


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="at least 2 latents that vary, got 1 of 2"):
        hoyer(np.array([[1.0, 3.0], [2.0, 3.0]]))
    with pytest.raises(InputError, match="codes must not all be 0"):
        hoyer(np.zeros((4, 2)), variant="raw")
