"""The training loop, from top to bottom, and the training of a model with it."""

from __future__ import annotations

import abc
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.core.errors import DivergedError
from polariscope.core.seeds import derive
from polariscope.data.dataset import AbstractDataset
from polariscope.data.splits import Split
from polariscope.models.adam import FusedAdam
from polariscope.models.model import Model
from polariscope.models.normalisation import normalisations
from polariscope.objectives import AbstractObjective, Step, Terms, total
from polariscope.storage.checkpoints import Trained
from polariscope.storage.folder import RunFolder
from polariscope.training.divergence import divergence_message, not_finite
from polariscope.training.feed import DATA_LOCK, Feed
from polariscope.training.monitor import Probe
from polariscope.training.order import DataOrder
from polariscope.training.patience import Patience
from polariscope.training.settings import ADAMS, TrainSettings
from polariscope.training.state import TrainState
from polariscope.training.stopping import stop_requests

logger = logging.getLogger("polariscope")

Listener = Callable[[int, dict[str, Any] | None], None]
"""Called after every step with the number of finished steps and the line that was logged, if any."""


class LoopSettings(Protocol):
    """Settings that the loop itself reads."""

    @property
    def steps(self) -> int:
        """Number of steps."""

    @property
    def log_every(self) -> int:
        """Steps between two lines of the log."""

    @property
    def checkpoint_every(self) -> int:
        """Steps between two checkpoints."""


Settings = TypeVar("Settings", bound=LoopSettings)


class AbstractTask(abc.ABC, Generic[Settings]):
    """Networks that the loop trains: their update and their log.

    Order of the steps, log, checkpoints, early stopping, divergence and requests to stop belong to the loop
    (:func:`train_task`). A task begins before its first step, with all that changes in its ``state``.
    """

    noun: ClassVar[str] = "training"
    """Name of the task in messages."""
    state: TrainState
    """All that changes, which a checkpoint holds."""
    settings: Settings
    """Length and record."""

    @property
    def keeps_checkpoints(self) -> bool:
        """Whether every checkpoint stays, instead of the last two."""
        return False

    @abc.abstractmethod
    def mode(self) -> AbstractContextManager[None]:
        """Return a context in which the networks are in the mode that the steps need."""

    def first_line(self) -> dict[str, Any] | None:
        """Return a line that is logged before the first step; None: there is none."""
        return None

    @abc.abstractmethod
    def gradients(self) -> dict[str, Float[Tensor, ""]]:
        """Compute the gradients of the next step and return its numbers by name, to be averaged into the log."""

    @abc.abstractmethod
    def update(self) -> None:
        """Change the weights by these gradients."""

    @abc.abstractmethod
    def line(self, means: dict[str, float]) -> dict[str, Any]:
        """Return a line of the log.

        :param means: numbers of :meth:`gradients`, averaged over the steps since the last line.
        """

    @abc.abstractmethod
    def causes(self, numbers: Mapping[str, float]) -> list[str]:
        """Return the names of what is not finite after :meth:`gradients`, as they stand in a message.

        :param numbers: those of the step.
        """

    @abc.abstractmethod
    def remedy(self, step: int, *, has_moved: bool) -> str:
        """Return what to try after a divergence, in one or two sentences.

        :param step: the step at which it happened.
        :param has_moved: whether the weights are no longer the initial ones.
        """


def train_task(
    task: AbstractTask[Any], run: RunFolder | None = None, listeners: tuple[Listener, ...] = ()
) -> TrainState:
    """Train the networks of a task in place until ``settings.steps``; with a folder, resume from its checkpoint.

    If the patience of its state runs out earlier, the model gets the weights of its best validation.

    Raises :class:`DivergedError` when a number of a step or of the log is no longer finite, and ``KeyboardInterrupt``
    after saving a checkpoint when asked to stop; both leave the last good checkpoint.

    :param task: what is trained, before its first step.
    :param run: (default None: nothing is written) folder of the log and the checkpoints.
    :param listeners: (default none) functions that are called after every step.
    """
    state, settings = task.state, task.settings

    def diverged(causes: list[str], step: int) -> DivergedError:
        remedy = task.remedy(step, has_moved=state.step > 0)
        return DivergedError(divergence_message(task.noun, causes, step, run, remedy), step)

    if run is not None:
        for message in run.resume(state.restore):
            logger.warning(message)
    with task.mode(), stop_requests() as stop:
        if run is not None and state.step == 0 and (line := task.first_line()) is not None:
            run.log.append(line)
        while state.step < settings.steps and not state.patience.is_exhausted:
            tensors = task.gradients()
            # Stacked, since each number that is read by itself waits for the device.
            values = torch.stack([value.detach() for value in tensors.values()]).tolist()
            if not all(map(math.isfinite, values)):
                raise diverged(task.causes(dict(zip(tensors, values, strict=True))), state.step + 1)
            task.update()
            state.step += 1

            for name, value in zip((*tensors, "steps"), (*values, 1), strict=True):
                state.totals[name] = state.totals.get(name, 0.0) + value
            line = None
            if state.step % settings.log_every == 0 or state.step == settings.steps:
                line = task.line(state.take_means())
                # The numbers of a batch can be finite when the codes of other observations are not.
                if names := not_finite(line):
                    raise diverged([f"logged {name}" for name in names], state.step)
                state.patience.observe(line, state.model)
                if run is not None:
                    run.log.append(line)
            for listener in listeners:
                listener(state.step, line)
            is_last = state.step == settings.steps or state.patience.is_exhausted
            due = state.step % settings.checkpoint_every == 0 or is_last
            if run is not None and (due or stop.is_set()):
                saved = cast(Trained, state.model)  # what is trained in a folder can be saved
                run.save_checkpoint(
                    state.step, saved, state.tensors(), state.metadata(), keep_all=task.keeps_checkpoints
                )
            if stop.is_set() and not is_last:
                raise KeyboardInterrupt
    if state.patience.is_exhausted:
        state.model.load_state_dict(state.patience.best_weights)
    return state


