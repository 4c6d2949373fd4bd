"""Distributions of the latents: histograms of the clearest latent of each type, silhouettes of all latents."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from jaxtyping import Float
from markupsafe import Markup
from matplotlib import rc_context

from polariscope.analysis.regime.latent_types import COLOURS, TYPES, VariableType
from polariscope.analysis.regime.posterior import pooled_rows
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.representation import Representation
from polariscope.core.figure_style import INK, STYLE
from polariscope.core.figures import DASHES, SMALL, single_axes, to_svg
from polariscope.geometry.steps_of_latents import prior_moments
from polariscope.pages.sections import AbstractSection, Subject, section

if TYPE_CHECKING:
    from polariscope.pages.record import ReportRecord

Source = Literal["mean", "variance", "sampled", "prior_mean", "prior_variance"]
N_BINS = 80
TITLES: dict[Source, str] = {
    "mean": "mean μ",
    "variance": "variance σ²",
    "sampled": "sampled z",
    "prior_mean": "prior mean μ†(u)",
    "prior_variance": "prior variance Σ†(u)",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Histogram:
    """Histograms of all latents with the same bins, which makes latents comparable."""

    edges: Float[np.ndarray, " edge"]
    shares: Float[np.ndarray, "latent bin"]
    """Share of the samples of a latent in each bin; every row sums to 1."""

    @property
    def density(self) -> Float[np.ndarray, "latent bin"]:
        """Shares divided by the width of a bin, comparable with a probability density."""
        return self.shares / np.diff(self.edges)


def histograms(representation: Representation) -> dict[Source, Histogram]:
    """Return histograms of the mean, variance and sampled representation, and of the moments of a conditional prior.

    All means and samples share their bins, and so do all variances. The bins cover at least three standard deviations
    of the prior and its variance, so a constant latent appears as a spike. A deterministic encoder has only a mean.
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
    by_source = {source: _histogram(array, code_edges) for source, array in codes.items()}
    by_source |= {source: _histogram(array, variance_edges) for source, array in variances.items()}
    return {source: by_source[source] for source in get_args(Source) if source in by_source}


def representatives(regime: Regime) -> dict[VariableType, int]:
    """Return the clearest latent of each type that occurs.

    These are the active latent with the largest KL (if all are infinite, with the largest std μ), the mixed latent
    whose variance varies most, and the passive latent with the smallest KL.
    """
    clearness = {
        "active": lambda latent: (latent.kl, latent.std_of_mean),
        "mixed": lambda latent: (latent.variance_of_ratio,),
        "passive": lambda latent: (-latent.kl,),
    }
    clearest: dict[VariableType, int] = {}
    for kind in TYPES:
        members = [latent for latent in regime.latents if latent.type == kind]
        if members:
            clearest[kind] = max(members, key=clearness[kind]).index
    return clearest


@section("distributions", title="Distributions", order=40)
class DistributionsSection(AbstractSection):
    """Distribution of the codes of each latent."""

    def measure(self, subject: Subject) -> dict[Source, Histogram]:
        """Return histograms of the codes."""
        return histograms(pooled_rows(subject.representation))

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return the panels of the clearest latent of each type, and silhouettes of all latents."""
        by_source: dict[Source, Histogram] = self.part(record)
        return {"rows": _rows(record, by_source), **_silhouettes(record, by_source)}


def _rows(record: ReportRecord, histograms: dict[Source, Histogram]) -> list[dict[str, Any]]:
    return [
        {
            "latent": record.regime.latents[latent],
            "panels": [
                draw_histogram(
                    histograms[source],
                    source,
                    latent,
                    kind,
                    record.prior_of(latent),
                    record.regime.alpha,
                )
                for source in histograms
            ],
        }
        for kind, latent in representatives(record.regime).items()
    ]


def _silhouettes(record: ReportRecord, histograms: dict[Source, Histogram]) -> dict[str, Any]:
    rows = [
        {
            "latent": record.regime.latents[j],
            "shapes": [
                silhouette(histogram.shares[j], record.regime.latents[j].type)
                for histogram in histograms.values()
            ],
        }
        for j in record.regime.order
    ]
    ranges = [
        (source.replace("_", " "), float(histogram.edges[0]), float(histogram.edges[-1]))
        for source, histogram in histograms.items()
    ]
    return {"silhouettes": rows, "ranges": ranges}


def draw_histogram(
    histogram: Histogram,
    source: Source,
    latent: int,
    kind: VariableType,
    prior: tuple[float, float] | None,
    alpha: float,
) -> Markup:
    """Draw the distribution of one latent and, if ``prior`` is not None, that of a normal prior N(*prior)."""
    with rc_context({**STYLE, "font.size": 7.5, "axes.titlesize": 8.5}):
        figure, axes = single_axes(SMALL, TITLES[source])
        axes.stairs(histogram.density[latent], histogram.edges, fill=True, color=COLOURS[kind], lw=0)
        if prior is not None and source == "variance":
            for variance in (prior[1], alpha * prior[1]):
                axes.axvline(variance, color=INK, lw=0.8, ls=DASHES)
        if prior is not None and source == "sampled":
            x = np.linspace(histogram.edges[0], histogram.edges[-1], 200)
            density = np.exp(-((x - prior[0]) ** 2) / (2 * prior[1])) / np.sqrt(2 * np.pi * prior[1])
            axes.plot(x, density, color=INK, lw=0.8, ls=DASHES)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlim(histogram.edges[0], histogram.edges[-1])
        return to_svg(
            figure,
            f"histogram-{latent}-{source}",
            f"Histogram of the {source.replace('_', ' ')} of latent {latent}, {kind}.",
        )


def silhouette(shares: Float[np.ndarray, " bin"], kind: VariableType) -> Markup:
    """Return a histogram without axes, for a table cell."""
    tallest = shares.max()
    heights = 20 * shares / tallest if tallest > 0 else shares
    points = [f"M0 20V{20 - heights[0]:.1f}"]
    points += [f"H{index + 1}V{20 - following:.1f}" for index, following in enumerate(heights[1:])]
    path = "".join(points) + f"H{len(heights)}V20Z"
    return Markup(
        '<svg class="silhouette" viewBox="0 0 {} 20" preserveAspectRatio="none" aria-hidden="true">'
        '<path d="{}" fill="{}"/></svg>'
    ).format(len(heights), path, COLOURS[kind])


def _edges(values: Float[np.ndarray, " value"]) -> Float[np.ndarray, " edge"]:
    low, high = float(values.min()), float(values.max())
    return np.linspace(low, high if high > low else low + 1, N_BINS + 1)


def _histogram(values: Float[np.ndarray, "sample latent"], edges: Float[np.ndarray, " edge"]) -> Histogram:
    # The ends were computed in float64 from float32 values. Without clipping, rounding could drop a sample.
    clipped = np.clip(values.astype(np.float64), edges[0], edges[-1])
    counts = np.stack([np.histogram(column, edges)[0] for column in clipped.T])
    return Histogram(edges, counts / len(values))
