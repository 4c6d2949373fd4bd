"""``polariscope study`` and ``polariscope table``."""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch

from polariscope.analysis.regime.regime import Regime
from polariscope.numerics.intervals import t_interval
from polariscope.studies.ledger import Ledger

FILE = """
objective = "beta"
seeds = 2
[data]
name = "gaussian"
n_samples = 60
[settings]
net = "linear"
n_latents = 2
batch_size = 8
steps = 6
[grid]
beta = [1, 4]
[each.diagnose]
n_samples = 40
n_bootstrap = 5
"""


@pytest.fixture
def study(elsewhere: Path) -> Path:
    file = elsewhere / "mine.toml"
    file.write_text(FILE)
    return file


@pytest.mark.parametrize(("rule", "code"), [("discard", 0), ("fail", 1)])
def test_runs_that_diverge_are_planned_and_fail_unless_they_are_discarded(
    call, study: Path, rule: str, code: int
) -> None:
    wild = FILE.replace("beta = [1, 4]", "learning_rate = [1e30, 1e-3]").replace("seeds = 2", "seeds = 1")
    wild = wild.replace("steps = 6", 'steps = 6\noptimiser = "sgd"')
    study.write_text(f'diverged = "{rule}"\n{wild}')
    planned = call("study plan mine.toml")
    assert planned.code == 0
    assert "no trial: it diverged" in planned.out
    done = call("study run mine.toml")
    assert done.code == code
    assert ("1 run diverged and will not be in the table." in done.out + done.err) == (rule == "discard")


