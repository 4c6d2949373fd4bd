"""Metrics: how well a representation separates and keeps the factors. Functions of arrays, each giving a Score.

A metric is called with the arrays it declares in ``needs``, then options by keyword:

* ``needs=("codes", "factors")``: ``metric(codes, factors, …)``;
* ``needs=("codes",)``: ``metric(codes, …)``; no factors are known;
* ``needs=("models",)``: ``metric([codes, codes, …], …)``, one array per model, of the same samples.

What else it can use is in ``uses``: ``variance``, posterior variances, and ``types`` of latents. Every metric takes
``seed``. ``metric.of(table)`` scores a :class:`~polariscope.analysis.code_table.Table` that was prepared
before: it keeps what several metrics need and never changes a score.
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
"""What ``invariant_to`` can name: changes of the codes that leave the default variant as it is. They are the order of
the latents; a shift, a positive factor, a flipped sign or an increasing map of each latent; a rotation of all."""

Evidence = Literal["information", "importance", "accuracy"]
"""What a page can draw of a metric."""

Coverage = Literal["all", "in-use"]
"""Latents that scores cover: all of them, or those in use."""

SCORE_AGAIN = "score the model again"
"""What to do about a stored score that cannot be read."""


@dataclasses.dataclass(frozen=True, eq=False)
class Score(AbstractRecord):
    """One number about a representation, and the evidence behind it."""

    value: float
    interval: tuple[float, float] | None
    """95 %, by resampling the samples; None where the metric's docstring says why."""
    chance: float | None
    """What codes that know nothing of the factors get: measured on shuffled rows, or known."""
    bounds: tuple[float, float]
    higher_is_better: bool
    variant: str
    per_factor: Float[np.ndarray, " factor"] | None = None
    per_latent: Float[np.ndarray, " latent"] | None = None
    matrix: Float[np.ndarray, "_ _"] | None = None
    """(latent, factor) unless the metric's docstring says otherwise."""
    details: dict[str, Any] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What was assumed, and where the number should be read with care."""
    metric: str = ""
    """Name of the metric."""
    options: dict[str, object] = dataclasses.field(default_factory=dict)
    """Options that were not the defaults, beside the variant."""
    summary: str = ""
    """What the metric says, in a line. It is kept with the score, so a page need not open the metric."""
    needs: tuple[str, ...] = ()
    """The arrays the metric is called with."""
    evidence: Evidence | None = None
    """What a page can draw of it; see :func:`metric`."""

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
        """The score of a registered metric: direction, and bounds unless given, are those it declared."""
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
        if math.isnan(score.value) or (math.isinf(score.value) and math.isfinite(score.bounds[1])):
            raise InputError(
                problem=f"metric {metric!r} is not defined for these arrays: its value is {score.value}"
            )
        return score

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with one row, which :meth:`Scores.to_frame` has for each score."""
        return _scores_frame({self.metric: self})

    @classmethod
    def from_dict(cls, stored: object) -> Score:
        """What :meth:`to_dict` wrote; anything else is refused. Details come back as JSON has them."""
        score = from_plain(cls, stored, SCORE_AGAIN)
        if not family.has(score.metric):
            raise not_stored(cls, str(unknown("metric", score.metric, family)).rstrip("."), SCORE_AGAIN)
        return score.described()

    def described(self) -> Score:
        """The same with what the metric says of itself, which older files do not have."""
        return self if self.summary else dataclasses.replace(self, **_about(self.metric))

    @property
    def way(self) -> str:
        """The variant, and the options that were not the defaults, in words."""
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
    """What a score keeps of its metric; opens the metric's file."""
    traits = family.traits(metric)
    return {"summary": family.summary(metric), "needs": traits["needs"], "evidence": traits["evidence"]}


