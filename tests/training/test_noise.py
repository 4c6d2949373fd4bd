"""One policy for units and for the decoder's variance, wherever a model is trained."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polariscope as ps
from long_training import unchecked
from polariscope.analysis.theory import linear_vae
from polariscope.core.errors import InputError
from polariscope.data.chain import in_default_units
from polariscope.data.rendered.gaussian import GaussianDataset
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.training.plan import plan

TABLE = np.random.default_rng(0).normal(5, 2, size=(200, 4))
CENTRED = "table centred and divided by"


def likelihood_of(*arguments: Any, **options: Any) -> GaussianLikelihood:
    made = plan(*arguments, **options).blueprint.likelihood
    assert isinstance(made, GaussianLikelihood)
    return made


def variants_of(*arguments: Any, **options: Any) -> list[str]:
    return [each["name"] for each in plan(*arguments, **options).data.describe().get("variants", [])]


def test_a_table_gets_a_learned_variance_in_units_of_its_own() -> None:
    assert likelihood_of(TABLE) == GaussianLikelihood(0.1, "shared", 1e-4)
    assert likelihood_of(TABLE, likelihood="gaussian") == GaussianLikelihood(0.1, "shared", 1e-4)
    assert likelihood_of(1000 * TABLE) == GaussianLikelihood(0.1, "shared", 1e-4)
    assert variants_of(TABLE) == ["centred"]
    kept = likelihood_of(TABLE, keep_units=True)
    assert kept.variance == pytest.approx(0.1 * TABLE.var(axis=0).mean(), rel=5e-3)  # three digits


@pytest.mark.parametrize("given", [{"variance": 0.3}, {"likelihood": {"name": "gaussian", "variance": 0.3}}])
def test_a_variance_alone_fixes_it(given: dict[str, Any]) -> None:
    assert likelihood_of(TABLE, **given) == GaussianLikelihood(0.3)


def test_an_object_and_objectives_without_a_rate_keep_what_they_bring() -> None:
    assert likelihood_of(TABLE, likelihood=GaussianLikelihood()) == GaussianLikelihood()
    for objective in ("ae", "wae"):
        assert likelihood_of(TABLE, objective=objective) == GaussianLikelihood()


def test_data_in_the_unit_interval_stay_as_they_are() -> None:
    data = ps.from_arrays(np.random.default_rng(0).random((50, 3)), unit_interval=True)
    assert variants_of(data) == []
    assert likelihood_of(data, likelihood="gaussian") == GaussianLikelihood()


def test_runs_that_differ_in_their_seed_alone_have_the_same_likelihood() -> None:
    data = GaussianDataset(eigenvalues=(3.0, 1.0), n_samples=300, exact=False)
    assert likelihood_of(data, seed=0, keep_units=True) == likelihood_of(data, seed=1, keep_units=True)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"standardise": True}, ["standardised"]),
        ({"scale": True}, ["scaled"]),
        ({"variants": "centred"}, ["centred"]),
        ({"variants": ["standardised", "subset:n=50"]}, ["standardised", "subset"]),
        ({"variants": "subset:n=50"}, ["subset", "centred"]),
        ({"keep_units": True}, []),
    ],
)
def test_units_are_changed_once_and_not_where_it_was_said(
    options: dict[str, Any], expected: list[str]
) -> None:
    assert variants_of(TABLE, **options) == expected


def test_a_likelihood_of_counts_sees_counts() -> None:
    counts = np.random.default_rng(0).poisson(5, size=(60, 4))
    for likelihood in ("negative-binomial", "poisson"):
        job = plan(counts, likelihood=likelihood)
        assert job.data.is_counts
        np.testing.assert_array_equal(job.data.values([0, 1]), counts[:2])
    said = plan(counts).chosen
    assert any(words.startswith(CENTRED) for words in said)
    assert any("for counts pass likelihood='negative-binomial'" in words for words in said)


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(
        InputError, match="keep_units and standardise contradict each other; pass one of them"
    ):
        plan(TABLE, keep_units=True, standardise=True)
    with pytest.raises(InputError, match="keep_units must be True or False, got 'yes'"):
        in_default_units(ps.from_arrays(TABLE), keep_units="yes")


def test_a_run_records_units_and_noise_and_a_run_from_before_means_what_it_meant(tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_latents": 2, "steps": 20, "log_every": 10}
    model = ps.train(TABLE, out=tmp_path / "new", **options)
    run = ps.open_run(tmp_path / "new", TABLE)
    noise = run.noise()
    assert noise is not None
    assert noise.gamma == pytest.approx(model.gamma, rel=1e-6)
    assert (noise.learned, noise.feature_variance, noise.floor) == (True, 1.0, 1e-4)
    np.testing.assert_allclose(run.data().values(np.arange(200)).mean(axis=0), 0, atol=1e-6)
    # As it was planned before: no variant, a fixed variance, and no word of a floor in its settings.
    before = {"keep_units": True, "variance": 1.0, **options}
    ps.train(TABLE, out=tmp_path / "old", **before)
    settings = ps.open_run(tmp_path / "old", TABLE).settings
    assert settings["model"]["likelihood"] == {"name": "gaussian", "variance": 1.0, "learned": "no"}
    assert "variants" not in settings["data"]
    np.testing.assert_array_equal(
        ps.open_run(tmp_path / "old", TABLE).data().values([3])[0], TABLE[3].astype(np.float32)
    )
    with pytest.raises(InputError, match="was trained with other settings"):
        ps.train(TABLE, out=tmp_path / "old", **{**options, "steps": 30})
    assert ps.train(TABLE, out=tmp_path / "old", **{**before, "steps": 30}).step == 30


def test_a_learned_variance_without_a_floor_still_loads(tmp_path: Path) -> None:
    old = GaussianLikelihood(0.1, "shared")
    ps.train(TABLE, likelihood=old, n_latents=2, steps=5, out=tmp_path / "run")
    model = ps.load_model(tmp_path / "run")
    assert model.blueprint.likelihood == old
    assert model.gamma == pytest.approx(0.1, rel=0.01)  # it moves like any weight


@pytest.mark.parametrize("noise", [0.1, 0.001])
@unchecked()
def test_with_linear_nets_gamma_and_the_posterior_variances_arrive_at_the_closed_form(noise: float) -> None:
    # Log-variances of linear nets move by a learning rate a step, so it has to be high. What is left is the noise of
    # batches of 250 in the last steps, and of the rotation towards the principal directions, the slowest part: it
    # moves variance from one latent to the other, and their product hardly.
    values = np.array([4.0, 2.0, 1.0, 5 * noise, *[noise] * 4])
    data = GaussianDataset(eigenvalues=tuple(values), n_samples=1000)
    model = ps.train(
        data, net="linear", n_latents=3, steps=3000, learning_rate=0.03, schedule="cosine", batch_size=250,
        train_fraction=1.0,
    )  # fmt: skip
    exact = linear_vae(values / values.mean(), 3, gamma=None)
    assert model.gamma == pytest.approx(exact.gamma, rel=0.1)
    found = np.sort(ps.encode(model, data, n_samples=None).variance.mean(axis=0))
    assert np.log(found).mean() == pytest.approx(np.log(exact.variances).mean(), abs=0.1)


@unchecked()
def test_nets_of_the_usual_kind_bring_gamma_to_their_own_square_error_in_two_thousand_steps() -> None:
    data = GaussianDataset(eigenvalues=(4.0, 2.0, 0.02, 0.02, 0.02, 0.02), n_samples=1000)
    model = ps.train(data, n_latents=2, steps=2000, learning_rate=1e-3, train_fraction=1.0)
    assert model.gamma is not None
    assert 0.02 / data_mean() * 0.5 < model.gamma < 0.02 / data_mean() * 2.5  # from 0.1, a seventh of the way


def data_mean() -> float:
    return (4.0 + 2.0 + 4 * 0.02) / 6


def test_plans_are_plain() -> None:
    record = plan(TABLE, keep_units=True).describe("cpu")
    for name in ("variance", "floor"):
        number = record["model"]["likelihood"][name]
        assert number == float(f"{number:.3g}")
    assert dataclasses.asdict(likelihood_of(TABLE))["learned"] == "shared"


def test_what_a_report_says_repeats_a_run_also_one_from_before(tmp_path: Path) -> None:
    from polariscope.pages.calls import repeat_call

    options: dict[str, Any] = {"n_latents": 2, "steps": 2}
    old = GaussianLikelihood(0.1, "shared")
    for name, given in {"usual": {}, "old": {"likelihood": old, "keep_units": True}}.items():
        ps.train(TABLE, out=tmp_path / name, **options, **given)
        settings = ps.open_run(tmp_path / name, TABLE).settings
        names: dict[str, Any] = {"X": TABLE}
        exec(repeat_call(settings, str(tmp_path / f"{name}-again")), names)
        assert ps.open_run(tmp_path / f"{name}-again", TABLE).settings["hash"] == settings["hash"]


def test_data_with_variants_of_their_own_are_put_into_the_units_of_a_model_too(tmp_path: Path) -> None:
    data = ps.apply_variants(TABLE, "subset:n=50,seed=1")
    model = ps.train(data, n_latents=2, steps=2, out=tmp_path / "run")
    wanted = ps.encode(model, plan(data).data, n_samples=None).mean
    np.testing.assert_array_equal(ps.encode(model, data, n_samples=None).mean, wanted)
    np.testing.assert_array_equal(ps.open_run(tmp_path / "run", data).representation(None).mean, wanted)
