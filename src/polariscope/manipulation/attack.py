"""The loop of the attack: decoders that follow the data, and a manipulation that leads one of them astray."""

from __future__ import annotations

import copy
import dataclasses
import logging
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from polariscope.core.errors import DivergedError
from polariscope.core.seeds import derive
from polariscope.data.dataset import AbstractDataset
from polariscope.manipulation.bounds import moved
from polariscope.manipulation.settings import AttackSettings
from polariscope.models.inference import auxiliary_of, evaluating
from polariscope.models.model import Model
from polariscope.objectives.support.adam import FusedAdam
from polariscope.storage.checkpoints import Trained
from polariscope.storage.folder import RunFolder
from polariscope.training.loop import Listener
from polariscope.training.order import DataOrder
from polariscope.training.state import TrainState
from polariscope.training.stopping import stop_requests
from polariscope.training.threads import multiply_adds

logger = logging.getLogger("polariscope")

ADAM_EPSILON = 1e-7
BATCHES_BEFORE = 16
"""Batches of original data on which the losses are measured first."""


class Side(nn.Module):
    """The models of one kind: their encoders as they are, and copies of their decoders, which are trained.

    :param models: one, or an ensemble whose losses are averaged.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        super().__init__()
        self.models = tuple(models)  # a tuple, so encoders are no part of what is trained or saved
        self.decoders = nn.ModuleList(
            copy.deepcopy(model.decoder) for model in models if model.decoder is not None
        )

    @torch.no_grad()
    def codes(
        self,
        x: Float[Tensor, "sample *shape"],
        auxiliary: Sequence[Float[Tensor, "sample auxiliary"] | None],
        draws: int,
        noise: torch.Generator,
    ) -> list[Float[Tensor, "draw latent"]]:
        """Draws of each model's latents for original observations, all of the first draw, then of the second …

        :param x: the observations.
        :param auxiliary: what each model's encoder is shown beside them.
        :param draws: how many for each observation.
        :param noise: where they are drawn from.
        """
        found = []
        for model, beside in zip(self.models, auxiliary, strict=True):
            posterior = model.encode(x, beside)
            found.append(torch.cat([posterior.sample(noise) for _ in range(draws)]))
        return found

    def loss(
        self,
        x: Float[Tensor, "sample *shape"],
        codes: Sequence[Float[Tensor, "draw latent"]],
        *,
        trains: bool,
    ) -> Float[Tensor, ""]:
        """−log p(x'|z) in nats, summed over values, averaged over observations, draws and models.

        :param x: manipulated observations.
        :param codes: draws of each model's latents for the original ones.
        :param trains: whether gradients reach the decoders; else only what x depends on.
        """
        losses = []
        for decoder, z in zip(self.decoders, codes, strict=True):
            with torch.set_grad_enabled(trains):
                reconstruction = decoder(z)
            repeated = x.repeat(len(z) // len(x), *(1,) * (x.ndim - 1))
            losses.append(-reconstruction.log_density(repeated).mean())
        return torch.stack(losses).mean()


@dataclasses.dataclass(frozen=True, eq=False)
class Sides:
    """Who plays: the models whose coordinates are fostered, and those whose are hindered."""

    entangled: Side
    disentangled: Side

    @property
    def both(self) -> tuple[Side, Side]:
        """The entangled side first."""
        return self.entangled, self.disentangled


class AttackFeed:
    """Makes batches: observations, their factors, and draws of both sides' latents.

    :param data: the original data.
    :param sides: the models that encode them.
    :param settings: how many draws.
    """

    def __init__(self, data: AbstractDataset, sides: Sides, settings: AttackSettings) -> None:
        self.data, self.sides, self.settings = data, sides, settings
        self.model = sides.entangled.models[0]

    def batch(
        self, indices: Int[np.ndarray, " sample"], noise: torch.Generator
    ) -> tuple[Float[Tensor, "sample *shape"], Float[Tensor, "sample factor"], list[list[Tensor]]]:
        """Original observations, their factors, and codes by side and model.

        :param indices: of the observations.
        :param noise: where the codes are drawn from.
        """
        x = self.model.place(torch.from_numpy(self.data.values(indices)))
        factors = torch.from_numpy(self.data.factors(indices)).to(x.device, x.dtype)
        codes = []
        for side in self.sides.both:
            auxiliary = [auxiliary_of(model, self.data, indices) for model in side.models]
            codes.append(side.codes(x, auxiliary, self.settings.draws, noise))
        return x, factors, codes


def fit_manipulation(
    manipulation: nn.Module,
    sides: Sides,
    data: AbstractDataset,
    settings: AttackSettings,
    run: RunFolder | None = None,
    listeners: tuple[Listener, ...] = (),
) -> TrainState:
    r"""Train a manipulation in place against both sides; with a folder, from where it stopped.

    With z drawn by the frozen encoders from the original x, and x' = x + ε m_ψ(w),

    .. math:: \theta^*_k = \arg\min_{\theta_k} L_k(x', z_k), \qquad
              \psi^* = \arg\min_\psi L_{ent}(x', z_{ent}) - L_{dis}(x', z_{dis})

    where L is −log p(x'|z), in nats per observation. A step trains the decoders on some batches and then the
    manipulation on one. At the decoders' optimum the gradient of the gap L_ent − L_dis in ψ is that with the decoders
    held fixed, so theirs need not be followed.

    Raises ``KeyboardInterrupt`` after saving a checkpoint when asked to stop.

    Reference: zietlow2022 §4.2.4.

    :param manipulation: from factors (sample, factor) to changes in [−1, 1], (sample, \*shape).
    :param sides: whose encoders stay as they are, and whose copied decoders are trained.
    :param data: the original data, with factors.
    :param settings: strength, length and record.
    :param run: (default None: nothing is written) folder of the attack.
    :param listeners: (default none) told after every step how many are done, and what was logged.
    """
    state = first_state(manipulation, sides, settings)
    trained = {
        name: [p for group in one.param_groups for p in group["params"]]
        for name, one in state.optimisers.items()
    }
    order = DataOrder(np.arange(len(data)), settings.batch_size, settings.seed)
    feed = AttackFeed(data, sides, settings)
    if run is not None:
        for message in run.resume(state.restore):
            logger.warning(message)
    at_once = settings.decoder_batches + 1

    def change(x: Tensor, factors: Tensor) -> Tensor:
        return moved(x, manipulation(factors), settings.epsilon, reflects=data.is_unit_interval)

    with stop_requests() as stop, _evaluating(sides):
        if run is not None and state.step == 0:
            run.log.append(before_line(feed, order, settings))
        while state.step < settings.steps:
            for number in range(settings.decoder_batches):
                x, factors, codes = feed.batch(order.batch(at_once * state.step + number), state.noise)
                with torch.no_grad():
                    x = change(x, factors)
                losses = [side.loss(x, z, trains=True) for side, z in zip(sides.both, codes, strict=True)]
                _step(losses[0] + losses[1], trained["companion"], state.optimisers["companion"])
            last = order.batch(at_once * state.step + at_once - 1)
            original, factors, codes = feed.batch(last, state.noise)
            x = change(original, factors)
            entangled, disentangled = (
                side.loss(x, z, trains=False) for side, z in zip(sides.both, codes, strict=True)
            )
            gap = entangled - disentangled
            distance = (x - original).abs().mean()
            values = torch.stack([each.detach() for each in (entangled, disentangled, gap, distance)])
            numbers = dict(zip(NUMBERS, values.tolist(), strict=True))
            if not all(map(math.isfinite, numbers.values())):
                raise DivergedError(_explain(numbers, state.step, settings, run))
            _step(gap, trained["model"], state.optimisers["model"])
            state.step += 1

            for name, value in {**numbers, "steps": 1}.items():
                state.totals[name] = state.totals.get(name, 0.0) + value
            line = None
            if state.step % settings.log_every == 0 or state.step == settings.steps:
                line = log_line(state)
                if run is not None:
                    run.log.append(line)
            for listener in listeners:
                listener(state.step, line)
            due = state.step % settings.checkpoint_every == 0 or state.step == settings.steps
            if run is not None and (due or stop.is_set()):
                saved = cast(Trained, manipulation)  # with a folder it is one that can be kept
                run.save_checkpoint(state.step, saved, state.tensors(), state.words(), keep_all=False)
            if stop.is_set() and state.step < settings.steps:
                raise KeyboardInterrupt
    return state


NUMBERS = ("entangled", "disentangled", "gap", "change")
"""What is logged: both losses, the first minus the second, and the mean change of a value."""


def first_state(manipulation: nn.Module, sides: Sides, settings: AttackSettings) -> TrainState:
    """All that changes during an attack, before its first step.

    :param manipulation: with the weights it begins with.
    :param sides: with copies of the decoders.
    :param settings: of the attack.
    """
    decoders = nn.ModuleDict({"entangled": sides.entangled, "disentangled": sides.disentangled})

    def adam(module: nn.Module) -> torch.optim.Optimizer:
        parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        return FusedAdam(parameters, settings.learning_rate, eps=ADAM_EPSILON)

    device = sides.entangled.models[0].device
    noise = torch.Generator(device).manual_seed(derive(settings.seed, "noise"))
    return TrainState(
        manipulation, decoders, {"model": adam(manipulation), "companion": adam(decoders)}, noise
    )


@torch.no_grad()
def work_of_batch(
    manipulation: nn.Module, sides: Sides, data: AbstractDataset, settings: AttackSettings
) -> int:
    """Multiply-adds in the forward pass of one batch of the decoders; nothing is changed by it.

    The encoders of both sides see the observations, the manipulation their factors, and the decoders every draw of the
    latents. The number of threads follows from it, as it does for a training
    (:func:`polariscope.training.threads.threads_for`).

    :param manipulation: what is trained.
    :param sides: against these.
    :param data: the original data.
    :param settings: observations in a batch, and draws for each.
    """
    feed = AttackFeed(data, sides, settings)
    indices = DataOrder(np.arange(len(data)), settings.batch_size, settings.seed).batch(0)

    def forward() -> None:
        x, factors, codes = feed.batch(indices, torch.Generator(feed.model.device).manual_seed(0))
        manipulation(factors)
        for side, z in zip(sides.both, codes, strict=True):
            side.loss(x, z, trains=False)

    encoders = [model for side in sides.both for model in side.models]
    with _evaluating(sides):
        return multiply_adds([manipulation, *sides.both, *encoders], forward)


@torch.no_grad()
def before_line(feed: AttackFeed, order: DataOrder, settings: AttackSettings) -> dict[str, Any]:
    """The first line of the log: both losses of the original data, with the decoders as they were given.

    :param feed: makes the batches; their noise is its own, so nothing else depends on it.
    :param order: which observations.
    :param settings: of the attack.
    """
    noise = torch.Generator(feed.model.device).manual_seed(derive(settings.seed, "before"))
    found = []
    for number in range(BATCHES_BEFORE):
        x, _, codes = feed.batch(order.batch(number), noise)
        losses = [side.loss(x, z, trains=False) for side, z in zip(feed.sides.both, codes, strict=True)]
        found.append(torch.stack(losses))
    entangled, disentangled = torch.stack(found).mean(0).tolist()
    numbers = (entangled, disentangled, entangled - disentangled, 0.0)
    return {"step": 0, **dict(zip(NUMBERS, numbers, strict=True))}


def log_line(state: TrainState) -> dict[str, Any]:
    """One line of the log: losses averaged since the last line.

    :param state: whose sums are taken and begun anew.
    """
    count = state.totals.pop("steps")
    means = {name: value / count for name, value in state.totals.items()}
    state.totals = {}
    return {"step": state.step, **means}


def in_words(line: dict[str, Any]) -> str:
    """A line of the log in one breath.

    :param line: what :func:`log_line` made.

    >>> in_words({"step": 10, "entangled": 31.42, "disentangled": 30.0, "gap": 1.42, "change": 0.02})
    'entangled 31.42 · disentangled 30.00 · gap +1.42 · mean change 0.020'
    """
    losses = f"entangled {line['entangled']:.2f} · disentangled {line['disentangled']:.2f}"
    return f"{losses} · gap {line['gap']:+.2f} · mean change {line['change']:.3f}"


def _step(loss: Tensor, parameters: list[nn.Parameter], optimiser: torch.optim.Optimizer) -> None:
    for parameter in parameters:
        parameter.grad = None
    loss.backward(inputs=parameters)
    optimiser.step()


def _evaluating(sides: Sides) -> Any:
    """Encoders, and decoders too, are in evaluation mode: rows of a batch do not depend on each other."""
    every = nn.ModuleList([*sides.both, *(model for side in sides.both for model in side.models)])
    return evaluating(every)


def _explain(numbers: dict[str, float], step: int, settings: AttackSettings, run: RunFolder | None) -> str:
    culprits = " and ".join(f"the {name} loss" for name in NUMBERS[:2] if not math.isfinite(numbers[name]))
    kept = "Nothing was kept, since no folder was given."
    if run is not None:
        steps = run.checkpoints.steps
        kept = (
            f"The last good checkpoint is step {steps[-1]} in {run.path}."
            if steps
            else "There is no checkpoint yet."
        )
    return (
        f"the attack diverged at step {step + 1}: {culprits} is not finite. {kept} "
        f"Try a lower learning rate (it is {settings.learning_rate:g})."
    )
