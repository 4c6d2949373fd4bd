"""The attack: decoders that follow the data, and a manipulation that makes it hard for one side."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from polariscope.core.seeds import derive
from polariscope.data.dataset import AbstractDataset
from polariscope.manipulation.bounds import moved
from polariscope.manipulation.manipulation_settings import AttackSettings
from polariscope.models.adam import FusedAdam
from polariscope.models.inference import auxiliary_of, evaluating
from polariscope.models.model import Model
from polariscope.training.feed import DATA_LOCK, ModelValues
from polariscope.training.loop import AbstractTask, gradient_norm
from polariscope.training.order import DataOrder
from polariscope.training.state import TrainState
from polariscope.training.threads import multiply_adds

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
        :param auxiliary: what each model's encoder gets besides them.
        :param draws: how many for each observation.
        :param noise: where they are drawn from.
        """
        codes = []
        for model, known in zip(self.models, auxiliary, strict=True):
            posterior = model.encode(x, known)
            codes.append(torch.cat([posterior.sample(noise) for _ in range(draws)]))
        return codes

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
        self.values = ModelValues(data, self.model)

    def batch(
        self, indices: Int[np.ndarray, " sample"], noise: torch.Generator
    ) -> tuple[Float[Tensor, "sample *shape"], Float[Tensor, "sample factor"], list[list[Tensor]]]:
        """Original observations, their factors, and codes by side and model.

        :param indices: of the observations.
        :param noise: where the codes are drawn from.
        """
        with DATA_LOCK:
            x = self.values(indices)
            factors = torch.from_numpy(self.data.factors(indices)).to(x.device, x.dtype)
            auxiliary = [
                [auxiliary_of(model, self.data, indices) for model in side.models] for side in self.sides.both
            ]
        codes = [
            side.codes(x, known, self.settings.draws, noise)
            for side, known in zip(self.sides.both, auxiliary, strict=True)
        ]
        return x, factors, codes


