"""The training loop, and the training of a model with it."""

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
"""Function that is called after every step with the number of finished steps and the logged line, if any."""


class LoopSettings(Protocol):
    """Settings that the loop uses."""

    @property
    def steps(self) -> int:
        """Number of steps."""

    @property
    def log_every(self) -> int:
        """Number of steps between two lines of the log."""

    @property
    def checkpoint_every(self) -> int:
        """Number of steps between two checkpoints."""


Settings = TypeVar("Settings", bound=LoopSettings)


class AbstractTask(abc.ABC, Generic[Settings]):
    """Networks that the loop trains: their update and their log.

    The loop (:func:`train_task`) is responsible for the order of the steps, the log, checkpoints, early stopping,
    divergence and requests to stop. A task is created before its first step, with everything that changes in its
    ``state``.
    """

    noun: ClassVar[str] = "training"
    """Name of the task in messages."""
    state: TrainState
    """Everything that changes in training, and is part of a checkpoint."""
    settings: Settings
    """Length of the training and intervals of logging and checkpoints."""

    @property
    def keeps_checkpoints(self) -> bool:
        """True if every checkpoint is kept, instead of the last two."""
        return False

    @abc.abstractmethod
    def mode(self) -> AbstractContextManager[None]:
        """Return a context in which the networks are in the mode that the steps require."""

    def first_line(self) -> dict[str, Any] | None:
        """Return a line that is logged before the first step, or None."""
        return None

    @abc.abstractmethod
    def gradients(self) -> dict[str, Float[Tensor, ""]]:
        """Compute the gradients of the next step and return its numbers by name, which are averaged in the log."""

    @abc.abstractmethod
    def update(self) -> None:
        """Update the weights with these gradients."""

    @abc.abstractmethod
    def line(self, means: dict[str, float]) -> dict[str, Any]:
        """Return a line of the log.

        :param means: results of :meth:`gradients`, averaged over the steps since the last line.
        """

    @abc.abstractmethod
    def causes(self, numbers: Mapping[str, float]) -> list[str]:
        """Return the names of the numbers that are not finite after :meth:`gradients`, as used in a message.

        :param numbers: numbers of the step.
        """

    @abc.abstractmethod
    def remedy(self, step: int, *, has_moved: bool) -> str:
        """Return a remedy for a divergence, in one or two sentences.

        :param step: the step at which it happened.
        :param has_moved: if True, the weights are no longer the initial ones.
        """


