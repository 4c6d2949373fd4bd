"""Outputs of the decoder: traversals of each latent, reconstructions and samples from the prior."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.representation import Representation
from polariscope.core.figure_style import QUIET, STYLE, TRAIN
from polariscope.core.figures import DASHES, single_axes, to_svg
from polariscope.core.pictures import data_uri, difference_strip, diverging, strip
from polariscope.core.seeds import derive, generator
from polariscope.core.text import readable
from polariscope.data.dataset import AbstractDataset
from polariscope.geometry.steps_of_latents import Scale, range_of
from polariscope.geometry.traversals import (
    MAX_VALUES,
    Plane,
    Traversals,
    central_sample,
    traverse,
    traverse_plane,
)
from polariscope.models.inference import (
    EncodedBatch,
    auxiliary_of,
    batch_size,
    chunks,
    collect,
    inference_mode,
)
from polariscope.models.protocol import AbstractModel
from polariscope.pages.sections import AbstractSection, section

if TYPE_CHECKING:
    from polariscope.pages.record import ReportRecord

N_SHOWN = 10
N_SAMPLES = 30
N_JUDGED = 1000
N_STEPS = 9
MAX_FEATURES = 256
MAX_NAMED = 24  # names below a chart
N_LABELLED = 3
MAX_MOVES = 3
UNMATCHED = (
    " The encoder is deterministic: unless its objective matches the codes with the prior, these are not samples from "
    "the learned distribution."
)


@dataclasses.dataclass(frozen=True, eq=False)
class Reconstructions:
    """Held-out observations, and the decoder means at their posterior means."""

    indices: Int[np.ndarray, " sample"]
    inputs: Float[np.ndarray, "sample *shape"]
    outputs: Float[np.ndarray, "sample *shape"]
    feature_names: tuple[str, ...] = ()
    """Names of the features of flat data; empty if they have no names."""

    @property
    def r_squared(self) -> float | None:
        """Share of the data's variance that is reconstructed; None if the data do not vary."""
        errors, spread = self._sums()
        return float(1 - errors.sum() / spread.sum()) if spread.sum() > 0 else None

    @property
    def r_squared_by_value(self) -> Float[np.ndarray, " varying"]:
        """Share of the variance that is reconstructed, for each value of an observation that varies."""
        errors, spread = self._sums()
        return 1 - errors[spread > 0] / spread[spread > 0]

    @property
    def varying_names(self) -> tuple[str, ...]:
        """Names of the features that vary; empty if features have no names."""
        _, spread = self._sums()
        return tuple(name for name, varies in zip(self.feature_names, spread > 0, strict=False) if varies)

    def _sums(self) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " value"]]:
        inputs, outputs = (array.reshape(len(array), -1) for array in (self.inputs, self.outputs))
        centre = inputs.mean(axis=0, dtype=np.float64).astype(np.float32)
        return tuple(((inputs - other) ** 2).sum(axis=0, dtype=np.float64) for other in (outputs, centre))


@dataclasses.dataclass(frozen=True, eq=False)
class PriorSamples:
    """Decoder outputs for z sampled from the prior; from p(z|u) with u of random observations if it is conditional."""

    means: Float[np.ndarray, "sample *shape"]
    """Decoder means for the first samples."""
    deviations: Float[np.ndarray, " feature"] | None
    """Standard deviation of each feature over samples x ~ p(x|z); None for images."""


@dataclasses.dataclass(frozen=True)
class Move:
    """Effect of a latent on one feature, in the units of the data."""

    feature: str
    first: float
    """Value of the feature at the lowest value of the latent."""
    last: float
    """Value of the feature at the highest value of the latent."""


@dataclasses.dataclass(frozen=True, eq=False)
class Views:
    """All decoder outputs on the page."""

    traversals: Traversals
    reconstructions: Reconstructions
    prior_samples: PriorSamples
    display_range: tuple[float, float]
    """Values that are drawn as black and white."""
    plane: Plane | None
    """Grid over the two most informative latents; None for flat data and with fewer than two latents in use."""
    scale: Scale
    """Distribution whose standard deviation is the unit of the plane."""
    moves: tuple[tuple[Move, ...], ...] = ()
    """Features that change most along each traversal of flat data; empty for images."""
    is_rescaled: bool = False
    """If True, the units of the network differ from those of the data."""


