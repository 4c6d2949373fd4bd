"""Who has lost the right to write into a run's folder changes nothing in it, whatever it tries."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from polariscope.data.rendered.gaussian import GaussianDataset
from polariscope.models.model import Model
from polariscope.storage.artefacts import Key
from polariscope.storage.folder import RunFolder
from polariscope.storage.lease import LostLeaseError
from polariscope.training.train import train

KEY = Key("regime", "m", "d")
CODES = Key("representation", "m", "d")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A finished run of eight steps with a checkpoint every two."""
    return train(
        GaussianDataset(n_samples=60),
        net="linear",
        n_latents=2,
        steps=8,
        log_every=2,
        checkpoint_every=2,
        keep_checkpoints="all",
        out=tmp_path_factory.mktemp("runs") / "run",
    )


def bytes_of(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(".lock")
    }


def lost() -> None:
    raise LostLeaseError("taken over")


def no_restore(checkpoint: object) -> None: ...


WRITES: dict[str, Callable[[RunFolder, Model], object]] = {
    "a line of the log": lambda run, model: run.log.append({"step": 9}),
    "cutting the log": lambda run, model: run.resume(no_restore),
    "a checkpoint": lambda run, model: run.save_checkpoint(9, model, {"x": torch.zeros(1)}, {}),
    "deleting checkpoints": lambda run, model: run.checkpoints.prune(1, 9),
    "the model": lambda run, model: run.save_model(model, 9),
    "the settings": lambda run, model: run.begin({**run.settings, "chosen": []}),
    "setting the model aside": lambda run, model: run.set_model_aside(),
    "setting everything aside": lambda run, model: run.set_aside(),
    "a failure": lambda run, model: run.keep_failure("error", "why"),
    "forgetting a failure": lambda run, model: run.forget_failure(),
    "times": lambda run, model: run.keep_seconds({"train": 1.0}),
    "a record": lambda run, model: run.artefacts.keep(KEY, {"a": 1}),
    "arrays": lambda run, model: run.artefacts.keep_arrays(CODES, {"mean": np.zeros(3)}, {}),
    "what was asked for": lambda run, model: run.artefacts.touch(Path("regime-0")),
}


@pytest.mark.parametrize("what", WRITES)
def test_who_lost_the_right_to_write_writes_nothing(what: str, model: Model) -> None:
    assert model.folder is not None
    before = bytes_of(model.folder)
    with pytest.raises(LostLeaseError):
        WRITES[what](RunFolder(model.folder, lost), model)
    assert bytes_of(model.folder) == before


def test_who_has_it_is_asked_before_every_write(model: Model, tmp_path: Path) -> None:
    asked: list[int] = []
    folder = RunFolder(tmp_path / "run", lambda: asked.append(1))
    train(GaussianDataset(n_samples=60), net="linear", n_latents=2, steps=2, log_every=1, out=folder)
    # Settings, the check before them, the cut, two lines, a checkpoint and the model at the least.
    assert len(asked) >= 7
    assert folder.finished_steps == 2
