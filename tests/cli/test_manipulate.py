"""``polariscope manipulate``."""

from __future__ import annotations

from pathlib import Path

import pytest

import polariscope as ps
from polariscope.cli import main


def test_from_runs_to_a_model_of_manipulated_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = ["sprites", "--image-size", "16", "--variant", "subset:n=100"]
    train = ["train", *data, "--objective", "beta", "--latents", "2", "--steps", "8", "--threads", "1"]
    for seed in ("0", "1", "2"):
        assert main([*train, "--learning-rate", "0.01", "--seed", seed, "--out", f"run-{seed}"]) == 0
    short = ["--steps", "2", "--batch-size", "4", "--draws", "1", "--threads", "1", "--log-every", "1"]
    command = ["manipulate", "run-0", "run-1", "run-2", "--out", "attack", *short]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "Entangled: run-" in shown.out
    assert "(mig 0." in shown.out
    assert "The gap between their losses" in shown.out
    assert "polariscope train sprites --image-size 16 --variant manipulated:attack" in shown.out
    assert "The page attack/report.html shows its effect" in shown.out
    assert "attack: attacking with 1 thread\n" in shown.err
    assert "gap" in shown.err
    assert main(command) == 0
    assert "attacking" not in capsys.readouterr().err  # nothing is left to do
    assert main([*train, "--variant", "manipulated:attack", "--out", "run-m"]) == 0
    assert ps.open_run("run-m").settings["data"]["variants"][-1]["name"] == "manipulated"
    capsys.readouterr()
    assert main(["check", "attack"]) == 0
    assert main(["diagnose", "attack"]) == 2
    assert "contains a manipulation of data, not a model" in capsys.readouterr().err


def test_a_wrong_call_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["manipulate", "nowhere", "--out", "attack"]) == 2
    assert "there is no run at nowhere; train one with 'polariscope train" in capsys.readouterr().err
    assert main(["manipulate", "--out", "attack"]) == 2
    assert "must be at least 2" in capsys.readouterr().err
    assert not Path("attack").exists()
