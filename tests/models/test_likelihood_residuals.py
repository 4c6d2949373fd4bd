"""Residuals against the likelihood: models whose data follow it, and models whose data do not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import polariscope as ps
from polariscope.analysis.likelihood_fit import LikelihoodFit, distance_from_uniform
from polariscope.cli import main
from polariscope.models.likelihood_residuals import likelihood_fit
from polariscope.models.likelihoods import Residuals
from polariscope.models.likelihoods.bernoulli import BernoulliDistribution, BernoulliLikelihood
from polariscope.models.likelihoods.gaussian import GaussianDistribution, GaussianLikelihood
from polariscope.models.likelihoods.negative_binomial import (
    NegativeBinomialDistribution,
    NegativeBinomialLikelihood,
)
from polariscope.models.likelihoods.poisson import PoissonDistribution, PoissonLikelihood

MEAN = torch.tensor([[0.2, 3.0, 40.0], [1.0, 0.7, 8.0]], dtype=torch.float64)
ONE = torch.ones((), dtype=torch.float64)
LOG_THETA = torch.tensor([0.5, 2.0, 30.0], dtype=torch.float64).log()


def distributions() -> dict[str, tuple[Any, Any]]:
    """A distribution of each likelihood, and the same by SciPy."""
    theta = np.exp(LOG_THETA.numpy())
    mean = MEAN.numpy()
    return {
        "gaussian": (
            GaussianDistribution(MEAN, torch.tensor(math.log(0.3)).double()),
            stats.norm(mean, 0.3**0.5),
        ),
        "poisson": (PoissonDistribution(MEAN.log(), ONE, has_sizes=False), stats.poisson(mean)),
        "negative-binomial": (
            NegativeBinomialDistribution(MEAN.log(), ONE, has_sizes=False, log_dispersion=LOG_THETA),
            stats.nbinom(theta, theta / (theta + mean)),
        ),
        "bernoulli": (BernoulliDistribution(MEAN.neg()), stats.bernoulli(1 / (1 + np.exp(mean)))),
    }


@pytest.mark.parametrize("name", ["gaussian", "poisson", "negative-binomial", "bernoulli"])
def test_variance_and_distribution_function_are_those_of_scipy(name: str):
    p, expected = distributions()[name]
    np.testing.assert_allclose(
        p.variance.expand_as(MEAN), np.broadcast_to(expected.var(), MEAN.shape), rtol=1e-6
    )
    x = torch.tensor([[0.0, 2.0, 37.0], [4.0, 0.0, 9.0]], dtype=torch.float64)
    for noise in (0.0, 0.25, 1.0):
        found = p.transform(x, torch.full_like(x, noise))
        if name == "bernoulli":
            assert found is None
            continue
        below = expected.cdf(x - 1) if name != "gaussian" else expected.cdf(x)
        np.testing.assert_allclose(found, below + noise * (expected.cdf(x) - below), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "poisson", "negative-binomial", "bernoulli"])
def test_some_columns_have_the_density_of_those_columns(name: str):
    p, _ = distributions()[name]
    columns = torch.tensor([0, 2])
    part, rest = p.at(columns), p.at(torch.tensor([1]))
    x = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    both = part.log_density(x[:, columns]) + rest.log_density(x[:, [1]])
    np.testing.assert_allclose(both, p.log_density(x))
    np.testing.assert_allclose(part.mean, p.mean[:, columns])


def test_draws_of_counts_are_uniform_under_the_transform():
    generator = torch.Generator().manual_seed(0)
    for name in ("poisson", "negative-binomial"):
        p, _ = distributions()[name]
        wide = p.at(torch.arange(3).repeat(4000))
        noise = torch.rand(wide.mean.shape, generator=generator, dtype=torch.float64)
        assert distance_from_uniform(wide.transform(wide.sample(generator), noise).numpy()) < 0.02


def test_a_rival_has_the_parameter_of_the_residuals():
    rng = np.random.default_rng(0)
    mean = np.full((4000, 3), 5.0)
    counts = rng.poisson(rng.gamma(2.0, mean / 2))
    residuals = Residuals.of(counts.astype(float), mean)
    fitted = NegativeBinomialLikelihood.fitted_to(torch.from_numpy(mean), residuals)
    assert fitted is not None
    assert fitted[0] == pytest.approx(2.0, rel=0.1)
    poisson = Residuals.of(mean, mean)  # no residuals at all: as Poisson as it gets
    nearly = NegativeBinomialLikelihood.fitted_to(torch.from_numpy(mean), poisson)
    exact = PoissonLikelihood.fitted_to(torch.from_numpy(mean), poisson)
    assert nearly is not None
    assert exact is not None
    x = torch.from_numpy(counts.astype(float))
    np.testing.assert_allclose(nearly[1].log_density(x), exact[1].log_density(x), rtol=1e-4)
    noise = GaussianLikelihood.fitted_to(torch.from_numpy(mean), residuals)
    assert noise is not None
    assert noise[0] == pytest.approx(((counts - mean) ** 2).mean())
    binary = BernoulliLikelihood.fitted_to(torch.tensor([[-0.5, 0.5, 2.0]]), residuals)
    assert binary is not None
    np.testing.assert_allclose(binary[1].mean, [[0.01, 0.5, 0.99]], rtol=1e-5)
    assert (
        GaussianLikelihood.fitted_to(torch.ones(2, 1), Residuals.of(np.ones((2, 1)), np.ones((2, 1)))) is None
    )


def table(kind: str, seed: int = 1) -> np.ndarray:
    """Six hundred rows with two latents, of counts that vary by chance or more, of measurements, or of 0 and 1."""
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=(600, 2)) @ rng.normal(size=(2, 16)) * 0.6
    rates = np.exp(0.5 * signal) * rng.gamma(2.0, 2.0, size=16)
    return {
        "poisson": rng.poisson(rates),
        "negative-binomial": rng.poisson(rng.gamma(1.5, rates / 1.5)),
        "gaussian": signal + 0.4 * rng.normal(size=signal.shape),
        "binary": (rng.random(signal.shape) < 1 / (1 + np.exp(-2 * signal))).astype(float),
    }[kind]


CASES: list[tuple[str, dict[str, Any], str]] = [
    ("poisson", {"likelihood": "poisson"}, ""),
    ("negative-binomial", {"likelihood": "poisson"}, "overdispersed"),
    ("negative-binomial", {"likelihood": "negative-binomial"}, ""),
    ("negative-binomial", {"likelihood": "gaussian"}, "other-values"),
    ("gaussian", {}, ""),
    ("gaussian", {"variance": 4.0}, "other-variance"),
    ("gaussian", {"variance": 0.005}, "other-variance"),
    ("binary", {}, ""),
    ("binary", {"likelihood": "gaussian"}, "other-values"),
]


@pytest.mark.parametrize(("truth", "options", "misfit"), CASES)
def test_simulated_data_whose_likelihood_is_known(
    tmp_path: Path, truth: str, options: dict[str, Any], misfit: str
):
    rows = table(truth)
    run = tmp_path / "run"
    training: dict[str, Any] = {"steps": 600, "learning_rate": 3e-3, "train_fraction": 0.7, "threads": 1}
    ps.train(rows, n_latents=3, net="linear", out=run, **training, **options)
    regime = ps.open_run(run, rows).regime()
    fit = regime.fit
    assert fit.misfit == misfit, fit
    assert (fit.source, fit.n_samples) == ("held-out", 180)
    assert [note.code for note in regime.notes if note.code.startswith("likelihood-")] == (
        [f"likelihood-{misfit}"] if misfit else []
    )


def test_the_note_is_printed_once_by_train_and_by_diagnose_and_is_on_the_page(tmp_path: Path, capsys):
    file, run = tmp_path / "counts.npy", tmp_path / "run"
    np.save(file, table("negative-binomial"))
    call = [
        "train",
        str(file),
        "--likelihood",
        "gaussian",
        "--latents",
        "3",
        "--steps",
        "400",
        "--net",
        "linear",
    ]
    assert main([*call, "--learning-rate", "3e-3", "--threads", "1", "--out", str(run)]) == 0
    note = "The values are counts, and the likelihood negative-binomial fits them better than gaussian"
    assert " ".join(capsys.readouterr().out.split()).count(note) == 1
    assert main(["diagnose", str(run)]) == 0
    assert " ".join(capsys.readouterr().out.split()).count(note) == 1
    assert main(["diagnose", str(run), "--details"]) == 0
    assert "Likelihood gaussian: dispersion" in " ".join(capsys.readouterr().out.split())
    page = tmp_path / "page.html"
    ps.report(run, out=page)
    text = page.read_text(encoding="utf-8")
    assert note in text
    assert "distance from calibration" in text


def test_a_fit_is_cached_and_says_so_if_nothing_was_held_out(tmp_path: Path):
    rows = table("gaussian")
    ps.train(rows, n_latents=2, steps=20, train_fraction=1.0, out=tmp_path / "run")
    run = ps.open_run(tmp_path / "run", rows)
    first = run.representation().fit
    assert first.source == "training"
    assert any(artefact.kind == "likelihood-fit" for artefact in run.artefacts())
    assert run.representation().fit == first


def test_models_without_a_decoder_and_few_observations_are_not_checked():
    data = ps.from_arrays(table("gaussian"))
    model = ps.train(data, n_latents=2, steps=5)
    assert likelihood_fit(model, data, np.arange(10)) == LikelihoodFit()
    wrapped = ps.wrap(lambda x: (x[:, :2], x[:, :2]))
    assert ps.encode(wrapped, data).fit == LikelihoodFit()
    assert ps.encode(model, data).fit.source == "given"


def test_of_wide_observations_some_columns_are_looked_at(monkeypatch: pytest.MonkeyPatch):
    data = ps.from_arrays(table("gaussian"))
    model = ps.train(data, n_latents=2, steps=5)
    from polariscope.models import likelihood_residuals as module

    monkeypatch.setattr(module, "MAX_VALUES", 600)
    some = ps.encode(model, data).fit
    assert some.n_samples == 600
    assert some == ps.encode(model, data).fit, "the same columns every time"
