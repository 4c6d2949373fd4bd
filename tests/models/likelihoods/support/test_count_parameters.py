"""Counts, from training to the report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.estimators.evidence import log_evidence
from polariscope.models.inference import encode_batches, inference_mode
from polariscope.training.plan import plan

N_TYPES, N_FEATURES = 2, 6


def cells(n_samples: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Counts of two kinds of samples, whose totals differ a hundredfold and say nothing about the kind."""
    random = np.random.default_rng(0)
    kinds = random.integers(N_TYPES, size=n_samples)
    proportions = np.array([[8, 4, 2, 1, 1, 1], [1, 1, 1, 2, 4, 8]])[kinds] / 17
    totals = np.exp(random.uniform(np.log(50), np.log(5000), size=n_samples))
    return random.poisson(totals[:, None] * proportions), kinds


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    counts, kinds = cells()
    out = tmp_path_factory.mktemp("counts")
    np.savez(out / "counts.npz", X=counts, factors=kinds)
    data = ps.load_dataset("arrays", path=str(out / "counts.npz"))
    options = {"likelihood": "negative-binomial", "steps": 400, "learning_rate": 1e-2, "n_latents": 2}
    ps.train(data, **options, out=out / "run")
    return out / "run"


def test_latents_tell_proportions_and_not_how_much_was_counted(run: Path) -> None:
    opened = ps.open_run(run)
    data, model = opened.data(), opened.model()
    rows = np.arange(len(data))
    with inference_mode(model):
        (seen,) = encode_batches(model, data, rows)
        made = model.decode(seen.posterior.mean).like(seen.x).mean.numpy()
    x = data.values(rows)
    np.testing.assert_allclose(made.sum(1), x.sum(1), rtol=1e-4)
    kinds = data.factors(rows)[:, 0]
    for kind, expected in enumerate(np.array([[8, 4, 2, 1, 1, 1], [1, 1, 1, 2, 4, 8]]) / 17):
        share = (made / made.sum(1, keepdims=True))[kinds == kind].mean(0)
        np.testing.assert_allclose(share, expected, atol=0.03)
    assert float(model.decoder.head.usual_total) == pytest.approx(np.median(x.sum(1)))


def test_a_run_on_counts_is_encoded_diagnosed_scored_and_reported(run: Path) -> None:
    opened = ps.open_run(run)
    assert opened.regime().counts["passive"] < 2
    assert opened.scores("mig").scores
    assert ps.report(run).exists()
    assert "negative-binomial" in (run / "settings.json").read_text()
    assert np.isfinite(opened.geometry(n_points=20, n_observations=20).split.total)


def test_the_evidence_is_a_log_probability(run: Path) -> None:
    opened = ps.open_run(run)
    x = torch.from_numpy(opened.data().values(np.arange(20)))
    found = log_evidence(opened.model(), x, 50, seed=0)
    assert (found < 0).all()
    assert torch.isfinite(found).all()
    with pytest.raises(InputError, match=r"observations must be counts.*got"):
        log_evidence(opened.model(), x + 0.5, 50, seed=0)


@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial"])
@pytest.mark.parametrize(
    ("values", "got"),
    [
        (np.array([[1, 2], [3, -1], [0, 0]]), "got -1"),
        (np.array([[1, 2], [3, 0.25], [0, 0]]), "got 0.25"),
    ],
)
def test_what_is_no_count_is_refused_before_training(likelihood: str, values: np.ndarray, got: str) -> None:
    with pytest.raises(
        InputError, match=f"values of arrays must be counts, whole numbers from 0.*{got}; pass raw"
    ):
        plan(values, likelihood=likelihood)


def test_images_are_no_counts_and_floats_may_be() -> None:
    with pytest.raises(InputError, match="must be counts"):
        plan(np.full((5, 8, 8), 100, np.uint8), likelihood="poisson")
    plan(np.array([[1.0, 2.0], [3.0, 0.0], [5.0, 5.0]]), likelihood="poisson")


def test_other_data_than_counts_are_not_encoded(run: Path) -> None:
    with pytest.raises(InputError, match=r"values must be counts.*got -1"):
        ps.encode(ps.load_model(run), -np.ones((4, N_FEATURES)))


def test_whole_numbers_that_are_too_few_to_tell_keep_their_gaussian_and_are_told_of_counts() -> None:
    counts, _ = cells(50)
    said = "likelihood gaussian (whole numbers, but "
    for few in (counts, counts.astype(float)):
        assert any(words.startswith(said) and "for counts pass" in words for words in plan(few).chosen)
    assert not any("counts" in words for words in plan(counts - 10_000).chosen)
    asked = plan(counts, likelihood="negative-binomial").chosen
    assert "dispersion learned, one for each feature (initially 1)" in asked


def test_the_estimator_keeps_counts_as_they_are() -> None:
    counts, _ = cells(200)
    vae = ps.VAE(n_latents=2, likelihood="negative-binomial", steps=200, random_state=0).fit(counts)
    assert vae.units_.scale is None
    codes = vae.transform(counts)
    assert codes.shape[0] == 200
    assert (vae.score_samples(counts) < 0).all()
    assert vae.inverse_transform(codes).min() >= 0
    assert set(np.unique(vae.sample(50) % 1)) == {0.0}
    with pytest.raises(InputError, match="X must be counts"):
        vae.transform(counts + 0.5)
    with pytest.raises(InputError, match="standardise must be False for counts"):
        ps.VAE(likelihood="poisson", standardise=True, steps=1).fit(counts)
