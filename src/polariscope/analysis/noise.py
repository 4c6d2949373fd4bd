"""Noise level of a model: the variance of its decoder."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from polariscope.core.records import AbstractRecord

NEAR = 2.0
"""Ratio of a learned variance to its floor below which it counts as at the floor."""


@dataclasses.dataclass(frozen=True)
class Noise(AbstractRecord):
    """Variance γ of a Gaussian decoder, shared by all values, with the values to compare it with.

    In a linear model, direction i of the data, with variance λ_i, is active if and only if λ_i > βγ, so γ determines
    which directions count as noise (:func:`polariscope.analysis.theory.linear_vae`). For other models this is a rule of
    thumb.
    """

    gamma: float
    learned: bool
    """If True, γ was learned; otherwise it was fixed."""
    feature_variance: float | None = None
    """Mean variance of the features, in the units of the model's input."""
    floor: float | None = None
    """Lowest value that a learned γ can take."""

    @classmethod
    def of_run(cls, settings: Mapping[str, Any], line: Mapping[str, Any]) -> Noise | None:
        """Return the noise of a run at a line of its log; None if the log does not contain it.

        :param settings: settings of the run.
        :param line: a line of the log.
        """
        has_rate = line.get("kl", ()) is not None  # a deterministic encoder logs None
        if line.get("gamma") is None or not has_rate:
            return None
        likelihood = settings["model"]["likelihood"]
        is_learned, floor = likelihood["learned"] != "no", likelihood.get("floor")
        return cls(line["gamma"], is_learned, settings.get("feature_variance"), floor)

    @property
    def is_at_floor(self) -> bool:
        """If True, a learned γ has reached its floor."""
        return self.floor is not None and self.gamma < NEAR * self.floor

    @property
    def in_words(self) -> str:
        """Description of γ, its origin and its meaning.

        >>> Noise(0.2134, True, 1.0).in_words
        'γ = 0.213 (learned; the mean feature variance is 1): directions with variance below γ count as noise'
        >>> Noise(1.0, False).in_words
        'γ = 1 (fixed): directions with variance below γ count as noise'
        """
        comparison = (
            ""
            if self.feature_variance is None
            else f"; the mean feature variance is {self.feature_variance:.3g}"
        )
        value = f"γ = {self.gamma:.3g} ({'learned' if self.learned else 'fixed'}{comparison})"
        text = f"{value}: directions with variance below γ count as noise"
        if self.is_at_floor:
            text += (
                f". γ is near its floor, {self.floor:.3g}: nearly all variation counts as signal, and without the "
                "floor γ might be smaller"
            )
        return text
