"""State of training, converted to tensors and metadata and restored bit for bit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from polariscope.core.errors import PolariscopeError
from polariscope.storage.checkpoints import Checkpoint
from polariscope.training.patience import Patience


@dataclasses.dataclass(eq=False)
class TrainState:
    """Model, companion, optimisers and noise. The order of the data is a function of ``step``."""

    model: nn.Module
    companion: nn.Module | None
    """Networks that the objective trains besides the model, if any."""
    optimisers: dict[str, torch.optim.Optimizer]
    noise: torch.Generator
    step: int = 0
    totals: dict[str, float] = dataclasses.field(default_factory=dict)
    """Sums of the numbers that are averaged in the next line of the log."""
    patience: Patience = dataclasses.field(default_factory=Patience)
    """The monitor of early stopping."""

    @property
    def model_step(self) -> int:
        """Step of the finished model: the last one, or the best one if training stopped early."""
        return self.patience.best_step if self.patience.is_exhausted else self.step

    def take_means(self) -> dict[str, float]:
        """Return the averages of the numbers since the last line of the log, and reset the sums."""
        # train_task counts the steps under this name, together with the numbers.
        count = self.totals.pop("steps")
        means = {name: value / count for name, value in self.totals.items()}
        self.totals = {}
        return means

    def tensors(self) -> dict[str, Tensor]:
        """Return the state except for the model's weights and :meth:`metadata`."""
        tensors: dict[str, Tensor] = {"noise": self.noise.get_state()}
        if self.companion is not None:
            tensors |= {f"companion/{name}": value for name, value in self.companion.state_dict().items()}
        for part, optimiser in self.optimisers.items():
            for number, slots in optimiser.state_dict()["state"].items():
                for name, value in slots.items():
                    tensors[f"optimiser/{part}/{number}/{name}"] = torch.as_tensor(value)
        return tensors | self.patience.tensors()

    def metadata(self) -> dict[str, Any]:
        """Return the state that is not a tensor. JSON stores sums as text that Python reads back to the same bits."""
        return {"totals": self.totals, **self.patience.metadata()}

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore a saved state; modules and optimisers must have the same shapes."""
        tensors = checkpoint.state
        try:
            self.model.load_state_dict(dict(checkpoint.model))
            if self.companion is not None:
                self.companion.load_state_dict(_under("companion/", tensors))
            for part, optimiser in self.optimisers.items():
                _restore_optimiser(optimiser, _under(f"optimiser/{part}/", tensors))
            self.noise.set_state(tensors["noise"])
            self.totals = dict(checkpoint.metadata["totals"])
            self.patience.restore(_under("best/", tensors), checkpoint.metadata)
        except (RuntimeError, KeyError, ValueError, IndexError) as error:
            raise PolariscopeError(
                f"the checkpoint of step {checkpoint.step} does not fit this model: {error}"
            ) from None
        self.step = checkpoint.step


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _restore_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    slots: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        number, _, slot = name.partition("/")
        parameter = parameters[int(number)]
        if value.shape == parameter.shape:
            # The fused optimiser iterates over memory, so moments need the layout of the weights (channels last).
            value = torch.empty_like(parameter).copy_(value)
        slots.setdefault(int(number), {})[slot] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": slots})
