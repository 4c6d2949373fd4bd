"""Metrics of disentanglement and information. Each metric is a function of arrays that returns a Score.

A metric is called with the arrays that it declares in ``needs``, then options as keywords:

* ``needs=("codes", "factors")``: ``metric(codes, factors, …)``;
* ``needs=("codes",)``: ``metric(codes, …)``, without factors;
* ``needs=("models",)``: ``metric([codes, codes, …], …)``, one array per model, of the same samples.

Optional arguments are listed in ``uses``: ``variance`` (posterior variances) and ``types`` of latents. Every metric has
the argument ``seed``. ``metric.of(table)`` scores a prepared :class:`~polariscope.analysis.code_table.Table`, which
caches results that several metrics share. Scores are the same with and without it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from polariscope import __version__
from polariscope.core.errors import InputError, unknown
from polariscope.core.option_values import show
from polariscope.core.records import AbstractRecord, from_plain, not_stored
from polariscope.core.registry import open_family
from polariscope.core.text import plural

if TYPE_CHECKING:
    import pandas

    from polariscope.analysis.metrics.support.arguments import Metric

INVARIANCES = ("order", "shift", "scale", "sign", "monotone", "rotation")
"""Values of ``invariant_to``: changes of the codes that do not change the default variant. They are the order of the
latents; a shift, a positive factor, a flipped sign or an increasing map of each latent; and a rotation of all
latents."""

Evidence = Literal["information", "importance", "accuracy"]
"""Evidence of a metric that a page can draw."""

Coverage = Literal["all", "in-use"]
"""Latents that scores cover: all of them, or those in use."""

SCORE_AGAIN = "score the model again"
"""Remedy for a stored score that cannot be read."""


@dataclasses.dataclass(frozen=True, eq=False)
class Score(AbstractRecord):
    """Score of a representation by one metric, with the evidence."""

    value: float
    interval: tuple[float, float] | None
    """95 % interval from resampling the samples; None for the reasons in the metric's docstring."""
    chance: float | None
    """Score of codes without information about the factors, from shuffled rows or from a formula."""
    bounds: tuple[float, float]
    higher_is_better: bool
    variant: str
    per_factor: Float[np.ndarray, " factor"] | None = None
    per_latent: Float[np.ndarray, " latent"] | None = None
    matrix: Float[np.ndarray, "_ _"] | None = None
    """Shape (latent, factor) unless the metric's docstring defines another one."""
    details: dict[str, Any] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """Assumptions and limits of the score."""
    metric: str = ""
    """Name of the metric."""
    options: dict[str, object] = dataclasses.field(default_factory=dict)
    """Options other than the defaults, without the variant."""
    summary: str = ""
    """Description of the metric in a line, stored with the score, so pages do not import the metric."""
    needs: tuple[str, ...] = ()
    """Arrays that the metric is called with."""
    evidence: Evidence | None = None
    """Evidence that a page can draw; see :func:`metric`."""

    @classmethod
    def of(
        cls,
        metric: str,
        value: float,
        *,
        interval: tuple[float, float] | None,
        chance: float | None,
        variant: str,
        bounds: tuple[float | int, float | int] | None = None,
        **evidence: Any,
    ) -> Score:
        """Return the score of a registered metric, with the direction and bounds that it declares unless passed."""
        traits = family.traits(metric)
        low, high = bounds or traits["bounds"]
        score = cls(
            value=float(value),
            interval=interval,
            chance=chance,
            bounds=(float(low), float(high)),
            higher_is_better=traits["higher_is_better"],
            variant=variant,
            metric=metric,
            **_about(metric),
            **evidence,
        )
        # An infinite score is allowed if the metric has no upper bound, such as the total correlation.
        if math.isnan(score.value) or (math.isinf(score.value) and math.isfinite(score.bounds[1])):
            raise InputError(
                problem=f"metric {metric!r} is not defined for these arrays: its value is {score.value}"
            )
        return score

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with one row, with the columns of :meth:`Scores.to_frame`."""
        return _scores_frame({self.metric: self})

    @classmethod
    def from_dict(cls, stored: object) -> Score:
        """Return the score that :meth:`to_dict` wrote; other values raise an error. Details are JSON values."""
        score = from_plain(cls, stored, SCORE_AGAIN)
        if not family.has(score.metric):
            raise not_stored(cls, str(unknown("metric", score.metric, family)).rstrip("."), SCORE_AGAIN)
        return score.described()

    def described(self) -> Score:
        """Return the score with the description of its metric, which older files lack."""
        return self if self.summary else dataclasses.replace(self, **_about(self.metric))

    @property
    def way(self) -> str:
        """Variant, and options other than the defaults, as text."""
        return ", ".join([self.variant, *(f"{name} {show(value)}" for name, value in self.options.items())])

    def __str__(self) -> str:
        name = f"{self.metric} ({self.way})".strip() if self.metric else self.way
        line = f"{name}: {self.value:.4g}"
        if self.interval is not None:
            line += f" ({self.interval[0]:.4g} to {self.interval[1]:.4g})"
        line += f"; {'higher' if self.higher_is_better else 'lower'} is better"
        line += f", in [{self.bounds[0]:g}, {self.bounds[1]:g}]"
        if self.chance is not None:
            line += f", chance {self.chance:.4g}"
        return "\n".join([line, *(f"Note: {note}" for note in self.notes)])


family = open_family(__name__, "metric", traits=("bounds", "higher_is_better", "needs", "invariant_to"))


def _scores_frame(scores: Mapping[str, Score]) -> pandas.DataFrame:
    import pandas

    rows = []
    for name, score in scores.items():
        low, high = (None, None) if score.interval is None else score.interval
        rows.append(
            {
                **{"metric": name, "value": score.value, "low": low, "high": high, "chance": score.chance},
                **{"lower_bound": score.bounds[0], "upper_bound": score.bounds[1]},
                **{"higher_is_better": score.higher_is_better, "variant": score.way},
            }
        )
    columns = ["metric", "value", "low", "high", "chance", "lower_bound", "upper_bound"]
    columns += ["higher_is_better", "variant"]
    return pandas.DataFrame(rows, columns=columns).set_index("metric")


def _about(metric: str) -> dict[str, Any]:
    """Return the traits of a metric that are stored with its score; imports the metric."""
    traits = family.traits(metric)
    return {"summary": family.summary(metric), "needs": traits["needs"], "evidence": traits["evidence"]}


MAX_NUMBERED = 64
"""Maximum number of latents that are listed by number."""


@dataclasses.dataclass(frozen=True, eq=False)
class Scores(AbstractRecord):
    """Scores of one representation, by name of the metric as requested: ``scores["mig"].value``."""

    scores: dict[str, Score]
    not_applicable: dict[str, str]
    """Requested metrics that do not apply, with the reason."""
    source: str
    """Representation that was scored: "mean" or "sampled"."""
    n_samples: int
    n_latents: int
    factor_names: tuple[str, ...]
    """Names of the factors used."""
    seed: int
    notes: tuple[str, ...] = ()
    factor_kinds: tuple[str, ...] = ()
    """Kinds of the factors used."""
    fingerprint: str = ""
    """Hash of the arrays that were scored: codes, and variances, factors and prior if available."""
    version: str = __version__
    latents: Coverage = "all"
    """Latents that the scores cover. Rows of matrices and ``per_latent`` are in the order of :attr:`covered`."""
    in_use: tuple[int, ...] | None = None
    """Latents in use, in the model's numbering; None if unknown (codes without variances, scores of 0.2.0)."""
    n_positions: int = 1
    """Number of columns of each channel, if codes with positions were flattened."""

    @property
    def n_in_use(self) -> int | None:
        """Number of latents or channels in use; None if unknown."""
        return None if self.in_use is None else len(self.in_use) // self.n_positions

    @property
    def covered(self) -> tuple[int, ...]:
        """Latents that the scores cover, in the model's numbering."""
        return tuple(range(self.n_latents)) if self.latents == "all" else self.in_use or ()

    @property
    def coverage(self) -> str:
        """Description of the latents that the scores cover."""
        if self.n_positions > 1:
            n_channels = len(self.covered) // self.n_positions
            which = "all" if self.latents == "all" else "the"
            use = "" if self.latents == "all" else " in use"
            return f"{which} {len(self.covered)} values of {plural(n_channels, 'channel')}{use}"
        if self.latents == "all":
            return f"all {self.n_latents} latents" if self.n_latents > 1 else "its only latent"
        if not self.covered:
            return "latents in use: none"
        # Flattened channels have many columns.
        numbers = ", ".join(map(str, self.covered[:MAX_NUMBERED])) + ", …" * (
            len(self.covered) > MAX_NUMBERED
        )
        return f"{plural(len(self.covered), 'latent')} in use ({numbers})"

    def __contains__(self, name: object) -> bool:
        return name in self.scores

    def __getitem__(self, name: str) -> Score:
        if name in self.not_applicable:
            raise InputError(problem=f"metric {name!r} does not apply here: {self.not_applicable[name]}")
        if name not in self.scores:
            raise unknown("score", name, self.scores)
        return self.scores[name]

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each score: value, interval, chance, bounds and variant."""
        return _scores_frame(self.scores)

    @classmethod
    def from_dict(cls, stored: object) -> Scores:
        """Return the scores that :meth:`to_dict` wrote; additional keys are ignored, other values raise an error."""
        if isinstance(stored, Mapping):
            stored = {"version": "", **stored}  # older files lack it, and "" never equals the current version
        restored = from_plain(cls, stored, SCORE_AGAIN, with_others=True)
        for word, score in restored.scores.items():
            if word.partition(":")[0] != score.metric or not family.has(score.metric):
                reason = f"{word!r} must be a score of a metric of this name, got one of {score.metric!r}"
                raise not_stored(cls, reason, SCORE_AGAIN)
        scores = {word: score.described() for word, score in restored.scores.items()}
        return dataclasses.replace(restored, scores=scores)

    def holds(self, word: str) -> bool:
        """Return True if a metric was requested, even if it does not apply."""
        return word in self.scores or word in self.not_applicable

    def only(self, metrics: Sequence[str]) -> Scores:
        """Return the scores of these metrics only."""
        return dataclasses.replace(
            self,
            scores={name: self.scores[name] for name in metrics if name in self.scores},
            not_applicable={n: self.not_applicable[n] for n in metrics if n in self.not_applicable},
        )

    def grouped_notes(self) -> list[tuple[tuple[str, ...], str]]:
        """Return every note once, with the names of the scores that share it; no names for notes about all scores."""
        metrics_by_note: dict[str, list[str]] = {}
        for word, score in self.scores.items():
            for note in score.notes:
                metrics_by_note.setdefault(note, []).append(word)
        return [
            *(((), note) for note in self.notes),
            *((tuple(metrics), note) for note, metrics in metrics_by_note.items()),
        ]

    def grouped_reasons(self) -> list[tuple[tuple[str, ...], str]]:
        """Return every reason for a missing score once, with the names of the metrics that share it."""
        metrics_by_reason: dict[str, list[str]] = {}
        for word, reason in self.not_applicable.items():
            metrics_by_reason.setdefault(reason, []).append(word)
        return [(tuple(metrics), reason) for reason, metrics in metrics_by_reason.items()]

    def differences(self, other: Scores) -> list[str]:
        """Describe the settings in which other scores differ from these; empty if both can be joined."""
        settings = (
            *("version", "source", "latents", "seed", "n_samples", "n_latents"),
            *("factor_names", "factor_kinds"),
        )
        pairs = [(name, getattr(other, name), getattr(self, name)) for name in settings]
        differences = [
            f"{name} {_in_words(theirs)}, now {_in_words(ours)}"
            for name, theirs, ours in pairs
            if theirs != ours
        ]
        return differences or (["other codes or factors"] if self.fingerprint != other.fingerprint else [])

    def joined(self, earlier: Scores) -> Scores:
        """Return these scores together with those of an earlier call, which must have the same settings."""
        changed = self.differences(earlier)
        if changed:
            raise InputError("earlier", f"have the same settings, but differs: {'; '.join(changed)}")
        refused = {**earlier.not_applicable, **self.not_applicable}
        scores = {**earlier.scores, **self.scores}
        return dataclasses.replace(
            self,
            scores=scores,
            # A metric that was refused earlier can apply to this call.
            not_applicable={word: reason for word, reason in refused.items() if word not in scores},
        )

    def __str__(self) -> str:
        lines = [f"Scores of {self.coverage}, {self.source} representation:"] if self.scores else []
        lines += [str(score) for score in self.scores.values()]
        lines += [f"{name} does not apply: {reason}" for name, reason in self.not_applicable.items()]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def _in_words(value: Any) -> str:
    return (", ".join(value) if isinstance(value, tuple) else str(value)) or "none"


def metric(
    name: str,
    *,
    bounds: tuple[float | int, float | int],
    higher_is_better: bool,
    needs: tuple[str, ...],
    invariant_to: Collection[str],
    uses: tuple[str, ...] = (),
    posterior_variants: Collection[str] = (),
    standard_prior: bool = False,
    evidence: Evidence | None = None,
) -> Callable[[Callable[..., Score]], Metric]:
    """Register a function of a prepared table as a metric, which is called with arrays.

    :param name: name of the metric in the family.
    :param bounds: smallest and largest value.
    :param higher_is_better: True if larger values are better.
    :param needs: arrays that it is called with: codes, codes and factors, or models.
    :param invariant_to: members of :data:`INVARIANCES` that do not change the default variant.
    :param uses: (default none) optional arguments: variance, types.
    :param posterior_variants: (default none) variants that are defined by posterior means and variances, so they do not
        apply to sampled codes.
    :param standard_prior: (default False) True if it compares posteriors with the prior N(0, I).
    :param evidence: (default None) evidence that a page can draw: ``information``, the matrix in nats with
        ``factor_entropies`` in the details; ``importance``, the matrix of shares whose columns sum to 1; ``accuracy``,
        by number of training samples and by types of latents, in the details.
    """
    traits = {
        "bounds": bounds,
        "higher_is_better": higher_is_better,
        "needs": needs,
        "invariant_to": invariant_to,
        "uses": uses,
        "posterior_variants": posterior_variants,
        "standard_prior": standard_prior,
        "evidence": evidence,
    }

    from polariscope.analysis.metrics.support.arguments import take_arrays

    def register(function: Callable[..., Score]) -> Metric:
        return family(name, **traits)(take_arrays(name, function, traits))

    return register
