"""What is shown of a decoder is what the decoder does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from polariscope.data.own.arrays import from_arrays
from polariscope.data.sources import load_dataset, load_recorded
from polariscope.geometry.steps_of_latents import prior_moments
from polariscope.models.inference import auxiliary_values
from polariscope.models.model import Model
from polariscope.pages.record import ReportRecord, make_record
from polariscope.pages.sections.decoder import (
    Reconstructions,
    draw_deviations,
    draw_r_squared,
    sample_prior,
    traverse,
)
from polariscope.runs.encode import encode
from polariscope.runs.run import load_model
from polariscope.storage.documents import read_settings
from polariscope.training.train import train


def weights_of(model: Model) -> np.ndarray:
    """Slope of the outputs of a linear decoder, (feature, latent)."""
    with torch.inference_mode():
        rows = (
            model.decode(torch.eye(model.n_latents)).mean - model.decode(torch.zeros(1, model.n_latents)).mean
        )
    return rows.numpy().T.astype(np.float64)


def test_traversals_are_sorted_by_kl_and_cover_every_latent(image_record: ReportRecord) -> None:
    shown = image_record.views.traversals
    kls = [image_record.regime.latents[j].kl for j in shown.latents]
    assert kls == sorted(kls, reverse=True)
    assert sorted(shown.latents) == list(range(image_record.regime.n_latents))
    np.testing.assert_allclose(shown.values, np.linspace(-3, 3, 10))


def test_a_traversal_step_is_the_decoder_at_the_code_with_one_latent_moved(
    image_run: Path, image_record: ReportRecord
) -> None:
    model, shown = load_model(image_run), image_record.views.traversals
    data = load_dataset("sprites", image_size=16)
    with torch.inference_mode():
        code = model.encode(model.place(torch.from_numpy(data.values([shown.start])))).mean
        np.testing.assert_allclose(model.decode(code).mean[0].numpy(), shown.original, atol=1e-5)
        row = len(shown.latents) // 2
        code[0, shown.latents[row]] = float(shown.values[7])
        expected = model.decode(code).mean[0].numpy()
    np.testing.assert_allclose(shown.outputs[row, 7], expected, atol=1e-5)


def test_effects_of_a_linear_decoder_have_their_closed_form(
    flat_run: Path, flat_record: ReportRecord
) -> None:
    # x = W z + b moved over z_j = s v has variance ‖W_j‖² s² Var(v), with s = 2 the prior's standard deviation.
    weights = weights_of(load_model(flat_run))
    shown = flat_record.views.traversals
    total = flat_record.views.reconstructions.inputs.astype(np.float64).var(axis=0).sum()
    expected = [(weights[:, j] ** 2).sum() * 4 * shown.values.var() / total for j in shown.latents]
    np.testing.assert_allclose(shown.effects, expected, rtol=1e-4)


def test_passive_latents_move_nothing_and_active_ones_do(flat_record: ReportRecord) -> None:
    # Per latent Var(z_j W_j) is at most the data's variance; over ±3 s it is multiplied by Var(v) = 3.67.
    shown = flat_record.views.traversals
    assert shown.effects is not None
    for latent, effect in zip(shown.latents, shown.effects, strict=True):
        if flat_record.regime.types[latent] == "passive":
            assert effect < 0.01
        else:
            assert effect > 0.5


def test_draws_from_a_linear_model_spread_as_its_covariance_says(flat_run: Path) -> None:
    # Cov[x] = s² W Wᵀ + γ I, s = 2, γ = 0.2. A standard deviation of 1024 draws has a relative error of 2.2 %.
    model = load_model(flat_run)
    found = sample_prior(model, load_recorded(read_settings(flat_run)["data"]), seed=0).deviations
    expected = np.sqrt(4 * (weights_of(model) ** 2).sum(axis=1) + 0.2)
    np.testing.assert_allclose(found, expected, rtol=5 * 0.022)


def test_r_squared_is_1_for_a_copy_and_0_for_the_mean() -> None:
    inputs = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    indices = np.arange(50)
    average = np.broadcast_to(inputs.mean(axis=0), inputs.shape).copy()
    assert Reconstructions(indices, inputs, inputs).r_squared == 1
    assert Reconstructions(indices, inputs, average).r_squared == pytest.approx(0, abs=1e-6)


def test_r_squared_leaves_out_features_that_do_not_vary() -> None:
    inputs = np.array([[0.0, 1.0], [0.0, 3.0]], dtype=np.float32)
    halfway = np.array([[0.0, 1.5], [0.0, 2.5]], dtype=np.float32)
    seen = Reconstructions(np.arange(2), inputs, halfway)
    np.testing.assert_allclose(seen.r_squared_by_value, [0.75])
    assert Reconstructions(np.arange(2), inputs[:, :1], inputs[:, :1]).r_squared is None


def test_reconstructions_are_of_the_test_split(image_record: ReportRecord) -> None:
    from polariscope.data.splits import split

    rest = (1 - 0.9) / 2
    expected = split(image_record.n_observations, (0.9, rest, rest), seed=0).test
    seen = image_record.views.reconstructions
    np.testing.assert_array_equal(seen.indices, expected[: len(seen.indices)])
    data = load_dataset("sprites", image_size=16)
    np.testing.assert_array_equal(seen.inputs[:5], data.values(seen.indices[:5]))


def test_the_start_is_the_code_nearest_the_centre_of_the_prior(
    flat_run: Path, flat_record: ReportRecord
) -> None:
    model = load_model(flat_run)
    codes = encode(model, n_samples=1000)
    assert codes.indices is not None
    nearest = codes.indices[(codes.mean**2).sum(axis=1).argmin()]
    assert flat_record.views.traversals.start == nearest
    again = traverse(model, codes, flat_record.regime, flat_record.views.reconstructions.inputs, seed=0)
    np.testing.assert_array_equal(again.outputs, flat_record.views.traversals.outputs)


def test_an_ivae_is_shown_given_the_auxiliary_values_of_its_observations(conditional_run: Path) -> None:
    record, model = make_record(conditional_run, n_samples=500), load_model(conditional_run)
    assert record.views is not None
    seen = record.views.reconstructions
    data = load_dataset("sprites", image_size=16)
    u = auxiliary_values(data, seen.indices[:5])
    with torch.inference_mode():
        q = model.encode(model.place(torch.from_numpy(data.values(seen.indices[:5]))), u)
        np.testing.assert_allclose(model.decode(q.mean).mean.numpy(), seen.outputs[:5], atol=1e-5)
    shown = record.views.traversals
    assert shown.scale == "prior over all u"
    mean, variance = prior_moments(encode(conditional_run, n_samples=500))
    row, step = 0, 2
    latent = shown.latents[row]
    with torch.inference_mode():
        z = model.encode(
            model.place(torch.from_numpy(data.values([shown.start]))),
            auxiliary_values(data, np.array([shown.start])),
        ).mean
        z[0, latent] = float(mean[latent] + shown.values[step] * np.sqrt(variance[latent]))
        np.testing.assert_allclose(model.decode(z).mean[0].numpy(), shown.outputs[row, step], atol=1e-5)
    assert record.views.prior_samples.means.shape == (30, 1, 16, 16)


def test_a_deterministic_encoder_is_moved_over_the_range_of_its_codes(point_run: Path) -> None:
    # A linear decoder x = W z + b: the variance along a row is ‖W_j‖² Var(μ_j) Var(v).
    record, model = make_record(point_run, n_samples=500), load_model(point_run)
    assert record.views is not None
    shown = record.views.traversals
    spreads = encode(point_run, n_samples=500).mean.std(axis=0).astype(np.float64)
    total = record.views.reconstructions.inputs.astype(np.float64).var(axis=0).sum()
    expected = [
        (weights_of(model)[:, j] ** 2).sum() * spreads[j] ** 2 * shown.values.var() / total
        for j in shown.latents
    ]
    assert shown.scale == "codes"
    np.testing.assert_allclose(shown.effects, expected, rtol=1e-4)


def test_charts_of_features_carry_their_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(80, 3)) * [1, 2, 0]
    names = ("petal-length", "petal-width", "never-varies")
    data = from_arrays(table, feature_names=names)
    train(data, net="linear", n_latents=1, steps=3, out=tmp_path / "run")
    seen = make_record(tmp_path / "run", data).views.reconstructions
    assert seen.feature_names == names
    assert seen.varying_names == names[:2]
    best_first = [names[place] for place in np.argsort(-seen.r_squared_by_value, kind="stable")]
    chart = str(draw_r_squared(seen))
    shown = [name for _, name in sorted((chart.index(name), name) for name in names[:2])]
    assert shown == best_first
    assert "never-varies" not in chart
    assert "petal-width" in str(draw_deviations(seen, np.array([1.0, 5.0, 0.0])))
