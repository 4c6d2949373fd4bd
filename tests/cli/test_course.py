"""A run followed, and latents over runs, from the command line."""

from __future__ import annotations

import csv
import re
import shutil
import signal
import time

import numpy as np
import pytest

from kept import contents
from polariscope.analysis.course import Course
from polariscope.cli import main

TRAIN = (
    "train gaussian --net linear --latents 2 --eigenvalues 4,0.01 --variance 0.1 --n-samples 1000 --steps 40 "
    "--learning-rate 0.03 --validate-every 40 --log-every 10 --checkpoint-every 10 --keep-checkpoints all --quiet"
)


@pytest.fixture(scope="module")
def trained_runs(tmp_path_factory, one_thread):
    """Two finished runs of a linear model, with other seeds, every checkpoint kept. Do not change them."""
    folder = tmp_path_factory.mktemp("course")
    for seed in (0, 1):
        assert main([*TRAIN.split(), "--seed", str(seed), "--out", str(folder / f"run{seed}")]) == 0
    return folder


@pytest.fixture
def runs(trained_runs, elsewhere):
    """A copy of both in the folder where commands are given."""
    for name in ("run0", "run1"):
        shutil.copytree(trained_runs / name, elsewhere / name)
    return "run0 run1"


def test_a_course_is_printed_written_kept_and_on_the_page(call, runs, elsewhere):
    words = "course run0 --samples 200 --layer-samples 60 --against run1 --latent 1 --csv out.csv"
    printed = call(words)
    assert printed.code == 0, printed.err
    (stored,) = contents(elsewhere / "run0", "course")
    kept = Course.from_dict(stored)
    assert kept.steps == (10, 20, 30, 40)
    assert kept.latent == 1
    assert str(kept) in printed.out
    assert "Saved in run0" in printed.out
    rows = list(csv.DictReader((elsewhere / "out.csv").read_text().splitlines()))
    assert [int(row["step"]) for row in rows] == [10, 20, 30, 40]
    assert (
        float(rows[2]["cka(run1).mean"])
        == kept.layers.similarities[1].values[2, kept.layers.names.index("mean")]
    )
    assert call(words).out == printed.out
    assert call("check run0").code == 0
    shown = call("show run0").out
    assert "latent 1" in shown
    call("report run0 --samples 200")
    page = (elsewhere / "run0" / "report.html").read_text()
    text = re.sub(r"<[^>]+>", " ", page)
    assert "Course of the run" in text
    assert "At 4 checkpoints" in text
    assert "CKA with run1" in text
    assert "Correlation of latent 1 with the others" in text
    assert "over the checkpoints to the next report" not in text


def test_a_run_that_was_not_followed_shows_what_its_log_has(call, runs, elsewhere):
    call("report run1 --samples 200")
    page = (elsewhere / "run1" / "report.html").read_text()
    assert 'aria-label="Δ_KL over the training steps' in page
    assert "std μ of each latent" in page
    assert "<code>polariscope course run1</code>" in page


def test_some_steps_and_wrong_ones(call, runs):
    assert "one step (20)" in call("course run0 --samples 50 --steps 20").out
    refused = call("course run0 --steps ten")
    assert refused.code == 2
    assert "--steps must be a list of integers, got 'ten'" in refused.err
    assert "there is no run at nowhere" in call("course nowhere").err
    assert "there is no run at nowhere" in call("course run0 --against nowhere").err


def test_stopped_by_ctrl_c_it_goes_on_from_there(call, fork, runs, elsewhere):
    """The process is stopped once it has kept something; the same command measures the rest."""
    process = fork("course", "run0", "--samples", "1000", "--layers")
    until = time.monotonic() + 90
    while not list((elsewhere / "run0").glob("course-codes-*.jsonl")) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=90)
    assert process.returncode in (0, 130)  # it may have been done already
    assert "Traceback" not in errors
    if process.returncode == 130:
        assert "To resume, run the same command again" in errors
    assert call("check run0").code == 0
    done = call("course run0 --samples 1000 --layers")
    assert done.code == 0
    assert "4 steps from 10 to 40" in done.out


def test_the_stability_of_runs_is_printed_and_written(call, runs, elsewhere):
    printed = call(f"stability {runs} run0 --samples 200 --csv out.csv")
    assert printed.code == 0, printed.err
    assert printed.out.startswith("Consistency ")
    assert "most central" in printed.out
    assert "run0 (3)" in printed.out
    rows = list(csv.DictReader((elsewhere / "out.csv").read_text().splitlines()))
    assert float(next(row for row in rows if row["model"] == "run0")["strength.run0 (3)"]) == pytest.approx(1)
    pearson = call(f"stability {runs} --samples 200 --relation pearson").out
    assert "|pearson correlation|" in pearson
    assert "Train a third" in pearson


def test_codes_of_other_libraries_take_part_as_files(call, elsewhere):
    """The same two latents in another order and with other signs, and a passive one that is not counted."""
    draw = np.random.default_rng(0)
    codes, still = draw.normal(size=(100, 2)), 1e-4 * draw.normal(size=(100, 1))
    variance = np.tile([0.01, 0.01, 1.0], (100, 1))
    np.savez(elsewhere / "a.npz", mean=np.hstack([codes, still]), variance=variance)
    np.savez(elsewhere / "b.npz", mean=np.hstack([-codes[:, ::-1], still]), log_variance=np.log(variance))
    printed = call("stability a.npz b.npz")
    assert printed.code == 0, printed.err
    assert "Consistency 1.000" in printed.out
    assert "a.npz" in printed.out
    assert "1.00 (1)" in printed.out
    np.savez(elsewhere / "still.npz", mean=np.zeros((100, 2)), variance=np.ones((100, 2)))
    unused = call("stability still.npz still.npz").out
    assert "No latent is in use" in unused
    assert "recurs" not in unused  # no empty table of latents
    assert "--samples requires a run" in call("stability a.npz b.npz --samples 50").err
    assert "there is no file c.npz" in call("stability a.npz c.npz").err
    assert "models must contain at least two models" in call("stability a.npz").err


def test_options_of_the_other_table_are_refused(call, runs):
    refused = call(f"table {runs} --samples 9")
    assert (refused.code, "--samples" in refused.err) == (2, True)
    for option in ("--over-seeds", "--compare seed=0,1", "--part test"):
        refused = call(f"stability {runs} {option}")
        assert (refused.code, option.split()[0] in refused.err) == (2, True)
    assert "--relation" in call(f"stability {runs} --relation kendall").err
    assert "spearman" in call(f"stability {runs} --relation kendall").err


def test_the_flag_that_became_a_command_still_works_and_warns(call, runs):
    forwarded = call(f"table --stability {runs} --samples 200 --relation pearson")
    assert forwarded.out == call(f"stability {runs} --samples 200 --relation pearson").out
    assert "table --stability is deprecated since 0.3" in forwarded.err
    assert "use stability instead" in forwarded.err
