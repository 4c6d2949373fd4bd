"""Deprecated location of :func:`polariscope.sizing.own_trainer.fondue`, until 0.4."""

from __future__ import annotations

from typing import Any

from polariscope.core.deprecation import warn_deprecated

MOVED = ("fondue",)


def __getattr__(name: str) -> Any:
    if name not in MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from polariscope.sizing.own_trainer import fondue

    warn_deprecated(f"{__name__}.fondue", "polariscope.sizing.own_trainer.fondue", since="0.3")
    return fondue
