"""The state of a training run, on disk and back, bit for bit."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polariscope.core import files
from polariscope.core.errors import PolariscopeError


@dataclasses.dataclass(eq=False)
class TrainState:
    """All that changes while training. The order of the data is a function of ``step``."""

    modules: dict[str, nn.Module]
    """The model, and its companion where the objective has one."""
    optimisers: dict[str, torch.optim.Optimizer]
    noise: torch.Generator
    step: int = 0
    totals: dict[str, float] = dataclasses.field(default_factory=dict)
    """Sums of what is averaged into the next line of the log."""
    log_bytes: int = 0
    """Length of the log when the state was saved; later lines belong to steps that will be repeated."""


def save(folder: Path, state: TrainState) -> Path:
    """Write ``folder/step-N`` whole or not at all."""
    tensors: dict[str, Tensor] = {"noise": state.noise.get_state()}
    for part, module in state.modules.items():
        tensors |= {f"{part}/{name}": value for name, value in module.state_dict().items()}
    for part, optimiser in state.optimisers.items():
        for number, slots in optimiser.state_dict()["state"].items():
            for name, value in slots.items():
                tensors[f"optimiser/{part}/{number}/{name}"] = torch.as_tensor(value)
    # float64 sums go through JSON as text that Python reads back to the same bits.
    metadata = {"step": state.step, "totals": state.totals, "log_bytes": state.log_bytes}
    target = folder / f"step-{state.step}"
    with files.atomic_folder(target) as part_folder:
        files.write_tensors(part_folder / "state.safetensors", tensors, metadata)
    return target


def restore(checkpoint: Path, state: TrainState) -> None:
    """Put a saved state back into ``state``, whose modules and optimisers have the same shapes."""
    tensors, metadata = files.read_tensors(checkpoint / "state.safetensors")
    try:
        for part, module in state.modules.items():
            module.load_state_dict(_under(f"{part}/", tensors))
        for part, optimiser in state.optimisers.items():
            _restore_optimiser(optimiser, _under(f"optimiser/{part}/", tensors))
        state.noise.set_state(tensors["noise"])
    except (RuntimeError, KeyError, ValueError, IndexError) as error:
        raise PolariscopeError(f"{checkpoint} does not fit this model: {error}") from None
    state.step = metadata["step"]
    state.totals = metadata["totals"]
    state.log_bytes = metadata["log_bytes"]


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _restore_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    slots: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        number, _, slot = name.partition("/")
        parameter = parameters[int(number)]
        if value.shape == parameter.shape:
            # The fused optimiser walks memory, so its moments must lie as the weights do (channels last).
            value = torch.empty_like(parameter).copy_(value)
        slots.setdefault(int(number), {})[slot] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": slots})


def saved_steps(folder: Path) -> list[int]:
    """Steps of the checkpoints in ``folder``, ascending."""
    found = [re.fullmatch(r"step-(\d+)", path.name) for path in folder.glob("step-*")]
    return sorted(int(match[1]) for match in found if match)


def restore_latest(folder: Path, state: TrainState) -> list[str]:
    """Resume from the newest checkpoint that is whole; returns a message for each damaged one passed over."""
    messages: list[str] = []
    for step in reversed(saved_steps(folder)):
        try:
            restore(folder / f"step-{step}", state)
            return messages
        except (PolariscopeError, FileNotFoundError, json.JSONDecodeError) as error:
            messages.append(f"{error} Going back to an earlier checkpoint.")
    if messages:
        raise PolariscopeError(
            " ".join(messages) + f" None of those in {folder} is whole; delete the run and repeat it."
        )
    return messages


def prune(folder: Path, keep: int | None) -> None:
    """Delete all but the newest ``keep`` checkpoints (None: none), and what a killed process left unfinished."""
    for step in saved_steps(folder)[:-keep] if keep else []:
        shutil.rmtree(folder / f"step-{step}")
    for leftover in folder.glob(".step-*.part"):
        shutil.rmtree(leftover, ignore_errors=True)
