"""Averaged information between latents: known values, chance, dilution."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.metrics.known import grid, noise
from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics.mi import mi
from polariscope.core.errors import InputError
from polariscope.numerics.information import mutual_information_table
from polariscope.numerics.intervals import recentred_interval


def test_independent_columns_score_zero_and_copies_their_entropy() -> None:
    codes = grid(3, 4, repeats=2).astype(float)
    assert mi(codes).value == pytest.approx(0, abs=1e-12)
    assert mi(codes[:, [1, 1]], variant="averaged").value == pytest.approx(math.log(4))


def test_passive_latents_dilute_it_by_the_stated_factor() -> None:
    # Thm 6.4.2: the sum of informations stays, the number of ordered pairs grows from 2 to 4² − 4.
    copies = grid(4, 3, 3).astype(float)[:, [0, 0, 1, 2]]
    score = mi(copies, variant="averaged")
    assert score.value == pytest.approx(2 * math.log(4) / 12)
    assert score.per_latent == pytest.approx([math.log(4) / 3, math.log(4) / 3, 0, 0], abs=1e-12)


def test_noise_scores_the_bias_of_the_plug_in_estimate() -> None:
    score = mi(np.random.default_rng(0).uniform(size=(10_000, 5)), variant="averaged")
    # (bins − 1)²/2n with χ² spread √(2 · 361)/2n for each of 10 pairs.
    expected, error = 361 / 20_000, math.sqrt(2 * 361) / 20_000 / math.sqrt(10)
    assert abs(score.value - expected) < 5 * error
    assert abs(score.chance - expected) < 5 * error  # type: ignore[operator]
    low, high = score.interval  # type: ignore[misc]
    assert low < score.value < high


def test_the_interval_is_that_of_resampled_rows_and_chance_that_of_columns_shuffled_apart() -> None:
    x = noise(200, 1)
    codes = np.hstack([x, x + 0.3 * noise(200, 1, 1), noise(200, 1, 2)])
    table, score = Table(codes), mi(codes, n_bins=4, variant="averaged")
    bins = table.discretised(4)

    def averaged(rows: np.ndarray) -> float:
        return float(mutual_information_table(bins[rows])[np.triu_indices(3, 1)].mean())

    assert score.value == pytest.approx(averaged(np.arange(200)))
    replicates = np.array([averaged(np.repeat(np.arange(200), times)) for times in table.resamples])
    assert score.interval == pytest.approx(recentred_interval(score.value, replicates, (0, np.inf)))
    # Of independent columns 2nI is χ² with 9 degrees of freedom: 30 pairs of its mean.
    assert score.chance == pytest.approx(9 / 400, abs=5 * math.sqrt(18) / 400 / math.sqrt(30))


def test_constants_know_nothing() -> None:
    assert mi(np.ones((10, 3))).value == 0


def test_one_latent_or_one_bin_is_refused() -> None:
    with pytest.raises(InputError, match="at least 2 latents, got 1"):
        mi(noise(10, 1))
    with pytest.raises(InputError, match="n_bins must lie between 2 and 1,000, got 1"):
        mi(noise(10, 2), n_bins=1)


@pytest.mark.parametrize("n_samples", [178, 2000, 10_000])
def test_independent_normals_share_nothing_once_chance_is_subtracted(n_samples: int) -> None:
    """The plug-in value of 178 samples is 0.65 nats. Its spread over ten pairs is about 0.02 of it."""
    codes = noise(n_samples, 5)
    score = mi(codes)
    raw, level = score.details["averaged"], score.details["chance_of_averaged"]
    assert score.value == pytest.approx(max(0, raw - level))
    assert score.value < 0.05 * raw
    assert score.chance == 0
    if n_samples == 178:
        assert raw == pytest.approx(0.65, abs=0.05)


def test_the_correction_vanishes_with_many_samples_of_dependent_latents() -> None:
    """I = −½ log(1 − ρ²) of two normals, of which 20 bins over the range of 50,000 samples lose about 6 %."""
    x = noise(50_000, 1)
    codes = np.hstack([x, 0.8 * x + 0.6 * noise(50_000, 1, 1)])
    corrected, plug_in = mi(codes).value, mi(codes, variant="averaged").value
    assert plug_in - corrected < 361 / 100_000
    assert corrected == pytest.approx(-0.5 * math.log(1 - 0.64), rel=0.08)


def test_the_order_of_latents_changes_nothing() -> None:
    codes = noise(178, 4)
    assert mi(codes).value == pytest.approx(mi(codes[:, ::-1]).value, abs=1e-12)
