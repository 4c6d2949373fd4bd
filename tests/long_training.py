"""Long trainings without the check of every shape, which more than doubles them; short ones have it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from jaxtyping import config


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """A ``with`` block, or a decorator of a test, in which shapes and types are not checked."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", before)