@dataclasses.dataclass(frozen=True, eq=False)
class Scores(AbstractRecord):
    """The scores of one representation by name: ``scores["mig"].value``; the names are those asked for."""

    scores: dict[str, Score]
    not_applicable: dict[str, str]
    """Metrics that were asked for and do not apply, with the reason."""
    source: str
    """Which representation was scored."""
    n_samples: int
    n_latents: int
    factor_names: tuple[str, ...]
    """Of the factors that were used."""
    seed: int
    notes: tuple[str, ...] = ()
    factor_kinds: tuple[str, ...] = ()
    """Of the factors that were used."""
    fingerprint: str = ""
    """Hash of the arrays that were scored: the codes, and variances, factors and prior where there are any."""
    version: str = __version__
    latents: Coverage = "all"
    """Which latents the scores cover. Rows of matrices and ``per_latent`` follow :attr:`covered`."""
    in_use: tuple[int, ...] | None = None
    """Latents in use, in the model's numbering; None if not known: codes without variances, scores of 0.2.0."""

    @property
    def covered(self) -> tuple[int, ...]:
        """Latents that the scores cover, in the model's numbering."""
        return tuple(range(self.n_latents)) if self.latents == "all" else self.in_use or ()

    @property
    def coverage(self) -> str:
        """Latents that the scores cover, in words."""
        if self.latents == "all":
            return f"all {self.n_latents} latents" if self.n_latents > 1 else "its only latent"
        if not self.covered:
            return "latents in use: none"
        numbers = ", ".join(map(str, self.covered))
        return f"{plural(len(self.covered), 'latent')} in use ({numbers})"

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
        """What :meth:`to_dict` wrote, with whatever a file keeps beside it; anything else is refused."""
        if isinstance(stored, Mapping):
            stored = {"version": "", **stored}  # before it was kept, it was another one
        restored = from_plain(cls, stored, SCORE_AGAIN, with_others=True)
        for word, score in restored.scores.items():
            if word.partition(":")[0] != score.metric or not family.has(score.metric):
                reason = f"{word!r} must be a score of a metric of this name, got one of {score.metric!r}"
                raise not_stored(cls, reason, SCORE_AGAIN)
        scores = {word: score.described() for word, score in restored.scores.items()}
        return dataclasses.replace(restored, scores=scores)

    def holds(self, word: str) -> bool:
        """Whether a metric was asked for, whether or not it applies."""
        return word in self.scores or word in self.not_applicable

    def only(self, words: Sequence[str]) -> Scores:
        """The same without the metrics that are not asked for."""
        return dataclasses.replace(
            self,
            scores={word: self.scores[word] for word in words if word in self.scores},
            not_applicable={w: self.not_applicable[w] for w in words if w in self.not_applicable},
        )

    def grouped_notes(self) -> list[tuple[tuple[str, ...], str]]:
        """Every note once, behind the names of the scores that share it; none for one about all of them."""
        metrics_by_note: dict[str, list[str]] = {}
        for word, score in self.scores.items():
            for note in score.notes:
                metrics_by_note.setdefault(note, []).append(word)
        return [
            *(((), note) for note in self.notes),
            *((tuple(metrics), note) for note, metrics in metrics_by_note.items()),
        ]

    def differences(self, other: Scores) -> list[str]:
        """Settings in which another set of scores differs from this one, in words; none when both can be joined."""
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
        """These scores and those of an earlier call with the same settings, which has to be so."""
        changed = self.differences(earlier)
        if changed:
            raise InputError("earlier", f"have the same settings, but differs: {'; '.join(changed)}")
        refused = {**earlier.not_applicable, **self.not_applicable}
        scores = {**earlier.scores, **self.scores}
        return dataclasses.replace(
            self,
            scores=scores,
            not_applicable={word: reason for word, reason in refused.items() if word not in scores},
        )

    def __str__(self) -> str:
        lines = [f"Scores of {self.coverage}, {self.source} representation:"] if self.scores else []
        lines += [str(score) for score in self.scores.values()]
        lines += [f"{name}: does not apply. {reason}" for name, reason in self.not_applicable.items()]
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

    :param name: what it is listed as.
    :param bounds: least and largest value.
    :param higher_is_better: whether more is better.
    :param needs: the arrays it is called with: codes, codes and factors, or models.
    :param invariant_to: which of :data:`INVARIANCES` leave the default variant as it is.
    :param uses: (default none) what it can be given besides: variance, types.
    :param posterior_variants: (default none) variants that are defined by posterior means and variances, so they say
        nothing of sampled codes.
    :param standard_prior: (default False) whether it compares posteriors with the prior N(0, I).
    :param evidence: (default None) what a page can draw of it: ``information``, its matrix in nats with
        ``factor_entropies`` in the details; ``importance``, its matrix of shares whose columns sum to 1; ``accuracy``,
        by training samples and by types of latents, in the details.
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
