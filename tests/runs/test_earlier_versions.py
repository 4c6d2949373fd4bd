"""Runs and answers of version 0.2.0: they open, have their recorded hash, and resume to their end."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import polariscope as ps
from polariscope.analysis.metrics import Scores
from polariscope.analysis.regime.regime import Regime
from polariscope.core.options import from_record
from polariscope.runs.run import Run
from polariscope.sizing.result import Size
from polariscope.sizing.size import read_size
from polariscope.sizing.trial import coded
from polariscope.storage.documents import settings_hash
from polariscope.training.settings import TrainSettings

FIXTURES = Path(__file__).parents[1] / "fixtures"
HASH = "fe3aa9799b01a907f335fbb0d03e445f5c44e48a28bc4a7260b2224358f95d9d"
MOST_BYTES = 200_000
SETTINGS = {
    "objective": "beta",
    "beta": 4.0,
    "net": "mlp",
    "net_encoder_widths": (6,),
    "net_decoder_widths": (6,),
    "n_latents": 3,
    "batch_size": 16,
    "learning_rate": 1e-3,
    "log_every": 10,
    "checkpoint_every": 20,
    "seed": 1,
}
"""As tests/fixtures/make.py has them, without the number of steps."""


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A copy of the run, interrupted at step 40 of 80."""
    return shutil.copytree(FIXTURES / "run-0.2.0", tmp_path / "run")


def test_the_fixtures_are_small():
    assert sum(file.stat().st_size for file in FIXTURES.rglob("*") if file.is_file()) <= MOST_BYTES


def test_it_opens_with_its_recorded_hash(earlier: Path):
    run = ps.open_run(earlier)
    assert run.settings["polariscope"] == "0.2.0"
    assert run.settings["hash"] == settings_hash(run.settings) == HASH
    assert run.steps == [40]
    assert not run.is_finished
    assert [line["step"] for line in run.log()] == [10, 20, 30, 40, 50]
    assert ps.load_model(earlier, step=40).step == 40


def test_the_same_settings_have_the_same_hash_and_identity_in_this_version(earlier: Path):
    from polariscope.training.plan import plan

    record = plan(ps.load_dataset("digits"), steps=80, **SETTINGS).describe("cpu")
    stored = ps.open_run(earlier).settings
    assert record["hash"] == HASH
    assert record["training_identity"] == stored["training_identity"]
    training = from_record(TrainSettings, stored["training"])
    assert training.describe() == stored["training"]


def test_its_results_are_read_as_a_report_does(earlier: Path):
    """A new call computes results with this version; those of an earlier one stay and can be shown."""
    run = Run(earlier, read_only=True)
    found = {kind: run.newest(kind, 40) for kind in ("regime", "scores")}
    assert all(artefact is not None and artefact.key.polariscope == "0.2.0" for artefact in found.values())
    regime = Regime.from_dict(run.read(found["regime"]))
    assert [note.code for note in regime.notes] == ["wide", "intermediate"]
    assert [note.latents for note in regime.notes] == [(0, 2), (1,)]
    assert Regime.from_dict(regime.to_dict()) == regime
    assert "mig" in Scores.from_dict(run.read(found["scores"])).scores


@pytest.mark.parametrize("steps", [80, 120])
def test_it_resumes_to_its_end(earlier: Path, steps: int):
    seen: list[int] = []
    model = ps.train(
        ps.load_dataset("digits"),
        steps=steps,
        out=earlier,
        progress=lambda step, _: seen.append(step),
        **SETTINGS,
    )
    assert (model.step, seen[0], seen[-1]) == (steps, 41, steps)
    run = ps.open_run(earlier)
    assert run.is_finished
    assert [line["step"] for line in run.log()] == list(range(10, steps + 1, 10))


def test_the_answer_of_a_search_is_read():
    size = read_size(FIXTURES / "size-0.2.0")
    assert (size.value, size.interval, size.method) == (3, (2, 4), "fondue")
    assert [trial.role for trial in size.trials] == ["narrow", "narrow"]
    assert Size.from_dict(size.to_dict()) == size


@pytest.mark.parametrize(
    ("note", "role", "cause"),
    [
        ("", "narrow", None),
        ("wide model, for a first guess", "wide", None),
        ("no latent says anything about the input after 1,600 steps", "narrow", "silent"),
        (
            "undecided after 8,000 steps; counted as fitting because it is below the threshold now",
            "narrow",
            "below",
        ),
        (
            "undecided after 8,000 steps; counted as too many because it is above the threshold now; its posteriors "
            "are still wider than the prior: train longer, or raise the learning rate",
            "narrow",
            "above-unsettled",
        ),
    ],
)
def test_a_note_of_0_2_0_about_a_trial_becomes_its_role_and_cause(note: str, role: str, cause: str | None):
    trial = {"n_latents": 3, "note": note}
    assert coded(trial) == {"n_latents": 3, "role": role, "cause": cause}