class AttackTask(AbstractTask[AttackSettings]):
    r"""The attack, as the loop trains it: decoders that follow the data, and a manipulation against one side.

    With z drawn by the frozen encoders from the original x, and x' = x + ε m_ψ(w),

    .. math:: \theta^*_k = \arg\min_{\theta_k} L_k(x', z_k), \qquad
              \psi^* = \arg\min_\psi L_{ent}(x', z_{ent}) - L_{dis}(x', z_{dis})

    where L is −log p(x'|z), in nats per observation. A step trains the decoders on some batches and then the
    manipulation on one. At the decoders' optimum the gradient of the gap L_ent − L_dis in ψ is that with the decoders
    held fixed, so theirs need not be followed.

    The gap of a game between two players does not fall steadily, so its patience never runs out.

    Reference: zietlow2022 §4.2.4.

    :param manipulation: from factors (sample, factor) to changes in [−1, 1], (sample, \*shape).
    :param sides: whose encoders stay as they are, and whose copied decoders are trained.
    :param data: the original data, with factors.
    :param settings: strength, length and record.
    """

    noun = "the attack"

    def __init__(
        self, manipulation: nn.Module, sides: Sides, data: AbstractDataset, settings: AttackSettings
    ) -> None:
        self.manipulation, self.sides, self.data, self.settings = manipulation, sides, data, settings
        self.state = first_state(manipulation, sides, settings)
        self.trained = {
            name: [parameter for group in optimiser.param_groups for parameter in group["params"]]
            for name, optimiser in self.state.optimisers.items()
        }
        self.order = DataOrder(np.arange(len(data)), settings.batch_size, settings.seed)
        self.feed = AttackFeed(data, sides, settings)

    def mode(self) -> AbstractContextManager[None]:
        return _evaluating(self.sides)

    @torch.no_grad()
    def first_line(self) -> dict[str, Any]:
        """Return both losses of the original data, with the decoders as they were given.

        Their noise comes from another generator, so nothing else depends on it.
        """
        noise = torch.Generator(self.feed.model.device).manual_seed(derive(self.settings.seed, "before"))
        batches = []
        for number in range(BATCHES_BEFORE):
            x, _, codes = self.feed.batch(self.order.batch(number), noise)
            batches.append(torch.stack(self._losses(x, codes, trains=False)))
        entangled, disentangled = torch.stack(batches).mean(0).tolist()
        numbers = (entangled, disentangled, entangled - disentangled, 0.0)
        return {"step": 0, **dict(zip(NUMBERS, numbers, strict=True))}

    def gradients(self) -> dict[str, Float[Tensor, ""]]:
        """Train the decoders on their batches, and compute the gradient of the gap in the manipulation."""
        state, n_batches = self.state, self.settings.decoder_batches
        first = (n_batches + 1) * state.step
        for number in range(first, first + n_batches):
            x, factors, codes = self.feed.batch(self.order.batch(number), state.noise)
            with torch.no_grad():
                x = self._changed(x, factors)
            losses = self._losses(x, codes, trains=True)
            _backward(losses[0] + losses[1], self.trained["companion"])
            state.optimisers["companion"].step()
        original, factors, codes = self.feed.batch(self.order.batch(first + n_batches), state.noise)
        x = self._changed(original, factors)
        entangled, disentangled = self._losses(x, codes, trains=False)
        gap = entangled - disentangled
        _backward(gap, self.trained["model"])
        values = (entangled, disentangled, gap, (x - original).abs().mean())
        numbers = dict(zip(NUMBERS, values, strict=True))
        return {**numbers, "gradient": gradient_norm(self.trained["model"], None)}

    def update(self) -> None:
        self.state.optimisers["model"].step()

    def line(self, means: dict[str, float]) -> dict[str, Any]:
        return {"step": self.state.step, **{name: means[name] for name in NUMBERS}}

    def causes(self, numbers: Mapping[str, float]) -> list[str]:
        losses = [f"{name} loss" for name in NUMBERS[:2] if not math.isfinite(numbers[name])]
        return losses or ["gradient of the gap"]

    def remedy(self, step: int, *, has_moved: bool) -> str:
        return f"Try a lower learning rate (it is {self.settings.learning_rate:g})."

    def _changed(
        self, x: Float[Tensor, "sample *shape"], factors: Float[Tensor, "sample factor"]
    ) -> Float[Tensor, "sample *shape"]:
        change = self.manipulation(factors)
        return moved(x, change, self.settings.epsilon, reflects=self.data.is_unit_interval)

    def _losses(
        self, x: Float[Tensor, "sample *shape"], codes: list[list[Tensor]], *, trains: bool
    ) -> list[Float[Tensor, ""]]:
        return [side.loss(x, z, trains=trains) for side, z in zip(self.sides.both, codes, strict=True)]


NUMBERS = ("entangled", "disentangled", "gap", "change")
"""Numbers that are logged: both losses, the first minus the second, and the mean change of a value."""


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


def in_words(line: dict[str, Any]) -> str:
    """A line of the log in one breath.

    :param line: what :meth:`AttackTask.line` returned.

    >>> in_words({"step": 10, "entangled": 31.42, "disentangled": 30.0, "gap": 1.42, "change": 0.02})
    'entangled 31.42 · disentangled 30.00 · gap +1.42 · mean change 0.020'
    """
    losses = f"entangled {line['entangled']:.2f} · disentangled {line['disentangled']:.2f}"
    return f"{losses} · gap {line['gap']:+.2f} · mean change {line['change']:.3f}"


def _backward(loss: Float[Tensor, ""], parameters: list[nn.Parameter]) -> None:
    for parameter in parameters:
        parameter.grad = None
    # Restricted to the weights of one player: the other must not be trained by this loss.
    loss.backward(inputs=parameters)


def _evaluating(sides: Sides) -> AbstractContextManager[None]:
    """Encoders, and decoders too, are in evaluation mode: rows of a batch do not depend on each other."""
    every = nn.ModuleList([*sides.both, *(model for side in sides.both for model in side.models)])
    return evaluating(every)
