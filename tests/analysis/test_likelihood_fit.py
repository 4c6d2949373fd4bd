"""Dispersion, calibration and the decision about a likelihood, from numbers whose answer is known."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

from polariscope.analysis.likelihood_fit import (
    LikelihoodFit,
    Rival,
    dispersion_of,
    distance_from_uniform,
    reliability_gap,
)
from polariscope.analysis.regime.note import ABOUT_LIKELIHOOD, Note

rng = np.random.default_rng(0)


def test_the_dispersion_is_the_ratio_of_the_variances_and_its_error_covers_it():
    for ratio in (0.5, 1.0, 3.0):
        variance = rng.gamma(2.0, 1.0, size=(800, 20))
        square = ratio * variance * rng.normal(size=variance.shape) ** 2
        dispersion, error = dispersion_of(square, variance)
        assert abs(dispersion - ratio) < 4 * error
        assert error < 0.1 * ratio
    assert dispersion_of(np.zeros((5, 2)), np.zeros((5, 2))) == (1.0, 0.0), "nothing varies"


def test_the_distance_is_that_of_kolmogorov_and_smirnov():
    for values in (rng.random((40, 5)), rng.beta(2, 1, size=(300, 2))):
        expected = stats.kstest(values.reshape(-1), "uniform").statistic
        assert distance_from_uniform(values) == pytest.approx(expected)


def test_the_gap_of_probabilities_is_0_if_they_are_right_and_their_error_if_not():
    probability = rng.uniform(0.1, 0.6, size=(4000, 10))
    x = (rng.random(probability.shape) < probability).astype(float)
    assert reliability_gap(x, probability) < 0.01
    assert reliability_gap(x, probability + 0.3) == pytest.approx(0.3, abs=0.01)


def fit(rival: Rival | None, **numbers: Any) -> LikelihoodFit:
    return LikelihoodFit(
        **{"likelihood": "poisson", "n_samples": 100, "error": 0.05, **numbers, "rival": rival}
    )


@pytest.mark.parametrize(
    ("likelihood", "rival", "reason", "gain", "dispersion", "misfit"),
    [
        ("poisson", "negative-binomial", "dispersion", 3.0, 2.0, "overdispersed"),
        ("poisson", "negative-binomial", "dispersion", 3.0, 1.25, ""),
        ("poisson", "negative-binomial", "dispersion", 0.1, 2.0, ""),
        ("gaussian", "gaussian", "dispersion", 3.0, 0.3, "other-variance"),
        ("gaussian", "gaussian", "dispersion", 3.0, 4.0, "other-variance"),
        ("gaussian", "gaussian", "dispersion", 3.0, 1.4, ""),
        ("gaussian", "negative-binomial", "counts", 3.0, 1.0, "other-values"),
        ("gaussian", "negative-binomial", "counts", -3.0, 1.0, ""),
        ("gaussian", "bernoulli", "binary", 3.0, 1.0, "other-values"),
    ],
)
def test_a_misfit_is_clear_and_has_a_better_likelihood(
    likelihood: str, rival: str, reason: Any, gain: float, dispersion: float, misfit: str
):
    other = Rival(rival, reason, 2.0, gain, 0.1)
    found = fit(other, likelihood=likelihood, dispersion=dispersion)
    assert found.misfit == misfit
    assert LikelihoodFit.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    if misfit:
        note = Note(f"likelihood-{misfit}", **found.as_facts())
        assert note.code in ABOUT_LIKELIHOOD
        assert rival in note or "variance 2" in note
        assert Note.from_dict(json.loads(json.dumps(note.to_dict()))) == note


def test_without_a_rival_there_is_no_note_and_without_samples_no_words():
    assert fit(None, dispersion=9.0).misfit == ""
    assert LikelihoodFit().in_words == ""
    assert "dispersion 1.00 ± 0.05 (1 if it fits)" in fit(None).in_words
    assert "training observations, because none are held out" in fit(None, source="training").in_words
