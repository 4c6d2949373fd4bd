"""The closed form as a method: the answers of linear theory, from the data alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine

import polariscope as ps
from polariscope.analysis.theory import linear_size
from polariscope.data.rendered.gaussian import GaussianDataset
from polariscope.sizing.methods.linear import eigenvalues_of
from polariscope.sizing.result import Size, path_table


def test_eigenvalues_are_those_of_the_covariance_with_more_features_than_samples_too() -> None:
    rows = np.random.default_rng(0).normal(size=(7, 20))
    expected = np.sort(np.linalg.eigvalsh(np.cov(rows.T, bias=True)))[::-1]
    np.testing.assert_allclose(eigenvalues_of(rows), expected, atol=1e-12)
    np.testing.assert_allclose(eigenvalues_of(rows.T).sum(), rows.T.var(axis=0).sum(), rtol=1e-12)
    assert (eigenvalues_of(rows)[6:] == 0).all()  # seven centred rows span six directions


def test_the_size_of_a_gaussian_table_is_that_of_its_eigenvalues_in_any_units() -> None:
    values = (9.0, 5.0, 2.0, 1.0, 0.3, 0.2, 0.1)
    data = GaussianDataset(eigenvalues=values, n_samples=400)
    exact = linear_size(np.array(values), n_samples=400)
    for options in ({}, {"keep_units": True}):
        found = ps.size(data, "linear", **options)
        assert found.value == exact.n_latents
        unit = 1.0 if options else np.mean(values)
        assert found.noise is not None
        assert found.noise.gamma == pytest.approx(exact.gamma / unit, rel=1e-4)
        assert found.noise.feature_variance == pytest.approx(np.mean(values) / unit, rel=1e-4)
    assert found.n_steps == 0


def test_it_says_gamma_and_that_it_is_for_linear_models() -> None:
    found = ps.size(load_wine().data, "linear", standardise=True)
    assert found.answer == "4 latents (4)"
    assert "γ = 0.381 (learned; the mean feature variance is 1)" in str(found)
    assert "The answer is for a linear VAE" in found.notes[0]
    assert [trial.gamma for trial in found.trials] == sorted((t.gamma for t in found.trials), reverse=True)
    fixed = ps.size(load_wine().data, "linear", standardise=True, decoder_variance=0.1)
    assert fixed.value == 8
    assert fixed.noise is not None
    assert not fixed.noise.learned


def test_nothing_is_said_of_training_seeds_and_steps_that_it_does_not_have() -> None:
    found = ps.size(load_wine().data, "linear", standardise=True)
    assert found.in_words == (
        "A model uses 4 latents; with 5, about one would be unused. This depends on what counts as noise (γ) "
        "and the threshold (1)."
    )
    assert "seed" not in found.meaning_of_interval
    assert str(found).startswith("4 latents (4) by linear, no training.")
    heading, *rows = path_table(found).lines
    assert heading == ("latents", "Σ E[σ²]", "decision", "γ")
    assert rows[3] == ("4", "0.912", "fits", "0.381")
    assert Size.from_dict(found.to_dict()) == found


def test_a_variance_that_is_fixed_for_the_models_is_fixed_for_it_too() -> None:
    rows = load_wine().data
    for options in ({"variance": 0.1}, {"likelihood": {"name": "gaussian", "variance": 0.1}}):
        found = ps.size(rows, "linear", standardise=True, **options)
        assert found == ps.size(rows, "linear", standardise=True, decoder_variance=0.1)
    assert ps.size(rows, "linear", standardise=True, variance=0.1, decoder_variance=1.0).noise.gamma == 1.0
    learned = ps.size(rows, "linear", standardise=True)
    # An autoencoder has no rate, so the variance of its likelihood decides nothing.
    assert ps.size(rows, "linear", standardise=True, objective="ae").value == learned.value


def test_data_without_noise_are_said_to_be_at_the_floor_and_at_their_end() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 1))
    found = ps.size(rows, "linear")
    assert found.in_words.startswith("A model uses 1 latent; larger models were not trained.")
    assert "γ is near its floor, 0.0001" in str(found)
    assert any("the maximum for 50 observations of 1 feature" in note for note in found.notes)


def test_the_cap_is_heeded_and_said() -> None:
    found = ps.size(load_wine().data, "linear", standardise=True, cap=3)
    assert found.value == 3
    assert "The closed form gives 4, and cap is 3." in found.notes
    assert "larger models were not trained" in found.in_words
    assert max(trial.n_latents for trial in found.trials) == 3
