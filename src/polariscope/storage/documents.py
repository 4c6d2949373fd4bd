"""JSON files that carry a hash of their content, checked on reading."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from polariscope import __version__
from polariscope.core import files
from polariscope.core.errors import PolariscopeError
from polariscope.core.records import to_plain
from polariscope.storage.layout import FORMAT

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


def write_document(path: Path, kind: str, content: Any, about: Any = None) -> None:
    """Write a JSON value atomically, with its kind, what it is about and a hash of everything."""
    record = {
        "format": FORMAT,
        "polariscope": __version__,
        "kind": kind,
        "about": to_plain(about or {}),
        "content": to_plain(content),
    }
    files.write_json(path, {**record, HASH: files.digest(record)})


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


def check_format(path: Path, found: Any) -> None:
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
