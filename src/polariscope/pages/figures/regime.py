"""Charts of the latents and, for flat data, of the features."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.regime.types import VariableType
from polariscope.pages.figures import COLOURS, DIVERGING, INK, QUIET, SMALL, STYLE, TRAIN, panel, to_svg
from polariscope.pages.series import Histogram, Source
from polariscope.pages.views import Reconstructions

TITLES: dict[Source, str] = {
    "mean": "mean μ",
    "variance": "variance σ²",
    "sampled": "sampled z",
    "prior_mean": "prior mean μ†(u)",
    "prior_variance": "prior variance Σ†(u)",
}


def draw_histogram(
    histogram: Histogram,
    source: Source,
    latent: int,
    kind: VariableType,
    prior: tuple[float, float] | None,
    alpha: float,
) -> Markup:
    """Distribution of one latent; ``prior`` is the mean and variance of a normal prior, drawn beside it."""
    with rc_context({**STYLE, "font.size": 7.5, "axes.titlesize": 8.5}):
        figure, axes = panel(SMALL, TITLES[source])
        axes.stairs(histogram.density[latent], histogram.edges, fill=True, color=COLOURS[kind], lw=0)
        if prior is not None and source == "variance":
            for place in (prior[1], alpha * prior[1]):
                axes.axvline(place, color=INK, lw=0.8, ls=(0, (4, 3)))
        if prior is not None and source == "sampled":
            x = np.linspace(histogram.edges[0], histogram.edges[-1], 200)
            density = np.exp(-((x - prior[0]) ** 2) / (2 * prior[1])) / np.sqrt(2 * np.pi * prior[1])
            axes.plot(x, density, color=INK, lw=0.8, ls=(0, (4, 3)))
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlim(histogram.edges[0], histogram.edges[-1])
        return to_svg(
            figure,
            f"histogram-{latent}-{source}",
            f"Histogram of the {source.replace('_', ' ')} of latent {latent}, {kind}.",
        )


def draw_correlation(
    matrix: Float[np.ndarray, "latent latent"], regime: Regime, order: list[int], name: str
) -> Markup:
    """Correlations between latents, in the order given."""
    n = len(order)
    with rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=(4.4, 3.9), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(f"{name} representation", parse_math=False)
        # The diagonal is 1 by definition and would draw the eye.
        values = np.where(np.eye(n, dtype=bool), np.nan, matrix[np.ix_(order, order)])
        mesh = axes.pcolormesh(
            values,
            cmap=DIVERGING,
            vmin=-1,
            vmax=1,
            edgecolors="white" if n <= 24 else "none",
            lw=1 if n <= 24 else 0,
            rasterized=n > 24,
        )
        axes.set_aspect("equal")
        axes.invert_yaxis()
        for spine in axes.spines.values():
            spine.set_visible(False)
        shown = range(0, n, max(1, n // 24))
        places, names = [i + 0.5 for i in shown], [str(order[i]) for i in shown]
        axes.set_xticks(places, names)
        axes.set_yticks(places, names)
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            for label, i in zip(labels, shown, strict=True):
                label.set_color(COLOURS[regime.latents[order[i]].type])
                label.set_fontweight("bold")
        if n <= 12:
            for (i, j), value in np.ndenumerate(values):
                if i == j:
                    continue
                shade = "white" if abs(value) > 0.6 else INK
                axes.text(
                    j + 0.5,
                    i + 0.5,
                    f"{value + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−"),
                    ha="center",
                    va="center",
                    fontsize=6.5,
                    color=shade,
                )
        bar = figure.colorbar(mesh, ax=axes, shrink=0.6, ticks=[-1, 0, 1])
        bar.outline.set_visible(False)
        off = np.abs(values[~np.isnan(values)])
        strongest = (
            f"the strongest between two latents is {off.max():.2f}"
            if off.size
            else "there is a single latent"
        )
        return to_svg(
            figure, f"correlation-{name}", f"Correlation matrix of the {name} representation; {strongest}."
        )


def draw_r_squared(reconstructions: Reconstructions) -> Markup:
    """Share of each feature's variance that is reconstructed, best first."""
    values = np.sort(reconstructions.r_squared_by_value)[::-1]
    with rc_context(STYLE):
        figure, axes = panel((5.2, 2.6), "Reconstruction of each feature")
        places = np.arange(1, len(values) + 1)
        axes.bar(places, values, width=0.8 if len(values) <= 80 else 1.0, color=TRAIN)
        axes.set_ylim(min(0.0, float(values.min(initial=0.0)) * 1.05), 1)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("features, best first")
        axes.set_ylabel("R²")
        middle = f"the median is {np.median(values):.2f}" if len(values) else "no feature varies"
        return to_svg(
            figure, "r-squared", f"Share of the variance of each feature that is reconstructed; {middle}."
        )


def draw_deviations(reconstructions: Reconstructions, drawn: Float[np.ndarray, " feature"]) -> Markup:
    """Standard deviation of each feature in the data and in draws from the model."""
    data = reconstructions.inputs.reshape(len(reconstructions.inputs), -1).std(axis=0)
    with rc_context(STYLE):
        figure, axes = panel((5.2, 2.6), "Spread of each feature, data against draws from the model")
        top = 1.08 * max(float(data.max()), float(drawn.max()), 1e-12)
        axes.plot([0, top], [0, top], color=QUIET, lw=0.8, ls=(0, (4, 3)))
        axes.plot(data, drawn, "o", color=TRAIN, ms=4, alpha=0.7, mec="none")
        axes.set_xlim(0, top)
        axes.set_ylim(0, top)
        axes.set_xlabel("standard deviation in held-out data")
        axes.set_ylabel("in draws x ~ p(x)")
        return to_svg(
            figure,
            "deviations",
            "Standard deviation of each feature in the data against that in draws from the model.",
        )


def silhouette(shares: Float[np.ndarray, " bin"], kind: VariableType) -> Markup:
    """A histogram as a bare shape, for a table cell."""
    tallest = shares.max()
    heights = 20 * shares / tallest if tallest > 0 else shares
    points = [f"M0 20V{20 - heights[0]:.1f}"]
    points += [f"H{place + 1}V{20 - following:.1f}" for place, following in enumerate(heights[1:])]
    path = "".join(points) + f"H{len(heights)}V20Z"
    return Markup(
        '<svg class="silhouette" viewBox="0 0 {} 20" preserveAspectRatio="none" aria-hidden="true">'
        '<path d="{}" fill="{}"/></svg>'
    ).format(len(heights), path, COLOURS[kind])
