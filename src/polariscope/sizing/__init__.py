"""Sizing: how many latents the data need. Each method asks for models of some widths and reads an answer off them.

A method sees models through :class:`AbstractCandidates` only, so it can be tested against the closed form of
the linear VAE without training anything, and used with any trainer.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt
from jaxtyping import Float, Shaped

from polariscope.analysis.representation import Representation
from polariscope.core.registry import open_family
from polariscope.sizing.support.answer import Trial

method = family = open_family(
    __name__,
    "sizing method",
    traits=("statistic", "trains", "needs_variances", "threshold", "interval", "uses"),
)
"""``statistic`` is what its trials measure, ``needs_variances`` whether it compares posterior variances with those of
the prior N(0, I), which not every model has, ``threshold`` where that is cut: "goal", a number of its own, or None;
``interval`` what the interval of one seed covers, ``uses`` which options of the goal it heeds. What only one method
asks for is a keyword-only argument of its function."""

FROM_DATA = ("images",)
"""What a goal says of the data, and nobody asks for."""


@dataclasses.dataclass(frozen=True, eq=False)
class Curves:
    """A model while it trains: the mean posterior variance of each latent, relative to the prior's."""

    steps: Shaped[np.ndarray, " look"]
    variances: Float[np.ndarray, "look latent"]

    @property
    def trace(self) -> tuple[tuple[int, float], ...]:
        """Σ E[σ²] at each look, as (step, value)."""
        sums = self.variances.sum(axis=1)
        return tuple((int(step), float(value)) for step, value in zip(self.steps, sums, strict=True))


class AbstractCandidates(abc.ABC):
    """Models of one recipe and one seed that differ in their number of latents, trained as far as asked.

    Nothing is trained twice: a model asked for again with more steps is continued. ``changes`` are training
    options that differ from the recipe (``beta``, ``learning_rate``, ``prior`` …); models with other changes are
    other models.
    """

    seed: int

    @property
    @abc.abstractmethod
    def steps_per_epoch(self) -> int:
        """Gradient steps in a pass over the training data."""

    @property
    @abc.abstractmethod
    def n_steps(self) -> int:
        """Gradient steps spent so far, on all models."""

    @abc.abstractmethod
    def watch(self, n_latents: int, steps: int, **changes: object) -> Curves:
        """Train a model up to ``steps`` and return its curves from the beginning."""

    def remember(self, key: str, n_latents: int, steps: int, measure: Callable[[], float]) -> float:
        """What was measured under ``key`` of a model after so many steps, before further training; else measure it."""
        return measure()

    @abc.abstractmethod
    def representation(self, n_latents: int, steps: int, **changes: object) -> Representation:
        """Representation of 10,000 samples by a model of so many steps."""

    @abc.abstractmethod
    def reconstruction_loss(self, n_latents: int, steps: int, **changes: object) -> float:
        """Held-out reconstruction loss in nats per sample."""

    @abc.abstractmethod
    def reconstructions(
        self, n_latents: int, steps: int, **changes: object
    ) -> tuple[Float[np.ndarray, "sample feature"], Float[np.ndarray, "sample feature"]]:
        """The samples of :meth:`representation`, and what the decoder makes of their sampled codes."""

    @abc.abstractmethod
    def observations(self) -> Float[np.ndarray, "sample feature"]:
        """At most 10,000 observations, as rows."""


@dataclasses.dataclass(frozen=True)
class Goal:
    """What is asked of a method.

    A field is an option of ``polariscope.size``, a flag of ``polariscope size`` and, with its type and range, what
    both refuse; a method names those it heeds in its trait ``uses``.
    """

    threshold: float = 1.0
    """Most Σ E[σ²] that counts as no surplus; 1 as published."""
    n_init: Annotated[int, Ge(1)] | None = None
    """First guess of the number of latents; None: the method's own."""
    cap: Annotated[int, Ge(1)] = 512
    """Most latents that are tried."""
    steps: Annotated[int, Ge(400)] | None = None
    """Gradient steps of each model, where a method trains them all alike (None: 2,000), and the most that
    'fondue' gives to one (None: 3,000); below 400 no trend can be seen."""
    epochs: Annotated[int, Ge(1)] | None = None
    """Passes over the data of each model in the published searches; None: 1, 2, … until the answer stays."""
    learning_rate: Annotated[float, Gt(0)] | None = None
    """Step size of the optimiser; None: 1e-3, of 'fondue' on images 2e-4, of the published searches 1e-4."""
    images: bool = False
    """Whether the observations are images."""

    def rate(self) -> float:
        """The learning rate where only the outcome of a model counts."""
        return 1e-3 if self.learning_rate is None else self.learning_rate

    def careful_rate(self) -> float:
        """The learning rate where every latent counts, which large steps prune: 2e-4 for images."""
        return 2e-4 if self.learning_rate is None and self.images else self.rate()

    @property
    def fixed_steps(self) -> int:
        return 2000 if self.steps is None else self.steps


@dataclasses.dataclass(frozen=True)
class Found:
    """What a method found with one seed."""

    value: float | int | None
    """None when there is no answer; ``notes`` say why."""
    interval: tuple[float | int, float | int] | None
    trials: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()
