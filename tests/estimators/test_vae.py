from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import polariscope as ps
from long_training import unchecked
from oracles import STANDARD_ERRORS, linear_posterior, random_rotation, set_linear
from polariscope.core.errors import InputError
from polariscope.estimators import VAE
from polariscope.estimators.vae import select_latents
from polariscope.objectives.beta import BetaObjective
from polariscope.sizing.result import Size
from polariscope.training import planner
from polariscope.training.loop import fit

QUICK: dict[str, Any] = {"n_latents": 2, "steps": 10, "variables": "all", "n_draws": 4}


def signal_and_noise(n_samples: int = 2000) -> np.ndarray:
    """Two strong directions of six in noise of variance 0.25, in odd units and away from 0."""
    draw = np.random.default_rng(0)
    W = random_rotation(6, seed=1)[:, :2] * [3.0, 2.0]
    return 10 * (draw.normal(size=(n_samples, 2)) @ W.T + 0.5 * draw.normal(size=(n_samples, 6))) + 100


def small() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(60, 4))


@pytest.fixture(scope="module")
def linear() -> VAE:
    """A linear VAE with learned noise, whose optimum is probabilistic PCA; a rate so high suits only such a model."""
    return VAE(3, net="linear", steps=500, learning_rate=0.1, batch_size=500, n_draws=16).fit(
        signal_and_noise()
    )


def test_a_linear_model_ends_as_probabilistic_pca_with_the_surplus_latent_passive(linear: VAE) -> None:
    # λ_i > γ for the two strong directions only, whose posterior variances are γ/λ_i. The third latent can at most
    # explain the largest of the noise directions, whose sample variance exceeds γ by about 2√(6/2000) = 11 %, and
    # shares even that with no other: its posterior variance stays near 1. γ and γ/λ are within the 5 % and the 0.01
    # that 500 steps leave.
    assert sorted(linear.types_) == ["active", "active", "passive"]
    assert linear.transform(signal_and_noise()).shape == (2000, 2)
    noise = np.exp(float(linear.model_.decoder.head.log_variance.detach())) * linear.units_.scale[0] ** 2
    assert noise == pytest.approx(25, rel=0.05)
    variances = sorted(latent.mean_of_variance for latent in linear.regime_.latents)[:2]
    assert variances == pytest.approx([0.25 / 9.25, 0.25 / 4.25], abs=0.01)


def test_with_the_weights_of_probabilistic_pca_its_log_density_is_that_of_scikit_learn(linear: VAE) -> None:
    # The posterior is then the true one, so that every draw weighs p(x); what is left is float32 weights.
    X = signal_and_noise()
    pca = PCA(2).fit(X)
    vae = copy.deepcopy(linear)
    scale = float(vae.units_.scale[0])
    gamma = float(pca.noise_variance_) / scale**2
    strengths = np.sqrt(pca.explained_variance_ / scale**2 - gamma)
    W = np.column_stack([pca.components_.T * strengths, np.zeros(6)])
    set_linear(vae.model_, W, *linear_posterior(W, beta=1.0, gamma=gamma))
    head = vae.model_.decoder.head
    with torch.no_grad():  # γ = floor + (start − floor) e^(10 θ)
        head.travel.copy_((torch.log(gamma - head.floor) - head.above) / 10)
    assert vae.model_.gamma == pytest.approx(gamma, rel=1e-5)
    np.testing.assert_allclose(vae.score_samples(X), pca.score_samples(X), atol=1e-3)
    assert vae.score(X) == pytest.approx(pca.score(X), abs=1e-4)
    assert linear.score(X) == pytest.approx(pca.score(X), abs=0.1)  # as it was trained


def test_its_embedding_spans_the_principal_plane_and_reconstructs_it(linear: VAE) -> None:
    X = signal_and_noise()
    Z = linear.transform(X)
    planes = PCA(2).fit(X).components_
    centred = (X - X.mean(axis=0)) @ planes.T
    residual = centred - Z @ np.linalg.lstsq(Z, centred, rcond=None)[0]
    assert residual.var() < 0.01 * centred.var()
    shrunk = linear.inverse_transform(Z) - X.mean(axis=0)
    # Posterior means shrink a direction of variance λ by 1 − γ/λ, a few per cent here.
    assert np.corrcoef(shrunk.ravel(), (centred @ planes).ravel())[0, 1] > 0.99


