"""The report and the demo, from the command line."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest

import polariscope as ps
from kept import contents
from long_training import unchecked
from polariscope.cli import demo
from polariscope.sizing import Size


def test_report_says_where_it_is_and_how_large(call, trained, elsewhere):
    run = shutil.copytree(trained, elsewhere / "run")
    done = call("report run --samples 200")
    assert done.code == 0
    size = (run / "report.html").stat().st_size
    assert size > 10_000
    assert f"run/report.html ({size / 1e6:.1f} MB)" in done.out


def test_report_of_nothing_is_refused(call, elsewhere):
    refused = call("report missing")
    assert refused.code == 2
    assert "there is no run and no file at missing" in refused.err
    assert not list(elsewhere.iterdir())


@pytest.fixture
def quick_demo(monkeypatch):
    """Small images, and a size from their intrinsic dimension, which trains nothing."""
    monkeypatch.setitem(demo.DEMO_DATASET_OPTIONS, "image_size", 16)
    monkeypatch.setitem(demo.DEMO_SIZING, "method", "id")


def test_demo_sizes_trains_diagnoses_and_reports_and_can_be_run_again(call, elsewhere, quick_demo):
    first = call("demo --steps 2")
    assert first.code == 0
    for name in ("settings.json", "model.safetensors", "report.html"):
        assert (elsewhere / "runs" / "demo" / name).exists()
    assert len(contents(elsewhere / "runs" / "demo", "regime")) == 1
    assert len(contents(elsewhere / "runs" / "demo", "size")) == 1
    assert re.match(r"\d+ latents \(", first.out)
    assert "Trained for 2 steps" in first.out
    assert re.search(rf"{demo.DEMO_LATENTS} latents: \d+ active, \d+ mixed, \d+ passive\.", first.out)
    assert f"of {demo.DEMO_LATENTS} latents the model uses" in first.out
    assert "How many latents" in (elsewhere / "runs" / "demo" / "report.html").read_text()
    assert "runs/demo/report.html" in first.out
    assert re.search(r"Next:\n  polariscope train sprites .* --latents \d+ ", first.out)

    again = call("demo --steps 2")
    assert again.code == 0
    assert "Already trained for 2 steps" in again.out
    last = "Next:"
    assert again.out.partition(last)[2] == first.out.partition(last)[2]


def test_the_demo_trains_the_widest_model_of_the_search_further(call, elsewhere, monkeypatch):
    monkeypatch.setitem(demo.DEMO_DATASET_OPTIONS, "image_size", 16)
    small = {"name": "mlp", "encoder_widths": (16,), "decoder_widths": (16,)}
    monkeypatch.setitem(demo.DEMO_SIZING, "net", small)
    monkeypatch.setitem(demo.DEMO_SIZING, "steps", 400)
    monkeypatch.setitem(demo.DEMO_SETTINGS, "net", small)
    with unchecked():
        told = call("demo --steps 2025")
    assert told.code == 0
    done = int(re.search(r"the search has trained it for ([\d,]+) steps", told.err)[1].replace(",", ""))
    (size,) = contents(elsewhere / "runs" / "demo", "size")
    (trial,) = [trial for trial in size["trials"] if trial["n_latents"] == demo.DEMO_LATENTS]
    assert trial["steps"] == done
    lines = [
        json.loads(line) for line in (elsewhere / "runs" / "demo" / "log.jsonl").read_text().splitlines()
    ]
    assert [[line["step"], line["trace"]] for line in lines if line["step"] <= done] == trial["curve"]
    assert lines[-1]["step"] == 2025


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3, "The search agrees: 3 latents (3). Take 3"),
        (4, "The search found 4 latents (4), from models trained for fewer steps. Both change"),
    ],
)
def test_the_demo_gives_one_piece_of_advice(answer, words):
    variance = np.where(np.arange(8) < 3, 0.01, 1.0) * np.ones((200, 1))
    mean = np.random.default_rng(0).normal(size=(200, 8)) * np.sqrt(1 - variance + 1e-6)
    regime = ps.diagnose(mean=mean, variance=variance)
    said = demo.conclusion(regime, Size(answer, (answer, answer), "fondue", trials=()))
    assert said.startswith("What it shows: of 8 latents the model uses 3 and leaves 5 passive. ")
    assert words in said


def test_the_commands_the_demo_suggests_are_complete(call, elsewhere, quick_demo):
    """Each is typed in as it is, for as many steps as the demo had."""
    shown = call("demo --steps 1 --out run").out
    suggested = re.findall(r"^  polariscope (train sprites .*?)   ", shown, re.MULTILINE)
    assert len(suggested) == 2
    for words in suggested:
        done = call(words)
        assert done.code == 0
        assert "Trained for 1 step:" in done.out


def test_what_can_be_done_about_a_missing_file_and_data_in_memory_can_be_done_here(call, elsewhere):
    assert (
        "there is no file nope.npz; give the folder of a run, or an .npz file" in call("report nope.npz").err
    )
    ps.train(np.random.default_rng(0).normal(size=(50, 3)), steps=2, out="memory")
    for command in ("report memory", "compare memory"):
        refused = call(command)
        assert refused.code == 2
        assert "look at the run in Python" in refused.err
        assert "pass data" not in refused.err
