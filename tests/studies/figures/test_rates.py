"""Reconstruction and rate: over strengths, against a metric, and in the plane with its bounds."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.numerics.intervals import t_interval
from polariscope.studies.figures.metric_by_reconstruction import MetricByReconstruction
from polariscope.studies.figures.rate_by_strength import RateByStrength
from polariscope.studies.figures.rate_distortion import RateDistortion
from polariscope.testing.study_tables import by_beta


def cells(beta: float, seed: int) -> dict[str, float]:
    """Linear β-VAE of one latent with λ = 8 and σ² = 1: rate ½ log(λ/β); distortion grows with β."""
    rate = 0.5 * float(np.log(8 / beta))
    return {
        "loss.rate": rate + seed / 10,
        "loss.reconstruction": 10 - rate + (beta - 1) / 10,
        "validation.reconstruction": 50.0,
        "validation.rate": 5.0,
        "mig": (seed + beta) / 20,
    }


def test_rate_and_reconstruction_are_averaged_at_each_strength() -> None:
    rows = {(row["term"], row["strength"]): row for row in RateByStrength().numbers(by_beta(cells))}
    assert rows["loss.rate", 4.0]["mean"] == pytest.approx(0.5 * np.log(2) + 0.1)
    assert rows["loss.reconstruction", 4.0]["sd"] == pytest.approx(0)
    validated = RateByStrength(part="validation").numbers(by_beta(cells))
    assert {row["mean"] for row in validated} == {50, 5}


def test_a_metric_against_reconstruction_has_an_interval_in_both_directions() -> None:
    rows = [row for row in MetricByReconstruction().numbers(by_beta(cells)) if row["run"] is None]
    assert [row["strength"] for row in rows] == [1.0, 4.0]
    assert rows[1]["metric.mean"] == pytest.approx(0.25)
    assert (rows[1]["metric.low"], rows[1]["metric.high"]) == pytest.approx(
        t_interval(np.array([0.2, 0.25, 0.3]))
    )
    assert rows[1]["reconstruction.low"] == pytest.approx(rows[1]["reconstruction.mean"])
    assert len(MetricByReconstruction().numbers(by_beta(cells))) == 6 + 2  # runs and means


def test_the_bound_is_the_smallest_sum_and_the_frontier_has_what_nothing_beats() -> None:
    rows = RateDistortion().numbers(by_beta(cells))
    assert rows[0]["entropy_at_most"] == pytest.approx(10)  # β = 1, seed 0: R + D = 10
    assert [row["on_frontier"] for row in rows] == [True, False, False, True, False, False]
    assert all(row["rate"] + row["distortion"] >= row["entropy_at_most"] for row in rows)


def test_an_entropy_that_a_model_contradicts_is_refused() -> None:
    assert RateDistortion(entropy=9.5).numbers(by_beta(cells))[0]["entropy"] == 9.5
    with pytest.raises(
        InputError, match=r"entropy must be at most the smallest rate plus distortion.*10 nats"
    ):
        RateDistortion(entropy=10.5).numbers(by_beta(cells))
