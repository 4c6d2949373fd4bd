"""JSON files with a hash of their content that is checked on reading: records, answers and settings of runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from polariscope import __version__
from polariscope.core import files, parsing
from polariscope.core.errors import Call, InputError, PolariscopeError
from polariscope.core.records import to_plain
from polariscope.core.text import joined
from polariscope.core.types import Recordable
from polariscope.storage import FORMAT, SETTINGS
from polariscope.storage.settings_records import problem_of

HASH = "sha256"


class DamagedError(PolariscopeError):
    """Error about a file whose content does not match its hash or its name."""


class ForeignError(DamagedError):
    """Error about a model or checkpoint of another run, or the result of another search."""


class FormatError(PolariscopeError):
    """Error about a file that was written by an incompatible version of polariscope."""


@dataclasses.dataclass(frozen=True)
class Document:
    """Content of a file, with its kind and origin."""

    kind: str
    about: dict[str, Any]
    """Inputs and settings from which the content was made."""
    content: Any
    polariscope: str
    """Version of polariscope that wrote it."""


def write_document(
    path: Path, kind: str, content: Recordable, about: Recordable = None, guard: files.Guard | None = None
) -> None:
    """Write a JSON value atomically, with its kind, its origin and a hash of everything."""
    record = {
        "format": FORMAT,
        "polariscope": __version__,
        "kind": kind,
        "about": to_plain(about or {}),
        "content": to_plain(content),
    }
    files.write_json(path, {**record, HASH: files.digest(record)}, guard)


def read_document(path: Path, kind: str) -> Document:
    """Read a file written by :func:`write_document`; changed files and other kinds or formats raise an error."""
    record = read_json(path)
    if not isinstance(record, dict) or "format" not in record:
        raise FormatError(f"{path} {OLDER}")
    check_format(path, record["format"])
    # The hash covers all other entries, so it is removed first.
    if record.pop(HASH, None) != files.digest(record):
        raise DamagedError(f"{path} is damaged: its content does not match its hash.")
    if missing := sorted({"kind", "about", "content", "polariscope"} - set(record)):
        raise DamagedError(f"{path} is damaged: it has no {joined(missing)}.")
    if record["kind"] != kind:
        raise DamagedError(f"{path} should contain a {kind}, but contains a {record['kind']}.")
    return Document(kind, record["about"], record["content"], record["polariscope"])


OLDER = (
    f"was written by an earlier version of polariscope, and this version reads only format {FORMAT}. Make it again "
    "with the same command in a new folder, or use the version that wrote it."
)


def check_format(path: Path, format: object) -> None:
    """Check the format of a file; the error contains a remedy."""
    if format == FORMAT:
        return
    if isinstance(format, int) and format > FORMAT:
        raise FormatError(
            f"{path} has format {format}, and this version reads format {FORMAT}; install a newer polariscope."
        )
    raise FormatError(f"{path} {OLDER}")


def read_json(path: Path) -> Any:
    """Read a JSON file; a file that is not JSON raises :class:`DamagedError`."""
    try:
        return parsing.read_json(path)
    except PolariscopeError as error:
        raise DamagedError(str(error)) from None


NAMED_BY = ("format", "data", "objective", "model", "training")
IDENTITY = ("data", "objective", "model", "training_identity")


def settings_hash(record: dict[str, object]) -> str:
    """Return the hash of the settings that determine a run; it is the run's name."""
    return files.digest({key: record.get(key) for key in NAMED_BY})


def identity_hash(record: dict[str, object]) -> str:
    """Return the hash of the settings that must not change when a run is resumed; the log's chain starts from it."""
    return files.digest({key: record.get(key) for key in IDENTITY})


def weights_hash(record: Mapping[str, object], training: Collection[str]) -> str:
    """Return the hash of the settings that determine the weights.

    The intervals of logging and checkpointing and the location of the data are not included.

    :param record: the contents of a run's settings.
    :param training: names of the options of the training that change the weights.
    """
    parts: dict[str, Any] = {name: record[name] for name in ("format", "objective", "model")}
    options: Any = record["training"]
    parts["training"] = {name: value for name, value in options.items() if name in training}
    data: Any = record["data"]
    return files.digest({**parts, "data": data["fingerprint"]})


def write_settings(run: Path, record: dict[str, object], guard: files.Guard | None = None) -> None:
    """Write the settings of a run to its folder."""
    files.write_json(run / SETTINGS, {**record, HASH: files.digest(record)}, guard)


def read_settings(run: str | Path) -> dict[str, Any]:
    """Read the settings of a run and check their hashes and their format."""
    file = Path(run) / SETTINGS
    if Path(run).is_file():
        raise InputError(
            problem=f"{run} is a file, not a run folder",
            remedy="for files of codes use diagnose, score, compare, stability or report",
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
    # The first hash covers the file; the second is the name of the run.
    if stored != files.digest(record) or record.get("hash") != settings_hash(record):
        raise DamagedError(f"{file} {CHANGED}")
    if problem := problem_of(record):
        raise DamagedError(f"{file} is damaged: {problem}")
    return record


CHANGED = "does not match its hash: it was changed by hand or is damaged; repeat the run in another folder."


def _of_another_format(run: str | Path, record: dict[str, Any]) -> str:
    version, format = record.get("polariscope", "unknown"), record["format"]
    if isinstance(format, int) and format > FORMAT:
        return (
            f"{run} was written by polariscope {version} in format {format}, and this version reads format {FORMAT}; "
            "install a newer polariscope."
        )
    return (
        f"{run} was written by polariscope {version} in format {format}, and this version reads only format {FORMAT}. "
        "Train it again with the same settings in another folder, or use the version that wrote it."
    )


def differences(earlier: dict[str, object], now: dict[str, object]) -> list[str]:
    """Describe the differences between two settings that prevent a run from being resumed.

    If other settings of the data differ, their fingerprints differ as well and are not mentioned.
    """
    changed = _differences({key: earlier.get(key) for key in IDENTITY}, {key: now[key] for key in IDENTITY})
    named = [difference for difference in changed if "fingerprint: " not in difference]
    return named if any(difference.startswith("data.") for difference in named) else changed


UNSET = "unset"
"""Text for an option that a record does not have: a newer one at its default, or an option of another part."""


def _differences(earlier: Any, now: Any, path: str = "") -> list[str]:
    if isinstance(earlier, dict) and isinstance(now, dict):
        return [
            difference
            for key in sorted({*earlier, *now})
            # A missing option and one that is None count as equal; only the message distinguishes them.
            if earlier.get(key) != now.get(key)
            for difference in _differences(
                earlier.get(key, UNSET), now.get(key, UNSET), f"{path}.{key}" if path else key
            )
        ]
    if earlier == now:
        return []
    return [f"{path.replace('training_identity', 'training')}: {earlier} then, {now} now"]