def n_validated(settings: TrainSettings) -> int:
    """Return the number of validation samples that a model is validated with, if there are so many.

    :param settings: of the training.
    """
    return max(settings.probe_samples, 1024)


class ModelTask(AbstractTask[TrainSettings]):
    """Training of a model: the terms of an objective on batches of the training split.

    :param model: with the weights it begins with.
    :param objective: what is minimised.
    :param data: what is trained on.
    :param split: training and validation indices.
    :param settings: of the training.
    """

    def __init__(
        self,
        model: Model,
        objective: AbstractObjective,
        data: AbstractDataset,
        split: Split,
        settings: TrainSettings,
    ) -> None:
        self.model, self.objective, self.settings = model, objective, settings
        self.state, self.trained = first_state(model, objective, data, settings)
        companion = self.state.companion
        self.order = DataOrder(split.train, settings.batch_size, settings.seed)
        self.feed = Feed(data, objective, model, len(split.train), settings.seed)
        self.probe = Probe(self.feed, split.validation[: n_validated(settings)], companion)
        self.following = normalisations(model, companion)
        self.terms: Terms = {}

    @property
    def keeps_checkpoints(self) -> bool:
        return self.settings.keep_checkpoints == "all"

    @contextmanager
    def mode(self) -> Iterator[None]:
        self.model.train()
        try:
            yield
        finally:
            self.model.eval()

    def gradients(self) -> dict[str, Float[Tensor, ""]]:
        state, settings = self.state, self.settings
        self.batch = self.feed.batch(self.order.batch(state.step), state.step)
        for group in state.optimisers["model"].param_groups:
            group["lr"] = settings.learning_rate_at(state.step)
        self.noise_before = state.noise.get_state()
        self.terms = self.objective.terms(Step(self.model, self.batch, state.noise, state.companion))
        numbers = {name: term.per_batch for name, term in self.terms.items()}
        numbers["loss"] = step_gradients(self.terms, self.trained)
        numbers["gradient"] = gradient_norm(self.trained["model"], settings.clip_gradient)
        return numbers

    def update(self) -> None:
        for optimiser in self.state.optimisers.values():
            optimiser.step()
        for layer in self.following:
            layer.advance()

    def line(self, means: dict[str, float]) -> dict[str, Any]:
        """Return a line of the log: averaged terms, and the latents as they are now.

        :param means: terms, loss and gradient, averaged over the steps since the last line.
        """
        step, settings = self.state.step, self.settings
        line: dict[str, Any] = {
            "step": step,
            "loss": means.pop("loss"),
            "gradient": means.pop("gradient"),
            "terms": means,
            # in the model's loss, of which an adversary's terms are no part
            "weights": {
                name: float(term.weight) if term.trains == "model" else 0.0
                for name, term in self.terms.items()
            },
            "learning_rate": settings.learning_rate_at(step - 1),
            **self.probe.latents(settings.probe_samples),
        }
        if step % (settings.validate_every or settings.steps) == 0 or step == settings.steps:
            line["validation"] = self.probe.validation(self.objective, step)
        return line

    def causes(self, numbers: Mapping[str, float]) -> list[str]:
        """Return the terms that are not finite, or those whose gradient is not.

        :param numbers: those of the step.
        """
        noise = torch.Generator(self.model.device)
        noise.set_state(self.noise_before)  # the same draws again: the first graph is gone
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        terms = self.objective.terms(Step(self.model, self.batch, noise, self.state.companion))
        causes = [f"term {name!r}" for name, term in terms.items() if not torch.isfinite(term.value).all()]
        if not causes:
            for name, term in terms.items():
                if not term.value.requires_grad:
                    continue
                gradients = torch.autograd.grad(
                    term.per_batch, parameters, retain_graph=True, allow_unused=True
                )
                if any(gradient is not None and not torch.isfinite(gradient).all() for gradient in gradients):
                    causes.append(f"gradient of the term {name!r}")
        return causes or ["gradient of the loss"]

    def remedy(self, step: int, *, has_moved: bool) -> str:
        if not has_moved:
            return (
                "It is so with the initial weights: check the data for extreme values, and standardise them; for "
                "counts, take a likelihood of counts."
            )
        rate = self.settings.learning_rate_at(step - 1)
        return (
            f"Try a lower learning rate (it is {rate:g}), a warm-up, or clipping the gradient; check the data for "
            "extreme values."
        )


