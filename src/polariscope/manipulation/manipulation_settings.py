"""Training settings of a manipulation."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le

from polariscope.core.errors import InputError
from polariscope.core.option_values import Advice
from polariscope.core.options import checked
from polariscope.data.dataset import AbstractDataset
from polariscope.manipulation.bounds import LEVELS
from polariscope.training.settings import MAX_STEPS


@checked
@dataclasses.dataclass(frozen=True)
class AttackSettings:
    """Strength, length and logging of an attack; defaults are those of zietlow2022 §4.3.1 if it states them."""

    epsilon: Annotated[float, Gt(0), Advice("0.1 is published for dSprites, 0.175 for Shapes3D")] = 0.1
    """Largest change ε of a value, in the units of the models' input."""
    steps: Annotated[int, Ge(1), Le(MAX_STEPS)] = 3000
    """Number of steps of the manipulation. The published number is unknown."""
    batch_size: Annotated[int, Ge(1)] = 64
    """Number of observations in a batch."""
    decoder_batches: Annotated[int, Ge(1)] = 3
    """Number of batches that the decoders are trained on before each step of the manipulation."""
    draws: Annotated[int, Ge(1)] = 5
    """Number of draws of the latents for each observation."""
    learning_rate: Annotated[float, Gt(0)] = 1e-4
    """Step size of the optimiser, Adam with β₁ = 0.9, β₂ = 0.999 and ε = 1e-7, for the manipulation and decoders."""
    seed: int = 0
    """Seed of the manipulation's weights, the order of the data and the noise."""
    log_every: Annotated[int, Ge(1)] = 10
    """Steps between two lines of the log."""
    checkpoint_every: Annotated[int, Ge(1)] = 100
    """Steps between two checkpoints; a killed attack loses at most this many."""

    def check(self, data: AbstractDataset) -> None:
        """Refuse an invalid ε for these data.

        :param data: the data to manipulate.
        """
        if data.is_unit_interval and self.epsilon > 1:
            raise InputError("epsilon", "be at most 1 for values in [0, 1]", got=f"{self.epsilon:g}")
        # The tolerance accepts 1/255, whose product with 255 can be rounded down.
        if len(data.shape) == 3 and self.epsilon * LEVELS < 1 - 1e-9:
            raise InputError(
                "epsilon",
                f"be at least 1/{LEVELS}: images are bytes",
                got=f"{self.epsilon:g}",
                remedy="a smaller change would be lost",
            )

    def describe(self) -> dict[str, Any]:
        """Return all settings by name."""
        return dataclasses.asdict(self)

    def identity(self) -> dict[str, object]:
        """Return the settings that must be equal to resume an attack; the number of steps can increase."""
        return {
            name: value
            for name, value in self.describe().items()
            if name not in ("checkpoint_every", "steps")
        }
