"""The course of a run: what its codes, and its layers, were like at every checkpoint that was kept."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from polariscope.analysis.regime.latent_types import TYPES, VariableType
from polariscope.analysis.regime.regime import (
    LARGE,
    Dependence,
    Polarisation,
    Polarised,
    polarised_until_the_end,
)
from polariscope.analysis.regime.rule import TypeRule
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.core.frames import csv_of, frame_of
from polariscope.core.records import AbstractRecord, AbstractStoredRecord
from polariscope.core.text import number

if TYPE_CHECKING:
    import pandas

MAX_STEPS = 12
"""Rows of a printed table; the file has all."""


@dataclasses.dataclass(frozen=True, eq=False)
class Snapshot(AbstractRecord):
    """What the codes were like at one step."""

    step: int
    types: tuple[VariableType, ...]
    """Type of each latent."""
    kl: Float[np.ndarray, " latent"]
    """KL(q(z_j|x) ‖ p(z_j)) of each latent, nats."""
    variance: Float[np.ndarray, " latent"]
    """E[σ²] of each latent."""
    std: Float[np.ndarray, " latent"]
    """std(μ) of each latent."""
    polarisation: Polarisation
    """Δ_KL and what it is made of."""
    mean: Dependence
    """Total correlation and averaged mutual information of the mean representation."""
    sampled: Dependence
    """The same of the sampled representation."""
    correlation: Float[np.ndarray, "latent latent"]
    """Correlations of the mean representation."""


def snapshot(representation: Representation, step: int, alpha: float = TypeRule.alpha) -> Snapshot:
    """The numbers of :func:`polariscope.diagnose` that a course follows, without its resampling.

    :param representation: the codes of the model at this step.
    :param step: how long the model was trained.
    :param alpha: (default: that of ``TypeRule``) tolerance of the rule that names the types.
    """
    # Here, since a page that shows a course reads the record above and computes nothing.
    from polariscope.analysis.regime.criteria import polarisation
    from polariscope.analysis.regime.latent_types import moments, types_of
    from polariscope.analysis.regime.posterior import relative_posterior
    from polariscope.numerics.dependence import correlation, covariance
    from polariscope.numerics.intervals import mean_with_interval

    posterior = relative_posterior(representation)
    covariances = covariance(representation.mean), covariance(representation.sampled)
    return Snapshot(
        step=step,
        types=tuple(types_of(moments(posterior), alpha).tolist()),
        kl=mean_with_interval(posterior.kl)[0],
        variance=posterior.absolute_variance.mean(axis=0),
        std=posterior.absolute_mean.std(axis=0),
        polarisation=polarisation(posterior),
        mean=_dependence("mean", representation.mean, covariances[0]),
        sampled=_dependence("sampled", representation.sampled, covariances[1]),
        correlation=correlation(covariances[0]),
    )


def _dependence(
    source: str, codes: Float[np.ndarray, "sample latent"], covariance: Float[np.ndarray, "latent latent"]
) -> Dependence:
    from polariscope.numerics.dependence import total_correlation_of
    from polariscope.numerics.information import (
        averaged_mutual_information,
        chance_information_table,
        discretise,
        mutual_information_table,
    )

    bins = discretise(codes)
    chance = chance_information_table(bins, 0, source)
    tables = (mutual_information_table(bins), chance)
    return Dependence(total_correlation_of(covariance), *map(averaged_mutual_information, tables))


@dataclasses.dataclass(frozen=True, eq=False)
class LayerSimilarity(AbstractRecord):
    """Each layer at each step with the layer of the same name of one model."""

    reference: str
    """Which model: "itself at step 300", or the name of another run."""
    measure: str
    """Which similarity."""
    title: str
    """What figures call it."""
    values: Float[np.ndarray, "step layer"]
    """NaN for a layer that never varies, or that the other model does not have."""


@dataclasses.dataclass(frozen=True, eq=False)
class LayerCourse(AbstractRecord):
    """What the layers were like at every step of a course."""

    names: tuple[str, ...]
    """The layers in network order."""
    n_samples: int
    """Observations behind these numbers."""
    k: int
    """Neighbours behind each dimension."""
    dimension: Float[np.ndarray, "step layer"]
    """Intrinsic dimension of each layer; NaN where it cannot be told."""
    low: Float[np.ndarray, "step layer"]
    """Lower ends of the 95 % intervals."""
    high: Float[np.ndarray, "step layer"]
    """Upper ends of the 95 % intervals."""
    similarities: tuple[LayerSimilarity, ...]
    """With its own last state first, then with that of another run if one was given."""


@dataclasses.dataclass(frozen=True, eq=False)
class Course(AbstractStoredRecord, remedy="follow the run again"):
    """A run at every step of which there is a model. Types, KL and Δ_KL first, then what they are made of."""

    name: str
    """Of the run."""
    snapshots: tuple[Snapshot, ...]
    """The codes, step by step."""
    latent: int
    """The latent whose correlations with the others are shown."""
    n_samples: int
    seed: int
    alpha: float
    layers: LayerCourse | None = None
    """The layers, if they were asked for."""
    notes: tuple[str, ...] = ()
    """Where it should be read with care."""

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps, ascending."""
        return tuple(one.step for one in self.snapshots)

    @property
    def n_latents(self) -> int:
        """Number of latents."""
        return len(self.snapshots[0].types)

    @property
    def types(self) -> tuple[VariableType, ...]:
        """Type of each latent at the last step."""
        return self.snapshots[-1].types

    @property
    def counts(self) -> dict[VariableType, Int[np.ndarray, " step"]]:
        """How many latents are of each type, step by step."""
        return {kind: np.array([one.types.count(kind) for one in self.snapshots]) for kind in TYPES}

    @property
    def kl(self) -> Float[np.ndarray, "step latent"]:
        """KL of each latent, nats."""
        return np.stack([one.kl for one in self.snapshots])

    @property
    def variance(self) -> Float[np.ndarray, "step latent"]:
        """E[σ²] of each latent; the sum over latents is the trace."""
        return np.stack([one.variance for one in self.snapshots])

    @property
    def delta_kl(self) -> Float[np.ndarray, " step"]:
        """Δ_KL; NaN where the KL is infinite."""
        deltas = [one.polarisation.delta for one in self.snapshots]
        return np.array([np.nan if delta is None else delta for delta in deltas])

    @property
    def polarised(self) -> Polarised:
        """For how long Δ_KL is below 3 % until the end."""
        return polarised_until_the_end(self.steps, [one.polarisation.delta for one in self.snapshots])

    @property
    def is_large(self) -> Bool[np.ndarray, "step latent latent"]:
        """Which pairs of different latents have \\|r\\| > 0.2."""
        large = np.abs(np.stack([one.correlation for one in self.snapshots])) > LARGE
        large[:, np.arange(self.n_latents), np.arange(self.n_latents)] = False
        return large

    @property
    def correlated_steps(self) -> Int[np.ndarray, " latent"]:
        """At how many steps each latent has \\|r\\| > 0.2 with any other (bonheme2023 Fig. 6.10)."""
        return self.is_large.any(axis=2).sum(axis=0)

    @property
    def correlated_pairs(self) -> Int[np.ndarray, " latent"]:
        """The same, where each other latent counts: the source does not say which it plots."""
        return self.is_large.sum(axis=(0, 2))

    def correlations(self, latent: int | None = None) -> Float[np.ndarray, "step latent"]:
        """Correlation of a latent's mean with those of all latents, step by step (bonheme2023 Fig. 6.11).

        :param latent: (default: the one of the course) its number.
        """
        chosen = self.latent if latent is None else latent
        check_latent(chosen, self.n_latents)
        return np.stack([one.correlation[chosen] for one in self.snapshots])

    def shown(self, most: int = MAX_STEPS) -> list[int]:
        """Places of at most so many of the steps, evenly spread from the first to the last.

        :param most: (default 12) how many to show.
        """
        return thinned(len(self.snapshots), most)

    def to_rows(self) -> list[dict[str, Any]]:
        """Everything as a table: a row for each step; None where a number is not defined."""
        large, correlations = self.is_large.sum(axis=2), self.correlations()
        rows = []
        for index, one in enumerate(self.snapshots):
            row: dict[str, Any] = {
                "step": one.step,
                **{kind: one.types.count(kind) for kind in TYPES},
                "kl": float(one.kl.sum()),
                "trace": float(one.variance.sum()),
                "delta_kl": one.polarisation.delta,
                "tc_mean": one.mean.total_correlation,
                "tc_sampled": one.sampled.total_correlation,
                "mi_mean": one.mean.corrected_mutual_information,
                "mi_sampled": one.sampled.corrected_mutual_information,
                "mi_mean_chance": one.mean.chance_mutual_information,
                "mi_sampled_chance": one.sampled.chance_mutual_information,
                "mi_mean_raw": one.mean.averaged_mutual_information,
                "mi_sampled_raw": one.sampled.averaged_mutual_information,
            }
            for j in range(self.n_latents):
                row |= {f"type.{j}": one.types[j], f"kl.{j}": float(one.kl[j])}
                row |= {f"variance.{j}": float(one.variance[j]), f"std.{j}": float(one.std[j])}
                row |= {f"correlated.{j}": int(large[index, j])}
                row |= {f"r.{self.latent}.{j}": float(correlations[index, j])}
            rows.append({**row, **self._layer_cells(index)})
        return rows

    def _layer_cells(self, index: int) -> dict[str, float | None]:
        if self.layers is None:
            return {}
        layers = self.layers
        columns = {"dimension": layers.dimension, "dimension_low": layers.low, "dimension_high": layers.high}
        columns |= {f"{one.measure}({one.reference})": one.values for one in layers.similarities}
        return {
            f"{name}.{layer}": None if np.isnan(cell) else cell
            for name, table in columns.items()
            for layer, cell in zip(layers.names, table[index].tolist(), strict=True)
        }

    def to_csv(self) -> str:
        """:meth:`to_rows` as a text of comma-separated values; what is not defined is an empty cell."""
        rows = self.to_rows()
        return csv_of(frame_of(rows))

    def to_frame(self) -> pandas.DataFrame:
        """Return :meth:`to_rows` as a table, indexed by step."""
        import pandas

        return pandas.DataFrame(self.to_rows()).set_index("step")

    def __str__(self) -> str:
        parts = [f"{self.name}: {_words_of(self.steps)}, {self.n_samples:,} samples", self._table()]
        parts += [str(self.polarised), self._latents()]
        parts += [] if self.layers is None else [self._layers(self.layers)]
        return "\n\n".join([*parts, *(f"Note: {note}" for note in self.notes)])

    def _table(self) -> str:
        from polariscope.core.tables import TextTable

        head = [
            "step",
            *TYPES,
            "KL",
            "Σ E[σ²]",
            "Δ_KL",
            "TC μ",
            "TC z",
            "MI μ",
            "MI z",
            "chance μ",
            "chance z",
        ]
        lines = []
        for index in self.shown():
            one = self.snapshots[index]
            delta = one.polarisation.delta
            numbers = [one.kl.sum(), one.variance.sum()]
            dependences = [
                *(one.mean.total_correlation, one.sampled.total_correlation),
                *(one.mean.corrected_mutual_information, one.sampled.corrected_mutual_information),
                *(one.mean.chance_mutual_information, one.sampled.chance_mutual_information),
            ]
            lines.append(
                [
                    f"{one.step:,}",
                    *(str(one.types.count(kind)) for kind in TYPES),
                    *(f"{number:.3f}" for number in numbers),
                    "–" if delta is None else f"{delta:.1%}",
                    *("–" if number is None else f"{number:.3f}" for number in dependences),
                ]
            )
        note = "MI is averaged over pairs of latents, less its chance level, that of shuffled latents."
        return str(TextTable(*head, rows=lines, numbers=head[1:], notes=[note]))

    def _latents(self) -> str:
        from polariscope.core.tables import TextTable

        n = len(self.steps)
        head = [
            "latent",
            "type at the end",
            f"steps with |r| > {LARGE}",
            "pairs",
            f"r with {self.latent} at the end",
            "lowest",
            "highest",
        ]
        series = self.correlations()
        lines = [
            [
                str(j),
                self.types[j],
                f"{self.correlated_steps[j]} of {n}",
                str(self.correlated_pairs[j]),
                *(("", "", "") if j == self.latent else _ends(series[:, j])),
            ]
            for j in range(self.n_latents)
        ]
        return str(TextTable(*head, rows=lines, numbers=head[1:]))

    def _layers(self, layers: LayerCourse) -> str:
        from polariscope.core.tables import TextTable

        indices = self.shown()
        head = ["layer", *(f"{self.steps[index]:,}" for index in indices)]
        tables = {f"Intrinsic dimension (k = {layers.k}, {layers.n_samples:,} samples)": layers.dimension}
        tables |= {f"{one.title} with {one.reference}": one.values for one in layers.similarities}
        return "\n\n".join(
            str(
                TextTable(
                    *head,
                    rows=[
                        [name, *(number(cell, 2) for cell in values[indices, column].tolist())]
                        for column, name in enumerate(layers.names)
                    ],
                    numbers=head[1:],
                    title=title,
                )
            )
            for title, values in tables.items()
        )


