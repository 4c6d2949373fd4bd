"""One planner: train, size and the estimator use the same rate, batch and length; recorded settings win."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polariscope as ps
from polariscope.cli import main
from polariscope.core.options import affecting
from polariscope.models.nets.linear import LinearNet
from polariscope.sizing.checks import make_goal
from polariscope.sizing.search import ask
from polariscope.storage.documents import weights_hash
from polariscope.training.plan import plan, recorded_settings
from polariscope.training.planner import IMAGES, SEARCH_RATE, TABLES, pace_for
from polariscope.training.settings import TrainSettings
from tiny_studies import tiny

ROWS = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
PIXELS = np.random.default_rng(0).integers(256, size=(40, 16, 16)).astype(np.uint8)


@pytest.mark.parametrize("n_rows", [100, 3000, 20_000, 400_000])
def test_tables_get_a_hundred_passes_within_bounds(n_rows: int) -> None:
    pace = pace_for((6,), n_rows)
    assert TABLES.steps <= pace.steps <= IMAGES.steps
    passes = pace.steps * pace.batch_size / n_rows
    assert passes == pytest.approx(100, rel=0.02) or pace.steps in (TABLES.steps, IMAGES.steps)


def test_train_and_size_learn_a_table_at_the_same_rate_and_batch() -> None:
    settings = plan(ROWS).settings
    goal = make_goal({}, ps.from_arrays(ROWS), {})
    assert settings.learning_rate == goal.careful_rate() == TABLES.learning_rate
    assert (settings.batch_size, settings.steps) == (TABLES.batch_size, TABLES.steps)
    linear = plan(ROWS, net="linear").settings
    assert linear.learning_rate == make_goal({}, ps.from_arrays(ROWS), {"net": "linear"}).careful_rate()
    assert linear.learning_rate == LinearNet.sizing_rate


def test_images_keep_the_published_pace_and_a_search_has_its_own_rate() -> None:
    settings = plan(PIXELS).settings
    assert (settings.learning_rate, settings.batch_size, settings.steps) == (1e-4, 64, 20_000)
    assert make_goal({}, ps.from_arrays(PIXELS), {}).careful_rate() == SEARCH_RATE


def test_named_options_and_those_of_the_objective_win() -> None:
    assert plan(ROWS, learning_rate=0.02, steps=7).settings.learning_rate == 0.02
    assert plan(ROWS, epochs=2).settings.steps == 2 * (270 // 64)


def test_a_smaller_rate_of_a_table_gets_as_many_more_steps() -> None:
    assert plan(ROWS, learning_rate=5e-4).settings.steps == 2 * TABLES.steps
    assert plan(ROWS, learning_rate=1e-4).settings.steps == IMAGES.steps
    assert plan(ROWS, learning_rate=1e-2).settings.steps == TABLES.steps
    assert plan(ROWS, learning_rate=1e-4, steps=7).settings.steps == 7
    assert plan(PIXELS, learning_rate=1e-5).settings.steps == IMAGES.steps
    estimator = ps.VAE(learning_rate=5e-4)._planned(ps.from_arrays(ROWS), {"net": "mlp"})
    assert estimator.options == {"batch_size": TABLES.batch_size, "steps": 2 * TABLES.steps}


@pytest.mark.parametrize(
    ("method", "pixels", "rows"),
    [("fondue", 2e-4, 1e-3), ("active-units", 1e-3, 1e-3), ("fondue-published", 1e-4, 1e-4)],
)
def test_a_search_announces_the_rate_and_batch_of_its_models(method: str, pixels: float, rows: float) -> None:
    for values, rate in ((PIXELS, pixels), (ROWS, rows)):
        chosen = ask(ps.from_arrays(values), method, {}).chosen
        assert f"learning rate {rate:g}, batch size 64" in chosen
        chosen = ask(ps.from_arrays(values), method, {"learning_rate": 0.005, "batch_size": 32}).chosen
        assert not any("learning rate" in words or "batch size" in words for words in chosen)


def test_the_announced_rate_is_that_of_the_models(tmp_path: Path) -> None:
    for method, rate in (("fondue", 1e-3), ("fondue-published", 1e-4)):
        length = {"steps": 400, "cap": 2}
        ps.size(ROWS, method, out=tmp_path / method, threads=1, **length)
        runs = [ps.open_run(file.parent) for file in (tmp_path / method).rglob("settings.json")]
        assert runs
        assert {run.settings["training"]["learning_rate"] for run in runs} == {rate}


def test_the_recorded_settings_of_a_run_win_and_the_difference_is_announced(tmp_path: Path) -> None:
    """As a run of version 0.2.0, whose default rate was 1e-4."""
    ps.train(ROWS, steps=30, learning_rate=1e-4, checkpoint_every=10, out=tmp_path)
    job = plan(ROWS, recorded=recorded_settings(tmp_path))
    assert (job.settings.learning_rate, job.settings.steps) == (1e-4, 30)
    assert any(
        "learning rate 0.0001 (recorded with this run; a new one would have 0.001)" in choice
        for choice in job.chosen
    )
    before = ps.load_model(tmp_path).digest
    assert ps.train(ROWS, out=tmp_path).digest == before  # finished, and not trained with other settings
    assert ps.train(ROWS, steps=40, out=tmp_path).step == 40
    assert ps.open_run(tmp_path).settings["training"]["learning_rate"] == 1e-4
    assert recorded_settings(tmp_path / "new") is None


def test_a_study_finds_runs_that_version_0_2_began_at_the_pace_of_images(tmp_path: Path) -> None:
    study = tiny(tmp_path, grid={}, each={})
    (new,) = study.plan()
    assert any("learning rate 0.01" in choice for choice in new.chosen)  # that of linear nets
    data = ps.load_dataset("gaussian", n_samples=60)
    settings = {**new.point.arguments, "learning_rate": IMAGES.learning_rate}
    ps.train(data, **settings, out=tmp_path / "first")
    digest = weights_hash(ps.open_run(tmp_path / "first").settings, affecting(TrainSettings, "weights"))
    ps.train(data, **settings, out=tmp_path / "runs" / digest[: len(new.folder.name)])
    (found,) = study.plan()
    assert (found.hash, found.folder.name) == (digest, digest[: len(new.folder.name)])
    assert found.hash != new.hash


def test_the_plan_of_a_study_prints_what_is_chosen(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(
        'data = "square-linear"\nobjective = "beta"\n[settings]\nn_latents = 2\nsteps = 4\n[grid]\nbeta = [1.0, 4.0]\n'
    )
    assert main(["study", "plan", "mine.toml"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Chosen for all runs: table centred and divided by" in printed
    assert "decoder variance learned" in printed
    assert "learning rate 0.001, batch size 64." in printed
