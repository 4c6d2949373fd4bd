"""Early stopping: stop training when the held-out loss no longer improves, and keep the best model."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from polariscope.analysis.convergence import LogLine, held_out_loss
from polariscope.objectives import AbstractObjective
from polariscope.training.settings import TrainSettings

Metadata = Mapping[str, Any]
"""JSON values by name."""
BOUND = ("reconstruction", "rate")
"""Terms that are monitored if the objective has an adversary, because no single loss decreases then."""


@dataclasses.dataclass(eq=False)
class Patience:
    """Number of validations since the lowest held-out loss, and the weights of that validation.

    Only validations at multiples of ``validate_every`` count, so the result does not depend on the maximum number of
    steps. Those before the end of the schedules do not count: their losses are not those of the final objective.
    """

    limit: int = 0
    """Number of validations without improvement after which training stops; 0 for never."""
    every: int = 1
    """Number of steps between two validations."""
    counts_after: int = 0
    """Last step of the schedules; later validations count."""
    bound_only: bool = False
    """If True, reconstruction and rate are monitored instead of the loss."""
    best_step: int = 0
    """Step of the lowest held-out loss; 0 before the first validation that counts."""
    best_loss: float = math.inf
    """That loss, in nats."""
    waited: int = 0
    """Number of validations since then."""
    best_weights: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    """Weights of the model at that step."""

    @classmethod
    def of(cls, settings: TrainSettings, objective: AbstractObjective) -> Patience:
        """Return the monitor before the first step.

        :param settings: settings of the training.
        :param objective: the objective.
        """
        return cls(
            limit=settings.patience,
            every=settings.validate_every or settings.steps,
            counts_after=max(objective.schedule_steps, settings.warmup_steps),
            bound_only=objective.is_adversarial,
        )

    @property
    def is_exhausted(self) -> bool:
        """True if training has to stop."""
        return 0 < self.limit <= self.waited

    def observe(self, line: LogLine, model: nn.Module) -> None:
        """Compare a validation with the best one.

        :param line: a line of the log; those without a validation that counts are ignored.
        :param model: the model after that step.
        """
        step = line["step"]
        if not self.limit or step <= self.counts_after or step % self.every:
            return
        loss = self.monitored(line)
        if loss < self.best_loss:
            self.best_step, self.best_loss, self.waited = step, loss, 0
            # Cloned, because state_dict refers to the weights, which the next step changes in place.
            self.best_weights = {name: value.clone() for name, value in model.state_dict().items()}
        elif self.best_step:
            self.waited += 1

    def monitored(self, line: LogLine) -> float:
        """Return the monitored loss in nats: the held-out loss, or reconstruction and rate with an adversary.

        :param line: a line of the log with a validation.
        """
        if self.bound_only:
            return math.fsum(line["validation"][name] for name in BOUND if name in line["validation"])
        return held_out_loss(line)

    def tensors(self) -> dict[str, Tensor]:
        """Return the best weights, as a checkpoint stores them."""
        return {f"best/{name}": value for name, value in self.best_weights.items()}

    def metadata(self) -> dict[str, Any]:
        """Return the counts, as a checkpoint stores them; empty if training never stops early."""
        if not self.limit:
            return {}
        # JSON has no infinity.
        loss = self.best_loss if self.best_step else None
        return {"patience": {"best_step": self.best_step, "best_loss": loss, "waited": self.waited}}

    def restore(self, tensors: Mapping[str, Tensor], metadata: Metadata) -> None:
        """Restore the state of a checkpoint.

        :param tensors: the best weights by name.
        :param metadata: metadata of the checkpoint.
        """
        if not self.limit:
            return
        stored = metadata["patience"]
        self.best_step, self.waited = stored["best_step"], stored["waited"]
        self.best_loss = math.inf if stored["best_loss"] is None else stored["best_loss"]
        self.best_weights = dict(tensors)
