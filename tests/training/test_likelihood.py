"""Which likelihood suits the data: the rule, its reasons, and every entry point that asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import polariscope as ps
from polariscope.cli import main
from polariscope.core.errors import Worded
from polariscope.data.chain import apply_variants
from polariscope.data.counts import ValueFacts
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.training.likelihood import LikelihoodChoice, choose_likelihood, likelihood_of
from polariscope.training.plan import choose, plan

rng = np.random.default_rng(0)
RATES = rng.gamma(2.0, 2.0, size=8)
POISSON = rng.poisson(RATES, size=(400, 8))
OVERDISPERSED = rng.poisson(rng.gamma(2.0, RATES / 2, size=(400, 8)))
BINARY = rng.integers(2, size=(200, 5))
TABLES: dict[str, tuple[Any, str, str]] = {
    "counts that vary more than chance": (OVERDISPERSED, "negative-binomial", "overdispersed"),
    "the same as floats": (OVERDISPERSED.astype(np.float32), "negative-binomial", "overdispersed"),
    "Poisson counts": (POISSON, "poisson", "counts"),
    "0 and 1": (BINARY, "bernoulli", "binary"),
    "one-hot": (np.eye(10)[rng.integers(10, size=500)], "bernoulli", "binary"),
    "digits, 0 to 16": (load_digits().data, "gaussian", "end-of-scale"),
    "ratings from 1 to 5": (rng.integers(1, 6, size=(500, 20)), "gaussian", "end-of-scale"),
    "ratings from 0 to 4": (rng.binomial(4, 0.3, size=(500, 20)), "gaussian", "end-of-scale"),
    "counts in fewer than 1,000 values": (OVERDISPERSED[:100], "gaussian", "few-values"),
    "ratings in fewer than 1,000 values": (rng.integers(1, 6, size=(40, 20)), "gaussian", "few-values"),
    "bytes": (rng.integers(256, size=(500, 20)), "gaussian", "end-of-scale"),
    "numbered rows": (np.arange(2000)[:, None], "gaussian", "identifiers"),
    "several identifiers": (
        np.stack([rng.permutation(2000) + 1000, rng.permutation(10**6)[:2000]], axis=1),
        "gaussian",
        "identifiers",
    ),
    "whole numbers with little spread": (rng.binomial(40, 0.5, size=(500, 20)), "gaussian", "underdispersed"),
    "counts and measurements": (
        np.hstack([POISSON, rng.normal(size=(400, 2)).round(2)]),
        "gaussian",
        "real",
    ),
    "negative whole numbers": (POISSON - 1, "gaussian", "real"),
    "measurements": (rng.normal(size=(400, 4)), "gaussian", "real"),
    "images of bytes": (rng.poisson(3, size=(200, 16, 16)).astype(np.uint8), "bernoulli", "unit-interval"),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_rule_on_tables_whose_nature_is_known(name: str) -> None:
    table, likelihood, reason = TABLES[name]
    choice = likelihood_of(ps.from_arrays(table))
    assert (choice.name, choice.reason) == (likelihood, reason)
    assert LikelihoodChoice.from_dict(choice.to_dict()) == choice
    assert Worded(choice.text).startswith(f"likelihood {likelihood} (")


@pytest.mark.parametrize(
    ("dispersion", "share", "likelihood"),
    [
        (0.79, 0.0, "gaussian"),
        (0.8, 0.0, "poisson"),
        (1.2, 0.0, "poisson"),
        (1.21, 0.0, "negative-binomial"),
        (3.0, 0.00099, "negative-binomial"),
        (3.0, 0.001, "gaussian"),
    ],
)
def test_the_limits_of_the_rule(dispersion: float, share: float, likelihood: str) -> None:
    facts = ValueFacts(True, largest=30.0, dispersion=dispersion, share_at_largest=share, n_values=2000)
    assert choose_likelihood(facts).name == likelihood


def test_an_image_is_never_counts() -> None:
    facts = ValueFacts(is_table=False, is_unit_interval=True, largest=30.0, dispersion=3.0)
    assert choose_likelihood(facts).name == "bernoulli"


def said_of_likelihood(*arguments: Any, **options: Any) -> str:
    """What a plan announces of the likelihood that it chose."""
    (words,) = [words for words in plan(*arguments, **options).chosen if words.startswith("likelihood")]
    return words


def test_the_units_that_a_user_asks_for_win_and_the_reason_names_the_other_likelihood() -> None:
    rescaled: list[dict[str, Any]] = [{"standardise": True}, {"variants": "centred"}]
    for options in rescaled:
        said = said_of_likelihood(OVERDISPERSED, **options)
        assert said.startswith("likelihood gaussian (the values were counts before they were rescaled")
        assert "negative-binomial" in said
    assert said_of_likelihood(OVERDISPERSED, scale=True) == "likelihood bernoulli (values lie in [0, 1])"
    assert "values were 0 and 1 before" in said_of_likelihood(BINARY, standardise=True)


def test_counts_and_binary_values_are_used_as_they_are() -> None:
    for table, likelihood in (
        (OVERDISPERSED, "negative-binomial"),
        (POISSON, "poisson"),
        (BINARY, "bernoulli"),
    ):
        job = plan(table)
        assert job.describe("cpu")["model"]["likelihood"]["name"] == likelihood
        np.testing.assert_array_equal(job.data.values([0, 3]), table[[0, 3]])
    for likelihood in ("gaussian", GaussianLikelihood()):
        job = plan(BINARY, likelihood=likelihood)
        assert not any(words.startswith("likelihood") for words in job.chosen), "the user chose it"
        assert abs(job.data.values(np.arange(200)).mean()) < 1e-6, "centred as before"


@pytest.mark.parametrize(
    "name", ["digits, 0 to 16", "counts in fewer than 1,000 values", "several identifiers"]
)
def test_a_search_announces_the_same_reason_although_its_table_is_centred(name: str) -> None:
    data = ps.from_arrays(TABLES[name][0])
    assert likelihood_of(apply_variants(data, "centred")) == likelihood_of(data)


def test_a_subset_of_counts_is_counts() -> None:
    assert likelihood_of(ps.apply_variants(OVERDISPERSED, "subset:n=300")).reason == "overdispersed"


def test_an_objective_without_a_decoder_does_not_look_at_the_values() -> None:
    data = ps.from_arrays(OVERDISPERSED)
    choice = likelihood_of(data, decodes=False)
    assert (choice.name, choice.reason) == ("gaussian", "no-decoder")
    assert "value_facts" not in vars(data)
    assert choose(data, "pcl")["likelihood"] == "gaussian"


def test_the_reason_is_announced_with_the_way_back_in_the_words_of_the_reader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "the values are counts: whole numbers with variance/mean"
    python = said_of_likelihood(OVERDISPERSED)
    assert why in python
    assert python.endswith("; for a Gaussian model pass likelihood='gaussian')")
    file, run = tmp_path / "counts.npy", tmp_path / "run"
    np.save(file, OVERDISPERSED)
    assert main(["train", str(file), "--steps", "3", "--latents", "2", "--out", str(run)]) == 0
    said = capsys.readouterr().err
    assert why in said
    assert "; for a Gaussian model pass --likelihood gaussian)" in said
    assert ps.open_run(run).settings["model"]["likelihood"]["name"] == "negative-binomial"


def test_sizing_takes_counts_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "counts.npy"
    np.save(file, 20 * OVERDISPERSED)  # beyond what a network takes, but it sees their logarithm
    size = ["size", str(file), "--steps", "400", "--cap", "4", "--net", "linear", "--threads", "1"]
    assert main(size) == 0
    assert "likelihood negative-binomial" in capsys.readouterr().err


def test_the_estimator_chooses_by_the_same_rule_and_keeps_the_reason(tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_latents": 2, "steps": 5, "variables": "all"}
    vae = ps.VAE(**options).fit(OVERDISPERSED)
    assert vae.likelihood_ == likelihood_of(ps.from_arrays(OVERDISPERSED.astype(np.float64)))
    assert vae.chosen_ == plan(OVERDISPERSED, likelihood="auto", steps=5).chosen
    np.testing.assert_array_equal(vae.units_.values(OVERDISPERSED.astype(float)), OVERDISPERSED)
    vae.save(tmp_path / "vae")
    assert ps.VAE.load(tmp_path / "vae").chosen_ == vae.chosen_
    binary = ps.VAE(**options).fit(BINARY)
    assert binary.inverse_transform(binary.transform(BINARY)).max() <= 1
    assert any(words.startswith("likelihood bernoulli (all values are 0 or 1") for words in binary.chosen_)
    standardised = ps.VAE(**options, standardise=True).fit(OVERDISPERSED)
    assert any("before they were rescaled" in words for words in standardised.chosen_)
    assert ps.VAE(**options, likelihood="gaussian").fit(OVERDISPERSED).likelihood_ is None


def test_a_run_that_was_begun_keeps_its_likelihood(tmp_path: Path) -> None:
    """Version 0.2 chose the Gaussian likelihood for counts; the same call resumes such a run."""
    options: dict[str, Any] = {"n_latents": 2, "log_every": 5, "out": tmp_path / "run"}
    ps.train(OVERDISPERSED, likelihood="gaussian", steps=10, **options)
    before = ps.open_run(tmp_path / "run", OVERDISPERSED).settings
    model = ps.train(OVERDISPERSED, steps=20, **options)
    assert model.step == 20
    after = ps.open_run(tmp_path / "run", OVERDISPERSED).settings
    assert after["model"] == before["model"]
    assert after["data"] == before["data"]
    assert any(
        "recorded with the run; for a new run it would be negative-binomial" in words
        for words in after["chosen"]
    )


def test_small_tables_of_zeros_and_ones_do_not_collapse(tmp_path: Path) -> None:
    """Two factors behind 20 binary columns; networks of 31 units stay at the plateau (docs/likelihoods.md)."""
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(500, 2)) @ rng.normal(size=(2, 20))
    X = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)
    assert plan(X).blueprint.net.encoder_widths == (128, 128)
    assert plan(X + 0.5).blueprint.net.encoder_widths == (31, 31)  # neither counts nor 0 and 1
    ps.train(X, n_latents=10, steps=1000, out=tmp_path / "run", threads=1)
    assert ps.open_run(tmp_path / "run", ps.from_arrays(X)).verdict().n_in_use >= 2


def test_a_run_with_the_net_of_an_earlier_version_is_resumed_with_it(tmp_path: Path) -> None:
    X = (np.random.default_rng(0).random((100, 6)) < 0.5).astype(float)
    narrow = {"name": "mlp", "encoder_widths": (16, 16), "decoder_widths": (16, 16), "activation": "relu"}
    ps.train(X, net=narrow, n_latents=2, steps=5, out=tmp_path, threads=1)
    assert ps.train(X, n_latents=2, steps=8, out=tmp_path, threads=1).step == 8
