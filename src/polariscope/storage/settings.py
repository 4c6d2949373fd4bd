"""What a run was asked for: ``settings.json``, its two hashes and its format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.storage.documents import HASH, DamagedError, FormatError, read_json
from polariscope.storage.layout import FORMAT, SETTINGS

NAMED_BY = ("format", "data", "objective", "model", "training")
IDENTITY = ("data", "objective", "model", "training_identity")


def settings_hash(record: dict[str, Any]) -> str:
    """Hash of what decides a run; the run's name."""
    return files.digest({key: record.get(key) for key in NAMED_BY})


def identity_hash(record: dict[str, Any]) -> str:
    """Hash of what must stay the same when a run goes on; the log's chain starts from it."""
    return files.digest({key: record.get(key) for key in IDENTITY})


def write_settings(run: Path, record: dict[str, Any]) -> None:
    """Say what is going to be trained in this folder."""
    files.write_json(run / SETTINGS, {**record, HASH: files.digest(record)})


def read_settings(run: str | Path) -> dict[str, Any]:
    """The settings of a run, checked against their hashes; runs of other formats are refused."""
    file = Path(run) / SETTINGS
    if not file.exists():
        raise InputError(
            f"{run} is not a run folder: it has no {SETTINGS}; train one with 'polariscope train'."
        )
    record = read_json(file)
    if not isinstance(record, dict) or "format" not in record:
        raise DamagedError(f"{file} {CHANGED}")
    if record["format"] != FORMAT:
        raise FormatError(_of_another_format(run, record))
    stored = record.pop(HASH, None)
    if stored != files.digest(record) or record.get("hash") != settings_hash(record):
        raise DamagedError(f"{file} {CHANGED}")
    return record


CHANGED = "does not match its hash: it was changed by hand or is damaged; repeat the run in another folder."


def _of_another_format(run: str | Path, record: dict[str, Any]) -> str:
    version, found = record.get("polariscope", "unknown"), record["format"]
    if isinstance(found, int) and found > FORMAT:
        return (
            f"{run} was written by polariscope {version} in format {found}, and this version reads format {FORMAT}; "
            "install a newer polariscope."
        )
    return (
        f"{run} was written by polariscope {version} in format {found}, and this version reads format {FORMAT} only. "
        "Train it again with the same settings in another folder, or look at it with the version that wrote it."
    )


def differences(earlier: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Where two settings differ in what a run must keep, in words."""
    return _differences({key: earlier.get(key) for key in IDENTITY}, {key: now[key] for key in IDENTITY})


def _differences(earlier: Any, now: Any, path: str = "") -> list[str]:
    if isinstance(earlier, dict) and isinstance(now, dict):
        return [
            difference
            for key in sorted({*earlier, *now})
            for difference in _differences(earlier.get(key), now.get(key), f"{path}.{key}" if path else key)
        ]
    if earlier == now:
        return []
    return [f"{path.replace('training_identity', 'training')}: {earlier} then, {now} now"]
