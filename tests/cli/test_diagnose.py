"""Naming the latents from the command line."""

from __future__ import annotations

import json
import math
import os
import re
import shutil

import numpy as np
import pytest

import polariscope as ps
from kept import artefacts, contents
from polariscope.analysis.decomposition import Decomposition
from polariscope.analysis.regime.regime import Regime


@pytest.fixture
def codes(elsewhere):
    """One active, one passive latent, as another library would write them."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(400, 2)) * [1.0, 0.01]
    np.savez("codes.npz", mean=mean, variance=np.tile([0.01, 1.0], (400, 1)))
    return elsewhere / "codes.npz"


def rows(printed: str) -> dict[str, list[str]]:
    """Rows of the table of latents by latent."""
    table = [line.split() for line in printed.split("Total correlation")[0].splitlines()]
    return {cells[0]: cells for cells in table if cells and cells[0].isdigit() and cells[1] != "latents:"}


def test_arrays_alone_are_diagnosed(call, codes):
    printed = call("diagnose codes.npz")
    assert printed.code == 0
    assert "1 of 2 latents is in use." in printed.out
    assert rows(printed.out)["0"][1:4:2] == ["yes", "active"]
    assert rows(printed.out)["1"][1:4:2] == ["no", "passive"]
    assert "2 latents: 1 active, 0 mixed, 1 passive." in call("diagnose codes.npz --details").out
    assert [path.name for path in codes.parent.iterdir()] == ["codes.npz"]


def test_kinds_of_mixed_latents_and_the_alphas_of_each_type_are_in_the_table(call, elsewhere):
    rng = np.random.default_rng(0)
    variance = np.tile([0.098, 0.5, 0.01], (400, 1))
    variance[::2, 2] = 1.0
    np.savez("kinds.npz", mean=rng.normal(size=variance.shape), variance=variance)
    shown = rows(call("diagnose kinds.npz").out)
    assert shown["0"][3] == "active"
    assert shown["1"][3:5] == ["mixed", "intermediate"]
    assert shown["2"][3:5] == ["mixed", "switching"]
    details = rows(
        call("diagnose kinds.npz --details")
        .out.split("Latents by KL")[1]
        .split("Dependence between latents")[0]
    )
    assert [details[latent][-10] for latent in "01"] == ["0.098–0.5", "0–0.5"]


def test_json_holds_the_whole_diagnosis(call, codes):
    call("diagnose codes.npz --json all.json --alpha 0.2")
    regime = Regime.from_dict(json.loads((codes.parent / "all.json").read_text()))
    assert regime.types == ["active", "passive"]
    assert regime.alpha == 0.2


def test_a_run_is_diagnosed_and_keeps_its_regime(call, trained, elsewhere):
    """λ = 4 and 0.01 with γ = 0.1: the KLs tend to ½ log 40 and 0, and 800 steps come within 1 % for seeds 0 to 5."""
    run = shutil.copytree(trained, elsewhere / "run")
    printed = call("diagnose run --samples 1000")
    assert printed.code == 0
    (stored,) = contents(run, "regime", n_samples=1000, alpha=0.1, seed=0)
    kept = Regime.from_dict(stored)
    assert kept.n_samples == 1000
    assert kept.counts == {"active": 1, "mixed": 0, "passive": 1}
    rates = [kept.latents[index].kl for index in kept.order]
    assert rates == pytest.approx([0.5 * math.log(40), 0], rel=0.03, abs=0.02)
    shown = rows(printed.out)
    assert [shown[str(latent.index)][3] for latent in kept.latents] == kept.types
    assert "polariscope report run" in printed.out


def test_the_rate_of_a_run_is_split_and_kept(call, trained, elsewhere):
    """λ = 4 with γ = 0.1 and prior N(0, 1): q(z) is the prior, so that the rate is all mutual information, ½ log 40."""
    run = shutil.copytree(trained, elsewhere / "run")
    printed = call("diagnose run --samples 1000 --decompose --json all.json")
    assert printed.code == 0
    (stored,) = contents(run, "decomposition", n_samples=1000)
    kept = Decomposition.from_dict(stored)
    assert str(kept) in printed.out
    assert kept.n_samples == 1000
    assert kept.mutual_information == pytest.approx(
        0.5 * math.log(40), abs=5 * kept.errors["mutual_information"]
    )
    assert kept.total_correlation == pytest.approx(0, abs=0.03)
    everything = json.loads((elsewhere / "all.json").read_text())
    assert Decomposition.from_dict(everything.pop("decomposition")) == kept
    assert Regime.from_dict(everything).n_samples == 1000


def test_the_rate_of_arrays_is_split_only_when_asked(call, codes):
    assert "mutual information" not in call("diagnose codes.npz").out
    printed = call("diagnose codes.npz --decompose")
    assert printed.code == 0
    assert re.search(r"mutual information +\d\.\d{3} ± 0\.\d{3}", printed.out)
    assert [path.name for path in codes.parent.iterdir()] == ["codes.npz"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("diagnose missing", "there is no run and no file at missing; train a model"),
        ("diagnose codes.npz --alpha 3", "--alpha must lie between 0 and 0.5"),
        ("diagnose codes.npz --alfa 0.1", "No such option.*--alpha"),
        ("diagnose codes.npz --samples 10", "--samples requires a run"),
        ("diagnose codes.npz --json .", "--json must be a file"),
        ("diagnose bad.npz", "must contain 'mean' and 'variance'"),
        ("diagnose log.npz", "this looks like a log-variance"),
        ("diagnose notes.txt", "must be an npz file"),
        ("diagnose empty", "is not a run folder"),
        ("diagnose point.npz --decompose", "a posterior that is a point has no density"),
    ],
)
def test_a_wrong_call_is_refused_in_words(call, codes, words, message):
    np.savez("bad.npz", mean=np.zeros((3, 2)))
    np.savez("log.npz", mean=np.zeros((3, 2)), variance=np.full((3, 2), -1.0))
    np.savez("point.npz", mean=np.arange(6.0).reshape(3, 2), variance=np.zeros((3, 2)))
    (codes.parent / "notes.txt").write_text("no arrays")
    (codes.parent / "empty").mkdir()
    before = sorted(codes.parent.rglob("*"))
    refused = call(words)
    assert refused.code == 2
    assert re.search(message, refused.err)
    assert refused.out == ""
    assert sorted(codes.parent.rglob("*")) == before


def test_an_unfinished_run_says_how_to_finish_it(call, trained, elsewhere):
    run = shutil.copytree(trained, elsewhere / "run")
    (run / "model.safetensors").unlink()
    for words in ("diagnose run", "report run"):
        refused = call(words)
        assert refused.code == 2
        assert "run the same train command again to resume it" in refused.err
    assert artefacts(run, "regime") == []
    assert not (run / "report.html").exists()


def test_a_damaged_model_fails_with_a_message_and_code_1(call, trained, elsewhere):
    run = shutil.copytree(trained, elsewhere / "run")
    content = bytearray((run / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (run / "model.safetensors").write_bytes(content)
    failed = call("diagnose run")
    assert failed.code == 1
    assert "is damaged" in failed.err
    assert "Traceback" not in failed.err


def test_a_checkpoint_is_diagnosed_by_its_step(call, tiny, elsewhere):
    call(f"{tiny} --steps 30 --keep-checkpoints all --out run --quiet")
    assert call("diagnose run --samples 200 --step 10").code == 0
    assert call("diagnose run --samples 200").code == 0
    assert [one.key.step for one in artefacts(elsewhere / "run", "regime")] == [10, 30]
    refused = call("diagnose run --step 11")
    assert refused.code == 2
    assert "has no model of step 11 (kept steps: 10, 20, 30" in refused.err


def test_an_unfinished_run_is_diagnosed_at_a_step_it_has(call, trained, elsewhere):
    run = shutil.copytree(trained, elsewhere / "run")
    (run / "model.safetensors").unlink()
    assert call("diagnose run --samples 200 --step 800").code == 0


def test_a_run_of_another_format_says_what_to_do(call, trained, elsewhere):
    run = shutil.copytree(trained, elsewhere / "run")
    file = run / "settings.json"
    file.write_text(file.read_text().replace('"format": 2', '"format": 1'))
    for words in ("diagnose run", "score run", "report run", "show run", "compare run"):
        failed = call(words)
        assert failed.code == 1
        assert "in format 1, and this version reads only format 2. Train it again" in failed.err


@pytest.mark.usefixtures("undrawn")
def test_a_part_of_the_split_is_diagnosed_scored_and_reported(call, trained, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    n_test = len(ps.open_run(run).split().test)
    done = call(f"diagnose {run} --part test --json {tmp_path / 'test.json'}")
    assert done.code == 0
    assert json.loads((tmp_path / "test.json").read_text())["n_samples"] == n_test
    assert ps.open_run(run).newest("regime", part="test") is not None
    assert ps.open_run(run).newest("regime", part="train") is None
    assert call(f"score {run} --metrics active-units --part validation").code == 0
    assert ps.open_run(run).newest("scores", part="validation") is not None
    assert call(f"report {run} --part test").code == 0
    page = next(run.glob("*.html")).read_text()
    assert "of the test part" in page
    assert "part=&#39;test&#39;" in page
    refused = call(f"diagnose {run} --part tset")
    assert refused.code == 2
    assert (
        "--part must be one of all, train, validation, test, got 'tset'; did you mean 'test'?" in refused.err
    )


def test_a_file_has_no_parts(call, tmp_path):
    np.savez(tmp_path / "codes.npz", mean=np.zeros((5, 2)), variance=np.ones((5, 2)))
    for command in ("diagnose", "score", "report"):
        refused = call(f"{command} {tmp_path / 'codes.npz'} --part test")
        assert refused.code == 2
        assert "--part requires a run" in refused.err


def test_json_follows_a_link_and_a_pipe_is_refused_before_the_work(call, codes):
    (codes.parent / "link.json").symlink_to("real.json")
    assert call("diagnose codes.npz --json link.json").code == 0
    assert (codes.parent / "link.json").is_symlink()
    assert "latents" in json.loads((codes.parent / "real.json").read_text())
    os.mkfifo("pipe")
    for command in ("diagnose codes.npz --json", "score codes.npz --json", "report codes.npz --out"):
        refused = call(f"{command} pipe")
        assert refused.code == 2
        assert f"{command.split()[-1]} must be a file" in refused.err
        assert "got the pipe pipe" in refused.err
        assert refused.out == ""
    assert (codes.parent / "pipe").is_fifo()
