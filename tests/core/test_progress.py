"""Progress is shown of long jobs, and of no others."""

from __future__ import annotations

import io
import sys

import pytest

from polariscope.core.progress import (
    PercentLine,
    ProgressDisplay,
    ProgressEvent,
    listener,
    reporting,
    shown_progress,
    takes_events,
)


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


def hear(event: ProgressEvent) -> None:
    """A function of events."""
    raise AssertionError(event)


def test_only_a_function_of_an_event_takes_events() -> None:
    assert takes_events(hear)
    assert takes_events(PercentLine("counting"))
    for earlier in (lambda event: None, lambda done, total: None, [].append, print, lambda *line: None):
        assert not takes_events(earlier)


def test_functions_of_an_earlier_version_are_called_with_their_arguments() -> None:
    heard: list[tuple[object, ...]] = []
    send = listener(lambda *line: heard.append(line), lambda event: (event.done, event.total))
    assert send is not None
    send(ProgressEvent("counting", 1, 4))
    assert heard == [(1, 4)]
    assert takes_events(send)  # what one door has adapted the next leaves alone
    assert listener(send, lambda event: ()) is send
    assert listener(hear, lambda event: ()) is hear
    assert listener(None, lambda event: ()) is None


def test_an_event_is_its_message_or_its_percentage() -> None:
    assert str(ProgressEvent("counting", 1, 3)) == "counting … 33 %"
    assert str(ProgressEvent("counting", 1)) == "counting"
    assert str(ProgressEvent("counting", 1, 3, message="one of three")) == "one of three"
    assert ProgressEvent("counting", 3, 3).is_done
    assert not ProgressEvent("counting", 3).is_done


def test_a_log_has_a_line_now_and_then_and_one_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 0.0, 5.0, 25.0, 25.0, 26.0])
    with ProgressDisplay(20.0, clock=lambda: next(times)) as display:
        for done in range(1, 5):
            display(ProgressEvent("counting", done, 4))
    assert capsys.readouterr().err == "counting … 75 %\ncounting … 100 %\n"


def test_a_terminal_shows_the_last_message_of_each_task(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressDisplay() as display:
        for task, done in (("a", 1), ("b", 2), ("a", 3)):
            display(ProgressEvent(task, done, 4))
        assert display.text.plain == "a … 75 %\nb … 50 %"
    assert "a … 75 %" in terminal.getvalue()


def test_true_is_a_display_and_false_is_silence(capsys: pytest.CaptureFixture[str]) -> None:
    with reporting(False, lambda event: ()) as silent:
        assert silent is None
    with reporting(True, lambda event: ()) as shown:
        assert shown is not None
        shown(ProgressEvent("counting", 4, 4))
    assert capsys.readouterr().err == "counting … 100 %\n"
