"""Metrics: how well a representation separates and keeps the factors. Functions of arrays, each giving a Score.

A metric is called with the arrays it declares in ``needs``, then options by keyword:

* ``needs=("codes", "factors")``: ``metric(codes, factors, …)``;
* ``needs=("codes",)``: ``metric(codes, …)``; no factors are known;
* ``needs=("models",)``: ``metric([codes, codes, …], …)``, one array per model, of the same samples.

What else it can use is in ``uses``: ``variance``, posterior variances, and ``types`` of latents. Every metric takes
``seed``. ``metric.of(table)`` scores a :class:`~polariscope.analysis.metrics.support.table.Table` that was prepared
before: it keeps what several metrics need and never changes a score.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from polariscope.analysis.metrics.support.arguments import Metric, take_arrays
from polariscope.core.errors import InputError, unknown
from polariscope.core.options import show
from polariscope.core.records import from_plain, not_stored, to_plain
from polariscope.core.registry import open_family

INVARIANCES = ("order", "shift", "scale", "sign", "monotone", "rotation")
"""What ``invariant_to`` can name: changes of the codes that leave the default variant as it is. They are the order of
the latents; a shift, a positive factor, a flipped sign or an increasing map of each latent; a rotation of all."""

SCORE_AGAIN = "score the model again"
"""What to do about a stored score that cannot be read."""


@dataclasses.dataclass(frozen=True, eq=False)
class Score:
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
            **evidence,
        )
        if math.isnan(score.value) or (math.isinf(score.value) and math.isfinite(score.bounds[1])):
            raise InputError(
                problem=f"metric {metric!r} is not defined for these arrays: its value is {score.value}"
            )
        return score

    def to_dict(self) -> dict[str, Any]:
        """As JSON: arrays become lists, an infinite number the word "Infinity", one that is undefined null."""
        return to_plain(self)

    @classmethod
    def from_dict(cls, stored: object) -> Score:
        """What :meth:`to_dict` wrote; anything else is refused. Details come back as JSON has them."""
        score = from_plain(cls, stored, SCORE_AGAIN)
        if score.metric not in family:
            raise not_stored(cls, str(unknown("metric", score.metric, family)).rstrip("."), SCORE_AGAIN)
        return score

    @property
    def way(self) -> str:
        """The variant, and the options that were not the defaults, in words."""
        return ", ".join([self.variant, *(f"{name} {show(value)}" for name, value in self.options.items())])

    def __str__(self) -> str:
        words = f"{self.metric} ({self.way})".strip() if self.metric else self.way
        line = f"{words}: {self.value:.4g}"
        if self.interval is not None:
            line += f" ({self.interval[0]:.4g} to {self.interval[1]:.4g})"
        line += f"; {'higher' if self.higher_is_better else 'lower'} is better"
        line += f", in [{self.bounds[0]:g}, {self.bounds[1]:g}]"
        if self.chance is not None:
            line += f", chance {self.chance:.4g}"
        return "\n".join([line, *(f"Note: {note}" for note in self.notes)])


family = open_family(__name__, "metric", traits=("bounds", "higher_is_better", "needs", "invariant_to"))


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
    evidence: Literal["information", "importance", "accuracy"] | None = None,
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

    def register(function: Callable[..., Score]) -> Metric:
        return family(name, **traits)(take_arrays(name, function, traits))

    return register
