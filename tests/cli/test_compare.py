"""Comparing runs from the command line."""

from __future__ import annotations

import json
import re

import pytest

from kept import contents
from polariscope.layers.comparison import Comparison
from polariscope.layers.labels import cell
from polariscope.runs.run import load_model


@pytest.fixture
def runs(call, tiny):
    """Two finished runs of a linear model, with other seeds."""
    for seed in (0, 1):
        made = call(f"{tiny} --steps 30 --seed {seed} --keep-checkpoints all --out run{seed} --quiet")
        assert made.code == 0
    return "run0 run1"


def test_two_runs_are_compared_and_kept(call, runs, elsewhere):
    printed = call(f"compare {runs} --samples 200 --out out")
    assert printed.code == 0
    kept = Comparison.from_dict(json.loads((elsewhere / "out" / "similarity.json").read_text()))
    assert kept.models == ("run0", "run1")
    assert kept.n_samples == 200
    assert "cka: run0 (rows) with run1 (columns), 200 samples" in printed.out
    value, error = kept.average().matching()["mean"]
    row = next(line for line in printed.out.splitlines() if re.match(r"mean +\d\.\d{3} ±", line))
    assert row.split() == ["mean", f"{value:.3f}", "±", f"{error:.3f}"]
    # The input is the same for both; a picture is there.
    assert kept.average().matching()["input"][0] == pytest.approx(1, abs=1e-6)
    assert (elsewhere / "out" / "similarity.png").read_bytes()[:4] == b"\x89PNG"
    assert "Written: out/similarity.json, out/similarity.png" in printed.out


def test_another_measure_and_one_run_with_itself(call, runs, elsewhere):
    printed = call("compare run0 --measure procrustes --samples 150")
    assert printed.code == 0
    assert "procrustes: run0, layers with each other, 150 samples" in printed.out
    assert "Layers of the same name" not in printed.out
    assert len(contents(elsewhere / "run0", "comparison")) == 1


def test_options_of_the_measure_are_set_and_kept(call, runs, elsewhere):
    words = "compare run0 --measure cka-rbf --samples 150"
    plain, other = call(words), call(f"{words} --set cka-rbf.bandwidth=0.4")
    assert plain.code == other.code == 0
    assert plain.out != other.out
    options = [stored["options"] for stored in contents(elsewhere / "run0", "comparison")]
    assert options == [{}, {"bandwidth": 0.4}]


def test_options_of_the_measure_come_from_a_file_and_the_line_wins(call, runs, elsewhere):
    text = "[compare.cka-rbf]\nbandwidth = 0.4\n[compare.knn]\nneighbours = 3\n[score.mig]\nn_bins = 5\n"
    (elsewhere / "options.toml").write_text(text, encoding="utf-8")
    words = "compare run0 --measure cka-rbf --samples 150 --config options.toml"
    from_file, from_line = call(words), call(f"{words} --set cka-rbf.bandwidth=0.7")
    assert from_file.code == from_line.code == 0
    options = [stored["options"] for stored in contents(elsewhere / "run0", "comparison")]
    assert options == [{"bandwidth": 0.4}, {"bandwidth": 0.7}]


def test_more_runs_are_averaged_over_their_pairs(call, runs):
    printed = call("compare run0 run1 run0 --samples 150")
    assert "cka: 3 models, layers with each other, mean of 6 pairs of models" in printed.out


def test_checkpoints_of_a_run_are_compared(call, runs, elsewhere):
    printed = call("compare run0 --checkpoints --samples 150 --out out")
    assert printed.code == 0
    kept = Comparison.from_dict(json.loads((elsewhere / "out" / "similarity.json").read_text()))
    assert kept.groups == ("step 10", "step 20", "step 30")
    assert kept.steps == (10, 20, 30)
    assert "cka: each layer of run0 at each step with itself at step 30, 150 samples" in printed.out
    shown = [line.split() for line in printed.out.splitlines() if line.startswith("step ")]
    assert [row[1] for row in shown] == ["10", "20", "30"] * 2
    assert shown[1][2:] == [cell(value) for value in kept.course().values[1]]
    assert shown[4][2:] == [cell(value) for value in kept.between_steps("mean").values[1]]
    assert "Layers of the same name" not in printed.out


@pytest.mark.usefixtures("undrawn")
def test_the_report_of_the_first_run_shows_the_comparison(call, runs, elsewhere):
    words = "compare run0 --checkpoints --measure procrustes --samples 150 --seed 3"
    printed = call(words)
    assert printed.out.splitlines()[-3:] == [
        "Saved in run0",
        "Next:",
        "  polariscope report run0   all results on one page",
    ]
    again = call(words)
    assert (again.out, again.err) == (printed.out, "")  # read, not computed
    call("report run0 --samples 150")
    page = (elsewhere / "run0" / "report.html").read_text()
    assert "procrustes of each layer of run0 at each step with itself at step 30" in page


def test_runs_are_compared_at_a_step(call, runs, elsewhere):
    call(f"compare {runs} --samples 150 --step 10")
    call(f"compare {runs} --samples 150")
    early, late = (Comparison.from_dict(stored) for stored in contents(elsewhere / "run0", "comparison"))
    assert early.digests == tuple(load_model(name, step=10).digest for name in runs.split())
    assert late.digests == tuple(load_model(name).digest for name in runs.split())
    assert "use one of them" in call("compare run0 --checkpoints --step 10").err


def test_a_run_with_one_checkpoint_is_not_compared_with_itself(call, tiny, elsewhere):
    call(f"{tiny} --steps 10 --out single --quiet")
    refused = call("compare single --checkpoints")
    assert refused.code == 2
    assert (
        "only one checkpoint, of step 10, and a comparison requires two; train with --keep-checkpoints all"
        in refused.err
    )
    assert not list(elsewhere.rglob("comparison*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("compare missing", "there is no run and no file at missing"),
        ("compare .", "not a run folder"),
        (
            "compare run0 --set cka-rbf.bandwidth=0.4",
            "--set cka-rbf.… is for the measure cka-rbf, and --measure is cka",
        ),
        (
            "compare run0 --measure cka-rbf --set cka-rbf.width=1",
            "no option of similarity 'cka-rbf' named 'width'; there are bandwidth. Did you mean 'bandwidth'",
        ),
        (
            "compare run0 --measure cka-rbf --set cka-rbf.bandwidth=0",
            "bandwidth must be positive, got 0",
        ),
        ("compare run0 --measure ckka", "no similarity named 'ckka'.*Did you mean 'cka'"),
        ("compare run0 --samples 1", "--samples must be an integer of at least 2"),
        ("compare run0 --out run0/settings.json", "--out must be a folder"),
        ("compare run0 other", "models must be trained on the same data.*; compare runs on the same data"),
    ],
)
def test_a_wrong_call_is_refused_in_words(call, runs, tiny, elsewhere, words, message):
    call(f"{tiny.replace('4,0.01', '4,0.02')} --steps 10 --out other --quiet")
    refused = call(words)
    assert refused.code == 2
    assert re.search(message, refused.err)
    assert refused.out == ""
    assert not list(elsewhere.rglob("comparison*"))
