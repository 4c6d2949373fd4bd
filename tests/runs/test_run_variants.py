"""Variants of the data of a run: recorded, restored, refused when they change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.geometry.traversals import traverse
from polariscope.pages.sections.decoder import moves_of
from polariscope.storage.documents import read_settings

ROWS = np.random.default_rng(0).normal([0, 5, -300], [1, 0.1, 50], size=(300, 3)) @ np.diag([1, 1, 1])
SHORT = {"net": "linear", "n_latents": 2, "steps": 20, "device": "cpu", "log_every": 10, "validate_every": 20}
SHORT |= {"likelihood": "gaussian"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained on standardised rows from memory."""
    folder = tmp_path_factory.mktemp("runs") / "rows"
    ps.train(ROWS, standardise=True, variants=["subset:n=200"], out=folder, **SHORT)
    return folder


def test_a_run_records_its_variants_and_makes_its_data_again(tmp_path):
    variants = ["subset:n=100,seed=2", {"name": "colour", "seed": 1}]
    data = ps.load_dataset("sprites", image_size=16)
    ps.train(data, variants=variants, out=tmp_path / "run", **{**SHORT, "likelihood": "auto"})
    opened = ps.open_run(tmp_path / "run")
    wanted = ps.apply_variants(data, variants)
    assert opened.data() == wanted
    assert opened.has_its_own_data
    assert opened.n_observations == 100
    assert opened.model().shape == (3, 16, 16)
    assert "subset (n = 100, seed = 2), colour (seed = 1)" in repr(opened)


def test_another_variant_is_another_run(run):
    with pytest.raises(InputError, match="variants"):
        ps.train(ROWS, standardise=True, variants=["subset:n=201"], out=run, **SHORT)
    with pytest.raises(InputError, match="variants"):
        ps.train(ROWS, out=run, **SHORT)
    ps.train(
        ROWS, standardise=True, variants=["subset:n=200"], out=run, **SHORT
    )  # the same: finished already


def test_the_same_arrays_open_the_run_with_its_variants(run):
    opened = ps.open_run(run, ROWS)
    assert opened.has_its_own_data
    assert len(opened.data()) == 200
    np.testing.assert_allclose(opened.data().values(np.arange(200)).std(axis=0), 1, rtol=1e-4)
    with pytest.raises(InputError, match="arrays in memory"):
        ps.open_run(run).data()


def test_other_rows_are_put_into_the_units_of_training(run, tmp_path):
    record = read_settings(run)["data"]["variants"][1]
    new = ROWS[:50] + 1
    by_hand = (new - record["mean"]) / record["deviation"]
    model = ps.load_model(run)
    wanted = ps.encode(_without_units(model), by_hand, n_samples=None).mean
    np.testing.assert_allclose(ps.encode(run, new, n_samples=None).mean, wanted, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ps.encode(model, new, n_samples=None).mean, wanted, rtol=1e-3, atol=1e-4)
    model.save(tmp_path / "alone.safetensors")
    alone = ps.load_model(tmp_path / "alone.safetensors")
    np.testing.assert_allclose(ps.encode(alone, new, n_samples=None).mean, wanted, rtol=1e-3, atol=1e-4)


def _without_units(model):
    model = ps.load_model(model.folder)
    model.folder, model.units = None, ()
    return model


def test_a_model_that_was_never_on_disk_knows_its_units():
    model = ps.train(ROWS, standardise=True, **SHORT)
    wanted = ps.encode(model, ps.apply_variants(ROWS, standardise=True), n_samples=None)
    np.testing.assert_array_equal(ps.encode(model, ROWS, n_samples=None).mean, wanted.mean)


def test_a_model_of_corrupted_images_is_shown_clean_ones_as_they_are():
    data = ps.load_dataset("sprites", image_size=16, variants=["subset:n=50"])
    model = ps.train(data, variants="pixel-noise", **{**SHORT, "likelihood": "auto"})
    assert model.units == ()


def test_runs_in_different_units_are_not_compared_on_one_array(run, tmp_path):
    ps.train(ROWS, scale=True, out=tmp_path / "scaled", **SHORT)
    with pytest.raises(InputError, match="models must be trained in the same units"):
        ps.compare([run, tmp_path / "scaled"], ROWS)
    alike = ps.compare([run, run], ROWS, n_samples=100)
    assert alike is not None


def test_scaled_rows_get_a_bernoulli_likelihood_and_standardised_ones_a_gaussian():
    from polariscope.training.plan import plan

    assert "likelihood bernoulli (values lie in [0, 1])" in plan(ROWS, scale=True).chosen
    assert "likelihood gaussian (values are not limited to [0, 1])" in plan(ROWS, standardise=True).chosen
    with pytest.raises(InputError, match="standardise and scale both"):
        plan(ROWS, standardise=True, scale=True)


def test_the_features_that_move_most_are_told_in_the_units_of_the_data(run):
    opened = ps.open_run(run, ROWS)
    rep, regime, data = opened.representation(), opened.regime(), opened.data()
    shown = traverse(opened.model(), rep, regime, data.values(np.arange(50)), seed=0)
    moves = moves_of(shown, data)
    assert len(moves) == len(shown.latents)
    row = shown.outputs[0]
    most = int(np.ptp(row, axis=0).argmax())
    record = read_settings(run)["data"]["variants"][1]
    assert moves[0][0].feature == f"feature {most}"
    for place, value in ((0, moves[0][0].first), (-1, moves[0][0].last)):
        wanted = row[place, most] * record["deviation"][most] + record["mean"][most]
        assert value == pytest.approx(wanted, rel=1e-5)


@pytest.mark.usefixtures("undrawn")
def test_the_report_shows_the_units_of_the_data(run, tmp_path):
    page = ps.report(run, ROWS, out=tmp_path / "page.html").read_text(encoding="utf-8")
    assert "largest changes: feature" in page
    assert "in the units of the network" in page
    assert "ps.apply_variants(ps.from_arrays(X" in page
