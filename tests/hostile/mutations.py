"""Damage to a file: each region flipped, cut, zeroed or swapped, and each value of a JSON file replaced.

A :class:`Mutation` is a small record of text and numbers, so the same damage can be done again from a failure report.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polariscope.core import files
from polariscope.storage.documents import settings_hash

REGIONS = {"header": (0.0, 0.1), "middle": (0.1, 0.9), "end": (0.9, 1.0)}
"""Parts of a file, as shares of its length."""
HARMS = ("flip", "cut", "zero")
WHOLE = ("empty", "gone", "swap")
VALUES = ("drop", "rename", "replace", "sign")
"""Changes of a JSON value; ``sign`` replaces a value and writes the hash that belongs to it."""

ODD = (
    *("NaN", "Infinity", "1e400", "-1", "0", "0.5", "1e308", "1" * 40, "7" * 5000, "true", "null"),
    *(
        '""',
        '"x"',
        '"\\ud800"',
        '"a\\u0000b"',
        '"../../x"',
        "[]",
        "{}",
        "[null]",
        '{"": 0}',
        "[" * 3000 + "]" * 3000,
    ),
)
"""JSON texts that no writer of polariscope writes at most places."""
PLACE = "@hostile@"


@dataclasses.dataclass(frozen=True)
class Mutation:
    """One damage of one file."""

    harm: str
    region: str
    seed: int

    def __str__(self) -> str:
        return f"{self.harm} {self.region}".strip()

    def apply(self, file: Path, partner: Path | None = None) -> bool:
        """Damage a file; return False if it is the same as before.

        :param file: file to damage.
        :param partner: (default None) file of another run, for ``swap``.
        """
        before, dice = file.read_bytes(), random.Random(self.seed)
        if self.harm == "gone":
            file.unlink()
            return True
        if self.harm == "swap":
            after = before if partner is None else partner.read_bytes()
        elif self.harm == "empty":
            after = b""
        elif self.harm in HARMS:
            after = _damaged(before, self.harm, REGIONS[self.region], dice)
        else:
            after = _edited(before, self.harm, dice)
        file.write_bytes(after)
        return after != before


def mutations_of(file: Path, dice: random.Random) -> Iterator[Mutation]:
    """Yield each kind of damage that a file can have.

    :param file: the file.
    :param dice: generator of the seeds, which select offsets and values.
    """
    size = file.stat().st_size
    for harm in WHOLE:
        if size or harm == "gone":
            yield Mutation(harm, "", 0)
    if not size:
        return
    for region in REGIONS:
        for harm in HARMS:
            yield Mutation(harm, region, dice.randrange(2**32))
    if file.suffix in (".json", ".jsonl") or file.name.startswith(".lease"):
        for harm in VALUES:
            for _ in range(6):
                yield Mutation(harm, "value", dice.randrange(2**32))


def _damaged(content: bytes, harm: str, region: tuple[float, float], dice: random.Random) -> bytes:
    first, last = int(region[0] * len(content)), max(1, int(region[1] * len(content)))
    offset = dice.randrange(min(first, len(content) - 1), last)
    if harm == "cut":
        return content[:offset]
    changed = bytearray(content)
    if harm == "flip":
        changed[offset] ^= 1 << dice.randrange(8)
    else:
        end = min(len(changed), offset + dice.choice((1, 8, 64, 4096)))
        changed[offset:end] = bytes(end - offset)
    return bytes(changed)


def _edited(content: bytes, harm: str, dice: random.Random) -> bytes:
    """Change one value of a JSON file, or of one line of a JSON-lines file."""
    lines = content.decode().splitlines()
    is_journal = len(lines) > 1 and lines[0].startswith("{") and lines[0].endswith("}")
    index = dice.randrange(len(lines)) if is_journal else 0
    try:
        record = json.loads(lines[index] if is_journal else content)
    except ValueError:  # a file that an earlier mutation has damaged
        return content
    owner, key = dice.choice(list(_places(record)))
    odd = None
    if harm == "drop":
        del owner[key]
    elif harm == "rename" and isinstance(owner, dict):
        owner[f"{key}_"] = owner.pop(key)
    else:
        odd = dice.choice(ODD)
        owner[key] = PLACE
    if harm == "sign" and isinstance(record, dict):
        _sign(record, odd)
    text = json.dumps(record, indent=None if is_journal else 2)
    text = text if odd is None else text.replace(f'"{PLACE}"', odd)
    return ("\n".join([*lines[:index], text, *lines[index + 1 :]]) if is_journal else text).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in a JSON value with each of its keys."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _sign(record: dict[str, Any], odd: str | None) -> None:
    """Write the hashes of a changed record, if its new value has a hash."""
    try:
        value = json.loads(odd or "null")
        filled = json.loads(json.dumps(record).replace(f'"{PLACE}"', json.dumps(value)))
        if "hash" in filled and "training" in filled:
            filled["hash"] = record["hash"] = settings_hash(filled)
        if "sha256" in filled:
            del filled["sha256"]
            record["sha256"] = files.digest(filled)
    except (ValueError, RecursionError):
        return
