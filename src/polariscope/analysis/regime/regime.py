"""Result of a diagnosis: active, mixed and passive latents, and the evidence."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from jaxtyping import Float

from polariscope.analysis.code_view import Unit, in_units
from polariscope.analysis.convergence import TrainingState
from polariscope.analysis.likelihood_fit import LikelihoodFit
from polariscope.analysis.regime.latent_types import (
    TYPES,
    PriorKind,
    Sensitivity,
    VariableType,
    is_fragile,
    select,
)
from polariscope.analysis.regime.note import Note, factors_named, name_latents
from polariscope.analysis.regime.rule import POLARISED
from polariscope.analysis.regime.use import INFORMATION, Use, count_limits, use_of_moments
from polariscope.analysis.verdict import Finding, Verdict
from polariscope.core.errors import InputError
from polariscope.core.records import AbstractRecord, AbstractStoredRecord
from polariscope.numerics.information import corrected_information

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

Matrix = tuple[tuple[float, ...], ...]
MixtureLabel = Literal["active", "mixed", "passive", "noisy"]
IN_USE = "in-use"
DETERMINISTIC, WIDE = 1e-4, 4.0
"""Limits of a nearly deterministic encoder, relative to the prior's variance: posterior variances below 1e-4, and means
with a variance above 4."""
LARGE = 0.2  # bonheme2023 §6.5 counts correlations above it
Mixedness = Literal["switching", "intermediate", "wide"]


@dataclasses.dataclass(frozen=True)
class Latent(AbstractRecord):
    """Diagnosis of one latent. Moments are over the samples; variances are population variances."""

    index: int
    """Column in the arrays, counted from 0."""
    type: VariableType
    confidence: float
    """Share of bootstrap resamples that give this type."""
    shares: dict[VariableType, float]
    """Share of bootstrap resamples that give each type."""
    alpha_range: tuple[float, float]
    """Exact interval around α in which the type is the same."""
    kl: float
    """Mean KL from the prior in nats; infinite if a posterior variance is 0."""
    kl_interval: tuple[float, float]
    """95 % interval of the mean KL."""
    mean_of_mean: float
    std_of_mean: float
    mean_of_variance: float
    variance_of_variance: float
    mean_of_ratio: float
    """Mean of σ²/Σ†, to which the rule applies; equal to ``mean_of_variance`` if the prior is N(0, 1)."""
    variance_of_ratio: float
    known: float
    """Share of samples with σ²/Σ† < α."""
    unknown: float
    """Share of samples with σ²/Σ† > 1 − α."""
    mixture: MixtureLabel
    """Label from these two shares; a "noisy" latent has an intermediate variance and does not switch."""
    mixedness: Mixedness | None = None
    """Kind of a mixed latent: switching between active and passive inputs, intermediate for most inputs, or wide."""
    redundancy: float | None = None
    """R² of a linear prediction of the mean from the means of the other latents that are not passive, adjusted for
    their number; None if the mean is constant or there are too few samples."""
    std_at_position: float | None = None
    """Root of the variance of μ over samples at the same position, averaged over positions; None without positions."""

    @property
    def std_of_signal(self) -> float:
        """Standard deviation of μ over samples; for a channel, at the same position."""
        return self.std_of_mean if self.std_at_position is None else self.std_at_position

    @property
    def label(self) -> str:
        """Type, with the kind of a mixed latent: "mixed (switching)"."""
        return self.type if self.mixedness is None else f"{self.type} ({self.mixedness})"

    @property
    def is_idle(self) -> bool:
        """If True, the variance is not passive, but the mean is nearly constant, so the latent carries no
        information."""
        return self.type != "passive" and self.std_of_signal**2 < 0.01 * self.mean_of_variance


@dataclasses.dataclass(frozen=True)
class Positions(AbstractRecord):
    """Positions of channels: results that a plain latent does not have."""

    code_shape: tuple[int, ...]
    """Shape of one code, with the channel first."""
    kl: Matrix
    """Mean KL of each channel at each position, in nats; its sum over positions is the KL of the channel."""
    correlation: tuple[float, ...]
    """Intraclass correlation ρ of μ over the positions of each channel, from a one-way ANOVA
    (:func:`polariscope.numerics.clusters.intraclass_correlation`)."""
    n_effective: tuple[float, ...]
    """Effective number of values of each channel, N·P / (1 + (P − 1)ρ), for N samples and P positions."""

    @property
    def n_positions(self) -> int:
        """Number P of positions of a channel."""
        return math.prod(self.code_shape[1:])

    def kl_map(self, channel: int) -> Float[np.ndarray, "*position"]:
        """Return the mean KL of a channel at each position, in the shape of the positions: (height, width) for images.

        :param channel: number of the channel.
        """
        return np.array(self.kl[channel]).reshape(self.code_shape[1:])


@dataclasses.dataclass(frozen=True)
class Partner(AbstractRecord):
    """The latent most correlated with one latent."""

    latent: int
    partner: int | None
    """None if there is no other latent."""
    correlation: float
    """Signed correlation; 0 without a partner."""
    n_correlated: int
    """Number of other latents with |correlation| > 0.2."""


@dataclasses.dataclass(frozen=True)
class Structure(AbstractRecord):
    """Dependence between the latents of one representation, the mean or the sampled."""

    total_correlation: float
    """Gaussian estimate in nats; infinite if a latent is a linear function of others."""
    averaged_mutual_information: float
    """Plug-in estimate in nats with 20 bins, as published; it is biased upwards."""
    effective_rank: float
    predicted_rank: int
    """Effective rank of a polarised model: for the mean the latents that are not passive, for the sampled all
    latents."""
    correlation: Matrix
    mutual_information: Matrix
    """Mutual information of each pair of latents in nats, with the entropies on the diagonal."""
    partners: tuple[Partner, ...]
    """Strongest partner of each latent."""
    chance_mutual_information: float | None = None
    """``averaged_mutual_information`` of shuffled latents; None in results of 0.2.0."""

    @property
    def corrected_mutual_information(self) -> float | None:
        """Averaged mutual information less its chance level; None if this is not known."""
        return _corrected(self)


@dataclasses.dataclass(frozen=True)
class Dependence(AbstractRecord):
    """Dependence within a set of latents, in nats."""

    total_correlation: float
    averaged_mutual_information: float
    """Plug-in estimate, as published; it is biased upwards."""
    chance_mutual_information: float | None = None
    """``averaged_mutual_information`` of shuffled latents; None in results of 0.2.0."""

    @property
    def corrected_mutual_information(self) -> float | None:
        """Averaged mutual information less its chance level; None if this is not known."""
        return _corrected(self)


def _corrected(result: Structure | Dependence) -> float | None:
    chance = result.chance_mutual_information
    return None if chance is None else corrected_information(result.averaged_mutual_information, chance)


@dataclasses.dataclass(frozen=True)
class Truncation(AbstractRecord):
    """Dependence within a combination of types; the values are None for fewer than two latents."""

    selection: str
    latents: tuple[int, ...]
    mean: Dependence | None
    sampled: Dependence | None
    noise_free_total_correlation: float | None
    """Total correlation of Cov[μ] + diag E[σ²], the sampled representation without the noise of one draw."""


@dataclasses.dataclass(frozen=True)
class CriteriaTable(AbstractRecord):
    """Latents in use by each rule. The first is the primary rule, by which active and mixed latents are in use."""

    names: tuple[str, ...]
    rules: tuple[str, ...]
    """Description of each rule in a sentence, with its source."""
    in_use: tuple[tuple[bool, ...], ...]
    """For each rule, True for each latent in use."""
    agreement: tuple[tuple[float, ...], ...]
    """Share of latents on which two rules agree; the first row is the agreement with the primary rule."""

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each rule and a column for each latent: whether the latent is in use."""
        import pandas

        return pandas.DataFrame(list(self.in_use), index=pandas.Index(self.names, name="rule")).rename_axis(
            columns="latent"
        )


