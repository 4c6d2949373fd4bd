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

from polariscope import files
from polariscope.errors import PolariscopeError


@dataclasses.dataclass(eq=False)
class TrainState:
    """All that changes while training. The order of the data is a function of ``step``."""

    model: nn.Module
    optimiser: torch.optim.Optimizer
    noise: torch.Generator
    step: int = 0
    totals: dict[str, float] = dataclasses.field(default_factory=dict)
    """Sums of what is averaged into the next line of the log."""
    log_bytes: int = 0
    """Length of the log when the state was saved; later lines belong to steps that will be repeated."""


def save(folder: Path, state: TrainState) -> Path:
    """Write ``folder/step-N`` whole or not at all."""
    tensors: dict[str, Tensor] = {f"model/{name}": value for name, value in state.model.state_dict().items()}
    for number, slots in state.optimiser.state_dict()["state"].items():
        for name, value in slots.items():
            tensors[f"optimiser/{number}/{name}"] = torch.as_tensor(value)
    tensors["noise"] = state.noise.get_state()
    # float64 sums go through JSON as text that Python reads back to the same bits.
    metadata = {"step": state.step, "totals": state.totals, "log_bytes": state.log_bytes}
    target = folder / f"step-{state.step}"
    with files.atomic_folder(target) as part:
        files.write_tensors(part / "state.safetensors", tensors, metadata)
    return target


def restore(checkpoint: Path, state: TrainState) -> None:
    """Put a saved state back into ``state``, whose model and optimiser have the same shape."""
    tensors, metadata = files.read_tensors(checkpoint / "state.safetensors")
    groups: dict[str, dict[str, Tensor]] = {"model": {}, "optimiser": {}}
    for name, value in tensors.items():
        part, _, rest = name.partition("/")
        groups.setdefault(part, {})[rest] = value
    try:
        state.model.load_state_dict(groups["model"])
        record = state.optimiser.state_dict()
        parameters = [parameter for group in state.optimiser.param_groups for parameter in group["params"]]
        slots: dict[int, dict[str, Any]] = {}
        for name, value in groups["optimiser"].items():
            number, _, slot = name.partition("/")
            parameter = parameters[int(number)]
            if value.shape == parameter.shape:
                # The fused optimiser walks memory, so its moments must lie as the weights do (channels last).
                value = torch.empty_like(parameter).copy_(value)
            slots.setdefault(int(number), {})[slot] = value
        state.optimiser.load_state_dict({**record, "state": slots})
    except (RuntimeError, KeyError, ValueError, IndexError) as error:
        raise PolariscopeError(f"{checkpoint} does not fit this model: {error}") from None
    state.noise.set_state(tensors["noise"])
    state.step = metadata["step"]
    state.totals = metadata["totals"]
    state.log_bytes = metadata["log_bytes"]


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