def test_what_it_draws_has_the_mean_and_covariance_of_the_model() -> None:
    vae = VAE(2, net="linear", steps=1, likelihood={"name": "gaussian", "variance": 0.25}, variables="all")
    X = np.random.default_rng(0).normal(size=(50, 3)) * 2 + 7
    vae.fit(X)
    W = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    set_linear(vae.model_, W, np.zeros((2, 3)), np.ones(2))
    n = 20_000
    drawn = vae.sample(n, seed=1)
    scale = vae.units_.scale[0]
    covariance = scale**2 * (W @ W.T + 0.25 * np.eye(3))
    assert drawn.shape == (n, 3)
    error = np.sqrt(np.diag(covariance) / n)
    assert (np.abs(drawn.mean(axis=0) - X.mean(axis=0)) < STANDARD_ERRORS * error).all()
    # The variance of a sample covariance of Gaussians is (Σ_ii Σ_jj + Σ_ij²)/n.
    diagonal = np.diag(covariance)
    error = np.sqrt((np.outer(diagonal, diagonal) + covariance**2) / n)
    assert (np.abs(np.cov(drawn.T) - covariance) < STANDARD_ERRORS * error).all()
    clean = vae.sample(n, seed=1, noise=False)
    assert np.linalg.matrix_rank(clean - X.mean(axis=0), tol=1e-3 * n**0.5) == 2
    np.testing.assert_array_equal(vae.sample(5, seed=3), vae.sample(5, seed=3))
    assert not np.array_equal(vae.sample(5, seed=3), vae.sample(5, seed=4))


def test_the_unit_of_a_table_changes_nothing_but_its_density() -> None:
    # Powers of two are exact in floating point, so that training sees the same bytes.
    X = small()
    here, there = VAE(**QUICK).fit(X), VAE(**QUICK).fit(X * 8)
    np.testing.assert_array_equal(there.transform(X * 8), here.transform(X))
    np.testing.assert_allclose(there.score_samples(X * 8), here.score_samples(X) - 4 * np.log(8), atol=1e-9)
    Z = here.transform(X)
    np.testing.assert_allclose(there.inverse_transform(Z), 8 * here.inverse_transform(Z))


def test_standardised_features_may_each_have_their_own_unit_and_otherwise_not() -> None:
    X, units = small(), np.array([1.0, 4.0, 0.5, 16.0])
    standardised = [VAE(**QUICK, standardise=True).fit(x).transform(x) for x in (X, X * units)]
    np.testing.assert_array_equal(*standardised)
    plain = [VAE(**QUICK).fit(x).transform(x) for x in (X, X * units)]
    assert not np.allclose(*plain)


def test_only_latents_that_say_something_are_kept_and_named_by_their_number(linear: VAE) -> None:
    X = signal_and_noise()[:100]
    alive = [index for index, name in enumerate(linear.types_) if name != "passive"]
    assert linear.kept_ == alive
    assert linear.get_feature_names_out().tolist() == [f"vae{index}" for index in alive]
    every = ps.encode(linear.model_, linear.units_.dataset(X), None).mean
    np.testing.assert_allclose(linear.transform(X), every[:, alive], atol=1e-5)


def test_what_was_dropped_is_decoded_at_the_mean_of_the_prior(linear: VAE) -> None:
    z = np.zeros((2, 3))
    z[:, linear.kept_] = [[1.0, -2.0], [0.0, 0.5]]
    with torch.no_grad():
        expected = linear.model_.decode(torch.from_numpy(z).float()).mean.numpy()
    expected = expected * linear.units_.scale + linear.units_.offset
    np.testing.assert_allclose(linear.inverse_transform([[1.0, -2.0], [0.0, 0.5]]), expected, rtol=1e-5)
    with pytest.raises(
        InputError, match="Z must have a column for each of the 2 latents that transform returns, got 3"
    ):
        linear.inverse_transform(z)


