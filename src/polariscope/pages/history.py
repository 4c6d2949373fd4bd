"""What happened while a model was trained, from its log."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from polariscope.analysis.regime.types import TYPES, VariableType
from polariscope.core.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class Series:
    """One number followed over the steps at which it was logged."""

    steps: Int[np.ndarray, " point"]
    values: Float[np.ndarray, " point"]

    @property
    def last(self) -> float:
        return float(self.values[-1])


@dataclasses.dataclass(frozen=True, eq=False)
class History:
    """The log of a run, by name. The terms are whatever the objective called them."""

    loss: Series
    """Weighted sum of the terms on training batches, averaged between two lines."""
    terms: dict[str, Series]
    """Each term on training batches, unweighted, nats."""
    weights: dict[str, float]
    """Weight of each term in the loss at the end."""
    validation_loss: Series
    """Weighted sum of the terms on validation samples."""
    validation: dict[str, Series]
    """Each term on validation samples, unweighted, nats."""
    steps: Int[np.ndarray, " line"]
    kl: Float[np.ndarray, "line latent"] | None
    """KL of each latent on the validation samples of the probe, nats; None for a deterministic encoder."""
    trace: Series
    """Σ E[σ²]."""
    counts: dict[VariableType, Series]
    """Number of latents of each type."""

    @property
    def names(self) -> list[str]:
        """Terms of the loss, in the order in which the objective gave them."""
        return list(self.terms)


def read_history(lines: Sequence[dict[str, Any]]) -> History:
    """The history in the lines of a log; a log without lines is refused."""
    if not lines:
        raise InputError("the log has no lines, so there is no training to report; train the run again.")
    validated = [line for line in lines if "validation" in line]
    return History(
        loss=_series(lines, lambda line: line["loss"]),
        terms=_named(lines, "terms"),
        weights=dict(lines[-1]["weights"]),
        validation_loss=_series(validated, _weighted),
        validation=_named(validated, "validation"),
        steps=np.array([line["step"] for line in lines]),
        kl=_kl(lines),
        trace=_series(lines, lambda line: line["trace"]),
        counts={kind: _series(lines, lambda line, kind=kind: line[kind]) for kind in TYPES},  # type: ignore[misc]
    )


def _kl(lines: Sequence[dict[str, Any]]) -> Float[np.ndarray, "line latent"] | None:
    if any(line["kl"] is None for line in lines):
        return None
    return np.array([line["kl"] for line in lines], dtype=np.float64)


def _weighted(line: dict[str, Any]) -> float:
    return sum(line["weights"][name] * value for name, value in line["validation"].items())


def _series(lines: Sequence[dict[str, Any]], read: Callable[[dict[str, Any]], float]) -> Series:
    steps = np.array([line["step"] for line in lines], dtype=np.int64)
    return Series(steps, np.array([read(line) for line in lines], dtype=np.float64))


def _named(lines: Sequence[dict[str, Any]], key: str) -> dict[str, Series]:
    """A series for every name found under ``key``; a term that comes later starts later."""
    names = dict.fromkeys(name for line in lines for name in line[key])
    return {
        name: _series([line for line in lines if name in line[key]], lambda line, name=name: line[key][name])  # type: ignore[misc]
        for name in names
    }
