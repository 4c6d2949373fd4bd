"""The goal of a search: threshold, limits and learning rate."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

from annotated_types import Ge, Gt

from polariscope.training.planner import SEARCH_RATE, TABLES


@dataclasses.dataclass(frozen=True)
class Goal:
    """The goal of a search, passed to every method.

    Each field is an option of ``polariscope.size`` and a flag of ``polariscope size``; both check its type and range.
    A method lists the fields that it uses in its trait ``uses``.
    """

    threshold: float = 1.0
    """Maximum Σ E[σ²]; a model above it has surplus latents. The paper uses 1."""
    n_init: Annotated[int, Ge(1)] | None = None
    """Number of latents at which the search starts; None: chosen by the method."""
    cap: Annotated[int, Ge(1)] = 512
    """Maximum number of latents."""
    steps: Annotated[int, Ge(400)] | None = None
    """Gradient steps of each model, at least 400. For 'fondue' this is the maximum (by default, ten passes over the
    data, between 8,000 and 16,000 steps). Methods that train all models equally long use 2,000 by default."""
    minutes: Annotated[float, Gt(0)] | None = None
    """Time limit; there is none by default. If it is reached, the interval is wider. If the models are saved, a later
    call with more time resumes the search."""
    epochs: Annotated[int, Ge(1)] | None = None
    """Passes over the data of each model in the published searches; by default, 1, 2, … until the answer is stable."""
    learning_rate: Annotated[float, Gt(0)] | None = None
    """Learning rate; by default, 1e-3, but 2e-4 for 'fondue' on images, 1e-2 for linear nets and 1e-4 for the published
    searches."""
    images: bool = dataclasses.field(default=False, metadata={"is_option": False})
    """If True, the observations are images."""
    net_rate: float | None = dataclasses.field(default=None, metadata={"is_option": False})
    """Learning rate that the net defines for sizing; None if it defines none."""

    def rate(self) -> float:
        """Return the learning rate of models of which only the final state matters."""
        return self.learning_rate or self.net_rate or TABLES.learning_rate

    def careful_rate(self) -> float:
        """Return the learning rate of models whose latents are counted: 2e-4 for images, as large steps prune."""
        return self.learning_rate or self.net_rate or (SEARCH_RATE if self.images else TABLES.learning_rate)

    @property
    def fixed_steps(self) -> int:
        return 2000 if self.steps is None else self.steps


Target = Literal["latents", "beta"]
