"""How the values of each latent are spread, on one scale for all latents."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.regime.types import TYPES, VariableType
from polariscope.analysis.representation import Representation
from polariscope.geometry.latents import prior_moments

Source = Literal["mean", "variance", "sampled", "prior_mean", "prior_variance"]
N_BINS = 80


@dataclasses.dataclass(frozen=True, eq=False)
class Histogram:
    """Shares of the samples of each latent in the same bins, so that latents can be compared by eye."""

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
    of the prior and its variance, so that a latent that never varies shows as a spike and not as a full axis.
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
