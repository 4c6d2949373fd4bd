"""One rule decides if sampled codes are draws, and both diagnose and decompose use it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from polariscope.analysis.decomposition import decompose
from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.posterior import MAX_DRAW_ERRORS, not_drawn
from polariscope.analysis.representation import Representation


def codes(scale: float, n_samples: int = 1000) -> Representation:
    """Return two latents; the noise of the second is multiplied by ``scale``, after its squares average exactly 1."""
    random = np.random.default_rng(0)
    mean, noise = random.normal(size=(n_samples, 2)), random.normal(size=(n_samples, 2))
    noise /= np.sqrt((noise**2).mean(axis=0))
    variance = np.full((n_samples, 2), 0.2)
    return Representation(mean, variance, mean + np.sqrt(variance) * noise * [1, scale])


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_diagnose_and_decompose_agree_on_both_sides_of_the_tolerance(factor: float) -> None:
    """With s² times the spread, the average is s² and its standard error √(2/n), or s² times the observed one."""
    n_samples = 1000
    for sign in (-1, 1):
        # For a spread above 1 the standard error grows with it: 1 + 6 √(2/n) s² = s², for Gaussian noise.
        error = MAX_DRAW_ERRORS * np.sqrt(2 / n_samples)
        limit = 1 - error if sign < 0 else 1 / (1 - error)
        rep = codes(np.sqrt(1 + (limit - 1) * factor), n_samples)
        expected = [1] if factor > 1 else []
        assert np.flatnonzero(not_drawn(rep)).tolist() == expected
        assert [note.latents for note in diagnose(rep).notes if note.code == "not-drawn"] == (
            [tuple(expected)] if expected else []
        )
        notes = [note for note in decompose(rep).notes if "does not look like draws" in note]
        assert [("in latent 1, so the parts of the rate" in note) for note in notes] == [True] * len(expected)


def test_a_spread_that_is_wrong_in_one_of_many_latents_is_noticed() -> None:
    """Averaged over all latents it would be within any tolerance."""
    random = np.random.default_rng(0)
    mean, noise = random.normal(size=(1000, 50)), random.normal(size=(1000, 50))
    noise[:, 7] *= 1.4
    rep = Representation(mean, np.ones_like(mean), mean + noise)
    assert any("in latent 7," in note for note in decompose(rep).notes)


def test_few_samples_and_own_draws_decide_nothing() -> None:
    assert not not_drawn(codes(0.2, 99)).any()
    assert not_drawn(codes(0.2, 100)).tolist() == [False, True]
    assert not not_drawn(dataclasses.replace(codes(0.2, 100), sampled_was_drawn=True)).any()
