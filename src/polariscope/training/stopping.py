"""Ask a training to stop: it finishes its step, saves, and ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

outer_stop: ContextVar[threading.Event | None] = ContextVar("outer_stop", default=None)
"""What a training in a thread of its own listens to, where signals do not arrive; see :mod:`.together`."""


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """An event that Ctrl-C or SIGTERM sets, so a step is finished before the run stops; twice stops now.

    A request that comes in the last step is passed on. In other threads than the main one it is the event of whoever
    started the thread, if there is one.
    """
    stop = outer_stop.get() or threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    signals: list[int] = []

    def request(number: int, frame: Any) -> None:
        if stop.is_set():
            signal.default_int_handler(number, frame)
        signals.append(number)
        stop.set()

    earlier = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
        is_too_late = bool(signals)
    except BaseException:
        is_too_late = False
        raise
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
    if is_too_late:  # in the last step: nothing was left to stop here, but whatever comes next is not wanted
        if callable(earlier[signal.Signals(signals[0])]):
            signal.raise_signal(signals[0])
        raise KeyboardInterrupt  # as one step earlier
