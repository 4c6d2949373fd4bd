"""What a model takes for noise: the variance of its decoder, in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from polariscope.core.records import AbstractRecord

NEAR = 2.0
"""A learned variance below so many times its floor has reached it."""


@dataclasses.dataclass(frozen=True)
class Noise(AbstractRecord):
    """Variance γ of a Gaussian decoder, one number for all values, and what it is to be compared with.

    In a linear model direction i of the data, with variance λ_i, is active if and only if λ_i > βγ, so γ decides
    what counts as noise (:func:`polariscope.analysis.theory.linear_vae`); of other models this is the rule of thumb.
    """

    gamma: float
    learned: bool
    """Whether γ was trained, or fixed beforehand."""
    feature_variance: float | None = None
    """Mean variance of the features, in the units that the model sees."""
    floor: float | None = None
    """Lowest value that a learned γ can take."""

    @classmethod
    def of_run(cls, settings: Mapping[str, Any], line: Mapping[str, Any]) -> Noise | None:
        """What a run took for noise when a line of its log was written; None where the log does not say it.

        :param settings: the run's.
        :param line: of its log.
        """
        has_rate = line.get("kl", ()) is not None  # a deterministic encoder logs None
        if line.get("gamma") is None or not has_rate:
            return None
        likelihood = settings["model"]["likelihood"]
        is_learned, floor = likelihood["learned"] != "no", likelihood.get("floor")
        return cls(line["gamma"], is_learned, settings.get("feature_variance"), floor)

    @property
    def is_at_floor(self) -> bool:
        """Whether a learned γ has come down to its floor."""
        return self.floor is not None and self.gamma < NEAR * self.floor

    @property
    def in_words(self) -> str:
        """γ, where it comes from and what it means.

        >>> Noise(0.2134, True, 1.0).in_words
        'γ = 0.213 (learned; the mean feature variance is 1): directions with variance below γ count as noise'
        >>> Noise(1.0, False).in_words
        'γ = 1 (fixed): directions with variance below γ count as noise'
        """
        beside = (
            ""
            if self.feature_variance is None
            else f"; the mean feature variance is {self.feature_variance:.3g}"
        )
        said = f"γ = {self.gamma:.3g} ({'learned' if self.learned else 'fixed'}{beside})"
        text = f"{said}: directions with variance below γ count as noise"
        if self.is_at_floor:
            text += (
                f". γ is near its floor, {self.floor:.3g}: to this model nearly everything is signal, and how "
                "small γ would become is not known"
            )
        return text
