"""Metrics: how well a representation separates and keeps the factors. Functions of arrays, each giving a Score.

A metric is called with the arrays it declares in ``needs``, then options by keyword:

* ``needs=("codes", "factors")``: ``metric(codes, factors, …)``;
* ``needs=("codes",)``: ``metric(codes, …)``; no factors are known;
* ``needs=("models",)``: ``metric([codes, codes, …], …)``, one array per model, of the same samples.

Those whose signature has ``variance`` can use the posterior variances, σ²(x). Every one takes ``seed``, and those
of one model ``shared``, a :class:`~polariscope.analysis.metrics.support.shared.Shared` made from the same arrays,
which keeps what several metrics need and never changes a score.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import InputError, PolariscopeError, unknown
from polariscope.core.records import to_plain
from polariscope.core.registry import open_family

INVARIANCES = ("order", "shift", "scale", "sign", "monotone", "rotation")
"""What ``invariant_to`` can name: changes of the codes that leave the default variant as it is. They are the order of
the latents; a shift, a positive factor, a flipped sign or an increasing map of each latent; a rotation of all."""


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
                f"metric {metric!r} is not defined for these arrays: its value is {score.value}."
            )
        return score

    def to_dict(self) -> dict[str, Any]:
        """As JSON: arrays become lists, an infinite number the word "Infinity", one that is undefined null."""
        return {field.name: _as_json(getattr(self, field.name)) for field in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls, stored: Any) -> Score:
        """What :meth:`to_dict` wrote. Details come back as JSON has them; what is no stored score is refused."""
        try:
            name, interval, chance = str(stored["metric"]), stored["interval"], stored["chance"]
            if name not in family:
                raise InputError(unknown("metric", name, family))
            low, high = map(float, stored["bounds"])
            value = float(stored["value"])
            if math.isnan(value):
                raise ValueError(f"the value of {name} is not a number")
            return cls(
                value=value,
                interval=None if interval is None else (float(interval[0]), float(interval[1])),
                chance=None if chance is None else float(chance),
                bounds=(low, high),
                higher_is_better=bool(stored["higher_is_better"]),
                variant=str(stored["variant"]),
                per_factor=_array(stored["per_factor"]),
                per_latent=_array(stored["per_latent"]),
                matrix=_array(stored["matrix"]),
                details=dict(stored["details"]),
                notes=tuple(map(str, stored["notes"])),
                metric=name,
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise _not_stored("score", error) from None

    def __str__(self) -> str:
        words = f"{self.metric} ({self.variant})".strip() if self.metric else self.variant
        line = f"{words}: {self.value:.4g}"
        if self.interval is not None:
            line += f" ({self.interval[0]:.4g} to {self.interval[1]:.4g})"
        line += f"; {'higher' if self.higher_is_better else 'lower'} is better"
        line += f", in [{self.bounds[0]:g}, {self.bounds[1]:g}]"
        if self.chance is not None:
            line += f", chance {self.chance:.4g}"
        return "\n".join([line, *(f"Note: {note}" for note in self.notes)])


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else to_plain(value)


def _array(values: Any) -> Float[np.ndarray, "..."] | None:
    """Numbers as they were; those that were undefined are stored as null."""
    return None if values is None else np.array(values, dtype=np.float64)


def _not_stored(noun: str, error: Exception) -> PolariscopeError:
    return PolariscopeError(f"this is not a stored {noun}: {type(error).__name__}, {error}")


metric = family = open_family(
    __name__, "metric", traits=("bounds", "higher_is_better", "needs", "invariant_to")
)
