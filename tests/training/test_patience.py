"""Early stopping ends a training at the right validation, keeps the best weights, and resumes to the same bytes."""

from __future__ import annotations

import math
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import polariscope as ps
from polariscope.cli import main
from polariscope.core.errors import InputError
from polariscope.core.files import read_header
from polariscope.data.dataset import AbstractDataset
from polariscope.storage.folder import RunFolder
from polariscope.storage.inspection import inspect_folder
from polariscope.studies.table_rows import runs_table
from polariscope.training.patience import Patience
from polariscope.training.settings import TrainSettings

SETTINGS: dict[str, Any] = {
    "net": "mlp",
    "n_latents": 3,
    "learning_rate": 1e-2,
    "batch_size": 16,
    "log_every": 5,
    "validate_every": 10,
    "checkpoint_every": 35,
    "likelihood_variance": 0.01,  # small enough for the model to overfit 54 observations soon
}


def small() -> AbstractDataset:
    return ps.load_dataset("gaussian", n_samples=60)


def line(step: int, loss: float, **terms: float) -> dict[str, Any]:
    validation = terms or {"reconstruction": loss}
    return {"step": step, "loss": loss, "validation": validation, "weights": {"reconstruction": 1.0}}


def observed(losses: Sequence[float], **settings: Any) -> Patience:
    """The monitor after some validations, each ten steps after the last, until it stops."""
    patience = Patience(**{"limit": 2, "every": 10, **settings})
    model = nn.Linear(1, 1)
    for number, loss in enumerate(losses, start=1):
        if patience.is_exhausted:
            break
        with torch.no_grad():
            model.weight.fill_(number)
        patience.observe(line(10 * number, loss), model)
    return patience


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was asked for 2,000 steps and stopped early."""
    run = tmp_path_factory.mktemp("stopped") / "run"
    ps.train(small(), out=run, steps=2000, patience=3, **SETTINGS)
    return run


def files_of(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*.*") if path.name[0] != "."}


def results(run: Path) -> dict[str, bytes]:
    """Model, log and last checkpoint."""
    last = f"checkpoints/step-{RunFolder(run).checkpoints.steps[-1]}/"
    return {
        name: content
        for name, content in files_of(run).items()
        if name in ("model.safetensors", "log.jsonl") or name.startswith(last)
    }


# The monitor.


def test_it_stops_after_so_many_validations_without_a_lower_loss_and_keeps_the_best_weights() -> None:
    patience = observed([5.0, 4.0, 4.1, 4.0, 1.0])
    assert patience.is_exhausted
    assert (patience.best_step, patience.best_loss, patience.waited) == (20, 4.0, 2)
    assert float(patience.best_weights["weight"]) == 2  # a copy: the model has 4 now


def test_an_improvement_begins_the_count_again() -> None:
    patience = observed([5.0, 5.1, 4.0, 4.1])
    assert not patience.is_exhausted
    assert (patience.best_step, patience.waited) == (30, 1)


def test_a_loss_that_is_not_a_number_is_no_improvement_and_never_the_best() -> None:
    assert observed([math.nan, 5.0, math.nan, math.nan]).best_step == 20
    never = observed([math.nan] * 5)
    assert (never.best_step, never.is_exhausted) == (0, False)


def test_patience_0_never_stops_and_stores_nothing() -> None:
    patience = observed([1.0, 2.0, 3.0, 4.0], limit=0)
    assert not patience.is_exhausted
    assert patience.tensors() == patience.metadata() == {}


def test_validations_count_after_the_schedules_and_at_multiples_only() -> None:
    patience = observed([1.0, 2.0, 3.0, 4.0, 5.0], counts_after=20)
    assert (patience.best_step, patience.waited) == (30, 2)
    patience.observe(line(55, 0.0), nn.Linear(1, 1))  # the last step of a training, say
    assert patience.best_step == 30


def test_counting_begins_after_the_ramp_of_the_objective_and_the_warm_up() -> None:
    annealed = ps.objectives["annealed"](ramp_steps=500)
    settings = TrainSettings(patience=1, validate_every=100, warmup_steps=300)
    assert Patience.of(settings, annealed).counts_after == 500
    assert Patience.of(settings, ps.objectives["vae"]()).counts_after == 300


def test_with_an_adversary_reconstruction_and_rate_are_monitored() -> None:
    validation = {"reconstruction": 3.0, "rate": 2.0, "total_correlation": 50.0, "discriminator": 7.0}
    factor = Patience.of(TrainSettings(patience=1), ps.objectives["factor"]())
    assert factor.monitored(line(10, 0.0, **validation)) == 5.0
    beta = Patience.of(TrainSettings(patience=1), ps.objectives["beta"](beta=4.0))
    weighted = {
        **line(10, 0.0, reconstruction=3.0, rate=2.0),
        "weights": {"reconstruction": 1.0, "rate": 4.0},
    }
    assert beta.monitored(weighted) == 11.0


# A training.


def test_the_finished_model_is_that_of_the_best_validation(stopped: Path, tmp_path: Path) -> None:
    """The weights are those of a training that never stops, at the step of its lowest held-out loss."""
    run = ps.open_run(stopped)
    ended = run.folder.stopped_at
    assert ended is not None
    ps.train(
        small(),
        out=tmp_path / "whole",
        steps=ended,
        keep_checkpoints="all",
        **{**SETTINGS, "checkpoint_every": 10},
    )
    whole = ps.open_run(tmp_path / "whole")
    losses = {
        one["step"]: math.fsum(one["validation"].values()) for one in whole.log() if "validation" in one
    }
    best = min(losses, key=losses.__getitem__)
    assert ended == best + 3 * 10
    assert run.model().step == best
    assert run.digest() == whole.digest(best)
    assert run.digest(ended) == whole.digest()
    assert [one["loss"] for one in run.log()] == [one["loss"] for one in whole.log()]


def test_the_header_says_that_and_where_it_stopped(stopped: Path) -> None:
    folder = RunFolder(stopped)
    header = read_header(folder.model_file)
    last = folder.read_log()[-1]["step"]
    assert header["stopped_early_of"] == 2000
    assert header["stopped_early_at"] == folder.stopped_at == last == folder.checkpoints.steps[-1]
    assert header["step"] == last - 30
    assert folder.is_finished
    assert not folder.is_finished_for(header["step"])


def test_called_again_it_is_finished_and_nothing_is_written(stopped: Path) -> None:
    before = files_of(stopped)
    steps: list[int] = []
    model = ps.train(
        small(), out=stopped, steps=2000, patience=3, progress=lambda step, _: steps.append(step), **SETTINGS
    )
    assert steps == []
    assert model.digest == ps.open_run(stopped).digest()
    assert files_of(stopped) == before


def test_stopped_by_ctrl_c_at_any_step_it_ends_with_the_same_bytes(stopped: Path, tmp_path: Path) -> None:
    """Before the best validation, right after it, and while it waits."""
    ended = RunFolder(stopped).stopped_at
    assert ended is not None
    moments = [3, ended - 30, ended - 29, ended - 11, ended - 1]

    def interrupt(step: int, _: object) -> None:
        if moments and step == moments[0]:
            moments.pop(0)
            signal.raise_signal(signal.SIGINT)

    for _ in range(5):
        with pytest.raises(KeyboardInterrupt):
            ps.train(small(), out=tmp_path / "run", steps=2000, patience=3, progress=interrupt, **SETTINGS)
    ps.train(small(), out=tmp_path / "run", steps=2000, patience=3, **SETTINGS)
    assert results(tmp_path / "run") == results(stopped)


def test_killed_before_the_model_is_written_or_at_an_earlier_checkpoint_it_ends_with_the_same_bytes(
    stopped: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    for lost in (0, 1):
        shutil.copytree(stopped, run)
        (run / "model.safetensors").unlink()
        for step in RunFolder(run).checkpoints.steps[::-1][:lost]:
            shutil.rmtree(run / "checkpoints" / f"step-{step}")
        ps.train(small(), out=run, steps=2000, patience=3, **SETTINGS)
        assert results(run) == results(stopped)
        shutil.rmtree(run)


def test_a_training_that_reaches_its_last_step_is_as_without_patience(stopped: Path, tmp_path: Path) -> None:
    ended = RunFolder(stopped).stopped_at
    assert ended is not None
    with_patience = ps.train(small(), out=tmp_path / "run", steps=ended - 1, patience=3, **SETTINGS)
    without = ps.train(small(), steps=ended - 1, **SETTINGS)
    assert with_patience.digest == without.digest
    assert with_patience.step == ended - 1
    assert RunFolder(tmp_path / "run").stopped_at is None


def test_more_steps_end_as_a_new_training_with_that_maximum(stopped: Path, tmp_path: Path) -> None:
    """One that reached its maximum is continued until its patience runs out; one that stopped early stays as it is."""
    ended = RunFolder(stopped).stopped_at
    assert ended is not None
    for before in (ended - 7, ended, 1500):
        run = tmp_path / f"after-{before}"
        ps.train(small(), out=run, steps=before, patience=3, **SETTINGS)
        ps.train(small(), out=run, steps=2000, patience=3, **SETTINGS)
        assert ps.open_run(run).digest() == ps.open_run(stopped).digest()
        assert RunFolder(run).is_finished_for(2000)
        assert read_header(run / "model.safetensors")["stopped_early_at"] == ended


def test_fewer_steps_and_another_patience_are_refused(stopped: Path) -> None:
    ended = RunFolder(stopped).stopped_at
    assert ended is not None
    with pytest.raises(InputError, match=f"already has {ended} steps"):
        ps.train(small(), out=stopped, steps=ended - 30, patience=3, **SETTINGS)
    for other in (0, 5):
        with pytest.raises(InputError, match=r"other settings .*patience"):
            ps.train(small(), out=stopped, steps=2000, patience=other, **SETTINGS)


@pytest.mark.parametrize("objective", ["annealed", "factor"])
def test_objectives_with_a_ramp_or_an_adversary_resume_to_the_same_bytes(
    objective: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"annealed": {"ramp_steps": 25, "gamma": 2.0}, "factor": {"gamma": 2.0}}[
        objective
    ]
    settings = {**SETTINGS, "objective": objective, **options, "steps": 2000, "patience": 2}
    ps.train(small(), out=tmp_path / "whole", **settings)
    ended = RunFolder(tmp_path / "whole").stopped_at
    assert ended is not None
    assert ended >= 25 + 2 * 10

    def interrupt(step: int, _: object) -> None:
        if step == ended - 5:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        ps.train(small(), out=tmp_path / "run", progress=interrupt, **settings)
    ps.train(small(), out=tmp_path / "run", **settings)
    assert results(tmp_path / "run") == results(tmp_path / "whole")


def test_it_is_refused_without_a_held_out_loss() -> None:
    with pytest.raises(InputError, match="no observations are held out"):
        ps.train(small(), patience=3, train_fraction=1.0, steps=10)
    sprites = ps.load_dataset("sprites", image_size=16)
    with pytest.raises(InputError, match="game with an adversary"):
        ps.train(sprites, "weak-gan", patience=3, steps=10)
    with pytest.raises(InputError, match="would stop it earlier"):
        ps.size(small(), patience=3)


# Every surface.


def test_a_run_that_stopped_early_is_whole_finished_and_described_by_its_best_model(stopped: Path) -> None:
    run = ps.open_run(stopped)
    best, ended = run.folder.finished_steps, run.folder.stopped_at
    assert best is not None
    assert ended is not None
    assert run.is_finished
    assert run.steps[-1] == ended
    assert best in run.steps
    assert {finding.state for finding in inspect_folder(stopped)} == {"whole"}
    assert run.log_until()[-1]["step"] == best
    assert run.log_until(ended)[-1]["step"] == run.log()[-1]["step"] == ended
    (row,) = runs_table([stopped]).rows
    logged = next(one for one in run.log() if one["step"] == best)
    assert (row["state"], row["loss"]) == ("done", logged["loss"])
    assert list(run.course().steps) == run.steps


def test_the_terminal_says_that_it_stopped_early(
    stopped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(stopped)
    assert main(["show", str(stopped)]) == 0
    assert (
        f"stopped early at {folder.stopped_at}, model of step {folder.finished_steps}"
        in capsys.readouterr().out
    )
    flags = "--n-samples 60 --net mlp --latents 3 --learning-rate 0.01 --batch-size 16 --variance 0.01"
    flags += " --log-every 5 --validate-every 10 --steps 2000 --patience 3"
    assert main(["train", "gaussian", *flags.split(), "--out", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert f"Training stopped early; the model is from step {folder.finished_steps}, " in printed
