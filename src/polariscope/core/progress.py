"""How far a long job on files is, said on standard error when it takes a while."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Called with what is done and what there is to do, in the same unit."""
PATIENCE = 2.0
"""Seconds that a job may take before anything is said."""


@contextlib.contextmanager
def shown_progress(words: str, patience: float = PATIENCE) -> Iterator[Progress]:
    """Yield a function to call as a job proceeds; nothing is shown of a job that is done at once.

    On a terminal the percentage is updated in place. Elsewhere (a file, a pipe) there is one line when it becomes
    clear that the job takes a while, and one when it is done.

    :param words: what is being done: "dsprites: unpacking the images".
    :param patience: (default 2) seconds before anything is shown.
    """
    start, shown = time.monotonic(), -1
    live = sys.stderr.isatty()

    def progress(done: int, total: int) -> None:
        nonlocal shown
        percent = 100 * done // max(total, 1)
        if time.monotonic() - start < patience or percent == shown or (shown >= 0 and not live):
            return
        print(f"{words} … {percent} %", end="\r" if live else "\n", file=sys.stderr, flush=True)
        shown = percent

    try:
        yield progress
    except BaseException:
        if live and shown >= 0:
            print(file=sys.stderr)  # what is said next begins on a line of its own
        raise
    if shown >= 0:
        print(f"{words}: done in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
