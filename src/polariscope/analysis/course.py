"""Course of a run: statistics of its codes and layers at every stored checkpoint."""

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
"""Maximum number of rows of a printed table; files contain all rows."""


@dataclasses.dataclass(frozen=True, eq=False)
class Snapshot(AbstractRecord):
    """Statistics of the codes at one step."""

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
    """Δ_KL and its terms."""
    mean: Dependence
    """Total correlation and averaged mutual information of the mean representation."""
    sampled: Dependence
    """Total correlation and averaged mutual information of the sampled representation."""
    correlation: Float[np.ndarray, "latent latent"]
    """Correlations of the mean representation."""


def snapshot(representation: Representation, step: int, alpha: float = TypeRule.alpha) -> Snapshot:
    """Compute the results of :func:`polariscope.diagnose` that a course includes, without resampling.

    :param representation: codes of the model at this step.
    :param step: number of training steps.
    :param alpha: (default 0.1) tolerance of the rule that determines the types.
    """
    # Imported here, because pages that show a course only read the record above.
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
    # A fixed seed, so differences between steps are not due to the shuffles.
    chance = chance_information_table(bins, 0, source)
    tables = (mutual_information_table(bins), chance)
    return Dependence(total_correlation_of(covariance), *map(averaged_mutual_information, tables))


@dataclasses.dataclass(frozen=True, eq=False)
class LayerSimilarity(AbstractRecord):
    """Similarity of each layer at each step with the layer of the same name in a reference model."""

    reference: str
    """Reference model: "itself at step 300", or the name of another run."""
    measure: str
    """Name of the similarity measure."""
    title: str
    """Name of the measure in figures."""
    values: Float[np.ndarray, "step layer"]
    """Similarities; NaN for a layer that is constant or missing in the reference model."""


@dataclasses.dataclass(frozen=True, eq=False)
class LayerCourse(AbstractRecord):
    """Statistics of the layers at every step of a course."""

    names: tuple[str, ...]
    """Names of the layers in network order."""
    n_samples: int
    """Number of observations used."""
    k: int
    """Number of neighbours used for each dimension."""
    dimension: Float[np.ndarray, "step layer"]
    """Intrinsic dimension of each layer; NaN if it cannot be estimated."""
    low: Float[np.ndarray, "step layer"]
    """Lower ends of the 95 % intervals."""
    high: Float[np.ndarray, "step layer"]
    """Upper ends of the 95 % intervals."""
    similarities: tuple[LayerSimilarity, ...]
    """Similarities with the last step of the run itself, then with that of another run if there is one."""


