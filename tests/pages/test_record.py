"""The record of a run holds what the run's files and its model say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.score import score
from polariscope.cli.score import keep_scores
from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.data.own.arrays import ArraysDataset
from polariscope.data.sources import load_dataset, load_recorded
from polariscope.layers.compare import compare
from polariscope.pages.page import render
from polariscope.pages.record import ReportRecord, diagnose_run, make_record, open_run
from polariscope.pages.report import report
from polariscope.runs.encode import encode
from polariscope.storage.folder import read_log
from polariscope.storage.settings import read_settings, settings_hash
from polariscope.training.train import train


def test_the_record_repeats_the_last_line_of_the_log(image_run: Path, image_record: ReportRecord) -> None:
    last = read_log(image_run)[-1]
    history = image_record.history
    assert {name: series.last for name, series in history.validation.items()} == last["validation"]
    assert history.loss.last == last["loss"]
    assert history.validation_loss.last == pytest.approx(
        last["validation"]["reconstruction"] + 3 * last["validation"]["rate"]
    )
    assert history.kl[-1].tolist() == last["kl"]


def test_the_diagnosis_agrees_with_the_probe_of_the_training(image_record: ReportRecord) -> None:
    # Both are means over random samples of the same data: 512 of validation and 1000 of all.
    kls = [latent.kl for latent in image_record.regime.latents]
    np.testing.assert_allclose(kls, image_record.history.kl[-1], rtol=0.2, atol=0.05)
    assert image_record.regime.trace == pytest.approx(image_record.history.trace.last, rel=0.1)


def test_the_linear_model_ends_in_the_regime_that_theory_predicts(flat_record: ReportRecord) -> None:
    # Prior N(0, 4): relative variances γ/λ = 0.025 and 0.05, the third latent passive.
    assert flat_record.regime.counts == {"active": 2, "mixed": 0, "passive": 1}
    ratios = sorted(latent.mean_of_ratio for latent in flat_record.regime.latents)
    np.testing.assert_allclose(ratios, [0.025, 0.05, 1.0], rtol=0.2)
    assert flat_record.prior_of(0) == pytest.approx((0.0, 4.0))


def test_diagnosing_a_run_keeps_the_diagnosis_beside_it(flat_run: Path) -> None:
    regime = diagnose_run(flat_run, n_samples=500, alpha=0.2)
    assert Regime.from_dict(files.read_json(flat_run / "regime.json")) == regime
    assert (regime.n_samples, regime.alpha) == (500, 0.2)


def test_arrays_in_memory_must_be_passed_again(colour_run: Path, colour_data: ArraysDataset) -> None:
    with pytest.raises(InputError, match=r"made from arrays in memory.*pass data="):
        make_record(colour_run)
    assert make_record(colour_run, colour_data).n_observations == 300


def test_other_data_than_the_run_was_trained_on_are_noted(flat_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(flat_run, run)
    other = load_dataset("gaussian", eigenvalues=(1.0, 1.0), width=5, n_samples=500)
    assert "not those the model was trained on" in make_record(run, other).notes[0]
    assert not any("not those" in note for note in make_record(run, n_samples=500).notes)


@pytest.fixture
def measured_run(point_run: Path, tmp_path: Path) -> Path:
    """A run with its scores and the comparison of its layers beside it."""
    run = shutil.copytree(point_run, tmp_path / "point")
    model, dataset = open_run(run)
    keep_scores(run / "scores.json", score(encode(model, dataset, 200), "tc"), model.digest)
    compare(run, n_samples=200).save(run)
    return run


def test_scores_and_similarity_are_shown_while_they_are_of_this_model(measured_run: Path) -> None:
    record = make_record(measured_run, n_samples=200)
    assert record.scores is not None
    assert record.similarity is not None
    assert record.doubts == {"scores": "", "similarity": ""}
    assert 'class="doubt"' not in render(record)


def test_scores_and_similarity_of_a_model_before_it_was_trained_further_are_not_shown(
    measured_run: Path,
) -> None:
    """Trained to step 600 from 500."""
    train(
        load_recorded(read_settings(measured_run)["data"]),
        objective="ae",
        net="linear",
        n_latents=2,
        steps=600,
        learning_rate=2e-2,
        log_every=250,
        validate_every=250,
        out=measured_run,
        device="cpu",
    )
    record = make_record(measured_run, n_samples=200)
    assert record.scores is None
    assert record.similarity is None
    page = render(record)
    for file, command in (("scores", "score point"), ("similarity", "compare point --out point")):
        reason = f"Not shown, since {file}.json is of another model, or of this one at another step"
        assert f"{reason}: <code>polariscope {command}</code> makes {file}.json" in page
    compare(measured_run, n_samples=200).save(measured_run)
    assert make_record(measured_run, n_samples=200).similarity is not None


def test_the_similarity_of_other_runs_is_not_shown_unless_this_one_is_among_them(
    measured_run: Path, flat_run: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(flat_run, tmp_path / "flat")
    shutil.copy(measured_run / "similarity.json", copy)
    record = make_record(copy, n_samples=200)
    assert record.similarity is None
    assert "similarity.json is of another model" in record.doubts["similarity"]
    compare([flat_run, copy], n_samples=200).save(copy)
    assert make_record(copy, n_samples=200).similarity is not None


def test_files_that_do_not_say_of_which_model_they_are_are_shown_with_a_doubt(measured_run: Path) -> None:
    """Those written before it was kept."""
    for name in ("scores", "similarity"):
        stored = files.read_json(measured_run / f"{name}.json")
        del stored["digests"]
        files.write_json(measured_run / f"{name}.json", stored)
    record = make_record(measured_run, n_samples=200)
    assert record.scores is not None
    assert record.similarity is not None
    page = render(record)
    for name in ("scores", "similarity"):
        assert f"It is not known of which model this is, since {name}.json does not say" in page
    assert page.count('class="doubt"') == 2


def test_an_unfinished_run_is_refused_and_nothing_is_written(flat_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(flat_run, run, ignore=shutil.ignore_patterns("model.safetensors", "report.html"))
    with pytest.raises(InputError, match="the run was interrupted"):
        report(run)
    assert not (run / "report.html").exists()


def test_a_run_that_is_being_continued_is_unfinished(flat_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(flat_run, run)
    settings = json.loads((run / "settings.json").read_text())
    settings["training"]["steps"] = 5000
    settings["hash"] = settings_hash(settings)
    (run / "settings.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match="a model of 3000 steps, but 5000 were asked for"):
        report(run)


def test_a_folder_that_is_not_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a run folder"):
        report(tmp_path)


def test_the_loss_of_a_model_leaves_out_the_terms_of_its_adversary(adversarial_run: Path) -> None:
    last = read_log(adversarial_run)[-1]
    assert last["weights"] == {"generation": 1.0, "inversion": 1.0, "discriminator": 0.0}
    history = make_record(adversarial_run, n_samples=500).history
    expected = last["validation"]["generation"] + last["validation"]["inversion"]
    assert history.validation_loss.last == pytest.approx(expected)


def test_a_record_without_decoder_or_rate_says_so_by_what_it_lacks(
    headless_run: Path, point_run: Path
) -> None:
    headless, point = (make_record(run, n_samples=500) for run in (headless_run, point_run))
    assert headless.views is None
    assert point.views is not None
    for record in (headless, point):
        assert record.history.kl is None
        assert not record.has_rate
        assert record.prior is None
        assert list(record.histograms) == ["mean"]
    assert "untrained map" in headless.notes[0]


def test_the_moments_of_a_conditional_prior_are_those_of_its_samples(conditional_run: Path) -> None:
    record = make_record(conditional_run, n_samples=500)
    representation = encode(conditional_run, n_samples=500)
    assert record.prior is None
    assert record.conditional is not None
    assert list(record.histograms) == ["mean", "variance", "sampled", "prior_mean", "prior_variance"]
    mean, variance = representation.prior_mean, representation.prior_variance
    assert mean is not None
    assert variance is not None
    for j, moments in enumerate(record.conditional):
        assert moments.mean == pytest.approx(mean[:, j].mean(), rel=1e-4)
        assert moments.std_of_mean == pytest.approx(mean[:, j].std(), rel=1e-4)
        assert moments.variance == pytest.approx(variance[:, j].mean(), rel=1e-4)
        assert moments.ratio == pytest.approx((representation.variance / variance)[:, j].mean(), rel=1e-4)
        apart = ((representation.mean - mean) ** 2 / variance)[:, j].mean()
        assert moments.displacement == pytest.approx(apart, rel=1e-4)