@dataclasses.dataclass(frozen=True)
class Polarisation(AbstractRecord):
    """Δ_KL and its terms; ``delta`` is None if the KL is infinite (a posterior variance of 0)."""

    delta: float | None
    kl: float
    approximate_kl: float
    active: tuple[int, ...]
    """Latents with std(μ) > 0.5, which the approximation includes."""


@dataclasses.dataclass(frozen=True)
class Polarised(AbstractRecord):
    """Last part of the training in which the regime was polarised without interruption."""

    share: float
    """Share of the training from ``since`` to the end."""
    at_most: float
    """Upper bound of the share: that from the last step that was not polarised to the end."""
    since: int | None
    """First step after which every measured step is polarised; None if the last step is not polarised."""
    threshold: float

    def __str__(self) -> str:
        if self.since is None:
            return f"Δ_KL is not below {self.threshold:.0%} at the end."
        return (
            f"Δ_KL is below {self.threshold:.0%} from step {self.since:,} to the end: {self.share:.1%} of the training "
            f"(at most {self.at_most:.1%}, because it was measured only at some steps)."
        )


def polarised_until_the_end(
    steps: Sequence[int], deltas: Sequence[float | None], threshold: float = POLARISED
) -> Polarised:
    r"""Return the last part of the training in which Δ_KL is always below a threshold.

    .. math:: \frac{T - t_k}{T}, \qquad k = \min \{ i : \Delta_\mathrm{KL}(t_j) < 0.03 \text{ for all } j \ge i \}

    at steps t₁ < t₂ < … < T. Δ_KL was not measured between t_{k−1}, where it is not below, and t_k. ``at_most`` is
    therefore the share from t_{k−1} on (from 0 if k = 1). An undefined Δ_KL counts as not below.

    Reference: zietlow2022 Eq. 3.38, Tab. 3.2, which evaluates it every 500 batches.

    :param steps: steps at which it was measured, ascending.
    :param deltas: Δ_KL at each step; None if it is not defined.
    :param threshold: (default 0.03) value below which the regime is called polarised.

    >>> polarised_until_the_end([10, 20, 30, 40], [0.01, 0.2, 0.02, 0.01])
    Polarised(share=0.25, at_most=0.5, since=30, threshold=0.03)
    """
    if len(steps) != len(deltas) or not len(steps):
        raise InputError(
            "steps and deltas", "have the same length, at least 1", got=f"{len(steps)} and {len(deltas)}"
        )
    below = [delta is not None and delta < threshold for delta in deltas]
    # Index after the last step that is not below the threshold; 0 if there is none.
    first = len(below) - next((index for index, low in enumerate(reversed(below)) if not low), len(below))
    last = steps[-1]
    if first == len(below):
        return Polarised(0.0, 0.0, None, threshold)
    before = steps[first - 1] if first else 0
    return Polarised((last - steps[first]) / last, (last - before) / last, int(steps[first]), threshold)