def fit(
    model: Model,
    objective: AbstractObjective,
    data: AbstractDataset,
    split: Split,
    settings: TrainSettings,
    run: RunFolder | None = None,
    listeners: tuple[Listener, ...] = (),
) -> TrainState:
    """Train ``model`` in place by :func:`train_task`.

    :param model: with the weights it begins with.
    :param objective: what is minimised.
    :param data: what is trained on.
    :param split: training and validation indices.
    :param settings: of the training.
    :param run: (default None: nothing is written) folder of the run, which is resumed.
    :param listeners: (default none) functions that are called after every step.
    """
    return train_task(ModelTask(model, objective, data, split, settings), run, listeners)


def first_state(
    model: Model, objective: AbstractObjective, data: AbstractDataset, settings: TrainSettings
) -> tuple[TrainState, dict[str, list[nn.Parameter]]]:
    """All that changes while training, before the first step; and which parameters each optimiser trains.

    :param model: with the weights it begins with.
    :param objective: what is minimised.
    :param data: what is trained on.
    :param settings: of the training.
    """
    with DATA_LOCK:
        companion = objective.companion(
            model, data, torch.Generator().manual_seed(derive(settings.seed, "companion"))
        )
    trained, optimisers = make_optimisers(model, companion, objective, settings)
    companion = None if companion is None else companion.to(model.device)
    noise = torch.Generator(model.device).manual_seed(derive(settings.seed, "noise"))
    patience = Patience.of(settings, objective)
    return TrainState(model, companion, optimisers, noise, patience=patience), trained


def make_optimisers(
    model: Model, companion: nn.Module | None, objective: AbstractObjective, settings: TrainSettings
) -> tuple[dict[str, list[nn.Parameter]], dict[str, torch.optim.Optimizer]]:
    """Who trains which weights: the model with its helper, or the model and its adversary apart."""
    of_model = [parameter for parameter in model.parameters() if parameter.requires_grad]
    of_companion = list(companion.parameters()) if companion is not None else []
    if companion is None or not objective.companion_is_adversary:
        return {"model": of_model + of_companion}, {
            "model": make_optimiser(of_model + of_companion, settings)
        }
    optimisers = {
        "model": make_optimiser(of_model, settings),
        "companion": objective.companion_optimiser(of_companion),
    }
    return {"model": of_model, "companion": of_companion}, optimisers


def step_gradients(terms: Terms, trained: dict[str, list[nn.Parameter]]) -> torch.Tensor:
    """Gradients of each part's loss in its own weights only; returns the model's loss."""
    losses = {}
    for part, parameters in trained.items():
        losses[part] = total(terms, part)
        # What zero_grad does, without its hooks, which are a large part of a small step.
        for parameter in parameters:
            parameter.grad = None
        # Restricted to its own weights: the model must not train its adversary, nor be trained by it.
        losses[part].backward(inputs=parameters if len(trained) > 1 else None)
    return losses["model"]


def make_optimiser(parameters: list[nn.Parameter], settings: TrainSettings) -> torch.optim.Optimizer:
    """The optimiser, as for the published models; fused, since one pass over the weights is faster than eight."""
    rate = settings.learning_rate
    if settings.optimiser in ADAMS:
        return FusedAdam(
            parameters, rate, (settings.adam_beta1, 0.999), amsgrad=settings.optimiser == "amsgrad"
        )
    if settings.optimiser == "adagrad":
        return torch.optim.Adagrad(parameters, lr=rate)
    return torch.optim.SGD(parameters, lr=rate)


def gradient_norm(parameters: list[nn.Parameter], longest: float | None) -> torch.Tensor:
    """Euclidean norm of the gradient, which is shortened to ``longest`` where it exceeds it."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return torch.zeros(())
    # What torch.nn.utils.get_total_norm does, without sorting the weights by device in every step.
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    if longest is not None:
        torch.nn.utils.clip_grads_with_norm_(parameters, longest, norm)
    return norm
