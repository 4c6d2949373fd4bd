"""A finished manipulation: its settings, the log of the gap, and its effect on data."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import Call, InputError
from polariscope.core.records import to_plain
from polariscope.manipulation.network import Tabulated
from polariscope.storage import MANIPULATION, is_run
from polariscope.storage.folder import RunFolder

if TYPE_CHECKING:
    import pandas


@dataclasses.dataclass(frozen=True, eq=False)
class Manipulation:
    """A manipulation of data in a folder."""

    folder: Path
    table: Tabulated
    """Table that maps factors to changes of observations."""
    settings: dict[str, Any]
    """Settings of the attack, and the selected runs."""
    log: tuple[dict[str, Any], ...]
    """Losses of both sides and their gap, in nats per observation, averaged over the steps of each line; the first line
    is for the original data, with the initial decoders."""

    @property
    def key(self) -> str:
        """Hash of the manipulation."""
        return self.table.digest

    @property
    def epsilon(self) -> float:
        """Largest change of a value."""
        return self.table.architecture.epsilon

    @property
    def variant(self) -> dict[str, str]:
        """Variant of the data that applies this manipulation."""
        return {"name": "manipulated", "folder": str(self.folder)}

    @property
    def gap(self) -> Float[np.ndarray, "line 2"]:
        """Steps, and loss of the entangled minus that of the disentangled side; the attack decreases it."""
        return np.array([[line["step"], line["gap"]] for line in self.log], dtype=np.float64)

    def to_frame(self) -> pandas.DataFrame:
        """Return the log as a pandas frame indexed by step: losses of both sides and their gap."""
        import pandas

        return pandas.DataFrame(list(self.log)).set_index("step")

    def to_dict(self) -> dict[str, Any]:
        """Return the folder, the hash, the settings and the log as plain values; the table itself is in the folder."""
        return to_plain(
            {"folder": str(self.folder), "key": self.key, "settings": self.settings, "log": self.log}
        )

    def in_words(self) -> list[str]:
        """Return a summary in a few sentences."""
        choice = self.settings["choice"]
        sides = [
            f"{side.capitalize()}: "
            + ", ".join(
                candidate["run"]
                + ("" if candidate["score"] is None else f" ({choice['metric']} {candidate['score']:.3f})")
                for candidate in choice[side]
            )
            for side in ("entangled", "disentangled")
        ]
        first, last = self.gap[0, 1], self.gap[-1, 1]
        steps = self.settings["training"]["steps"]
        moved = "fell" if last < first else "did not fall"
        begun = "on the original data" if self.gap[0, 0] == 0 else f"at step {self.gap[0, 0]:.0f}"
        return [
            *sides,
            f"The gap between their losses {moved}: {first:+.2f} nats {begun}, {last:+.2f} after {steps:,} steps.",
        ]

    def __str__(self) -> str:
        return "\n".join([f"Manipulation in {self.folder}, ε = {self.epsilon:g}", *self.in_words()])


def open_manipulation(folder: str | Path) -> Manipulation:
    """Open and check the finished manipulation in a folder.

    :param folder: folder of the manipulation.
    """
    opened, table = read_manipulation(folder)
    return Manipulation(opened.path, table, opened.settings, tuple(opened.read_log()))


def read_manipulation(folder: str | Path) -> tuple[RunFolder, Tabulated]:
    """Open a finished manipulation without its log, which is not required to manipulate data.

    :param folder: folder of the manipulation.
    """
    opened = RunFolder(folder)
    if not is_run(folder) or opened.kind != MANIPULATION:
        raise InputError(
            "folder",
            "contain a manipulation",
            got=str(folder),
            remedy=("make one with ", Call("manipulate", "runs", out=str(folder))),
        )
    if not opened.is_finished:
        opened.model_header()  # an existing but damaged file is reported first
        refuse_unresumable(opened)
        raise InputError(
            problem=f"the manipulation in {folder} is not finished",
            remedy="run the same command again to resume it",
        )
    return opened, Tabulated.read(opened.model_file)


OTHER_LOOP = "0.2."
"""Prefix of the versions whose attacks had another training loop; their checkpoints cannot be resumed."""


def refuse_unresumable(folder: RunFolder) -> None:
    """Refuse to resume an attack that version 0.2.0 started and left with a checkpoint.

    A finished manipulation of 0.2.0 is opened like any other, but it cannot be trained further.

    :param folder: folder of an unfinished manipulation, or a new folder.
    """
    if not folder.is_begun or not folder.checkpoints.steps:
        return
    version = str(folder.settings.get("polariscope", ""))
    if version.startswith(OTHER_LOOP):
        step, steps = folder.checkpoints.steps[-1], folder.settings["training"]["steps"]
        raise InputError(
            problem=(
                f"{folder.path} contains a manipulation that version {version} of polariscope started, with a "
                f"checkpoint at step {step:,} of {steps:,}, which this version cannot resume"
            ),
            remedy="choose another folder, or delete this one and train the manipulation again",
        )