def test_where_every_latent_is_passive_the_best_of_them_is_kept_with_a_warning() -> None:
    vae = VAE(3, steps=100, options={"variance": 1000.0, "learned": "no"})
    with pytest.warns(UserWarning, match="none of the 3 latents is in use; transform returns latent"):
        vae.fit(small())
    assert vae.types_ == ["passive"] * 3
    assert vae.kept_ == [vae.regime_.order[0]]
    assert vae.transform(small()).shape == (60, 1)
    assert vae.set_params(variables="all").fit(small()).kept_ == [0, 1, 2]


@pytest.mark.parametrize(
    "form", [np.asarray, np.ndarray.tolist, lambda X: pandas.DataFrame(X, columns=["a", "b"])]
)
def test_integers_that_floats_cannot_distinguish_are_refused_before_they_are_rounded(form: Any) -> None:
    X = np.stack([np.arange(20), 2**60 + np.arange(20)], axis=1)
    with pytest.raises(InputError, match=r"(column 'b' of X|X) must contain no integers beyond 2\^53"):
        VAE(n_latents=1, steps=2).fit(form(X))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_text_are_named(library: str) -> None:
    frames = pytest.importorskip(library)
    X = frames.DataFrame({"a": [0.1, 0.2, 0.3, 0.4], "colour": ["red", "blue", "red", "blue"]})
    with pytest.raises(
        InputError, match="X has columns of text: colour; drop them, or encode them as numbers"
    ):
        VAE(**QUICK).fit(X)


def test_variables_choose_the_types_that_are_kept(linear: VAE) -> None:
    types = ("mixed", "active", "passive")
    latents = (
        dataclasses.replace(latent, type=name)
        for latent, name in zip(linear.regime_.latents, types, strict=True)
    )
    regime = dataclasses.replace(linear.regime_, latents=tuple(latents))
    kept = {
        "in-use": sorted(regime.in_use),
        "active+mixed": [0, 1],
        "active": [1],
        "mixed": [0],
        "all": [0, 1, 2],
    }
    assert {variables: select_latents(regime, variables) for variables in kept} == kept
    with pytest.raises(InputError, match="no variable type named 'activ'"):
        VAE(**{**QUICK, "variables": "activ"}).fit(small())
    with pytest.raises(InputError, match='variables must be "in-use"'):
        VAE(**{**QUICK, "variables": 3}).fit(small())


def test_the_same_random_state_gives_the_same_bytes_and_another_does_not() -> None:
    def fitted(random_state: Any) -> bytes:
        return VAE(**QUICK, random_state=random_state).fit_transform(small()).tobytes()

    assert fitted(0) == fitted(0) == VAE(**QUICK).fit_transform(small()).tobytes()
    assert fitted(0) != fitted(1)
    assert fitted(np.random.RandomState(5)) == fitted(np.random.RandomState(5))
    shared = np.random.RandomState(5)
    assert fitted(shared) != fitted(shared)


def test_without_a_random_state_numpy_s_own_gives_the_seed() -> None:
    kept = np.random.get_state()  # noqa: NPY002 (scikit-learn's convention)
    seeds = []
    for seed in (3, 3, 4):
        np.random.seed(seed)  # noqa: NPY002
        seeds.append(VAE(**QUICK, random_state=None).fit(small()).seed_)
    np.random.set_state(kept)  # noqa: NPY002
    assert seeds[0] == seeds[1] != seeds[2]


def test_fitting_leaves_the_random_numbers_of_others_alone() -> None:
    numpy_before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    VAE(**QUICK).fit(small()).score(small())
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_before)


def test_a_small_table_gives_the_same_bytes_whatever_the_number_of_threads() -> None:
    before = torch.get_num_threads()
    made = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            made.append(VAE(**QUICK).fit(small()).model_.digest)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert made[0] == made[1]


