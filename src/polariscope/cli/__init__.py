"""Command line: one command per file, each a thin layer over a function of the package.

Slow modules are imported when a command needs them, so ``polariscope --help`` is fast.
"""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from collections.abc import Sequence

from polariscope.cli.deprecated import forward
from polariscope.cli.interrupts import StoppedError, noting_interrupts
from polariscope.core.errors import InputError, PolariscopeError

DONE, FAILED, WRONG_CALL, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong call, 130 interrupted."""
    # Waiting OpenMP threads spin by default, which takes CPU time from other processes.
    # GOMP_SPINCOUNT would override OMP_WAIT_POLICY, so the user's policy has precedence.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read once, when PyTorch is imported
    typed = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in typed
    # --debug is accepted anywhere on the line, so it is removed before parsing.
    tokens = [word for word in typed if word != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without σ shows "?" instead of failing
    interrupts: list[int] = []
    try:
        with noting_interrupts(interrupts):
            tokens, warning = forward(tokens)
            if warning:
                _say(f"Warning: {warning}")
            code = _dispatch(tokens)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader (head, less) closed the pipe. Discard the buffered output, or Python would print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (KeyboardInterrupt, StoppedError):
        return _interrupted(tokens)
    except Exception as error:
        # A library that is interrupted in compiled code can raise its own error instead of KeyboardInterrupt.
        if interrupts and not isinstance(error, PolariscopeError | OSError):
            return _interrupted(tokens)
        if debug:
            traceback.print_exc()
        _say(f"Error: {_in_words(error, tokens)}")
        return WRONG_CALL if isinstance(error, InputError) else FAILED


def _interrupted(tokens: list[str]) -> int:
    _say(f"\nInterrupted. To resume, run the same command again: {_command(tokens)}")
    return INTERRUPTED


def _dispatch(tokens: list[str]) -> int:
    from polariscope.cli.app import make_app

    try:
        # typer ends every command with SystemExit.
        make_app(tokens)(tokens, prog_name="polariscope")
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else DONE if leave.code is None else FAILED
    return DONE


def _in_words(error: Exception, tokens: list[str]) -> str:
    if isinstance(error, InputError):
        from polariscope.cli.app import spelling_of

        return error.worded(spelling_of(tokens))
    if isinstance(error, PolariscopeError | OSError):
        return str(error)
    again = _command(["--debug", *tokens])
    return (
        f"unexpected {type(error).__name__}: {error}\n"
        f"This is a bug in polariscope. Please report it with the output of: {again}"
    )


def _command(tokens: list[str]) -> str:
    return shlex.join(["polariscope", *tokens])


def _say(message: str) -> None:
    print(message, file=sys.stderr)
