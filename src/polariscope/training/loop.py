"""The training loop, from top to bottom."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from polariscope.core.errors import DivergedError
from polariscope.core.seeds import derive
from polariscope.data.dataset import AbstractDataset
from polariscope.data.splits import Split
from polariscope.models.model import Model
from polariscope.models.normalisation import normalisations
from polariscope.objectives import AbstractObjective, Batch, Step, Terms, total
from polariscope.objectives.support.adam import FusedAdam
from polariscope.storage.folder import RunFolder
from polariscope.training.feed import ALONE, Feed
from polariscope.training.monitor import Probe
from polariscope.training.order import DataOrder
from polariscope.training.patience import Patience
from polariscope.training.settings import ADAMS, TrainSettings
from polariscope.training.state import TrainState
from polariscope.training.stopping import stop_requests

logger = logging.getLogger("polariscope")

Listener = Callable[[int, dict[str, Any] | None], None]
"""Told after every step how many are done and, when a line was logged, what it says."""


def n_validated(settings: TrainSettings) -> int:
    """Return the number of validation samples that a model is validated with, if there are so many.

    :param settings: of the training.
    """
    return max(settings.probe_samples, 1024)


def fit(
    model: Model,
    objective: AbstractObjective,
    data: AbstractDataset,
    split: Split,
    settings: TrainSettings,
    run: RunFolder | None = None,
    listeners: tuple[Listener, ...] = (),
) -> TrainState:
    """Train ``model`` in place until ``settings.steps``; with a run folder, from where it stopped.

    If ``settings.patience`` runs out earlier, the model gets the weights of its best validation.

    Raises :class:`DivergedError` when the loss or its gradient is no longer finite, and ``KeyboardInterrupt``
    after saving a checkpoint when asked to stop; both leave the last good checkpoint.
    """
    state, trained = first_state(model, objective, data, settings)
    companion = state.companion
    order = DataOrder(split.train, settings.batch_size, settings.seed)
    feed = Feed(data, objective, model, len(split.train), settings.seed)
    probe = Probe(feed, split.validation[: n_validated(settings)], companion)
    if run is not None:
        for message in run.resume(state.restore):
            logger.warning(message)

    model.train()
    following = normalisations(model, companion)
    with stop_requests() as stop:
        while state.step < settings.steps and not state.patience.is_exhausted:
            batch = feed.batch(order.batch(state.step), state.step)
            for group in state.optimisers["model"].param_groups:
                group["lr"] = settings.learning_rate_at(state.step)

            noise_before = state.noise.get_state()
            terms = objective.terms(Step(model, batch, state.noise, companion))
            means = {name: term.per_batch for name, term in terms.items()}
            numbers = {"loss": step_gradients(terms, trained)}
            numbers["gradient"] = gradient_norm(trained["model"], settings.clip_gradient)
            values = torch.stack([v.detach() for v in (*means.values(), *numbers.values())]).tolist()
            if not all(map(math.isfinite, values)):  # one wait for the device
                message = explain_divergence(model, objective, batch, state, noise_before, settings, run)
                raise DivergedError(message, state.step + 1)
            for optimiser in state.optimisers.values():
                optimiser.step()
            for layer in following:
                layer.advance()
            state.step += 1

            for name, value in zip((*means, *numbers, "steps"), (*values, 1), strict=True):
                state.totals[name] = state.totals.get(name, 0.0) + value
            line = None
            if state.step % settings.log_every == 0 or state.step == settings.steps:
                line = log_line(objective, terms, state, probe, settings)
                if names := not_finite(line):
                    what = f"the logged {', '.join(names)}"
                    message = divergence_text(what, len(names), state.step, settings, run)
                    raise DivergedError(message, state.step)
                state.patience.observe(line, model)
                if run is not None:
                    run.log.append(line)
            for listener in listeners:
                listener(state.step, line)
            is_last = state.step == settings.steps or state.patience.is_exhausted
            due = state.step % settings.checkpoint_every == 0 or is_last
            if run is not None and (due or stop.is_set()):
                keep_all = settings.keep_checkpoints == "all"
                run.save_checkpoint(state.step, model, state.tensors(), state.words(), keep_all)
            if stop.is_set() and not is_last:
                raise KeyboardInterrupt
    if state.patience.is_exhausted:
        model.load_state_dict(state.patience.best_weights)
    model.eval()
    return state


def first_state(
    model: Model, objective: AbstractObjective, data: AbstractDataset, settings: TrainSettings
) -> tuple[TrainState, dict[str, list[nn.Parameter]]]:
    """All that changes while training, before the first step; and which parameters each optimiser trains.

    :param model: with the weights it begins with.
    :param objective: what is minimised.
    :param data: what is trained on.
    :param settings: of the training.
    """
    with ALONE:
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
    own = [parameter for parameter in model.parameters() if parameter.requires_grad]
    beside = list(companion.parameters()) if companion is not None else []
    if companion is None or not objective.companion_is_adversary:
        return {"model": own + beside}, {"model": make_optimiser(own + beside, settings)}
    optimisers = {"model": make_optimiser(own, settings), "companion": objective.companion_optimiser(beside)}
    return {"model": own, "companion": beside}, optimisers


def step_gradients(terms: Terms, trained: dict[str, list[nn.Parameter]]) -> torch.Tensor:
    """Gradients of each part's loss in its own weights only; returns the model's loss."""
    losses = {}
    for part, parameters in trained.items():
        losses[part] = total(terms, part)
        for (
            parameter
        ) in parameters:  # what zero_grad does, without its hooks: a small step is mostly such things
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


def log_line(
    objective: AbstractObjective,
    terms: Terms,
    state: TrainState,
    probe: Probe,
    settings: TrainSettings,
) -> dict[str, Any]:
    """One line of the log: terms averaged since the last line, and the latents as they are now."""
    count = state.totals.pop("steps")
    means = {name: value / count for name, value in state.totals.items()}
    state.totals = {}
    line: dict[str, Any] = {
        "step": state.step,
        "loss": means.pop("loss"),
        "gradient": means.pop("gradient"),
        "terms": means,
        # in the model's loss, of which an adversary's terms are no part
        "weights": {n: float(term.weight) if term.trains == "model" else 0.0 for n, term in terms.items()},
        "learning_rate": settings.learning_rate_at(state.step - 1),
        **probe.latents(settings.probe_samples),
    }
    if state.step % (settings.validate_every or settings.steps) == 0 or state.step == settings.steps:
        line["validation"] = probe.validation(objective, state.step)
    return line


def explain_divergence(
    model: Model,
    objective: AbstractObjective,
    batch: Batch,
    state: TrainState,
    noise_before: torch.Tensor,
    settings: TrainSettings,
    run: RunFolder | None,
) -> str:
    """Which term blew up, where the last good checkpoint is, and what to try."""
    noise = torch.Generator(model.device)
    noise.set_state(noise_before)  # the same draws again
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    terms = objective.terms(Step(model, batch, noise, state.companion))
    culprits = [f"the term {name!r}" for name, term in terms.items() if not torch.isfinite(term.value).all()]
    if not culprits:
        for name, term in terms.items():
            if not term.value.requires_grad:
                continue
            gradients = torch.autograd.grad(term.per_batch, parameters, retain_graph=True, allow_unused=True)
            if any(gradient is not None and not torch.isfinite(gradient).all() for gradient in gradients):
                culprits.append(f"the gradient of the term {name!r}")
    what = " and ".join(culprits) or "the gradient of the loss"
    return divergence_text(what, len(culprits), state.step + 1, settings, run, has_moved=state.step > 0)


def not_finite(line: Mapping[str, object]) -> list[str]:
    """Return the names of the entries of a log line that hold a number that is not finite.

    The loss of a batch can be finite when the codes of other observations are not.

    >>> not_finite({"step": 3, "kl": [0.1, math.inf], "terms": {"rate": 2.0}, "delta_kl": None})
    ['kl']

    :param line: a line of the log.
    """

    def is_finite(value: object) -> bool:
        if isinstance(value, Mapping):
            return all(map(is_finite, value.values()))
        if isinstance(value, list | tuple):
            return all(map(is_finite, value))
        return not isinstance(value, float) or math.isfinite(value)

    return [name for name, value in line.items() if not is_finite(value)]


def divergence_text(
    what: str,
    n_causes: int,
    step: int,
    settings: TrainSettings,
    run: RunFolder | None,
    *,
    has_moved: bool = True,
) -> str:
    """Return the message about a training that diverged: the cause, the last checkpoint, what to try.

    :param what: what is not finite.
    :param n_causes: number of things that it names.
    :param step: the step at which it happened.
    :param settings: of the training.
    :param run: where it is trained; None: nowhere.
    :param has_moved: (default True) whether the weights are no longer the initial ones.
    """
    verb = "are" if n_causes > 1 else "is"
    kept = "Nothing was kept, since no run folder was given."
    if run is not None:
        steps = run.checkpoints.steps
        kept = (
            f"The last good checkpoint is step {steps[-1]} in {run.path}."
            if steps
            else "There is no checkpoint yet."
        )
    rate = settings.learning_rate_at(step - 1)
    remedy = (
        f"Try a lower learning rate (it is {rate:g}), a warm-up, or clipping the gradient; check the data for extreme "
        "values."
    )
    if not has_moved:
        remedy = (
            "It is so with the initial weights: check the data for extreme values, and standardise them; for counts, "
            "take a likelihood of counts."
        )
    return f"training diverged at step {step}: {what} {verb} not finite. {kept} {remedy}"