def test_a_device_that_is_not_there_is_refused_before_any_run_fails(call, study: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    study.write_text(f'device = "cuda"\n{FILE}')
    refused = call("study run mine.toml")
    assert refused.code == 2
    assert "4 waiting, 0 running, 0 done, 0 failed." in call("study status mine.toml").out


def test_a_study_is_planned_run_shown_and_cleaned(call, study: Path) -> None:
    planned = call("study plan mine.toml")
    assert planned.code == 0
    assert "4 runs, 4 left to train, 24 steps left." in planned.out
    assert "a trial" in planned.out
    assert not (study.parent / "mine").exists()  # nothing is written by a plan
    assert "4 waiting, 0 running, 0 done, 0 failed." in call("study status mine.toml").out
    done = call("study run mine.toml")
    assert done.code == 0
    assert "4 of 4 runs · 4 done" in done.err
    assert "0 waiting, 0 running, 4 done, 0 failed." in call("study status mine.toml").out
    assert "earlier runs" in call("study plan mine.toml").out
    written = call("study table mine.toml --format csv").out
    rows = list(csv.DictReader(written.splitlines()))
    assert [(row["beta"], row["seed"]) for row in rows] == [("1", "0"), ("1", "1"), ("4", "0"), ("4", "1")]
    call("study table mine.toml --out t.csv --where beta=4")
    assert len((study.parent / "t.csv").read_text().splitlines()) == 3
    assert call("study table mine.toml --format md --columns loss").out.startswith(
        "| run | state | beta | seed | loss |"
    )
    paired = call("study compare mine.toml beta=1,4 --columns loss").out
    assert "2 of 2" in paired or "0 of 2" in paired or "1 of 2" in paired
    assert "beta=4 minus beta=1" in paired
    wrong = call("study compare mine.toml beta=1")
    assert wrong.code == 2
    assert "be SETTING=A,B with two values of the setting" in wrong.err
    over = call("study seeds mine.toml --columns loss").out
    assert over.count(" loss ") == 2
    assert (study.parent / "mine/study.html").exists() is False
    assert "The report is in" in call("study report mine.toml").out
    assert (study.parent / "mine/study.html").exists()
    study.write_text(FILE.replace("[1, 4]", "[4]"))
    by_hand = study.parent / "mine/runs/by-hand"
    shutil.copytree(next((study.parent / "mine/runs").iterdir()), by_hand)
    (study.parent / "mine/runs/notes").mkdir()
    assert (
        "2 folders not part of the study's design; --yes deletes them." in call("study clean mine.toml").out
    )
    assert "2 folders deleted." in call("study clean mine.toml --yes").out
    assert call("study clean mine.toml").out.startswith("Nothing to delete: all run folders")
    assert by_hand.exists()  # only folders that the study began are deleted
    assert len(list((study.parent / "mine/runs").iterdir())) == 4
    assert "2 done" in call("study status mine.toml").out


def test_failed_runs_end_with_1_and_are_tried_again_on_request(call, study: Path) -> None:
    study.write_text(FILE.replace("[grid]", 'optimiser = "sgd"\nlearning_rate = 1e30\n[grid]'))
    failed = call("study run mine.toml")
    assert failed.code == 1
    assert "4 of 4 runs failed; 'polariscope study status mine.toml' shows the reasons" in failed.err
    assert "training diverged" in call("study status mine.toml").out
    assert "0 runs will be repeated" in call("study retry mine.toml --kind timeout").out
    assert "4 runs will be repeated" in call("study retry mine.toml").out
    assert call("study retry mine.toml --kind bad").code == 2


def test_the_next_commands_quote_a_file_with_a_space(call, study: Path) -> None:
    study.rename(study.with_name("my study.toml"))
    study.with_name("my study.toml").write_text(FILE.replace("[1, 4]", "[1]"))
    done = call("study run", ["my study.toml"])
    assert "polariscope study table 'my study.toml'" in done.out + done.err


def test_a_wrong_study_ends_with_2_and_writes_nothing(call, study: Path) -> None:
    study.write_text(FILE.replace("seeds = 2", "sedes = 2"))
    refused = call("study run mine.toml")
    assert refused.code == 2
    assert "mine.toml: no key of a study named 'sedes'" in refused.err
    assert "Did you mean 'seeds'?" in refused.err
    assert [entry.name for entry in study.parent.iterdir()] == ["mine.toml"]
    assert call("study plan nothing.toml").code == 2
    assert call("study plan nothing").code == 2


def test_any_runs_are_put_side_by_side(call, study: Path) -> None:
    call("study run mine.toml")
    runs = sorted(str(path) for path in (study.parent / "mine/runs").iterdir())
    shown = call("table", *runs, "--csv t.csv")
    assert shown.code == 0
    assert "The table is in t.csv" in shown.out
    rows = list(csv.DictReader((study.parent / "t.csv").read_text().splitlines()))
    assert [row["run"] for row in rows] == runs
    assert {row["beta"] for row in rows} == {"1.0", "4.0"}
    assert call("table", *runs, "--csv seeds.csv --over-seeds --columns loss").code == 0
    means = list(csv.DictReader((study.parent / "seeds.csv").read_text().splitlines()))
    assert sorted((row["beta"], row["column"], row["n"]) for row in means) == [
        ("1.0", "loss", "2"),
        ("4.0", "loss", "2"),
    ]
    assert call("table nowhere").code == 2
    assert "no column named" in call("table", *runs, "--where nothing=1").err


@pytest.mark.usefixtures("undrawn")
def test_several_runs_are_diagnosed_scored_and_reported_at_once(call, study: Path) -> None:
    call("study run mine.toml")
    runs = sorted(str(path.relative_to(study.parent)) for path in (study.parent / "mine/runs").iterdir())[:2]
    where = "--samples 40"
    diagnosed = call("diagnose", *runs, where, "--json d.json")
    assert diagnosed.code == 0
    assert [f"\n{run}\n" in diagnosed.out for run in runs] == [True, True]
    assert f"polariscope table {' '.join(runs)}" in diagnosed.out
    written = json.loads((study.parent / "d.json").read_text())
    assert list(written) == runs
    assert Regime.from_dict(written[runs[0]]).n_samples == 40
    scored = call("score", *runs, where, "--metrics tc,mi --json s.json")
    assert scored.code == 0
    assert scored.out.count("Saved in") == 2
    assert list(json.loads((study.parent / "s.json").read_text())) == runs
    reported = call("report", *runs, where)
    assert reported.code == 0
    assert reported.out.count("The report is in") == 2
    refused = call("report", *runs, "--out x.html")
    assert refused.code == 2
    assert "--out is one file, got 2 runs" in refused.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("mine.toml --ray", (None, "local")),
        ("mine.toml --on ray", (None, "local")),
        ("mine.toml --on ray --set ray.address=auto", (None, "auto")),
        ("--ray mine.toml --workers 3", (3, "local")),
        ("mine.toml --ray auto", (None, "auto")),
        ("--ray 10.0.0.1:6379 mine.toml", (None, "10.0.0.1:6379")),
    ],
)
def test_the_address_of_a_ray_cluster_may_be_left_out(
    call, study: Path, monkeypatch: pytest.MonkeyPatch, words: str, expected: tuple[object, ...]
) -> None:
    asked: list[tuple[object, ...]] = []

    def run_on_ray(ledger: Ledger, *given: object, progress: bool) -> dict[str, int]:
        asked.append(given)
        return ledger.counts()

    monkeypatch.setattr("polariscope.studies.workers.ray.run_on_ray", run_on_ray)
    done = call(f"study run {words}")
    assert done.code == 0
    assert "4 runs still waiting; run the same command again to resume." in done.out
    assert asked == [expected]


