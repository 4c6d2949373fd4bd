"""A run on disk: who may write to it, what it was asked for, its log and its checkpoints."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import filelock

from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.storage import checkpoints as checkpoint
from polariscope.storage.checkpoints import TrainState

FORMAT = 1
"""Of the files in a run folder; a change that old readers cannot read raises it."""
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

    def check(self, record: dict[str, Any]) -> bool:
        """Whether a run has begun here; one with other settings, or that is longer already, is refused."""
        if not self.settings_file.exists():
            return False
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
        done = max(checkpoint.saved_steps(self.checkpoints), default=0)
        if record["training"]["steps"] < done:
            raise InputError(
                f"{self.path} already has {done} steps, more than the {record['training']['steps']} asked for; "
                "choose another --out."
            )
        return True

    def write_settings(self, record: dict[str, Any]) -> None:
        """Say what is going to be trained here."""
        files.write_json(self.settings_file, record)

    def forget(self) -> None:
        """Take back a run that failed before its first checkpoint: there is nothing in it to resume."""
        if not checkpoint.saved_steps(self.checkpoints):
            for file in (self.log, self.settings_file):
                file.unlink(missing_ok=True)

    def resume(self, state: TrainState) -> list[str]:
        """Bring ``state`` to the newest checkpoint and cut the log to match it."""
        messages = checkpoint.restore_latest(self.checkpoints, state)
        size = self.log.stat().st_size if self.log.exists() else 0
        if state.step == 0 and size:
            messages.append(f"{self.path} has no checkpoint; training starts again from the first step.")
        if size < state.log_bytes:
            raise PolariscopeError(
                f"{self.log} is shorter than when step {state.step} was saved; it was changed by hand or the disk "
                "lost it. Repeat the run in another folder."
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
        checkpoint.prune(self.checkpoints, keep=None if keep_all else 2)


def read_settings(run: str | Path) -> dict[str, Any]:
    """The settings of a run, checked against their hash."""
    file = Path(run) / "settings.json"
    if not file.exists():
        raise InputError(
            f"{run} is not a run folder: it has no settings.json; train one with 'polariscope train'."
        )
    record = files.read_json(file)
    if not isinstance(record, dict) or record.get("hash") != settings_hash(record):
        raise PolariscopeError(
            f"{file} does not match its hash: it was changed by hand or is damaged; repeat the run in another folder."
        )
    if record["format"] != FORMAT:
        raise PolariscopeError(
            f"{file} has format {record['format']}, and this polariscope reads format {FORMAT}; "
            "use the version that wrote it."
        )
    return record


def settings_hash(record: dict[str, Any]) -> str:
    """Hash of what decides a run; the run's name."""
    keys = ("format", "data", "objective", "model", "training")
    return files.digest({key: record.get(key) for key in keys})


def read_log(run: str | Path) -> list[dict[str, Any]]:
    """The lines of a run's log; a line that is just being written is left out, a damaged one named."""
    file = Path(run) / "log.jsonl"
    if not file.exists():
        return []
    found: list[dict[str, Any]] = []
    for number, line in enumerate(file.read_bytes().split(b"\n")[:-1], start=1):
        try:
            record = json.loads(line)
            if record["step"] <= (found[-1]["step"] if found else 0):
                raise ValueError("steps must rise")
        except (ValueError, KeyError, TypeError):
            raise PolariscopeError(
                f"line {number} of {file} is damaged; repeat the run in another folder."
            ) from None
        found.append(record)
    return found


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
