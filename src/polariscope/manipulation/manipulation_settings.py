"""How a manipulation is trained."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from annotated_types import Ge, Gt

from polariscope.core.errors import InputError
from polariscope.core.option_values import Advice
from polariscope.core.options import checked
from polariscope.data.dataset import AbstractDataset
from polariscope.manipulation.bounds import LEVELS


@checked
@dataclasses.dataclass(frozen=True)
class AttackSettings:
    """Strength, length and record of an attack; defaults as in zietlow2022 §4.3.1 where it says them."""

    epsilon: Annotated[float, Gt(0), Advice("0.1 is published for dSprites, 0.175 for Shapes3D")] = 0.1
    """Largest change ε of a value; in the units that the models see."""
    steps: Annotated[int, Ge(1)] = 3000
    """Steps of the manipulation. How many the published one had is not known."""
    batch_size: Annotated[int, Ge(1)] = 64
    """Observations in a batch."""
    decoder_batches: Annotated[int, Ge(1)] = 3
    """Batches that the decoders are trained on before each step of the manipulation."""
    draws: Annotated[int, Ge(1)] = 5
    """Draws of the latents for each observation."""
    learning_rate: Annotated[float, Gt(0)] = 1e-4
    """Step size of the optimiser, Adam with β₁ = 0.9, β₂ = 0.999 and ε = 1e-7, for the manipulation and decoders."""
    seed: int = 0
    """Seed of the manipulation's weights, the order of the data and the noise."""
    log_every: Annotated[int, Ge(1)] = 10
    """Steps between two lines of the log."""
    checkpoint_every: Annotated[int, Ge(1)] = 100
    """Steps between two checkpoints; a killed attack loses at most this many."""

    def check(self, data: AbstractDataset) -> None:
        """Refuse an ε that makes no sense for these data.

        :param data: what is manipulated.
        """
        if data.is_unit_interval and self.epsilon > 1:
            raise InputError("epsilon", "be at most 1 for values in [0, 1]", got=f"{self.epsilon:g}")
        if len(data.shape) == 3 and self.epsilon * LEVELS < 1 - 1e-9:
            raise InputError(
                "epsilon",
                f"be at least 1/{LEVELS}: images are bytes",
                got=f"{self.epsilon:g}",
                remedy="a smaller change would be lost",
            )

    def describe(self) -> dict[str, Any]:
        """All settings by name."""
        return dataclasses.asdict(self)

    def identity(self) -> dict[str, object]:
        """What must be the same for an attack to be resumed; it may become longer."""
        return {
            name: value
            for name, value in self.describe().items()
            if name not in ("checkpoint_every", "steps")
        }
