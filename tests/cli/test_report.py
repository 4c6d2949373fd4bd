"""The report and the demo, from the command line."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

import polariscope as ps
from kept import contents
from long_training import unchecked
from polariscope.analysis.convergence import TrainingState
from polariscope.analysis.verdict import Verdict
from polariscope.cli import demo


def test_report_says_where_it_is_and_how_large(call, trained, elsewhere):
    run = shutil.copytree(trained, elsewhere / "run")
    done = call("report run --samples 200")
    assert done.code == 0
    size = (run / "report.html").stat().st_size
    assert 10_000 < size < 1_000_000
    assert f"run/report.html ({size / 1e3:.0f} kB)" in done.out


def test_report_of_nothing_is_refused(call, elsewhere):
    refused = call("report missing")
    assert refused.code == 2
    assert "there is no run and no file at missing" in refused.err
    assert not list(elsewhere.iterdir())


@pytest.fixture
def quick_demo(monkeypatch):
    """Small images, and a net that takes a millisecond for a step."""
    small = {"name": "mlp", "encoder_widths": (16,), "decoder_widths": (16,)}
    monkeypatch.setitem(demo.DEMO_DATASET_OPTIONS, "image_size", 16)
    monkeypatch.setitem(demo.DEMO_SETTINGS, "net", small)


def test_demo_trains_diagnoses_and_reports_and_can_be_run_again(call, elsewhere, quick_demo):
    with unchecked():
        first = call("demo --steps 425")
    assert first.code == 0
    run = elsewhere / "runs" / "demo"
    for name in ("settings.json", "model.safetensors", "report.html"):
        assert (run / name).exists()
    assert len(contents(run, "regime")) == 1
    verdict = ps.open_run(run).verdict()
    # After training and on the page: the same count.
    assert first.out.count(verdict.use) == 1
    assert re.findall(rf"\d+ of {demo.DEMO_LATENTS} latents are in use", first.out) == [
        f"{verdict.n_in_use} of {demo.DEMO_LATENTS} latents are in use"
    ]
    assert verdict.short in (run / "report.html").read_text()
    assert "runs/demo/report.html" in first.out
    assert re.search(r"Next:\n  polariscope train sprites .* --latents \d+ ", first.out)
    again = call("demo --steps 425")
    assert again.code == 0
    assert "Already trained for 425 steps" in again.out
    last = "loss "
    assert again.out.partition(last)[2] == first.out.partition(last)[2]


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (Verdict(8, (0, 1, 2), (3, 3), TrainingState("converged", 9)), "these images need 3 latents"),
        (
            Verdict(3, (0, 1, 2), (3, 3), TrainingState("converged", 9)),
            "might need more. Train with more latents",
        ),
        (Verdict(8, (0,), (1, 2), TrainingState("still-learning", 9)), "latents in use can still change"),
    ],
)
def test_the_demo_gives_one_piece_of_advice(verdict, words):
    assert words in demo.conclusion(verdict)
    assert demo.conclusion(verdict).startswith("Conclusion: ")


def test_the_commands_the_demo_suggests_are_complete(call, elsewhere, quick_demo):
    """Each is typed in as it is, for as many steps as the demo had."""
    with unchecked():
        shown = call("demo --steps 1 --out run").out
    suggested = re.findall(r"^  polariscope (train sprites .*?)   ", shown, re.MULTILINE)
    assert len(suggested) == 2
    for words in suggested:
        done = call(words)
        assert done.code == 0
        assert "Trained for 1 step:" in done.out


def test_what_can_be_done_about_a_missing_file_and_data_in_memory_can_be_done_here(call, elsewhere):
    assert (
        "there is no file nope.npz; pass a run folder, a model or an existing .npz file"
        in call("report nope.npz").err
    )
    ps.train(np.random.default_rng(0).normal(size=(50, 3)), steps=2, out="memory")
    for command in ("report memory", "compare memory"):
        refused = call(command)
        assert refused.code == 2
        assert "open the run in Python" in refused.err
        assert "pass data" not in refused.err