@dataclasses.dataclass(frozen=True, eq=False)
class Course(AbstractStoredRecord, remedy="follow the run again"):
    """Statistics of a run at every step with a stored model."""

    name: str
    """Name of the run."""
    snapshots: tuple[Snapshot, ...]
    """Statistics of the codes at each step."""
    latent: int
    """Latent whose correlations with the others are shown."""
    n_samples: int
    seed: int
    alpha: float
    layers: LayerCourse | None = None
    """Statistics of the layers, if requested."""
    notes: tuple[str, ...] = ()
    """Limits of the results."""

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps in ascending order."""
        return tuple(state.step for state in self.snapshots)

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
        """Number of latents of each type at each step."""
        return {kind: np.array([state.types.count(kind) for state in self.snapshots]) for kind in TYPES}

    @property
    def kl(self) -> Float[np.ndarray, "step latent"]:
        """KL of each latent, nats."""
        return np.stack([state.kl for state in self.snapshots])

    @property
    def variance(self) -> Float[np.ndarray, "step latent"]:
        """E[σ²] of each latent; the sum over latents is the trace."""
        return np.stack([state.variance for state in self.snapshots])

    @property
    def delta_kl(self) -> Float[np.ndarray, " step"]:
        """Δ_KL; NaN if the KL is infinite."""
        deltas = [state.polarisation.delta for state in self.snapshots]
        return np.array([np.nan if delta is None else delta for delta in deltas])

    @property
    def polarised(self) -> Polarised:
        """Last part of the training in which Δ_KL is always below 3 %."""
        return polarised_until_the_end(self.steps, [state.polarisation.delta for state in self.snapshots])

    @property
    def is_large(self) -> Bool[np.ndarray, "step latent latent"]:
        """True for pairs of different latents with \\|r\\| > 0.2."""
        large = np.abs(np.stack([state.correlation for state in self.snapshots])) > LARGE
        # The correlation of a latent with itself is 1.
        large[:, np.arange(self.n_latents), np.arange(self.n_latents)] = False
        return large

    @property
    def correlated_steps(self) -> Int[np.ndarray, " latent"]:
        """Number of steps at which each latent has \\|r\\| > 0.2 with any other (bonheme2023 Fig. 6.10)."""
        return self.is_large.any(axis=2).sum(axis=0)

    @property
    def correlated_pairs(self) -> Int[np.ndarray, " latent"]:
        """Number of (step, other latent) with \\|r\\| > 0.2; the source does not define which of the two counts it
        plots."""
        return self.is_large.sum(axis=(0, 2))

    def correlations(self, latent: int | None = None) -> Float[np.ndarray, "step latent"]:
        """Return the correlations of a latent's mean with those of all latents, at each step (bonheme2023 Fig. 6.11).

        :param latent: (default: ``self.latent``) number of the latent.
        """
        column = self.latent if latent is None else latent
        check_latent(column, self.n_latents)
        return np.stack([state.correlation[column] for state in self.snapshots])

    def shown(self, most: int = MAX_STEPS) -> list[int]:
        """Return the indices of at most ``most`` steps, evenly spread from the first to the last.

        :param most: (default 12) maximum number of steps to show.
        """
        return thinned(len(self.snapshots), most)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return all values as a table with a row for each step; undefined values are None."""
        large, correlations = self.is_large.sum(axis=2), self.correlations()
        rows = []
        for index, state in enumerate(self.snapshots):
            row: dict[str, Any] = {
                "step": state.step,
                **{kind: state.types.count(kind) for kind in TYPES},
                "kl": float(state.kl.sum()),
                "trace": float(state.variance.sum()),
                "delta_kl": state.polarisation.delta,
                "tc_mean": state.mean.total_correlation,
                "tc_sampled": state.sampled.total_correlation,
                "mi_mean": state.mean.corrected_mutual_information,
                "mi_sampled": state.sampled.corrected_mutual_information,
                "mi_mean_chance": state.mean.chance_mutual_information,
                "mi_sampled_chance": state.sampled.chance_mutual_information,
                "mi_mean_raw": state.mean.averaged_mutual_information,
                "mi_sampled_raw": state.sampled.averaged_mutual_information,
            }
            for j in range(self.n_latents):
                row |= {f"type.{j}": state.types[j], f"kl.{j}": float(state.kl[j])}
                row |= {f"variance.{j}": float(state.variance[j]), f"std.{j}": float(state.std[j])}
                row |= {f"correlated.{j}": int(large[index, j])}
                row |= {f"r.{self.latent}.{j}": float(correlations[index, j])}
            rows.append({**row, **self._layer_cells(index)})
        return rows

    def _layer_cells(self, index: int) -> dict[str, float | None]:
        if self.layers is None:
            return {}
        layers = self.layers
        columns = {"dimension": layers.dimension, "dimension_low": layers.low, "dimension_high": layers.high}
        columns |= {f"{each.measure}({each.reference})": each.values for each in layers.similarities}
        return {
            f"{name}.{layer}": None if np.isnan(cell) else cell
            for name, table in columns.items()
            for layer, cell in zip(layers.names, table[index].tolist(), strict=True)
        }

    def to_csv(self) -> str:
        """Return :meth:`to_rows` as comma-separated values; undefined values are empty cells."""
        return csv_of(frame_of(self.to_rows()))

    def to_frame(self) -> pandas.DataFrame:
        """Return :meth:`to_rows` as a table, indexed by step."""
        import pandas

        return pandas.DataFrame(self.to_rows()).set_index("step")

    def __str__(self) -> str:
        parts = [f"{self.name}: {_describe_steps(self.steps)}, {self.n_samples:,} samples", self._table()]
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
            state = self.snapshots[index]
            delta = state.polarisation.delta
            numbers = [state.kl.sum(), state.variance.sum()]
            dependences = [
                *(state.mean.total_correlation, state.sampled.total_correlation),
                *(state.mean.corrected_mutual_information, state.sampled.corrected_mutual_information),
                *(state.mean.chance_mutual_information, state.sampled.chance_mutual_information),
            ]
            lines.append(
                [
                    f"{state.step:,}",
                    *(str(state.types.count(kind)) for kind in TYPES),
                    *(f"{number:.3f}" for number in numbers),
                    "–" if delta is None else f"{delta:.1%}",
                    *("–" if number is None else f"{number:.3f}" for number in dependences),
                ]
            )
        note = (
            "MI is averaged over pairs of latents; the chance level, that of shuffled latents, is subtracted."
        )
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
        tables |= {f"{each.title} with {each.reference}": each.values for each in layers.similarities}
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
    """Raise an error if an argument is not the number of a latent.

    :param latent: value of the argument.
    :param n_latents: number of latents.
    """
    is_number = isinstance(latent, int | np.integer) and not isinstance(latent, bool)
    if not is_number or not 0 <= int(latent) < n_latents:  # type: ignore[call-overload]
        raise InputError("latent", f"be a number from 0 to {n_latents - 1}", got=f"{latent!r}")


def thinned(count: int, most: int = MAX_STEPS) -> list[int]:
    """Return at most ``most`` indices, evenly spread from the first to the last.

    :param count: number of items.
    :param most: (default 12) maximum number of items to show.

    >>> thinned(3), thinned(5, 3)
    ([0, 1, 2], [0, 2, 4])
    """
    if count <= most:
        return list(range(count))
    # Both ends are included, so the spacing is between count − 1 intervals.
    return [round(index * (count - 1) / (most - 1)) for index in range(most)]


def _describe_steps(steps: tuple[int, ...]) -> str:
    if len(steps) == 1:
        return f"one step ({steps[0]:,})"
    few = "" if len(steps) <= MAX_STEPS else f", {MAX_STEPS} of them shown"
    return f"{len(steps)} steps from {steps[0]:,} to {steps[-1]:,}{few}"


def _ends(series: Float[np.ndarray, " step"]) -> tuple[str, str, str]:
    return f"{series[-1]:+.2f}", f"{series.min():+.2f}", f"{series.max():+.2f}"
