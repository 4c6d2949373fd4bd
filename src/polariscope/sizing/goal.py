"""The goal of a search: threshold, limits and learning rate."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

from annotated_types import Ge, Gt

from polariscope.training.planner import SEARCH_RATE, TABLES


@dataclasses.dataclass(frozen=True)
class Goal:
    """What is asked of a method.

    A field is an option of ``polariscope.size``, a flag of ``polariscope size`` and, with its type and range, what
    both refuse; a method names those it heeds in its trait ``uses``.
    """

    threshold: float = 1.0
    """Most Σ E[σ²] that counts as no surplus; 1 as published."""
    n_init: Annotated[int, Ge(1)] | None = None
    """First guess of the number of latents; None: the method's own."""
    cap: Annotated[int, Ge(1)] = 512
    """Most latents that are tried."""
    steps: Annotated[int, Ge(400)] | None = None
    """Gradient steps of each model, where a method trains them all alike (None: 2,000), and the most that
    'fondue' gives to one (None: ten passes over the data, 8,000 to 16,000); below 400 no trend can be seen."""
    minutes: Annotated[float, Gt(0)] | None = None
    """Time to answer in; the interval says how sure that can be. With a folder, more time goes on from there. None: as
    long as it takes."""
    epochs: Annotated[int, Ge(1)] | None = None
    """Passes over the data of each model in the published searches; None: 1, 2, … until the answer stays."""
    learning_rate: Annotated[float, Gt(0)] | None = None
    """Step size of the optimiser; None: 1e-3, of 'fondue' on images 2e-4, of linear nets 1e-2, of the published
    searches 1e-4."""
    images: bool = dataclasses.field(default=False, metadata={"is_option": False})
    """Whether the observations are images."""
    net_rate: float | None = dataclasses.field(default=None, metadata={"is_option": False})
    """The learning rate that the net has of its own."""

    def rate(self) -> float:
        """The learning rate where only the outcome of a model counts."""
        return self.learning_rate or self.net_rate or TABLES.learning_rate

    def careful_rate(self) -> float:
        """The learning rate where every latent counts, which large steps prune: 2e-4 for images."""
        return self.learning_rate or self.net_rate or (SEARCH_RATE if self.images else TABLES.learning_rate)

    @property
    def fixed_steps(self) -> int:
        return 2000 if self.steps is None else self.steps


Target = Literal["latents", "beta"]
