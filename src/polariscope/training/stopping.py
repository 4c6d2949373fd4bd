"""Requests to stop training: it finishes the current step, saves a checkpoint, and ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

outer_stop: ContextVar[threading.Event | None] = ContextVar("outer_stop", default=None)
"""Stop event of trainings in other threads, which do not receive signals; see :mod:`.together`."""


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Return an event that Ctrl-C or SIGTERM sets, so the run stops after its step; a second signal stops at once.

    A request in the last step is raised again afterwards. In other threads than the main one, the event is that of the
    thread that started them, if there is one.
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
    # An error of the training takes precedence over the request to stop.
    except BaseException:
        is_too_late = False
        raise
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
    if is_too_late:  # in the last step this training needs no stop, but its caller must not continue
        # SIG_DFL and SIG_IGN are not callable: raised again, they would kill the process at once or do nothing.
        if callable(earlier[signal.Signals(signals[0])]):
            signal.raise_signal(signals[0])
        raise KeyboardInterrupt  # the same as one step earlier