def train_task(
    task: AbstractTask[Any], run: RunFolder | None = None, listeners: tuple[Listener, ...] = ()
) -> TrainState:
    """Train the networks of a task in place until ``settings.steps``; with a folder, resume from its checkpoint.

    If the patience of its state is exhausted earlier, the model gets the weights of its best validation.

    Raises :class:`DivergedError` if a number of a step or of the log is not finite, and ``KeyboardInterrupt`` on a
    request to stop, after saving a checkpoint. Both leave the last good checkpoint.

    :param task: the task, before its first step.
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
        # A resumed run already has this line.
        if run is not None and state.step == 0 and (line := task.first_line()) is not None:
            run.log.append(line)
        while state.step < settings.steps and not state.patience.is_exhausted:
            tensors = task.gradients()
            # Stacked, because reading each number separately would wait for the device every time.
            values = torch.stack([value.detach() for value in tensors.values()]).tolist()
            # Raised before the update, so the weights in memory and in the last checkpoint are still finite.
            if not all(map(math.isfinite, values)):
                raise diverged(task.causes(dict(zip(tensors, values, strict=True))), state.step + 1)
            task.update()
            state.step += 1

            # Sums are part of the state, so a run that resumes between two lines logs the same means.
            for name, value in zip((*tensors, "steps"), (*values, 1), strict=True):
                state.totals[name] = state.totals.get(name, 0.0) + value
            line = None
            if state.step % settings.log_every == 0 or state.step == settings.steps:
                line = task.line(state.take_means())
                # The numbers of a batch can be finite although the codes of other observations are not.
                if names := not_finite(line):
                    raise diverged([f"logged {name}" for name in names], state.step)
                state.patience.observe(line, state.model)
                # Appended before the checkpoint below is saved, because the checkpoint stores the length of the log.
                if run is not None:
                    run.log.append(line)
            is_interrupted = False
            for listener in listeners:
                try:
                    listener(state.step, line)
                except KeyboardInterrupt:
                    is_interrupted = True  # as if it were a signal: this step is saved first
            is_last = state.step == settings.steps or state.patience.is_exhausted
            # The last step is always saved, so a later call with more steps can continue from it.
            due = state.step % settings.checkpoint_every == 0 or is_last
            if run is not None and (due or is_interrupted or stop.is_set()):
                saved = cast(Trained, state.model)  # networks that are trained in a folder can be saved
                run.save_checkpoint(state.step, saved, state.tensors(), state.metadata())
                _prune(task, run, is_last)
            # In the last step nothing is left to stop; stop_requests raises the signal again for the caller.
            if is_interrupted or (stop.is_set() and not is_last):
                raise KeyboardInterrupt
    if run is not None:
        # Also if no step was left: the process that saved the last checkpoint can have been killed before it pruned.
        _prune(task, run, is_last=True)
    if state.patience.is_exhausted:
        state.model.load_state_dict(state.patience.best_weights)
    return state


def _prune(task: AbstractTask[Any], run: RunFolder, is_last: bool) -> None:
    """Delete old checkpoints, unless the task keeps all."""
    if not task.keeps_checkpoints:
        # Two are kept, so training can resume from the other if one is damaged.
        # Until the extended training ends, the finished model is that of the shorter one.
        finished = run.finished_steps
        run.checkpoints.prune(2, task.state.step, task.settings.checkpoint_every, is_last, finished)


def n_validated(settings: TrainSettings) -> int:
    """Return the maximum number of validation samples.

    :param settings: settings of the training.
    """
    return max(settings.probe_samples, 1024)


class ModelTask(AbstractTask[TrainSettings]):
    """Training of a model: the terms of an objective on batches of the training split.

    :param model: the model with its initial weights.
    :param objective: the objective to minimise.
    :param data: the training data.
    :param split: training and validation indices.
    :param settings: settings of the training.
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
        # The rate is a function of the step, so a checkpoint need not store the state of a scheduler.
        for group in state.optimisers["model"].param_groups:
            group["lr"] = settings.learning_rate_at(state.step)
        # Kept for causes(), which computes the terms of a failed step again.
        self.noise_before = state.noise.get_state()
        self.terms = self.objective.terms(Step(self.model, self.batch, state.noise, state.companion))
        numbers = {name: term.per_batch for name, term in self.terms.items()}
        numbers["loss"] = step_gradients(self.terms, self.trained)
        # Only the model's gradient is logged and clipped, not that of an adversary.
        numbers["gradient"] = gradient_norm(self.trained["model"], settings.clip_gradient)
        return numbers

    def update(self) -> None:
        for optimiser in self.state.optimisers.values():
            optimiser.step()
        # Normalisation layers follow the training without a gradient, so no optimiser updates them.
        for layer in self.following:
            layer.advance()

    def line(self, means: dict[str, float]) -> dict[str, Any]:
        """Return a line of the log: averaged terms and the current state of the latents.

        :param means: terms, loss and gradient, averaged over the steps since the last line.
        """
        step, settings = self.state.step, self.settings
        line: dict[str, Any] = {
            "step": step,
            "loss": means.pop("loss"),
            "gradient": means.pop("gradient"),
            "terms": means,
            # Weights in the model's loss, which does not include an adversary's terms.
            "weights": {
                name: float(term.weight) if term.trains == "model" else 0.0
                for name, term in self.terms.items()
            },
            # The step is already counted; this is the rate that it used.
            "learning_rate": settings.learning_rate_at(step - 1),
            **self.probe.latents(settings.probe_samples),
        }
        if step % (settings.validate_every or settings.steps) == 0 or step == settings.steps:
            line["validation"] = self.probe.validation(self.objective, step)
        return line

    def causes(self, numbers: Mapping[str, float]) -> list[str]:
        """Return the terms that are not finite or whose gradient is not finite.

        :param numbers: numbers of the step.
        """
        noise = torch.Generator(self.model.device)
        # The first graph has been freed, so the terms are computed again with the same draws.
        noise.set_state(self.noise_before)
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        terms = self.objective.terms(Step(self.model, self.batch, noise, self.state.companion))
        causes = [f"term {name!r}" for name, term in terms.items() if not torch.isfinite(term.value).all()]
        if not causes:
            for name, term in terms.items():
                if not term.value.requires_grad:
                    continue
                # The terms share one graph, which has to survive until the last of them.
                gradients = torch.autograd.grad(
                    term.per_batch, parameters, retain_graph=True, allow_unused=True
                )
                if any(gradient is not None and not torch.isfinite(gradient).all() for gradient in gradients):
                    causes.append(f"gradient of the term {name!r}")
        return causes or ["gradient of the loss"]

    def remedy(self, step: int, *, has_moved: bool) -> str:
        if not has_moved:
            return (
                "This happens with the initial weights: check the data for extreme values, and standardise them; for "
                "counts, use a likelihood of counts."
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

    :param model: the model with its initial weights.
    :param objective: the objective to minimise.
    :param data: the training data.
    :param split: training and validation indices.
    :param settings: settings of the training.
    :param run: (default None: nothing is written) folder of the run, which is resumed.
    :param listeners: (default none) functions that are called after every step.
    """
    return train_task(ModelTask(model, objective, data, split, settings), run, listeners)


def first_state(
    model: Model, objective: AbstractObjective, data: AbstractDataset, settings: TrainSettings
) -> tuple[TrainState, dict[str, list[nn.Parameter]]]:
    """Return the state before the first step, and the parameters that each optimiser trains.

    :param model: the model with its initial weights.
    :param objective: the objective to minimise.
    :param data: the training data.
    :param settings: settings of the training.
    """
    # Weights are drawn on the CPU, so they do not depend on the device.
    with DATA_LOCK:
        companion = objective.companion(
            model, data, torch.Generator().manual_seed(derive(settings.seed, "companion"))
        )
    trained, optimisers = make_optimisers(model, companion, objective, settings)
    # Module.to moves parameters in place, so the optimisers still refer to them.
    companion = None if companion is None else companion.to(model.device)
    noise = torch.Generator(model.device).manual_seed(derive(settings.seed, "noise"))
    patience = Patience.of(settings, objective)
    return TrainState(model, companion, optimisers, noise, patience=patience), trained


def make_optimisers(
    model: Model, companion: nn.Module | None, objective: AbstractObjective, settings: TrainSettings
) -> tuple[dict[str, list[nn.Parameter]], dict[str, torch.optim.Optimizer]]:
    """Create the optimisers: one for the model with its helper, or one each for the model and its adversary."""
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
    """Compute the gradients of each part's loss in its own weights only, and return the model's loss."""
    losses = {}
    for part, parameters in trained.items():
        losses[part] = total(terms, part)
        # The same as zero_grad without its hooks, which take a large part of a small step.
        for parameter in parameters:
            parameter.grad = None
        # Restricted to its own weights, because the model must not train its adversary or be trained by it.
        losses[part].backward(inputs=parameters if len(trained) > 1 else None)
    return losses["model"]


def make_optimiser(parameters: list[nn.Parameter], settings: TrainSettings) -> torch.optim.Optimizer:
    """Create the optimiser of the published models; fused, because one pass over the weights is faster than eight."""
    rate = settings.learning_rate
    if settings.optimiser in ADAMS:
        return FusedAdam(
            parameters, rate, (settings.adam_beta1, 0.999), amsgrad=settings.optimiser == "amsgrad"
        )
    if settings.optimiser == "adagrad":
        return torch.optim.Adagrad(parameters, lr=rate)
    return torch.optim.SGD(parameters, lr=rate)


def gradient_norm(parameters: list[nn.Parameter], max_norm: float | None) -> torch.Tensor:
    """Return the Euclidean norm of the gradient, and clip the gradient to ``max_norm``."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return torch.zeros(())
    # The same as torch.nn.utils.get_total_norm, without sorting the weights by device in every step.
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    if max_norm is not None:
        torch.nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
    return norm
