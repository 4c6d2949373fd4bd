"""The attack: decoders adapt to manipulated data, and the manipulation increases the loss of one side."""

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
"""Number of batches of original data on which the initial losses are measured."""


class Side(nn.Module):
    """The models of one side: frozen encoders, and copies of the decoders, which are trained.

    :param models: one model, or an ensemble whose losses are averaged.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        super().__init__()
        self.models = tuple(models)  # a tuple, so PyTorch neither trains nor saves the encoders
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
        """Draw each model's latents for original observations: the first draw of all, then the second, and so on.

        :param x: the observations.
        :param auxiliary: auxiliary input of each model's encoder.
        :param draws: number of draws for each observation.
        :param noise: random generator.
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
        """Return −log p(x'|z) in nats, summed over values, averaged over observations, draws and models.

        :param x: manipulated observations.
        :param codes: draws of each model's latents for the original observations.
        :param trains: If True, compute gradients for the decoders; otherwise only for x.
        """
        losses = []
        for decoder, z in zip(self.decoders, codes, strict=True):
            # A manipulation is trained through x alone, so the graph of the decoder would be wasted memory.
            with torch.set_grad_enabled(trains):
                reconstruction = decoder(z)
            # In the order of the codes: the first draw of all observations, then the second.
            repeated = x.repeat(len(z) // len(x), *(1,) * (x.ndim - 1))
            losses.append(-reconstruction.log_density(repeated).mean())
        return torch.stack(losses).mean()


@dataclasses.dataclass(frozen=True, eq=False)
class Sides:
    """Both sides of the attack: its objective is the entangled side's loss minus the disentangled side's."""

    entangled: Side
    disentangled: Side

    @property
    def both(self) -> tuple[Side, Side]:
        """Both sides, the entangled one first."""
        return self.entangled, self.disentangled


class AttackFeed:
    """A source of batches: observations, their factors, and draws of both sides' latents.

    :param data: the original data.
    :param sides: the models that encode them.
    :param settings: settings of the attack, with the number of draws.
    """

    def __init__(self, data: AbstractDataset, sides: Sides, settings: AttackSettings) -> None:
        self.data, self.sides, self.settings = data, sides, settings
        self.model = sides.entangled.models[0]
        self.values = ModelValues(data, self.model)

    def batch(
        self, indices: Int[np.ndarray, " sample"], noise: torch.Generator
    ) -> tuple[Float[Tensor, "sample *shape"], Float[Tensor, "sample factor"], list[list[Tensor]]]:
        """Return original observations, their factors, and codes by side and model.

        :param indices: indices of the observations.
        :param noise: random generator of the codes.
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
    r"""The training task of the attack: decoders that adapt to the data, and a manipulation against one side.

    With z drawn by the frozen encoders from the original x, and x' = x + ε m_ψ(w),

    .. math:: \theta^*_k = \arg\min_{\theta_k} L_k(x', z_k), \qquad
              \psi^* = \arg\min_\psi L_{ent}(x', z_{ent}) - L_{dis}(x', z_{dis})

    where L is −log p(x'|z), in nats per observation. A step trains the decoders on some batches and then the
    manipulation on one batch. At the decoders' optimum, the gradient of the gap L_ent − L_dis in ψ equals the gradient
    with fixed decoders, so no gradient has to be propagated through their training.

    The gap of a two-player game does not decrease steadily, so early stopping is disabled.

    Reference: zietlow2022 §4.2.4.

    :param manipulation: map from factors (sample, factor) to changes in [−1, 1], (sample, \*shape).
    :param sides: models of both sides, with frozen encoders and trained copies of the decoders.
    :param data: the original data, with factors.
    :param settings: strength, length and logging of the attack.
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
        """Return both losses on the original data, with the initial decoders.

        The noise comes from a separate generator, so this measurement does not affect the training.
        """
        noise = torch.Generator(self.feed.model.device).manual_seed(derive(self.settings.seed, "before"))
        batches = []
        for number in range(BATCHES_BEFORE):
            x, _, codes = self.feed.batch(self.order.batch(number), noise)
            batches.append(torch.stack(self._losses(x, codes, trains=False)))
        entangled, disentangled = torch.stack(batches).mean(0).tolist()
        # The data are not changed yet.
        numbers = (entangled, disentangled, entangled - disentangled, 0.0)
        return {"step": 0, **dict(zip(NUMBERS, numbers, strict=True))}

    def gradients(self) -> dict[str, Float[Tensor, ""]]:
        """Train the decoders on their batches, and compute the gradient of the gap with respect to the manipulation."""
        state, n_batches = self.state, self.settings.decoder_batches
        # A step uses n_batches + 1 batches. Their numbers follow from the step, so a resumed attack uses the same ones.
        first = (n_batches + 1) * state.step
        for number in range(first, first + n_batches):
            x, factors, codes = self.feed.batch(self.order.batch(number), state.noise)
            # The decoders adapt to a fixed manipulation.
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
"""Numbers in the log: both losses, the first minus the second, and the mean change of a value."""


def first_state(manipulation: nn.Module, sides: Sides, settings: AttackSettings) -> TrainState:
    """Return the training state of an attack before its first step.

    :param manipulation: the manipulation with its initial weights.
    :param sides: models of both sides, with copies of the decoders.
    :param settings: settings of the attack.
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
    """Return the multiply-adds in the forward pass of one batch of the decoders, without changing any state.

    The encoders of both sides process the observations, the manipulation their factors, and the decoders every draw of
    the latents. The number of threads is derived from this count, as for training
    (:func:`polariscope.training.threads.threads_for`).

    :param manipulation: the network of the manipulation.
    :param sides: models of both sides.
    :param data: the original data.
    :param settings: settings of the attack, with the batch size and the number of draws.
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
    """Return a line of the log as text.

    :param line: the result of :meth:`AttackTask.line`.

    >>> in_words({"step": 10, "entangled": 31.42, "disentangled": 30.0, "gap": 1.42, "change": 0.02})
    'entangled 31.42 · disentangled 30.00 · gap +1.42 · mean change 0.020'
    """
    losses = f"entangled {line['entangled']:.2f} · disentangled {line['disentangled']:.2f}"
    return f"{losses} · gap {line['gap']:+.2f} · mean change {line['change']:.3f}"


def _backward(loss: Float[Tensor, ""], parameters: list[nn.Parameter]) -> None:
    for parameter in parameters:
        parameter.grad = None
    # Restricted to the weights of one player, because this loss must not train the other player.
    loss.backward(inputs=parameters)


def _evaluating(sides: Sides) -> AbstractContextManager[None]:
    """Put encoders and decoders into evaluation mode, so rows of a batch do not depend on each other."""
    every = nn.ModuleList([*sides.both, *(model for side in sides.both for model in side.models)])
    return evaluating(every)
