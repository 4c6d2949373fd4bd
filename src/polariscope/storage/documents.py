"""JSON files that carry a hash of their content, checked on reading: records, answers, and the settings of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from polariscope import __version__
from polariscope.core import files
from polariscope.core.errors import Call, InputError, PolariscopeError
from polariscope.core.records import to_plain
from polariscope.core.types import Recordable
from polariscope.storage import FORMAT, SETTINGS

HASH = "sha256"


class DamagedError(PolariscopeError):
    """A file whose content does not match its hash, or that is not what its name says."""


class FormatError(PolariscopeError):
    """A file that another version of polariscope wrote."""


@dataclasses.dataclass(frozen=True)
class Document:
    """What a file holds: the content, and what it is about."""

    kind: str
    about: dict[str, Any]
    """What the content was made from."""
    content: Any
    polariscope: str
    """Version that wrote it."""


def write_document(
    path: Path, kind: str, content: Recordable, about: Recordable = None, guard: files.Guard | None = None
) -> None:
    """Write a JSON value atomically, with its kind, what it is about and a hash of everything."""
    record = {
        "format": FORMAT,
        "polariscope": __version__,
        "kind": kind,
        "about": to_plain(about or {}),
        "content": to_plain(content),
    }
    files.write_json(path, {**record, HASH: files.digest(record)}, guard)


def read_document(path: Path, kind: str) -> Document:
    """What :func:`write_document` wrote. One that was changed, or is of another kind or format, is refused."""
    record = read_json(path)
    if not isinstance(record, dict) or "format" not in record:
        raise FormatError(f"{path} {OLDER}")
    check_format(path, record["format"])
    if record.pop(HASH, None) != files.digest(record):
        raise DamagedError(f"{path} is damaged: its content does not match its hash.")
    if record["kind"] != kind:
        raise DamagedError(f"{path} should hold a {kind}, but holds a {record['kind']}.")
    return Document(kind, record["about"], record["content"], record["polariscope"])


OLDER = (
    f"was written by an earlier version of polariscope, and this one reads format {FORMAT} only. Make it again with "
    "the same command in a new folder, or use the version that wrote it."
)


def check_format(path: Path, found: object) -> None:
    """Refuse a file of another format, with what to do."""
    if found == FORMAT:
        return
    if isinstance(found, int) and found > FORMAT:
        raise FormatError(
            f"{path} has format {found}, and this polariscope reads format {FORMAT}; install a newer polariscope."
        )
    raise FormatError(f"{path} {OLDER}")


def read_json(path: Path) -> Any:
    """A JSON file; one that is not JSON is named as damaged."""
    try:
        return files.read_json(path)
    except PolariscopeError as error:
        raise DamagedError(str(error)) from None


NAMED_BY = ("format", "data", "objective", "model", "training")
IDENTITY = ("data", "objective", "model", "training_identity")


def settings_hash(record: dict[str, object]) -> str:
    """Hash of what decides a run; the run's name."""
    return files.digest({key: record.get(key) for key in NAMED_BY})


def identity_hash(record: dict[str, object]) -> str:
    """Hash of what must stay the same when a run goes on; the log's chain starts from it."""
    return files.digest({key: record.get(key) for key in IDENTITY})


def weights_hash(record: Mapping[str, object], training: Collection[str]) -> str:
    """Return the hash of the settings that determine the weights.

    The intervals of logging and checkpointing and the location of the data are not included.

    :param record: the contents of a run's settings.
    :param training: names of the options of the training that change the weights.
    """
    parts: dict[str, Any] = {name: record[name] for name in ("format", "objective", "model")}
    given: Any = record["training"]
    parts["training"] = {name: value for name, value in given.items() if name in training}
    data: Any = record["data"]
    return files.digest({**parts, "data": data["fingerprint"]})


def write_settings(run: Path, record: dict[str, object], guard: files.Guard | None = None) -> None:
    """Say what is going to be trained in this folder."""
    files.write_json(run / SETTINGS, {**record, HASH: files.digest(record)}, guard)


def read_settings(run: str | Path) -> dict[str, Any]:
    """The settings of a run, checked against their hashes; runs of other formats are refused."""
    file = Path(run) / SETTINGS
    if Path(run).is_file():
        raise InputError(
            problem=f"{run} is a file, not the folder of a run",
            remedy="for files of codes there are diagnose, score, compare, stability and report",
        )
    if not file.exists():
        raise InputError(
            problem=f"{run} is not a run folder: it has no {SETTINGS}",
            remedy=("train one with ", Call("train", "data", out=str(run))),
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


def differences(earlier: dict[str, object], now: dict[str, object]) -> list[str]:
    """Where two settings differ in what a run must keep, in words."""
    return _differences({key: earlier.get(key) for key in IDENTITY}, {key: now[key] for key in IDENTITY})


UNSET = "unset"
"""Stands for an option that a record does not have: a newer one at its default, or that of another part."""


def _differences(earlier: Any, now: Any, path: str = "") -> list[str]:
    if isinstance(earlier, dict) and isinstance(now, dict):
        return [
            difference
            for key in sorted({*earlier, *now})
            # A missing option equals one that is None; they differ only in what is said about them.
            if earlier.get(key) != now.get(key)
            for difference in _differences(
                earlier.get(key, UNSET), now.get(key, UNSET), f"{path}.{key}" if path else key
            )
        ]
    if earlier == now:
        return []
    return [f"{path.replace('training_identity', 'training')}: {earlier} then, {now} now"]