@dataclasses.dataclass(frozen=True)
class Regime(AbstractStoredRecord, remedy="diagnose the model again"):
    """Diagnosis of a representation: ``types`` and ``counts`` are the result, the other fields the evidence."""

    latents: tuple[Latent, ...]
    """Diagnosis of each latent, in the order of the arrays' columns."""
    order: tuple[int, ...]
    """Latents by KL, largest first."""
    order_by_variance: tuple[int, ...]
    """Latents by mean posterior variance, smallest first."""
    kl: float
    """Sum of the latents' KLs, nats."""
    trace: float
    """Σ_j E[σ_j²], which is Tr Var[z] − Tr Var[μ]: FONDUE's statistic without its sampling noise."""
    mean: Structure
    sampled: Structure
    noise_free_total_correlation: float
    """Gaussian total correlation of Cov[μ] + diag E[σ²]: the sampled representation averaged over draws."""
    truncation: tuple[Truncation, ...]
    criteria: CriteriaTable
    sensitivity: Sensitivity
    polarisation: Polarisation
    notes: tuple[Note, ...]
    """Assumptions that do not hold, as texts with codes; empty if all hold."""
    n_samples: int
    alpha: float
    n_bootstrap: int
    seed: int
    prior: PriorKind
    has_gaussian_kl: bool
    """If True, the KL is that from a Gaussian prior, so it measures the information that a latent carries."""
    meaning_of_passive: str
    n_factors: int = 0
    """Number of known factors that vary in these samples; 0 without factors."""
    use: tuple[Use, ...] = ()
    """Use of each latent, from the decoder or from its information; empty in diagnoses by version 0.2.0."""
    training: TrainingState = dataclasses.field(default_factory=TrainingState)
    """State of the training of the model; unknown without a log."""
    fit: LikelihoodFit = dataclasses.field(default_factory=LikelihoodFit)
    """Fit of the model's likelihood to the residuals; empty without a decoder, and in diagnoses by version 0.2.0."""
    dependence_in_use: Truncation | None = None
    """Dependence of the latents in use; None in earlier diagnoses, which include only that of types
    (``truncation``)."""
    positions: Positions | None = None
    """If not None, each latent of this diagnosis is a channel. Moments pool its positions, KLs are summed over them,
    and dependence is that between channels at the same position."""

    @property
    def unit(self) -> Unit:
        """Unit of the diagnosis: "latent" or "channel"."""
        return "latent" if self.positions is None else "channel"

    @property
    def over_pruned(self) -> bool:
        """If True, fewer latents have E[σ²] < 0.8 than factors vary (zietlow2022 §4.3.4 discards such runs)."""
        rule = self.criteria.names.index("mean-variance")
        return sum(self.criteria.in_use[rule]) < self.n_factors

    def has_note(self, code: str) -> bool:
        """Return True if the diagnosis has a note of this kind.

        :param code: a key of :data:`polariscope.analysis.regime.note.WRITERS`.
        """
        return any(note.code == code for note in self.notes)

    @property
    def n_latents(self) -> int:
        return len(self.latents)

    @property
    def types(self) -> list[VariableType]:
        """Type of each latent, in the order of the arrays' columns."""
        return [latent.type for latent in self.latents]

    @property
    def counts(self) -> dict[VariableType, int]:
        """Number of latents of each type."""
        return {name: self.types.count(name) for name in TYPES}

    @property
    def kinds_of_mixed(self) -> dict[Mixedness, int]:
        """Number of mixed latents of each kind that occurs."""
        kinds = [latent.mixedness for latent in self.latents if latent.mixedness is not None]
        return {kind: kinds.count(kind) for kind in get_args(Mixedness) if kind in kinds}

    @property
    def uses(self) -> tuple[Use, ...]:
        """Use of each latent; for diagnoses by version 0.2.0 the information, computed from the stored moments."""
        return self.use or tuple(
            use_of_moments(latent.std_of_mean, latent.mean_of_variance) for latent in self.latents
        )

    @property
    def in_use(self) -> list[int]:
        """Latents in use, by KL; for the rule see :mod:`polariscope.analysis.regime.use`."""
        return [index for index in self.order if self.uses[index].in_use]

    @property
    def passive_in_words(self) -> str:
        """Meaning of passive for this prior, with a list of the passive latents that are in use nevertheless."""
        moving = sorted(index for index in self.in_use if self.types[index] == "passive")
        if not moving:
            return self.meaning_of_passive
        verb = "is" if len(moving) == 1 else "are"
        return (
            f"{self.meaning_of_passive}, up to the tolerance of the rule; {in_units(name_latents(moving), self.unit)} "
            f"{verb} passive by that rule, yet in use"
        )

    @property
    def fragile(self) -> list[int]:
        """Latents whose type changes when α changes by at most a fifth."""
        return [latent.index for latent in self.latents if is_fragile(latent.alpha_range, self.alpha)]

    @property
    def passive_partners(self) -> tuple[Partner, ...]:
        """Strongest partner of each passive latent in the mean representation."""
        return tuple(partner for partner in self.mean.partners if self.types[partner.latent] == "passive")

    def select(self, selection: str) -> list[int]:
        """Return the columns of the selected latents: ``rep.mean[:, regime.select("in-use")]``.

        If latents are channels, all columns of each selected channel are returned.

        :param selection: "in-use", "full", or types joined by "+": "active+mixed".
        """
        units = sorted(self.in_use) if selection == IN_USE else select(self.types, selection)
        size = 1 if self.positions is None else self.positions.n_positions
        return [column for unit in units for column in range(unit * size, (unit + 1) * size)]

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each latent or channel: its type, its use, its KL and its moments."""
        import pandas

        in_use, rows = set(self.in_use), []
        for latent in self.latents:
            row = {field.name: getattr(latent, field.name) for field in dataclasses.fields(latent)}
            shares = {f"share_{name}": share for name, share in row.pop("shares").items()}
            row["kl_low"], row["kl_high"] = row.pop("kl_interval")
            row["alpha_low"], row["alpha_high"] = row.pop("alpha_range")
            first = {self.unit: row.pop("index"), "type": row.pop("type"), "in_use": latent.index in in_use}
            if self.positions is None:
                del row["std_at_position"]
            else:
                row["correlation"] = self.positions.correlation[latent.index]
                row["n_effective"] = self.positions.n_effective[latent.index]
            rows.append({**first, **row, **shares})
        return pandas.DataFrame(rows).set_index(self.unit)

    @classmethod
    def from_dict(cls, stored: Mapping[str, object]) -> Regime:
        """Return the diagnosis that :meth:`to_dict` wrote, equal in every bit; other values raise an error.

        A diagnosis by version 0.2.0 has notes without codes and no ``n_factors``; both are parsed from the texts.

        :param stored: JSON values.
        """
        regime = super().from_dict(stored)
        return (
            regime
            if "n_factors" in stored
            else dataclasses.replace(regime, n_factors=factors_named(regime.notes))
        )

    @property
    def verdict(self) -> Verdict:
        """State of the training and number of latents in use; the same record as :meth:`Run.verdict`."""
        used = self.in_use
        return Verdict(
            n_latents=self.n_latents,
            in_use=tuple(used),
            interval=count_limits(self.uses),
            training=self.training,
            evidence=self.uses[0].evidence,
            unused=tuple(
                j
                for j in range(self.n_latents)
                if self.types[j] != "passive" and not self.uses[j].can_be_in_use
            ),
            undecided=tuple(j for j, use in enumerate(self.uses) if use.can_be_in_use and not use.in_use),
            silent_means=tuple(
                j
                for j in sorted(used)
                if use_of_moments(self.latents[j].std_of_signal, self.latents[j].mean_of_variance).value
                < INFORMATION
            ),
            findings=self.findings,
            unit=self.unit,
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Conditions that people search for by name: posterior collapse, a nearly deterministic encoder.

        If no latent is in use, a decoder that ignores informative codes (more than 0.1 nats of KL in a latent) is
        distinguished from a collapse.
        """
        if not self.in_use:
            is_open = any(use.can_be_in_use for use in self.uses)
            if is_open or self.training.code in ("still-learning", "diverged"):
                return ()
            # The KL at one position of a channel, as for a latent.
            size = 1 if self.positions is None else self.positions.n_positions
            is_ignored = self.uses[0].evidence == "decoder" and any(
                latent.kl > INFORMATION * size for latent in self.latents
            )
            return ("ignored-codes",) if is_ignored else ("posterior-collapse",)
        # A variance of exactly 0 is that of a deterministic encoder, which has its own note.
        latents = [self.latents[j] for j in self.in_use if self.latents[j].mean_of_variance > 0]
        is_point = bool(latents) and all(latent.mean_of_ratio < DETERMINISTIC for latent in latents)
        is_wide = any(
            # Ratio over variance is 1/Σ†, so this compares the variance of the mean with the prior's.
            latent.std_of_mean**2 * latent.mean_of_ratio > WIDE * latent.mean_of_variance
            for latent in latents
        )
        return ("nearly-deterministic",) if is_point and is_wide else ()

    def __str__(self) -> str:
        from polariscope.analysis.regime import regime_text

        return regime_text.as_text(self)

    def _repr_html_(self) -> str:
        from polariscope.analysis.regime import regime_text

        return regime_text.as_html(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw mean posterior variance and KL of every latent, by KL, in the colour of its type.

        Bars show the variances, on the left axis. Crosses show the KLs in nats with their intervals, on the right axis.

        :param ax: (default: axes of a new figure) axes to draw on.
        """
        # Imported here, because matplotlib is slow to import.
        from polariscope.analysis.regime.plotting import draw

        return draw(self, ax)
