"""Handling of Ctrl-C while a command runs."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


class StoppedError(Exception):
    """The user pressed Ctrl-C while a command was running."""


@contextlib.contextmanager
def noting_interrupts(interrupts: list[int]) -> Iterator[None]:
    """Record Ctrl-C in a list; it still raises KeyboardInterrupt.

    :param interrupts: signals received so far.
    """

    def note(number: int, _: object) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    # Another handler is left in place, and only the main thread can set one.
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
