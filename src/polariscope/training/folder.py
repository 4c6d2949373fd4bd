"""A run on disk: who may write to it, what it was asked for, its log and its checkpoints."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import filelock

from polariscope import files
from polariscope.errors import InputError, PolariscopeError
from polariscope.training import checkpoint
from polariscope.training.checkpoint import TrainState

IDENTITY = ("data", "objective", "model", "training_identity")


class RunFolder:
    """One run's folder, held by one process at a time (a context manager)."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"
        self.log = self.path / "log.jsonl"
        self._lock = filelock.FileLock(self.path / ".lock")

    def __enter__(self) -> RunFolder:
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"out must be a folder, got the file {self.path}; choose another place.")
        if self.path.is_dir() and not self.settings_file.exists():
            others = [entry.name for entry in self.path.iterdir() if not entry.name.startswith(".")]
            if others:
                raise InputError(
                    f"out must be a new folder or an earlier run, but {self.path} holds {others[0]!r} and no "
                    "settings.json; choose another folder."
                )
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise PolariscopeError(
                f"{self.path} is being trained by another process; wait for it or choose another --out."
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @property
    def settings_file(self) -> Path:
        return self.path / "settings.json"

    @property
    def model_file(self) -> Path:
        return self.path / "model.safetensors"

    def settings(self) -> dict[str, Any]:
        """What the run was asked for."""
        return read_settings(self.path)

    def open_with(self, record: dict[str, Any]) -> bool:
        """Start a run with the settings ``record``, or check that the run here has the same; True if it had begun."""
        begun = self.settings_file.exists()
        if begun:
            earlier = self.settings()
            differences = _differences(
                {key: earlier.get(key) for key in IDENTITY}, {key: record[key] for key in IDENTITY}
            )
            if differences:
                shown = "; ".join(differences[:4])
                raise InputError(
                    f"{self.path} was trained with other settings ({shown}); "
                    "choose another --out, or give the same settings to resume it."
                )
            done = earlier["training"]["steps"]
            if record["training"]["steps"] < done and self.model_file.exists():
                raise InputError(
                    f"{self.path} already has {done} steps, more than the {record['training']['steps']} asked for; "
                    "choose another --out."
                )
        files.write_json(self.settings_file, record)
        return begun

    def resume(self, state: TrainState) -> list[str]:
        """Bring ``state`` to the newest checkpoint and cut the log to match it."""
        messages = checkpoint.restore_latest(self.checkpoints, state)
        if self.log.exists() and self.log.stat().st_size < state.log_bytes:
            raise PolariscopeError(
                f"{self.log} is shorter than when step {state.step} was saved; it was changed by hand or the disk "
                "lost it. Delete the run and repeat it."
            )
        with self.log.open("ab") as file:
            file.truncate(state.log_bytes)
        return messages

    def append_log(self, record: dict[str, Any]) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, allow_nan=False) + "\n")

    def save_checkpoint(self, state: TrainState, keep_all: bool) -> None:
        """Write a checkpoint; the log is on disk before the checkpoint that counts on it."""
        with self.log.open("ab") as file:
            os.fsync(file.fileno())
            state.log_bytes = file.tell()
        checkpoint.save(self.checkpoints, state)
        if not keep_all:
            checkpoint.prune(self.checkpoints, keep=2)


def read_settings(run: str | Path) -> dict[str, Any]:
    """The settings of a run."""
    file = Path(run) / "settings.json"
    if not file.exists():
        raise InputError(
            f"{run} is not a run folder: it has no settings.json; train one with 'polariscope train'."
        )
    record = files.read_json(file)
    if record.get("hash") != settings_hash(record):
        raise PolariscopeError(
            f"{file} does not match its hash: it was changed by hand or is damaged; repeat the run in another folder."
        )
    return record


def settings_hash(record: dict[str, Any]) -> str:
    """Hash of what decides a run; the run's name."""
    return files.digest({key: record.get(key) for key in ("data", "objective", "model", "training")})


def read_log(run: str | Path) -> list[dict[str, Any]]:
    """The lines of a run's log; a line that is just being written is left out."""
    file = Path(run) / "log.jsonl"
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1] if line]


def _differences(earlier: Any, now: Any, path: str = "") -> list[str]:
    """Where two settings differ, in words."""
    if isinstance(earlier, dict) and isinstance(now, dict):
        found = []
        for key in sorted({*earlier, *now}):
            found += _differences(earlier.get(key), now.get(key), f"{path}.{key}" if path else key)
        return found
    return (
        []
        if earlier == now
        else [f"{path.replace('training_identity', 'training')}: {earlier} then, {now} now"]
    )
