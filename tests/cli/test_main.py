"""What holds for every command: exit codes, messages, pipes, colours."""

from __future__ import annotations

import os
import re
import signal

import numpy as np
import pytest

from polariscope import cli
from polariscope.core.errors import DivergedError, InputError, PolariscopeError


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def dispatch(words: list[str]) -> int:
        raise error

    monkeypatch.setattr(cli, "_dispatch", dispatch)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputError("alpha", "be small"), 2, "Error: --alpha must be small.\n"),
        (PolariscopeError("the disk lost it."), 1, "Error: the disk lost it.\n"),
        (DivergedError("it blew up."), 1, "Error: it blew up.\n"),
        (
            PermissionError(13, "Permission denied", "runs"),
            1,
            "Error: [Errno 13] Permission denied: 'runs'\n",
        ),
    ],
)
def test_errors_are_one_line_and_their_kind_decides_the_exit_code(call, monkeypatch, error, code, message):
    fail_with(monkeypatch, error)
    failed = call("train sprites")
    assert (failed.code, failed.out, failed.err) == (code, "", message)


def test_a_mistake_of_ours_asks_to_be_reported_without_a_traceback(call, monkeypatch):
    fail_with(monkeypatch, KeyError("beta"))
    failed = call("train sprites --steps 3")
    assert failed.code == 1
    assert "unexpected KeyError: 'beta'" in failed.err
    assert "polariscope --debug train sprites --steps 3" in failed.err
    assert "Traceback" not in failed.err


def test_debug_shows_the_traceback_wherever_it_stands(call, monkeypatch):
    for words in ("--debug list nothing", "list nothing --debug"):
        failed = call(words)
        assert failed.code == 2
        assert "Traceback" in failed.err
        assert "InputError" in failed.err


def test_an_interrupt_says_how_to_go_on(call, monkeypatch):
    fail_with(monkeypatch, KeyboardInterrupt())
    stopped = call("train sprites --steps 3")
    assert stopped.code == 130
    assert "polariscope train sprites --steps 3" in stopped.err


def test_ctrl_c_inside_a_command_passes_through_typer(call, monkeypatch):
    def interrupt(self: object, ctx: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.core.TyperGroup.invoke", interrupt)
    assert call("list objectives").code == 130


@pytest.mark.parametrize(
    ("words", "message"),
    [("trian sprites", "No such command 'trian'"), ("--colour", "No such option"), ("data x", "x")],
)
def test_an_unknown_command_or_option_exits_2(call, words, message):
    refused = call(words)
    assert refused.code == 2
    assert message in refused.err


def test_output_that_is_not_a_terminal_has_no_control_codes_and_cuts_no_name(spawn):
    done = spawn("list", "datasets", COLUMNS="40")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "…" not in done.stdout.replace("(64, 128, …)", "")
    assert any(
        line.rstrip().endswith("embedded in three dimensions and rotated.")
        for line in done.stdout.splitlines()
    )


def test_a_reader_that_leaves_early_is_no_mistake(start):
    process = start("data", "list")
    process.stdout.close()
    assert process.stderr.read() == ""


def test_an_output_without_greek_letters_does_not_stop_a_command(spawn):
    done = spawn("list", "objectives", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "Weight ? of the rate" in done.stdout


def test_colours_can_be_refused_and_types_are_read_without_them(spawn, elsewhere):
    np.savez("codes.npz", mean=np.random.default_rng(0).normal(size=(99, 1)), variance=np.full((99, 1), 0.01))
    coloured = spawn("diagnose", "codes.npz", FORCE_COLOR="1", TERM="xterm", COLUMNS="80")
    assert "\x1b[1;32mactive" in coloured.stdout
    plain = spawn("diagnose", "codes.npz", FORCE_COLOR="1", NO_COLOR="1", TERM="xterm", COLUMNS="80")
    assert "32m" not in plain.stdout
    assert "active" in plain.stdout


def test_a_narrow_terminal_folds_prose_and_cuts_no_flag(spawn):
    done = spawn("list", "nets", FORCE_COLOR="1", NO_COLOR="1", TERM="xterm", COLUMNS="70")
    assert max(len(re.sub("\x1b\\[[0-9;]*m", "", line)) for line in done.stdout.splitlines()) <= 70
    for word in ("linear", "--encoder-widths", "60,40,20", "--activation"):
        assert word in done.stdout


@pytest.mark.parametrize(("before", "after"), [(None, "2000"), ("7", "7")])
def test_waiting_threads_fall_asleep_soon_unless_asked_otherwise(monkeypatch, before, after):
    monkeypatch.setenv("GOMP_SPINCOUNT", "0")  # so it is put back
    monkeypatch.delenv("GOMP_SPINCOUNT")
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if before is not None:
        monkeypatch.setenv("GOMP_SPINCOUNT", before)
    assert cli.main(["--version"]) == 0
    assert os.environ["GOMP_SPINCOUNT"] == after


def test_how_threads_wait_is_left_to_who_has_said_it(monkeypatch):
    monkeypatch.setenv("GOMP_SPINCOUNT", "0")  # so it is put back
    monkeypatch.delenv("GOMP_SPINCOUNT")
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    assert cli.main(["--version"]) == 0
    assert "GOMP_SPINCOUNT" not in os.environ


def test_an_error_of_a_library_that_was_interrupted_is_an_interruption(monkeypatch, capsys):
    """Ctrl-C inside compiled code can come out as another error, as of PyTorch while it reads a file."""

    def dispatch(words):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ValueError("could not determine the shape") from None

    monkeypatch.setattr(cli, "_dispatch", dispatch)
    assert cli.main(["list"]) == 130
    assert "Interrupted. To resume, run the same command again: polariscope list" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
