"""Interface to models of one recipe that differ in their number of latents."""

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
    """Training curves of a model: the mean posterior variance of each latent, relative to the prior's."""

    steps: Shaped[np.ndarray, " look"]
    variances: Float[np.ndarray, "look latent"]
    gammas: Float[np.ndarray, " look"] | None = None
    """Decoder variance γ at each measurement, if it is one number for all values."""
    held_out: tuple[tuple[int, float, float], ...] = ()
    """Losses at the steps with a held-out measurement, as (step, held-out loss, training loss), in nats."""
    is_elbo: bool = False
    """If True, the loss is −ELBO: reconstruction plus rate, each with weight 1."""

    @property
    def trace(self) -> tuple[tuple[int, float], ...]:
        """Σ E[σ²] at each measurement, as (step, value)."""
        sums = self.variances.sum(axis=1)
        return tuple((int(step), float(value)) for step, value in zip(self.steps, sums, strict=True))


@dataclasses.dataclass(frozen=True)
class Losses:
    """Held-out losses of a model, nats per sample."""

    total: float
    """Training objective: all terms with their weights."""
    reconstruction: float
    """−log p(x|z)."""
    rate: float | None
    """KL(q(z|x) ‖ p(z)), without a weight; None if the encoder is deterministic."""


class AbstractCandidates(abc.ABC):
    """Models of one recipe and one seed that differ in their number of latents, trained on request.

    No model is trained twice: if more steps are requested, its training resumes. ``changes`` are training options that
    differ from the recipe (``beta``, ``learning_rate``, ``prior`` …); different changes make different models.
    The change ``pruned_from``, a pair (number of latents, number of steps), initialises a model from the most
    informative latents of that wider model after that many steps, instead of training from scratch.
    """

    seed: int

    @property
    @abc.abstractmethod
    def steps_per_epoch(self) -> int:
        """Gradient steps in a pass over the training data."""

    @property
    def n_gamma_values(self) -> int | None:
        """Number of values of an observation if the decoder variance is one learned number, otherwise None."""
        return None

    @property
    def max_latents(self) -> int | None:
        """Maximum number of latents if the decoder variance is learned: with more, it cannot be estimated."""
        return None

    @property
    def fixed_variance(self) -> float | None:
        """Decoder variance if it is one fixed number; None if it is learned, or not one number."""
        return None

    @property
    def can_prune(self) -> bool:
        """True if models can be initialised from wider ones."""
        return False

    @property
    @abc.abstractmethod
    def n_steps(self) -> int:
        """Total number of gradient steps of all models so far."""

    @property
    @abc.abstractmethod
    def n_models(self) -> int:
        """Number of models requested so far."""

    @property
    def n_seconds(self) -> float | None:
        """Time that training and measuring these models took; None if it was not recorded."""
        return None

    def n_watched(self, n_latents: int, **changes: OptionValue) -> int:
        """Return the number of steps of a model in this search so far."""
        return 0

    def nearest_steps(self, n_latents: int, steps: int, **changes: OptionValue) -> int:
        """Return the steps after which this model can initialise narrower ones.

        The result is ``steps`` or, if that checkpoint does not exist, the last step of the model: an earlier search in
        the same folder can have trained it further.

        :param n_latents: number of latents of the model.
        :param steps: requested steps.
        :param changes: options that differ from the recipe.
        """
        return steps

    @abc.abstractmethod
    def watch(self, n_latents: int, steps: int, **changes: OptionValue) -> Curves:
        """Train a model up to ``steps`` and return its curves from the beginning."""

    @property
    def benefits_from_parallel(self) -> bool:
        """True if training two models in parallel is faster than one after the other."""
        return False

    def watch_together(self, widths: Sequence[int], steps: int, **changes: OptionValue) -> None:
        """Train several models up to ``steps``, in parallel if possible.

        :param widths: numbers of latents.
        :param steps: gradient steps of each model.
        :param changes: options of all models that differ from the recipe.
        """
        for n_latents in widths:
            self.watch(n_latents, steps, **changes)

    def remember(self, key: str, n_latents: int, steps: int, measure: Callable[[], float]) -> float:
        """Return the cached measurement ``key`` of a model after ``steps`` steps, or measure and cache it."""
        return measure()

    def noise(self, n_latents: int, steps: int, beta: float | None = None) -> Noise | None:
        """Return the noise level of a trained model; None if it is unknown or not one number.

        :param n_latents: number of latents of the model.
        :param steps: gradient steps after which it was measured.
        :param beta: (default None: the recipe's) weight of the rate.
        """
        return None

    def verdict(self, n_latents: int, steps: int, beta: float | None = None) -> Verdict | None:
        """Return the state of the training and the latents in use of a trained model; None if unknown.

        :param n_latents: number of latents of the model.
        :param steps: gradient steps after which it was measured.
        :param beta: (default None: the recipe's) weight of the rate.
        """
        return None

    @abc.abstractmethod
    def representation(self, n_latents: int, steps: int, **changes: OptionValue) -> Representation:
        """Return the representation of 10,000 samples by a model after ``steps`` steps."""

    @abc.abstractmethod
    def losses(self, n_latents: int, steps: int, **changes: OptionValue) -> Losses:
        """Return the held-out losses of a model after ``steps`` steps."""

    def reconstruction_loss(self, n_latents: int, steps: int, **changes: OptionValue) -> float:
        """Return the held-out reconstruction loss in nats per sample."""
        return self.losses(n_latents, steps, **changes).reconstruction

    @abc.abstractmethod
    def reconstructions(
        self, n_latents: int, steps: int, **changes: OptionValue
    ) -> tuple[Float[np.ndarray, "sample feature"], Float[np.ndarray, "sample feature"]]:
        """Return the samples of :meth:`representation` and their reconstructions from sampled codes."""

    @abc.abstractmethod
    def observations(self) -> Float[np.ndarray, "sample feature"]:
        """Return at most 10,000 observations, as rows."""

    def split_rows(
        self,
    ) -> tuple[Float[np.ndarray, "sample feature"], Float[np.ndarray, "other feature"]] | None:
        """Return the training and the validation observations of the models; None if they are unknown."""
        return None


class OutOfTimeError(PolariscopeError):
    """Error raised if the time limit of a search is reached."""