def test_jobs_are_submitted_and_told(call, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed")
    for name, text in {"sbatch": 'cp "$1" script.sh; echo Submitted batch job 4242', "srun": ""}.items():
        (study.parent / name).write_text(f"#!/bin/sh\n{text}\n")
        (study.parent / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{study.parent}:{os.environ['PATH']}")
    done = call(
        "study run mine.toml --slurm --workers 2 --slurm-option partition=long --slurm-option requeue"
    )
    assert done.code == 0
    assert "2 jobs: 4242, 4242. Scripts and logs are in" in done.out
    assert "polariscope study status mine.toml" in done.out
    script = (study.parent / "script.sh").read_text()
    assert "#SBATCH --partition=long\n" in script
    assert "#SBATCH --requeue\n" in script


def test_options_of_slurm_without_it_are_refused(call, study: Path) -> None:
    both = call("study run mine.toml --ray --slurm")
    assert (both.code, "--ray and --slurm cannot be combined" in both.err) == (2, True)
    assert "--wait requires --slurm" in call("study run mine.toml --wait").err
    option = call("study run mine.toml --slurm-option time=5")
    assert "--slurm-option requires --slurm" in option.err
    wrong = call("study run mine.toml --slurm --slurm-option time=")
    assert (
        "--slurm-option must be NAME=VALUE, or NAME for an option without a value, got 'time='" in wrong.err
    )
    other = call("study run mine.toml --on ray --set slurm.wait=yes")
    assert "--set slurm.wait does not apply to 'ray' workers; leave it out" in other.err
    assert "--ray and --on local cannot be combined" in call("study run mine.toml --on local --ray").err
    twice = call("study run mine.toml --slurm local --wait --set slurm.wait=no")
    assert "--wait and --set slurm.wait cannot be combined" in twice.err
    assert "no kind of workers named 'rya'" in call("study run mine.toml --on rya").err
    assert not (study.parent / "mine").exists()


def test_a_query_is_answered_over_the_table_of_a_study(call, study: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    query = "select beta, count(*) as n from runs group by beta order by beta"
    assert call("study sql mine.toml", [query], "--format csv").out == "beta,n\n1,2\n4,2\n"
    assert json.loads(call("study sql mine.toml", [query], "--format json").out)[1] == {"beta": 4, "n": 2}
    refused = call("study table mine.toml --over-seeds --sql", [query])
    assert (refused.code, "--over-seeds and --sql cannot be combined" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("study table mine.toml --over-seeds --columns loss", "study seeds mine.toml --columns loss"),
        ("study table --compare beta=1,4 mine.toml", "study compare mine.toml beta=1,4"),
        ("study table mine.toml --extremes=loss --format csv", "study extremes mine.toml loss --format csv"),
        (
            "study table mine.toml --paper --columns loss --format latex --digits 1",
            "study paper mine.toml --columns loss --format latex --digits 1",
        ),
    ],
)
def test_flags_that_became_commands_still_work_and_warn(call, study: Path, old: str, new: str) -> None:
    call("study run mine.toml")
    forwarded, called = call(old), call(new)
    assert (forwarded.code, forwarded.out) == (0, called.out)
    assert called.err == ""
    command = " ".join(new.split()[:2])
    assert f"is deprecated since 0.3 and will be removed in 0.4; use {command} instead." in forwarded.err


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make the output a terminal of a width."""

    def widen(width: int) -> None:
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
        monkeypatch.setenv("TERM", "dumb")
        monkeypatch.setattr("polariscope.cli.console.is_terminal", lambda console: True)

    return widen


def headers_of(printed: str) -> list[str]:
    """The words of the lines above the rules."""
    lines = printed.splitlines()
    return [
        word
        for line, rule in itertools.pairwise(lines)
        if rule.strip().startswith("──")
        for word in line.split()
    ]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_table_of_a_study_fits_the_terminal_and_a_file_has_all_columns(
    call, study: Path, terminal: Callable[[int], None], width: int
) -> None:
    call("study run mine.toml")
    piped = call("study table mine.toml").out
    main = ["beta", "seed", "loss", "in_use", "training", "active", "mixed", "passive", "kl"]
    assert headers_of(piped) == main
    terminal(width)
    shown = call("study table mine.toml").out
    assert headers_of(shown) == main
    assert "more columns: show all with --all" in shown
    every = call("study table mine.toml --all").out
    call("study table mine.toml --out t.csv")
    written = pandas.read_csv(study.parent / "t.csv")
    filled = [
        name for name in written.columns if written[name].notna().any()
    ]  # no latent is in use after few steps
    assert {*headers_of(every)} == {*filled}
    for printed in (
        shown,
        every,
        call("study seeds mine.toml").out,
        call("study compare mine.toml beta=1,4").out,
    ):
        assert max(map(len, printed.splitlines()), default=0) <= max(width, 85)
        assert "…" not in printed
    assert headers_of(call("study table mine.toml --columns trace,loss").out) == [
        "beta",
        "seed",
        "trace",
        "loss",
    ]


def test_runs_that_are_not_done_have_their_state_in_the_table(call, study: Path) -> None:
    study.write_text(
        FILE.replace("[each.diagnose]\nn_samples = 40\nn_bootstrap = 5\n", "[budget]\nmax_runs = 3\n")
    )
    call("study run mine.toml")
    study.write_text(study.read_text().replace("max_runs = 3", "max_runs = 4"))
    assert headers_of(call("study table mine.toml").out) == [
        *("beta", "seed", "state", "loss", "active", "mixed", "passive", "loss.rate"),
    ]


ATTACKED = """
seeds = 3
objective = [{ name = "beta", beta = 2 }, { name = "ae" }]
[data]
name = "sprites"
image_size = 16
[settings]
net = "linear"
n_latents = 2
batch_size = 8
steps = 4
probe_samples = 8
[grid]
"data.variants" = [[], ["pixel-noise:epsilon=0.1,seed=2"]]
[each.score]
metrics = "mig"
n_samples = 300
[each.coordinates]
n_samples = 300
n_points = 200
"""


@pytest.fixture
def attacked(call, elsewhere: Path) -> list[dict[str, str]]:
    """A study of original and noisy images, run; its table."""
    (elsewhere / "mine.toml").write_text(ATTACKED)
    assert call("study run mine.toml").code == 0
    return list(csv.DictReader(call("study table mine.toml --format csv").out.splitlines()))


def test_variants_are_compared_over_seeds_and_the_best_and_worst_restarts_are_shown(
    call, attacked: list[dict[str, str]]
) -> None:
    migs: dict[tuple[str, str], list[float]] = {}
    for row in attacked:
        migs.setdefault((row["objective"], row["data.variants"]), []).append(float(row["mig"]))
    noisy = "pixel-noise:epsilon=0.1,seed=2"

    shown = call("study compare mine.toml data.variants=original,pixel-noise --columns mig")
    assert shown.code == 0
    lines = [re.split(r" {2,}", line.strip()) for line in shown.out.splitlines() if "  mig  " in line]
    assert [line[0] for line in lines] == ["all", "objective=beta, beta=2", "objective=ae"]
    for line, name in zip(lines[1:], ("beta", "ae"), strict=True):
        differences = np.subtract(migs[name, noisy], migs[name, "none"])
        low, high = t_interval(differences) or (0, 0)
        assert line[2:4] == ["3", f"{differences.mean():.4g}"]
        assert line[5] == f"{low:.3g} to {high:.3g}"
    assert f"Differences are data.variants={noisy} minus data.variants=none" in shown.out
    wrong = call("study compare mine.toml data.variants=original,noise --columns mig")
    assert (wrong.code, "its values are none, pixel-noise:epsilon=0.1,seed=2" in wrong.err) == (2, True)

    chosen = call("study extremes mine.toml mig --columns coordinates --where objective=beta")
    assert chosen.code == 0
    assert len([line for line in chosen.out.splitlines() if " best " in line or " worst " in line]) == 4
    written = call("study extremes mine.toml mig --columns coordinates --format csv").out
    rows = list(csv.DictReader(written.splitlines()))
    assert list(rows[0])[-3:] == ["restart", "mig", "coordinates"]
    assert [row["restart"] for row in rows] == ["best", "worst"] * 4
    for row in rows:
        every = migs[row["objective"], row["data.variants"]]
        assert float(row["mig"]) == (max(every) if row["restart"] == "best" else min(every))
    verdicts = {row["run"]: row["coordinates"] for row in attacked}
    assert [row["coordinates"] for row in rows] == [verdicts[row["run"]] for row in rows]
    assert "polar" in " ".join(verdicts.values()) or "cartesian" in " ".join(verdicts.values())
    for option in ("--over-seeds", "--paper", "--compare data.variants=original,pixel-noise"):
        refused = call("study table mine.toml --extremes mig", option)
        assert (refused.code, "cannot be combined" in refused.err) == (2, True)
    assert "Did you mean 'mig'" in call("study extremes mine.toml migg").err
