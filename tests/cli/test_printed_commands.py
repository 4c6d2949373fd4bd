"""Every command that a page or a message prints works when it is pasted where it was printed."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pytest

from polariscope.cli import main

TRAIN = (
    "train gaussian --n-samples 300 --net linear --latents 2 --steps 40 --log-every 5 --checkpoint-every 20 "
    "--keep-checkpoints all --out"
)


def commands_in(text: str) -> list[str]:
    """Return the commands under "Next:" of an output."""
    return re.findall(r"^  polariscope (.*?)(?:   .*)?$", text, re.MULTILINE)


@pytest.mark.parametrize("folder", ["runs/b8", "run with spaces"])
def test_the_commands_of_messages_and_of_the_report_can_be_pasted(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*TRAIN.split(), folder]) == 0
    printed = commands_in(capsys.readouterr().out)
    assert len(printed) >= 2
    page = ""
    for command in printed:
        assert main(shlex.split(command)) == 0, command
    page = (Path(folder) / "report.html").read_text(encoding="utf-8")
    shown = [html.unescape(words) for words in re.findall(r"<code>polariscope (.*?)</code>", page)]
    assert {words.split()[0] for words in shown} >= {"score", "compare"}
    for command in shown:
        assert main(shlex.split(command)) == 0, command
    main(["report", folder])
    after = (Path(folder) / "report.html").read_text(encoding="utf-8")
    assert "Not scored yet" not in after
    assert "Not compared yet" not in after


def test_results_of_another_part_stay_on_the_page_with_their_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After score, diagnose --decompose and diagnose --part test, 0.2.0 dropped the scores and the rate."""
    monkeypatch.chdir(tmp_path)
    for command in (
        f"{TRAIN} run",
        "score run --metrics mig",
        "diagnose run --decompose",
        "diagnose run --part test",
    ):
        assert main(command.split()) == 0
    assert main(["report", "run"]) == 0
    page = re.sub("<[^>]+>", "", Path("run/report.html").read_text(encoding="utf-8"))
    assert "of the test part" in page
    assert "Not scored yet" not in page
    assert "Decomposition of the rate" in page
    assert page.count("(all data)") == 2
