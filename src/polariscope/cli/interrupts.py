"""Ctrl-C while a command runs."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


class StoppedError(Exception):
    """Ctrl-C while a command ran."""


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
