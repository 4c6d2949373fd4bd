"""Progress is shown of long jobs, and of no others."""

from __future__ import annotations

import io
import sys

import pytest

from polariscope.core.progress import shown_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_job_that_is_done_at_once_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress("counting") as progress:
        for done in range(101):
            progress(done, 100)
    assert capsys.readouterr().err == ""


def test_a_pipe_gets_one_line_at_first_and_one_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress("counting", patience=0.0) as progress:
        for done in range(1, 5):
            progress(done, 4)
    assert capsys.readouterr().err == "counting … 25 %\ncounting: done in 0 s\n"


def test_a_terminal_gets_each_percent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with shown_progress("counting", patience=0.0) as progress:
        for done in (0, 1, 1, 2):
            progress(done, 2)
    assert terminal.getvalue() == "counting … 0 %\rcounting … 50 %\rcounting … 100 %\rcounting: done in 0 s\n"


def test_after_a_failure_the_next_message_has_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    def fail() -> None:
        with shown_progress("counting", patience=0.0) as progress:
            progress(0, 0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert terminal.getvalue() == "counting … 0 %\r\n"