def test_the_number_of_threads_asked_for_is_in_force_while_fitting(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look(*args: Any, **options: Any) -> Any:
        seen.append(torch.get_num_threads())
        return fit(*args, **options)

    monkeypatch.setattr("polariscope.estimators.vae.fit", look)
    before = torch.get_num_threads()
    VAE(**{**QUICK, "steps": 2}, threads=before + 1).fit(small())
    VAE(**{**QUICK, "steps": 2}).fit(small())
    assert seen == [before + 1, 1]
    assert torch.get_num_threads() == before


def test_it_is_searched_over_by_density_and_works_inside_a_pipeline() -> None:
    X = small()
    y = (X[:, 0] > 0).astype(int)
    search = GridSearchCV(
        VAE(**QUICK), {"n_latents": [1, 3], "options": [None, {"variance": 0.5}]}, cv=2
    ).fit(X)
    assert search.best_estimator_.n_latents_ == search.best_params_["n_latents"]
    means = search.cv_results_["mean_test_score"]
    assert np.isfinite(means).all()
    assert len(set(means)) == 4
    pipeline = make_pipeline(VAE(**QUICK), LogisticRegression())
    inside = GridSearchCV(pipeline, {"vae__n_latents": [1, 2]}, cv=2).fit(X, y)
    assert inside.predict(X).shape == (60,)


def test_columns_of_a_set_output_carry_their_names() -> None:
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(small(), columns=list("abcd"))
    vae = VAE(**QUICK).set_output(transform="pandas").fit(X)
    assert vae.feature_names_in_.tolist() == list("abcd")
    assert vae.transform(X).columns.tolist() == ["vae0", "vae1"]


@pytest.mark.parametrize("shape", [(16, 16), (1, 8, 6), (6, 8, 3)])
@pytest.mark.parametrize("kind", [np.uint8, np.float64])
def test_images_go_in_and_come_out_as_they_were(shape: tuple[int, ...], kind: type) -> None:
    drawn = np.random.default_rng(0).integers(0, 256, size=(12, *shape))
    X = drawn.astype(np.uint8) if kind is np.uint8 else drawn / 255
    vae = VAE(**{**QUICK, "steps": 3}).fit(X)
    assert vae.n_features_in_ == np.prod(shape)
    Z = vae.transform(X)
    assert Z.shape == (12, 2)
    assert Z.dtype == (np.float32 if kind is np.uint8 else np.float64)
    for back in (vae.inverse_transform(Z), vae.sample(4, noise=False)):
        assert back.shape[1:] == shape
        assert back.dtype == kind
    assert vae.score_samples(X).shape == (12,)
    with pytest.raises(InputError, match="X must have shape"):
        vae.transform(X.reshape(12, -1))


def test_bytes_and_their_floats_are_the_same_images() -> None:
    X = np.random.default_rng(0).integers(0, 256, size=(12, 8, 8)).astype(np.uint8)
    vae = VAE(**{**QUICK, "steps": 3}).fit(X)
    np.testing.assert_allclose(vae.transform((X / 255).astype(np.float32)), vae.transform(X), rtol=1e-6)


def test_a_table_in_the_unit_interval_may_have_a_bernoulli_likelihood() -> None:
    X = (np.random.default_rng(0).random((40, 5)) < 0.3).astype(float)
    vae = VAE(**QUICK, likelihood="bernoulli").fit(X)
    assert vae.units_.offset is None
    assert set(np.unique(vae.sample(20))) <= {0.0, 1.0}
    assert (vae.score_samples(X) < 0).all()  # probabilities
    with pytest.raises(InputError, match="unit_interval=True requires values in"):
        VAE(**QUICK, likelihood="bernoulli").fit(X * 2)


def test_the_loss_falls_and_is_kept() -> None:
    vae = VAE(2, steps=100).fit(signal_and_noise(300))
    assert len(vae.loss_curve_) == 50
    assert vae.loss_curve_[-1] < vae.loss_curve_[0]
    assert vae.history_[-1]["step"] == 100
    assert vae.history_[-1]["learning_rate"] < vae.history_[0]["learning_rate"] / 10


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"n_latents": 0}, "n_latents must be at least 1 and at most 1,000,000, got 0"),
        ({"n_latents": 2.5}, "n_latents must be an integer, got 2.5"),
        ({"n_latents": "fundue"}, "Did you mean 'fondue'"),
        ({"steps": 0}, "steps must be an integer of at least 1, got 0"),
        ({"steps": "many"}, "steps must be an integer of at least 1, got 'many'"),
        ({"learning_rate": -1.0}, "learning_rate must be positive, got -1.0"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"standardise": "yes"}, "standardise must be True or False, got 'yes'"),
        ({"layout": "middle"}, "layout must be None or one of channels-first, channels-last, got 'middle'"),
        ({"objective": "btea"}, "Did you mean 'beta'"),
        ({"objective": "ivae"}, "objective 'ivae' requires factors, labels or pairs besides X"),
        ({"objective": "classifier"}, "objective 'classifier' requires factors, labels or pairs besides X"),
        ({"net": "conv"}, "conv"),
        ({"device": "abacus"}, "device must be auto"),
        ({"threads": 0}, "threads must be an integer, at least 1, got 0"),
        ({"options": [1]}, r"options must be a mapping of names to values, got \[1\]"),
        ({"options": {"bata": 1}}, "no option named 'bata'"),
        ({"options": {"seed": 1}}, "options must not contain 'seed'; set the parameter random_state of VAE"),
        ({"options": {"steps": 1}}, "options must not contain 'steps'; set the parameter steps of VAE"),
    ],
)
def test_wrong_parameters_are_refused_when_fitting(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        VAE(**{**QUICK, **change}).fit(small())


def test_what_cannot_be_asked_of_it_is_refused() -> None:
    with pytest.raises(NotFittedError):
        VAE().sample()
    vae = VAE(**QUICK).fit(small())
    with pytest.raises(InputError, match="n_samples must be an integer of at least 1, got 0"):
        vae.sample(0)
    with pytest.raises(InputError, match="n_draws must be an integer of at least 1, got 0"):
        vae.set_params(n_draws=0).score(small())
    with pytest.raises(ValueError, match="minimum of 3 is required"):
        VAE(**QUICK).fit(small()[:2])
    with pytest.raises(
        InputError, match="requires a posterior with a density, and this encoder is deterministic"
    ):
        VAE(**QUICK, objective="ae").fit(small()).score(small())


def test_three_samples_are_enough_to_fit() -> None:
    assert VAE(**QUICK).fit(small()[:3]).transform(small()).shape == (60, 2)


@unchecked()
def test_the_number_of_latents_is_asked_for_with_what_was_set_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = {name: option.default for name, option in inspect.signature(ps.size).parameters.items()}
    asked: dict[str, Any] = {}

    def fake(data: Any, method: str, **arguments: Any) -> Size:
        asked.clear()
        asked.update(arguments, method=method, shape=data.shape, n=len(data))
        return Size(3, (2, 4), "fondue")

    monkeypatch.setattr(importlib.import_module("polariscope.sizing.size"), "size", fake)
    options = {"beta": 2.0}
    vae = VAE(steps=10, threshold=1.5, objective="beta", options=options, variables="all", random_state=7)
    vae.fit(small())
    assert vae.n_latents_ == 3
    assert vae.size_.interval == (2, 4)
    wanted = {
        "method": "fondue",
        "threshold": 1.5,
        "seed": 7,
        "beta": 2.0,
        "steps": 400,
        "shape": (4,),
        "n": 60,
    }
    assert {name: asked[name] for name in wanted} == wanted
    assert not {"schedule", "net", "learning_rate", "batch_size"} & set(asked)
    assert options == {"beta": 2.0}
    quick = planner.Pace(1e-3, 64, 20)  # of the model that is kept, which nothing here looks at
    monkeypatch.setattr(planner, "pace_for", lambda *_: quick)
    VAE(variables="all", options={"log_every": 100}).fit(small()[:20])
    assert asked.get("objective", "vae") == "vae"
    rest = {"shape", "n", "log_every", "objective"}  # all else is as where size is called without a word
    assert {name: asked[name] for name in asked if name not in rest} == {
        name: usual[name] for name in asked if name not in rest
    }


@unchecked()
def test_the_estimator_the_function_and_the_command_line_find_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from polariscope.cli import main

    X = signal_and_noise(300)
    np.save(tmp_path / "table.npy", X)
    by_function = ps.size(X, steps=400)
    by_estimator = VAE(steps=400, variables="all").fit(X).size_
    assert by_estimator == by_function
    assert by_function.noise is not None
    assert by_function.noise.learned
    assert f"γ = {by_function.noise.gamma:.3g}" in str(by_function)
    assert main(["size", str(tmp_path / "table.npy"), "--steps", "400"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"Answer: {by_function.answer} " in printed
    assert by_function.verdict.training.step == 400
    assert f"γ = {by_function.noise.gamma:.3g} (learned; the mean feature variance is 1)" in printed


def test_data_that_need_no_latent_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        importlib.import_module("polariscope.sizing.size"), "size", lambda *_, **__: Size(0, (0, 1), "fondue")
    )
    vae = VAE(steps=10, variables="all").fit(small())
    assert (vae.size_.n_latents, vae.n_latents_) == (0, 1)


@unchecked()
def test_fondue_finds_the_two_directions_of_the_data() -> None:
    vae = VAE(net="linear", steps=400, learning_rate=0.1, batch_size=500).fit(signal_and_noise())
    assert vae.size_.n_latents == 2
    assert vae.types_ == ["active", "active"]


def assert_same(left: VAE, right: VAE, X: np.ndarray) -> None:
    np.testing.assert_array_equal(left.transform(X), right.transform(X))
    np.testing.assert_array_equal(left.score_samples(X), right.score_samples(X))
    np.testing.assert_array_equal(left.sample(3), right.sample(3))
    np.testing.assert_array_equal(left.loss_curve_, right.loss_curve_)
    for name in ("regime_", "size_", "kept_", "types_", "n_latents_", "n_features_in_", "seed_", "history_"):
        assert getattr(left, name) == getattr(right, name), name
    assert (
        left.inverse_transform(left.transform(X)).tobytes()
        == right.inverse_transform(right.transform(X)).tobytes()
    )


def test_what_was_saved_is_loaded_to_the_last_bit(tmp_path: Path, linear: VAE) -> None:
    linear.save(tmp_path / "vae")
    loaded = VAE.load(tmp_path / "vae")
    assert_same(linear, loaded, signal_and_noise()[:50])
    assert loaded.get_params() == linear.get_params()
    assert sorted(file.name for file in (tmp_path / "vae").iterdir()) == [
        "estimator.safetensors",
        "model.safetensors",
    ]
    assert ps.load_model(tmp_path / "vae").digest == linear.model_.digest
    linear.save(tmp_path / "vae")  # over an earlier one


def test_objects_and_generators_are_saved_as_what_they_stand_for(tmp_path: Path) -> None:
    vae = VAE(
        2, objective=BetaObjective(beta=2.0), net={"name": "mlp", "encoder_widths": (5,)}, steps=5, variables="all",
        random_state=np.random.RandomState(1), options={"decoder_widths": (6,)}, device=torch.device("cpu"),
    )  # fmt: skip
    X = small()
    vae.fit(X)
    vae.size_ = Size(2, (2, 3), "fondue", per_seed=(2,))
    vae.feature_names_in_ = np.array(["a", "b", "c", "d"], dtype=object)
    vae.save(tmp_path / "vae")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        loaded = VAE.load(tmp_path / "vae")
        assert_same(vae, loaded, X)
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    again = clone(loaded).fit(X)
    assert again.model_.digest == vae.model_.digest


def test_images_and_their_layout_are_saved(tmp_path: Path) -> None:
    X = np.random.default_rng(0).integers(0, 256, size=(12, 8, 6, 3)).astype(np.uint8)
    vae = VAE(**{**QUICK, "steps": 2}).fit(X)
    vae.save(tmp_path / "vae")
    assert_same(vae, VAE.load(tmp_path / "vae"), X)


def test_a_folder_with_other_things_in_it_is_never_replaced(tmp_path: Path) -> None:
    vae = VAE(**QUICK).fit(small())
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="which contains other files"):
        vae.save(tmp_path)
    with pytest.raises(InputError, match="which contains other files"):
        vae.save(tmp_path / "thesis.tex")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_damaged_and_mixed_files_are_refused(tmp_path: Path) -> None:
    one, other = VAE(**QUICK).fit(small()), VAE(**QUICK, random_state=1).fit(small())
    one.save(tmp_path / "one")
    other.save(tmp_path / "other")
    with pytest.raises(InputError, match="is not a saved estimator"):
        VAE.load(tmp_path / "nowhere")
    (tmp_path / "one" / "model.safetensors").write_bytes(
        (tmp_path / "other" / "model.safetensors").read_bytes()
    )
    with pytest.raises(ps.PolariscopeError, match="restore the original files"):
        VAE.load(tmp_path / "one")
    file = tmp_path / "other" / "estimator.safetensors"
    stored = file.read_bytes()
    file.write_bytes(stored.replace(b"active+mixed", b"active+mixxd").replace(b'\\"all', b'\\"alk'))
    with pytest.raises(ps.PolariscopeError, match="its hash does not match its contents"):
        VAE.load(tmp_path / "other")


def test_it_survives_pickle_and_joblib(tmp_path: Path) -> None:
    import pickle

    import joblib

    vae = VAE(**QUICK).fit(small())
    assert_same(vae, pickle.loads(pickle.dumps(vae)), small())
    joblib.dump(vae, tmp_path / "vae.joblib")
    assert_same(vae, joblib.load(tmp_path / "vae.joblib"), small())


def test_what_it_takes_for_noise_is_told(tmp_path: Path) -> None:
    vae = VAE(**QUICK).fit(small())
    assert vae.noise_.learned
    assert vae.noise_.gamma == vae.history_[-1]["gamma"] != vae.history_[0]["gamma"]
    assert "directions with variance below γ count as noise" in vae.noise_.in_words
    vae.save(tmp_path / "vae")
    assert VAE.load(tmp_path / "vae").noise_ == vae.noise_
    fixed = VAE(**QUICK, options={"variance": 0.2}).fit(small()).noise_
    assert (fixed.gamma, fixed.learned) == (pytest.approx(0.2), False)
    assert VAE(**QUICK, scale=True).fit(small()).noise_ is None  # a Bernoulli likelihood


def test_scaled_tables_have_a_bernoulli_likelihood_and_come_back_in_their_units(tmp_path: Path) -> None:
    import pickle

    X = signal_and_noise(80)
    vae = VAE(**QUICK, scale=True).fit(X)
    assert vae.chosen_[0] == "each feature of the table scaled to [0, 1]"
    assert any(words.startswith("likelihood bernoulli") for words in vae.chosen_)
    back = vae.inverse_transform(vae.transform(X))
    assert (back >= X.min(axis=0)).all()
    assert (back <= X.max(axis=0)).all()
    assert_same(vae, pickle.loads(pickle.dumps(vae)), X)
    vae.save(tmp_path / "vae")
    assert_same(vae, VAE.load(tmp_path / "vae"), X)
    assert clone(vae).get_params()["scale"] is True
    assert vae.transform(X + 1000).shape == (80, 2)
    with pytest.raises(InputError, match="requires observations in"):
        vae.score_samples(X + 1000)


def test_one_way_to_rescale_is_chosen() -> None:
    with pytest.raises(InputError, match="standardise and scale both rescale features"):
        VAE(**QUICK, standardise=True, scale=True).fit(small())
    with pytest.raises(InputError, match="scale must be True or False, got 2"):
        VAE(**QUICK, scale=2).fit(small())


@pytest.mark.parametrize("parts", [{}, {"posterior": "full"}, {"prior": "mixture"}])
@unchecked()
def test_an_outlier_is_improbable_or_impossible_but_never_nan(parts: dict[str, Any]) -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    vae = VAE(n_latents=2, steps=200, **parts).fit(X)
    usual = vae.score_samples(X)
    before = usual.min()
    for size in (1e2, 1e4, 1e10, 1e30):
        Y = X.copy()
        Y[0, 0] = size
        scores = vae.score_samples(Y)
        assert not np.isnan(scores).any()
        assert scores[0] < before or scores[0] == -np.inf
        np.testing.assert_allclose(scores[1:], usual[1:], rtol=1e-9)
        before = scores[0]


def test_patience_holds_out_a_tenth_and_stops_at_the_lowest_loss() -> None:
    """Fifty rows of noise in 10 features: a network with 3 latents can only memorise them."""
    X = np.random.default_rng(0).normal(size=(50, 10))
    vae = VAE(n_latents=3, steps=2000, patience=3, options={"schedule": "constant", "variance": 0.01}).fit(X)
    losses = [sum(line["validation"].values()) for line in vae.history_]
    best = int(np.argmin(losses))
    assert len(losses) == best + 1 + 3 < 50
    again = VAE(n_latents=3, steps=2000, patience=3, options={"schedule": "constant", "variance": 0.01}).fit(
        X
    )
    assert again.model_.digest == vae.model_.digest
    # Without patience nothing is held out.
    assert "validation" not in VAE(n_latents=3, steps=100).fit(X).history_[0]
    with pytest.raises(InputError, match="set the parameter patience"):
        VAE(n_latents=3, options={"patience": 3}).fit(X)


GAPS = np.random.default_rng(0).normal(size=(60, 4))
GAPS[::9, 1] = np.nan


def test_missing_values_are_refused_by_column():
    named = pandas.DataFrame(GAPS, columns=list("abcd"))
    words = "X lacks 7 of 240 values .NaN.: column 'b' lacks 7 values, first in row 0; leave out .* missing='drop'"
    with pytest.raises(InputError, match=words):
        VAE(n_latents=2, steps=4).fit(named)
    with pytest.raises(InputError, match="missing must be one of refuse, drop, median, got 'mean'"):
        VAE(n_latents=2, steps=4, missing="mean").fit(GAPS)
    assert not VAE().__sklearn_tags__().input_tags.allow_nan
    assert VAE(missing="drop").__sklearn_tags__().input_tags.allow_nan


def test_medians_are_learned_in_fit_and_used_in_transform(tmp_path: Path):
    vae = VAE(n_latents=2, steps=4, variables="all", missing="median").fit(GAPS)
    medians = np.nanmedian(GAPS, axis=0)
    np.testing.assert_allclose(vae.medians_, medians)
    other = np.array([[0.3, np.nan, 0.2, np.nan]])
    full = np.where(np.isnan(other), medians, other)
    np.testing.assert_allclose(vae.transform(other), vae.transform(full))
    np.testing.assert_allclose(vae.score_samples(other), vae.score_samples(full))
    assert vae.chosen_[0] == "7 missing values replaced by the median of the column in fit"
    vae.save(tmp_path / "vae")
    loaded = VAE.load(tmp_path / "vae")
    np.testing.assert_allclose(loaded.transform(other), vae.transform(other), rtol=1e-6)
    assert loaded.chosen_ == vae.chosen_
    with pytest.raises(ValueError, match="infinity"):
        vae.transform(np.array([[np.inf, 0, 0, 0]]))


def test_rows_that_lack_a_value_are_left_out_of_fit_and_are_nan_in_transform():
    complete = ~np.isnan(GAPS).any(axis=1)
    options = {"n_latents": 2, "steps": 4, "variables": "all"}
    vae, without = VAE(**options, missing="drop").fit(GAPS), VAE(**options).fit(GAPS[complete])
    codes = vae.transform(GAPS)
    assert np.isnan(codes).all(axis=1).tolist() == (~complete).tolist()
    np.testing.assert_array_equal(codes[complete], without.transform(GAPS[complete]))
    assert vae.score(GAPS) == pytest.approx(without.score(GAPS[complete]))
    assert vae.chosen_[0] == "fitted without 7 rows with missing values"
    assert np.isnan(vae.transform(np.full((1, 4), np.nan))).all()
    with pytest.raises(InputError, match="X must have at least 3 rows without missing values, got 1"):
        VAE(**options, missing="drop").fit(np.array([[1.0, np.nan], [np.nan, 1], [2, 2], [np.nan, 3]]))
    with pytest.raises(InputError, match="X has no value at all in column 1"):
        VAE(**options, missing="median").fit(np.array([[1.0, np.nan], [2, np.nan], [3, np.nan]]))
