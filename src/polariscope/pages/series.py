"""The numbers behind the figures: the log as series, codes as histograms."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.regime.types import TYPES, VariableType
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.geometry.latents import prior_moments


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
    validation_loss: Series | None
    """Weighted sum of the terms on validation samples; None before the first validation."""
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
        raise InputError(
            problem="the log has no lines, so there is no training to report", remedy="train the run again"
        )
    validated = [line for line in lines if "validation" in line]
    return History(
        loss=_series(lines, lambda line: line["loss"]),
        terms=_named(lines, "terms"),
        weights=dict(lines[-1]["weights"]),
        validation_loss=_series(validated, _weighted) if validated else None,
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


Source = Literal["mean", "variance", "sampled", "prior_mean", "prior_variance"]
N_BINS = 80


@dataclasses.dataclass(frozen=True, eq=False)
class Histogram:
    """Shares of the samples of each latent in the same bins, so latents can be compared by eye."""

    edges: Float[np.ndarray, " edge"]
    shares: Float[np.ndarray, "latent bin"]
    """A row sums to 1: nothing lies outside the bins."""

    @property
    def density(self) -> Float[np.ndarray, "latent bin"]:
        """Shares over the width of a bin, comparable with a probability density."""
        return self.shares / np.diff(self.edges)


def histograms(representation: Representation) -> dict[Source, Histogram]:
    """Histograms of the mean, variance and sampled representation, and of the moments of a conditional prior.

    All means and draws share their bins, and all variances. They reach at least three standard deviations
    of the prior and its variance, so a latent that never varies shows as a spike and not as a full axis.
    A deterministic encoder has a mean only.
    """
    centre, variance = prior_moments(representation)
    reach = 3 * np.sqrt(variance)
    if not representation.variance.any():
        return {"mean": _histogram(representation.mean, _edges(representation.mean.ravel()))}
    codes: dict[Source, np.ndarray] = {"mean": representation.mean, "sampled": representation.sampled}
    variances: dict[Source, np.ndarray] = {"variance": representation.variance}
    if representation.prior_mean is not None and representation.prior_mean.ndim == 2:
        codes["prior_mean"] = representation.prior_mean
    if representation.prior_variance is not None and representation.prior_variance.ndim == 2:
        variances["prior_variance"] = representation.prior_variance
    code_edges = _edges(np.append(np.concatenate(list(codes.values())), [centre - reach, centre + reach]))
    variance_edges = _edges(np.append(np.concatenate(list(variances.values())), [0.0, 1.2 * variance.max()]))
    found = {source: _histogram(array, code_edges) for source, array in codes.items()}
    found |= {source: _histogram(array, variance_edges) for source, array in variances.items()}
    return {source: found[source] for source in get_args(Source) if source in found}


def representatives(regime: Regime) -> dict[VariableType, int]:
    """The clearest latent of each type that occurs.

    The active one with the largest KL (if all are infinite, with the mean that spreads most), the mixed one whose
    variance varies most, the passive one with the smallest KL.
    """
    clearness = {
        "active": lambda latent: (latent.kl, latent.std_of_mean),
        "mixed": lambda latent: (latent.variance_of_ratio,),
        "passive": lambda latent: (-latent.kl,),
    }
    found: dict[VariableType, int] = {}
    for kind in TYPES:
        members = [latent for latent in regime.latents if latent.type == kind]
        if members:
            found[kind] = max(members, key=clearness[kind]).index
    return found


def _edges(values: Float[np.ndarray, " value"]) -> Float[np.ndarray, " edge"]:
    low, high = float(values.min()), float(values.max())
    return np.linspace(low, high if high > low else low + 1, N_BINS + 1)


def _histogram(values: Float[np.ndarray, "sample latent"], edges: Float[np.ndarray, " edge"]) -> Histogram:
    # The ends were computed in float64 from float32 values: clip so that rounding drops no sample.
    clipped = np.clip(values.astype(np.float64), edges[0], edges[-1])
    counts = np.stack([np.histogram(column, edges)[0] for column in clipped.T])
    return Histogram(edges, counts / len(values))
