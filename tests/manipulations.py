"""Untrained manipulations, for tests that use one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import polariscope
from polariscope.data.dataset import AbstractDataset
from polariscope.manipulation.network import Architecture, ManipulationNet, Tabulated
from polariscope.models.nets import AbstractNet
from polariscope.models.nets.conv import ConvNet, takes
from polariscope.models.nets.mlp import MlpNet
from polariscope.storage import FORMAT, MANIPULATION
from polariscope.storage.documents import settings_hash
from polariscope.storage.folder import RunFolder


def untrained(data: AbstractDataset, epsilon: float = 0.1, seed: int = 0) -> ManipulationNet:
    """Return a network with random weights, enlarged to reach ε."""
    net: AbstractNet = ConvNet() if takes(data.shape) else MlpNet(decoder_widths=(20,))
    made = Architecture.of(data, net, epsilon).build(seed)
    with torch.no_grad():
        for name, parameter in made.draw.named_parameters():
            parameter *= 1.3 if name.endswith("weight") else 1
    return made


def keep_untrained(folder: Path, data: AbstractDataset, epsilon: float = 0.1, seed: int = 0) -> Tabulated:
    """Write the folder of an untrained network, as after one training step."""
    table = Tabulated.of(untrained(data, epsilon, seed), data)
    record: dict[str, Any] = {
        "format": FORMAT,
        "polariscope": polariscope.__version__,
        "kind": MANIPULATION,
        "data": {**data.describe(), "fingerprint": data.fingerprint},
        "objective": {"name": MANIPULATION},
        "model": table.architecture.describe(),
        "training": {"steps": 1, "seed": seed, "log_every": 1, "checkpoint_every": 1},
        "training_identity": {"seed": seed},
    }
    record["hash"] = settings_hash(record)
    versions = dict.fromkeys(("python", "torch", "numpy"), "")
    record |= {"n_observations": len(data), "environment": {**versions, "threads": 1, "device": "cpu"}}
    side = [{"run": "seed-0", "score": 0.1}]
    record["choice"] = {"metric": "mig", "entangled": side, "disentangled": [{"run": "seed-1", "score": 0.4}]}
    with RunFolder(folder) as run:
        run.begin(record)
        for step, gap in ((0, 0.5), (1, -1.25)):
            run.log.append(
                {"step": step, "entangled": 30.0 + gap, "disentangled": 30.0, "gap": gap, "change": 0.01}
            )
        run.save_model(table, 1)
    return table
