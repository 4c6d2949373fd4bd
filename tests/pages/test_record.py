"""The record of a run holds what the run's files and its model say."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from polariscope.cli import main
from polariscope.core.errors import InputError
from polariscope.data.own.arrays import ArraysDataset
from polariscope.data.sources import load_dataset, load_recorded
from polariscope.pages.record import ReportRecord, make_record
from polariscope.pages.report import report, report_page
from polariscope.runs.encode import encode
from polariscope.runs.run import Run
from polariscope.storage import artefacts
from polariscope.storage.documents import read_settings, settings_hash, write_settings
from polariscope.storage.folder import RunFolder, read_log
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


def test_arrays_in_memory_must_be_passed_again(colour_run: Path, colour_data: ArraysDataset) -> None:
    with pytest.raises(InputError, match=r"created from arrays in memory.*pass data"):
        make_record(colour_run)
    assert make_record(colour_run, colour_data).n_observations == 300


def test_other_data_than_the_run_was_trained_on_are_noted(flat_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(flat_run, run)
    other = load_dataset("gaussian", eigenvalues=(1.0, 1.0), width=5, n_samples=500)
    assert "not the data that the model was trained on" in make_record(run, other).notes[0]
    assert not any("not those" in note for note in make_record(run, n_samples=500).notes)


@pytest.fixture
def measured_run(point_run: Path, tmp_path: Path) -> Path:
    """A run with its scores and the comparison of its layers beside it."""
    run = shutil.copytree(point_run, tmp_path / "point")
    Run(run).scores("tc", n_samples=200)
    Run(run).comparison(n_samples=200)
    return run


@pytest.mark.usefixtures("undrawn")
def test_scores_and_similarity_are_shown_while_they_are_of_this_model(measured_run: Path) -> None:
    record = make_record(measured_run, n_samples=200)
    assert "scores" in record.parts
    assert "similarity" in record.parts
    assert record.damaged == ()
    assert 'class="doubt"' not in report_page(record).render()


@pytest.mark.usefixtures("undrawn")
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
    assert "scores" not in record.parts
    assert "similarity" not in record.parts
    page = report_page(record).render()
    for command in ("score", "compare"):
        assert f"to the next report, run <code>polariscope {command} {measured_run}</code>" in page
    listed = {(row.kind, row.step) for row in record.others}
    assert {("scores", "500"), ("comparison", "500")} <= listed
    assert "Other cached results" in page
    Run(measured_run).comparison(n_samples=200)
    assert make_record(measured_run, n_samples=200).parts["similarity"] is not None
    earlier = make_record(measured_run, n_samples=200, step=500)
    assert "scores" in earlier.parts
    assert earlier.history.steps[-1] == 500


def test_a_comparison_with_other_runs_is_shown(measured_run: Path, flat_run: Path, tmp_path: Path) -> None:
    copies = [shutil.copytree(flat_run, tmp_path / name) for name in ("one", "two")]
    Run(copies[0]).comparison([copies[1]], n_samples=200)
    found = make_record(copies[0], n_samples=1000).parts["similarity"]
    assert found is not None
    assert found.models == ("one", "two")
    assert "similarity" not in make_record(copies[1], n_samples=1000).parts


@pytest.mark.usefixtures("undrawn")
def test_the_newest_of_each_kind_is_shown_or_the_one_asked_for_and_the_others_are_listed(
    flat_run: Path, tmp_path: Path
) -> None:
    path = shutil.copytree(flat_run, tmp_path / "copy")
    run = Run(path)
    run.regime(0.2, n_samples=400)
    run.regime(0.3, n_samples=300, seed=2)
    run.decomposition(n_samples=400)
    newest = make_record(path)
    assert (newest.regime.alpha, newest.regime.n_samples, newest.regime.seed) == (0.3, 300, 2)
    assert newest.parts["decomposition"] == run.decomposition(n_samples=400)
    assert "Decomposition of the rate" in report_page(newest).render()
    asked = make_record(path, alpha=0.2)
    assert (asked.regime.alpha, asked.regime.n_samples) == (0.2, 400)
    assert any("alpha 0.3" in row.about for row in asked.others)
    made = make_record(path, alpha=0.25)
    assert (made.regime.alpha, made.regime.n_samples) == (0.25, 2000)


def test_an_unfinished_run_is_refused_and_nothing_is_written(flat_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(flat_run, run, ignore=shutil.ignore_patterns("model.safetensors", "report.html"))
    with pytest.raises(InputError, match="the run was interrupted"):
        report(run)
    assert not (run / "report.html").exists()


def test_a_run_that_is_being_continued_is_unfinished(flat_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(flat_run, run)
    settings = read_settings(run)
    settings["training"]["steps"] = 5000
    settings["hash"] = settings_hash(settings)
    write_settings(run, settings)
    with pytest.raises(InputError, match="a model of 3000 steps, but the run was continued to 5000 steps"):
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
        assert list(record.parts["distributions"]) == ["mean"]
    assert "untrained map" in headless.notes[0]


def test_the_moments_of_a_conditional_prior_are_those_of_its_samples(conditional_run: Path) -> None:
    record = make_record(conditional_run, n_samples=500)
    representation = encode(conditional_run, n_samples=500)
    assert record.prior is None
    assert record.conditional is not None
    assert list(record.parts["distributions"]) == [
        "mean",
        "variance",
        "sampled",
        "prior_mean",
        "prior_variance",
    ]
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


@pytest.mark.usefixtures("undrawn")
def test_a_report_opens_the_run_once_and_parses_each_artefact_once(
    flat_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shutil.copytree(flat_run, tmp_path / "copy")
    Run(path).decomposition(n_samples=400)
    Run(path).regime(0.2, n_samples=400)
    opened: list[str] = []
    parsed: Counter[str] = Counter()
    folder, parse = RunFolder.__init__, artefacts._artefact
    monkeypatch.setattr(
        RunFolder, "__init__", lambda self, *args: (opened.append("run"), folder(self, *args))[1]
    )
    monkeypatch.setattr(artefacts, "_artefact", lambda file: (parsed.update([file.name]), parse(file))[1])
    assert main(["report", str(path)]) == 0
    assert opened == ["run"]
    assert set(parsed.values()) == {1}
    assert {name.split("-")[0] for name in parsed} >= {"regime", "decomposition", "representation"}