def views(
    model: AbstractModel,
    dataset: AbstractDataset,
    held_out: Int[np.ndarray, " sample"],
    representation: Representation,
    regime: Regime,
    seed: int,
) -> Views | None:
    """Decode traversals, held-out observations and samples from the prior; return None without a decoder."""
    if not model.has_decoder:
        return None
    # Fewer for large observations, to bound the memory.
    judged = min(N_JUDGED, max(N_SHOWN, MAX_VALUES // dataset.n_features))
    reconstructions = reconstruct(model, dataset, held_out[:judged])
    low, high = float(reconstructions.inputs.min()), float(reconstructions.inputs.max())
    plane, scale = move_two(model, dataset, representation, regime, seed)
    traversals = traverse(model, representation, regime, reconstructions.inputs, seed)
    return Views(
        traversals=traversals,
        reconstructions=reconstructions,
        prior_samples=sample_prior(model, dataset, seed),
        display_range=(0.0, 1.0) if dataset.is_unit_interval else (low, high),
        plane=plane,
        scale=scale,
        moves=moves_of(traversals, dataset) if len(dataset.shape) == 1 else (),
        is_rescaled=not np.array_equal(dataset.inverse(traversals.original), traversals.original),
    )


def moves_of(traversals: Traversals, dataset: AbstractDataset) -> tuple[tuple[Move, ...], ...]:
    """Return the features that change most along each traversal, in the units of the data.

    The features are ranked by their change in the units of the network, because units of the data can differ.
    """
    names = dataset.feature_names or [f"feature {number}" for number in range(dataset.n_features)]
    ends = dataset.inverse(traversals.outputs[:, [0, -1]])
    reach = np.ptp(traversals.outputs, axis=1)
    return tuple(
        tuple(
            Move(str(names[feature]), float(first[feature]), float(last[feature]))
            for feature in np.argsort(-row, kind="stable")[:MAX_MOVES]
        )
        for row, (first, last) in zip(reach, ends, strict=True)
    )


def move_two(
    model: AbstractModel, dataset: AbstractDataset, representation: Representation, regime: Regime, seed: int
) -> tuple[Plane | None, Scale]:
    """Decode a grid over the two most informative latents, starting from the most typical observation."""
    in_use = regime.in_use
    centre, deviation, scale = range_of(model, representation, seed)
    # A channel with positions is not one value that a grid could move.
    if len(in_use) < 2 or len(model.shape) != 3 or representation.unit == "channel":
        return None, scale
    code = representation.mean[central_sample(representation, centre, deviation)]
    n_steps = max(3, min(N_STEPS, math.isqrt(MAX_VALUES // dataset.n_features)))
    pair = (in_use[0], in_use[1])
    return traverse_plane(model, code, pair, n_steps=n_steps, centre=centre, deviation=deviation), scale


def reconstruct(
    model: AbstractModel, dataset: AbstractDataset, indices: Int[np.ndarray, " sample"]
) -> Reconstructions:
    """Return observations and the decoder means at their posterior means."""

    def compute(batch: EncodedBatch) -> dict[str, Tensor]:
        return {"inputs": batch.x, "outputs": model.decode(batch.posterior.mean).like(batch.x).mean}

    arrays = collect(model, dataset, indices, compute)
    return Reconstructions(indices, arrays["inputs"], arrays["outputs"], dataset.feature_names)


def sample_prior(model: AbstractModel, dataset: AbstractDataset, seed: int) -> PriorSamples:
    """Sample from the prior and decode the samples."""
    noise = torch.Generator(model.device).manual_seed(derive(seed, "report", "prior samples"))
    rng = generator(seed, "report", "auxiliary values")
    means, draws = [], []
    n_draws = N_SAMPLES if len(model.shape) == 3 else N_JUDGED
    with inference_mode(model):
        for rows in chunks(n_draws, batch_size(dataset.n_features)):
            count = rows.stop - rows.start
            u = auxiliary_of(model, dataset, rng.integers(len(dataset), size=count))
            likelihood = model.decode(model.prior.given(u).sample(count, noise).to(model.dtype))
            if rows.start < N_SAMPLES:
                means.append(likelihood.mean.float().cpu().numpy())
            if len(model.shape) == 1:
                draws.append(likelihood.sample(noise).float().cpu().numpy())
    deviations = np.concatenate(draws).std(axis=0) if draws else None
    return PriorSamples(np.concatenate(means)[:N_SAMPLES], deviations)


@section("decoder", title="Effects", order=20)
class DecoderSection(AbstractSection):
    """Effect of each latent on the decoder output, reconstructions and samples."""

    def applies(self, record: ReportRecord) -> bool:
        """Return whether there is a model; the section of a model without a decoder states that it has none."""
        return bool(record.shape)

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return pictures for images, and charts for flat data."""
        shown = record.views
        if shown is None:
            return {"traversals": None}
        decoded = _images(shown) if record.is_image else _features(shown)
        unmatched = "" if record.has_rate else UNMATCHED
        return {"traversals": _traversals(record, shown), "decoded": decoded, "unmatched": unmatched}


def _traversals(record: ReportRecord, views: Views) -> dict[str, Any]:
    shown = views.traversals
    features: Any = slice(None)
    if record.is_image:
        pictures = [strip(row, views.display_range) for row in shown.outputs]
    else:
        moves = shown.outputs - shown.original
        movement = np.abs(moves).max(axis=(0, 1))
        if movement.size > MAX_FEATURES:
            features = np.sort(np.argsort(-movement, kind="stable")[:MAX_FEATURES])
        # Reversed: the highest value of the latent is at the top, as on an axis.
        pictures = [diverging(row[::-1, features], float(movement.max())) for row in moves]
    rows: list[dict[str, Any]] = [
        {
            "latent": record.regime.latents[latent],
            "kl": readable(record.regime.latents[latent].kl) if record.has_rate else None,
            "effect": None if shown.effects is None else float(shown.effects[index]),
            "uri": data_uri(picture),
            "moves": [
                f"{move.feature} {move.first:.4g} → {move.last:.4g}".replace(" -", " −")
                for move in (views.moves[index] if views.moves else ())
                # A change that four digits do not show is left out.
                if f"{move.first:.4g}" != f"{move.last:.4g}"
            ],
        }
        for index, (latent, picture) in enumerate(zip(shown.latents, pictures, strict=True))
    ]
    n_features = shown.original.size
    used, n_latents = set(record.regime.in_use), record.regime.n_latents
    in_use = [row for row in rows if row["latent"].index in used]
    unused = [row for row in rows if row["latent"].index not in used]
    return {
        "in_use": in_use,
        "unused": unused,
        "n_unused": n_latents - len(used),
        "more_in_use": len(used) - len(in_use),
        "more_unused": n_latents - len(used) - len(unused),
        "values": [f"{value:.1f}".replace("-", "−") for value in shown.values],
        "start": shown.start,
        "unit": {"codes": "its distribution over the data"}.get(shown.scale, f"the {shown.scale}"),
        "n_features": n_features,
        "features_shown": min(n_features, MAX_FEATURES),
        "scale": float(np.abs(shown.outputs - shown.original).max()),
        "is_rescaled": views.is_rescaled,
    }


def _images(views: Views) -> dict[str, Any]:
    reconstructed, span = views.reconstructions, views.display_range
    inputs, outputs = reconstructed.inputs[:N_SHOWN], reconstructed.outputs[:N_SHOWN]
    scale = float(np.abs(outputs - inputs).mean(axis=1).max())
    means = views.prior_samples.means
    return {
        "scale": scale,
        "rows": [
            ("input", data_uri(strip(inputs, span))),
            ("reconstruction", data_uri(strip(outputs, span))),
            ("difference", data_uri(difference_strip(outputs - inputs, scale))),
        ],
        "samples": [
            data_uri(strip(means[first : first + N_SHOWN], span)) for first in range(0, len(means), N_SHOWN)
        ],
    }


def _features(views: Views) -> dict[str, Any]:
    reconstructed, deviations = views.reconstructions, views.prior_samples.deviations
    assert deviations is not None
    return {
        "r_squared": draw_r_squared(reconstructed),
        "deviations": draw_deviations(reconstructed, deviations),
        "constant": reconstructed.inputs[0].size - reconstructed.r_squared_by_value.size,
    }


def draw_r_squared(reconstructions: Reconstructions) -> Markup:
    """Draw the share of each feature's variance that is reconstructed, in descending order."""
    r_squared, names = reconstructions.r_squared_by_value, reconstructions.varying_names
    order = np.argsort(-r_squared, kind="stable")
    values = r_squared[order]
    with rc_context(STYLE):
        figure, axes = single_axes((5.2, 2.6), "Reconstruction of each feature")
        positions = np.arange(1, len(values) + 1)
        axes.bar(positions, values, width=0.8 if len(values) <= 80 else 1.0, color=TRAIN)
        axes.set_ylim(min(0.0, float(values.min(initial=0.0)) * 1.05), 1)
        if names and len(names) <= MAX_NAMED:
            axes.set_xticks(
                positions, [names[index] for index in order], rotation=50, ha="right", fontsize="small"
            )
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("features, best first")
        axes.set_ylabel("R²")
        middle = f"the median is {np.median(values):.2f}" if len(values) else "no feature varies"
        return to_svg(
            figure, "r-squared", f"Share of the variance of each feature that is reconstructed; {middle}."
        )


def draw_deviations(reconstructions: Reconstructions, drawn: Float[np.ndarray, " feature"]) -> Markup:
    """Draw the standard deviation of each feature in the data and in samples from the model."""
    data = reconstructions.inputs.reshape(len(reconstructions.inputs), -1).std(axis=0)
    with rc_context(STYLE):
        figure, axes = single_axes((5.2, 2.6), "Standard deviation of each feature")
        top = 1.08 * max(float(data.max()), float(drawn.max()), 1e-12)
        axes.plot([0, top], [0, top], color=QUIET, lw=0.8, ls=DASHES)
        axes.plot(data, drawn, "o", color=TRAIN, ms=4, alpha=0.7, mec="none")
        # Only the features with the largest errors are named: more names would overlap.
        worst = np.argsort(-np.abs(data - drawn), kind="stable")[
            : N_LABELLED if reconstructions.feature_names else 0
        ]
        for feature in worst.tolist():
            name, at = reconstructions.feature_names[feature], (float(data[feature]), float(drawn[feature]))
            axes.annotate(name, at, (4, 3), textcoords="offset points", fontsize="small")
        axes.set_xlim(0, top)
        axes.set_ylim(0, top)
        axes.set_xlabel("in the data")
        axes.set_ylabel("in samples x ~ p(x)")
        return to_svg(
            figure,
            "deviations",
            "Standard deviation of each feature in the data against that in samples from the model.",
        )
