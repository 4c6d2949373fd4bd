"""Models of one recipe that differ in their number of latents, as the methods see them."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.analysis.noise import Noise
from polariscope.analysis.representation import Representation
from polariscope.analysis.verdict import Verdict
from polariscope.core.errors import PolariscopeError
from polariscope.core.types import OptionValue


@dataclasses.dataclass(frozen=True, eq=False)
class Curves:
    """A model while it trains: the mean posterior variance of each latent, relative to the prior's."""

    steps: Shaped[np.ndarray, " look"]
    variances: Float[np.ndarray, "look latent"]
    gammas: Float[np.ndarray, " look"] | None = None
    """The decoder's variance γ at each look, where it is one number for all values."""
    held_out: tuple[tuple[int, float, float], ...] = ()
    """The loss where it was measured on held-out observations, as (step, held out, in training), nats each."""
    is_elbo: bool = False
    """Whether the loss is −ELBO: reconstruction plus rate, each with weight 1."""

    @property
    def trace(self) -> tuple[tuple[int, float], ...]:
        """Σ E[σ²] at each look, as (step, value)."""
        sums = self.variances.sum(axis=1)
        return tuple((int(step), float(value)) for step, value in zip(self.steps, sums, strict=True))


@dataclasses.dataclass(frozen=True)
class Losses:
    """What a model costs on held-out samples, nats per sample."""

    total: float
    """All terms of the objective with their weights: what is minimised."""
    reconstruction: float
    """−log p(x|z)."""
    rate: float | None
    """KL(q(z|x) ‖ p(z)), without a weight; None where the encoder is deterministic."""


class AbstractCandidates(abc.ABC):
    """Models of one recipe and one seed that differ in their number of latents, trained as far as asked.

    Nothing is trained twice: a model asked for again with more steps is continued. ``changes`` are training
    options that differ from the recipe (``beta``, ``learning_rate``, ``prior`` …); models with other changes are
    other models. So are those with ``pruned_from``, a number of latents and one of steps: they begin with the most
    informative latents of that model after so many steps, and not afresh.
    """

    seed: int

    @property
    @abc.abstractmethod
    def steps_per_epoch(self) -> int:
        """Gradient steps in a pass over the training data."""

    @property
    def n_gamma_values(self) -> int | None:
        """Values of an observation, where the decoder's variance is one number that is learned from them; else None."""
        return None

    @property
    def max_latents(self) -> int | None:
        """The most that make sense where the decoder's variance is learned: nothing is left to learn from beyond."""
        return None

    @property
    def fixed_variance(self) -> float | None:
        """The decoder's variance, where it is one number that is fixed; None: it is learned, or not one number."""
        return None

    @property
    def can_prune(self) -> bool:
        """Whether models can begin with latents of wider ones."""
        return False

    @property
    @abc.abstractmethod
    def n_steps(self) -> int:
        """Gradient steps spent so far, on all models."""

    @property
    @abc.abstractmethod
    def n_models(self) -> int:
        """Models that were asked for so far."""

    @property
    def n_seconds(self) -> float | None:
        """How long these models took to train up to there, and to measure; None: nobody counted."""
        return None

    def n_watched(self, n_latents: int, **changes: OptionValue) -> int:
        """Steps up to which a model was watched so far, in this search."""
        return 0

    def nearest_steps(self, n_latents: int, steps: int, **changes: OptionValue) -> int:
        """With how many steps narrow models begin from this one: so many, or all it has where they are gone.

        An earlier search in the same folder may have trained it further.

        :param n_latents: of the model.
        :param steps: after which it is wanted.
        :param changes: options that differ from the recipe.
        """
        return steps

    @abc.abstractmethod
    def watch(self, n_latents: int, steps: int, **changes: OptionValue) -> Curves:
        """Train a model up to ``steps`` and return its curves from the beginning."""

    @property
    def benefits_from_parallel(self) -> bool:
        """Whether two models take less time side by side than one after the other."""
        return False

    def watch_together(self, widths: Sequence[int], steps: int, **changes: OptionValue) -> None:
        """Train several models up to ``steps``, at the same time where that is possible.

        :param widths: numbers of latents.
        :param steps: of each.
        :param changes: options that differ from the recipe, for all.
        """
        for n_latents in widths:
            self.watch(n_latents, steps, **changes)

    def remember(self, key: str, n_latents: int, steps: int, measure: Callable[[], float]) -> float:
        """What was measured under ``key`` of a model after so many steps, before further training; else measure it."""
        return measure()

    def noise(self, n_latents: int, steps: int, beta: float | None = None) -> Noise | None:
        """What a model that was watched took for noise after so many steps; None: that is not known, or not one number.

        :param n_latents: of the model.
        :param steps: after which it was looked at.
        :param beta: (default None: the recipe's) weight of the rate.
        """
        return None

    def verdict(self, n_latents: int, steps: int, beta: float | None = None) -> Verdict | None:
        """Return the state of the training and the latents in use of a model that was watched; None: not known.

        :param n_latents: of the model.
        :param steps: after which it was looked at.
        :param beta: (default None: the recipe's) weight of the rate.
        """
        return None

    @abc.abstractmethod
    def representation(self, n_latents: int, steps: int, **changes: OptionValue) -> Representation:
        """Representation of 10,000 samples by a model of so many steps."""

    @abc.abstractmethod
    def losses(self, n_latents: int, steps: int, **changes: OptionValue) -> Losses:
        """What a model of so many steps costs on held-out samples."""

    def reconstruction_loss(self, n_latents: int, steps: int, **changes: OptionValue) -> float:
        """Held-out reconstruction loss in nats per sample."""
        return self.losses(n_latents, steps, **changes).reconstruction

    @abc.abstractmethod
    def reconstructions(
        self, n_latents: int, steps: int, **changes: OptionValue
    ) -> tuple[Float[np.ndarray, "sample feature"], Float[np.ndarray, "sample feature"]]:
        """The samples of :meth:`representation`, and what the decoder makes of their sampled codes."""

    @abc.abstractmethod
    def observations(self) -> Float[np.ndarray, "sample feature"]:
        """At most 10,000 observations, as rows."""

    def split_rows(
        self,
    ) -> tuple[Float[np.ndarray, "sample feature"], Float[np.ndarray, "other feature"]] | None:
        """Return the observations that models are trained on and those they are validated with; None: not known."""
        return None


class OutOfTimeError(PolariscopeError):
    """The minutes that a search was given are over."""