def check_latent(latent: object, n_latents: int) -> None:
    """Refuse what is not the number of a latent.

    :param latent: what was given.
    :param n_latents: how many there are.
    """
    is_number = isinstance(latent, int | np.integer) and not isinstance(latent, bool)
    if not is_number or not 0 <= int(latent) < n_latents:  # type: ignore[call-overload]
        raise InputError("latent", f"be a number from 0 to {n_latents - 1}", got=f"{latent!r}")


def thinned(count: int, most: int = MAX_STEPS) -> list[int]:
    """At most so many places, evenly spread from the first to the last.

    :param count: how many there are.
    :param most: (default 12) how many to show.

    >>> thinned(3), thinned(5, 3)
    ([0, 1, 2], [0, 2, 4])
    """
    if count <= most:
        return list(range(count))
    return [round(index * (count - 1) / (most - 1)) for index in range(most)]


def _words_of(steps: tuple[int, ...]) -> str:
    if len(steps) == 1:
        return f"one step ({steps[0]:,})"
    few = "" if len(steps) <= MAX_STEPS else f", {MAX_STEPS} of them shown"
    return f"{len(steps)} steps from {steps[0]:,} to {steps[-1]:,}{few}"


def _ends(series: Float[np.ndarray, " step"]) -> tuple[str, str, str]:
    return f"{series[-1]:+.2f}", f"{series.min():+.2f}", f"{series.max():+.2f}"
