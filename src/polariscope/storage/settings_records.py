"""Types of the entries of ``settings.json``, which a file with a correct hash can violate too."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from polariscope.core.errors import PolariscopeError
from polariscope.core.records import from_plain

REMEDY = "repeat the run in another folder"


@dataclasses.dataclass(frozen=True)
class SettingsRecord:
    """Settings of any kind of training. Fields without a default exist in every version and kind."""

    format: int
    polariscope: str
    data: dict[str, object]
    objective: dict[str, object]
    model: dict[str, object]
    training: dict[str, object]
    training_identity: dict[str, object]
    hash: str
    environment: dict[str, object]
    n_observations: int
    kind: str = ""
    split: dict[str, object] = dataclasses.field(default_factory=dict)
    feature_variance: float | None = None
    caution: str = ""
    defaults_of_objective: list[str] = dataclasses.field(default_factory=list)
    chosen: list[str] = dataclasses.field(default_factory=list)
    choice: dict[str, object] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class NamedRecord:
    """A member of a family with its options, which the member checks itself."""

    name: str


@dataclasses.dataclass(frozen=True)
class DataRecord(NamedRecord):
    """The training data."""

    fingerprint: str
    missing: str = ""
    shape: list[int] | None = None


@dataclasses.dataclass(frozen=True)
class ModelRecord:
    """The architecture of a model, or the network of a manipulation."""

    n_latents: int | None = None
    shape: list[int] | None = None
    net: dict[str, object] | None = None
    posterior: dict[str, object] | None = None
    prior: dict[str, object] | None = None
    likelihood: dict[str, object] | None = None
    initialisation: str = ""
    n_auxiliary: int = 0
    decodes: bool = True


@dataclasses.dataclass(frozen=True)
class TrainingRecord:
    """Options that every kind of training has; the settings of each kind check the others."""

    steps: int
    seed: int
    log_every: int
    checkpoint_every: int
    batch_size: int | None = None


@dataclasses.dataclass(frozen=True)
class EnvironmentRecord:
    """Versions, threads and device of a training."""

    python: str
    torch: str
    numpy: str
    threads: int
    device: str
    threads_before: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class SplitRecord:
    """Kind of the split and the size of its parts."""

    by: str
    held_out: bool
    train: int
    validation: int
    test: int


PARTS: Mapping[str, type] = {
    "data": DataRecord,
    "objective": NamedRecord,
    "model": ModelRecord,
    "training": TrainingRecord,
    "environment": EnvironmentRecord,
    "split": SplitRecord,
}
"""Records of the entries that are mappings."""
MEMBERS = ("net", "posterior", "prior", "likelihood")
"""Entries of the model that are members of families."""


def problem_of(record: Mapping[str, object]) -> str:
    """Return a description of the first entry that is missing or has another type, as a sentence; '' if all are right.

    :param record: contents of ``settings.json``.
    """
    model = record.get("model")
    model = model if isinstance(model, dict) else {}
    members = {name: model[name] for name in MEMBERS if isinstance(model.get(name), dict)}
    checks: list[tuple[str, type, Any]] = [
        ("", SettingsRecord, record),
        *((part, kind, record[part]) for part, kind in PARTS.items() if part in record),
        *((f"model.{name}", NamedRecord, member) for name, member in members.items()),
    ]
    for part, kind, value in checks:
        try:
            from_plain(kind, value, REMEDY, with_others=True)
        except PolariscopeError as error:
            return f"{part}: {error}" if part else str(error)
    return ""
