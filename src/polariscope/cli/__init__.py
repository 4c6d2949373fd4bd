"""The command line: one command per file, each a few lines over a function of the package.

Nothing heavy is imported before a command needs it, so ``polariscope --help`` answers at once.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence

from polariscope.cli.deprecated import forward
from polariscope.core.errors import InputError, PolariscopeError

DONE, FAILED, WRONG_CALL, INTERRUPTED = 0, 1, 2, 130


class StoppedError(Exception):
    """Ctrl-C while a command ran."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong call, 130 interrupted."""
    # Threads that wait for one another fall asleep soon: else they keep other processes from working.
    if "OMP_WAIT_POLICY" not in os.environ:  # which says the same, and would be overruled
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read once, when PyTorch is imported
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    words = [word for word in given if word != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that has no σ shows "?" instead of failing
    interrupts: list[int] = []
    try:
        with noting_interrupts(interrupts):
            words, warning = forward(words)
            if warning:
                _say(f"Warning: {warning}")
            code = _dispatch(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader (head, less) left: what is still buffered has nowhere to go, and that is no mistake.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (KeyboardInterrupt, StoppedError):
        return _interrupted(words)
    except Exception as error:
        # A library that is interrupted in compiled code can raise an error of its own instead.
        if interrupts and not isinstance(error, PolariscopeError | OSError):
            return _interrupted(words)
        if debug:
            traceback.print_exc()
        _say(f"Error: {_in_words(error, words)}")
        return WRONG_CALL if isinstance(error, InputError) else FAILED


@contextlib.contextmanager
def noting_interrupts(interrupts: list[int]) -> Iterator[None]:
    """Inside, Ctrl-C raises KeyboardInterrupt as usual, and is noted.

    :param interrupts: the signals so far.
    """

    def note(number: int, _: object) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupted(words: list[str]) -> int:
    _say(f"\nInterrupted. The same command again goes on from here: {_command(words)}")
    return INTERRUPTED


def _dispatch(words: list[str]) -> int:
    from polariscope.cli.app import make_app

    try:
        make_app(words)(words, prog_name="polariscope")
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else DONE if leave.code is None else FAILED
    return DONE


def _in_words(error: Exception, words: list[str]) -> str:
    if isinstance(error, InputError):
        from polariscope.cli.app import spelling_of

        return error.worded(spelling_of(words))
    if isinstance(error, PolariscopeError | OSError):
        return str(error)
    again = _command(["--debug", *words])
    return (
        f"unexpected {type(error).__name__}: {error}\n"
        f"This is a mistake in polariscope. Please report it with what this prints: {again}"
    )


def _command(words: list[str]) -> str:
    return shlex.join(["polariscope", *words])


def _say(message: str) -> None:
    print(message, file=sys.stderr)
