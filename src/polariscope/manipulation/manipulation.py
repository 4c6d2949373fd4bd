"""A finished manipulation, opened: what it was made with, how the gap went, and what it does to data."""

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
    """What it does to observations."""
    settings: dict[str, Any]
    """What it was asked for, and which runs were chosen."""
    log: tuple[dict[str, Any], ...]
    """Losses of both sides and their gap, in nats per observation, averaged over the steps of each line; the first line
    is of the original data, with the decoders as they were given."""

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
        """The variant of data that it stands for."""
        return {"name": "manipulated", "folder": str(self.folder)}

    @property
    def gap(self) -> Float[np.ndarray, "line 2"]:
        """Steps, and loss of the entangled minus that of the disentangled side: the attack makes it smaller."""
        return np.array([[line["step"], line["gap"]] for line in self.log], dtype=np.float64)

    def to_frame(self) -> pandas.DataFrame:
        """Return the log as a table, indexed by step: losses of both sides and their gap."""
        import pandas

        return pandas.DataFrame(list(self.log)).set_index("step")

    def to_dict(self) -> dict[str, Any]:
        """Return the folder, the hash, the settings and the log, as JSON; what it does to data is in its folder."""
        return to_plain(
            {"folder": str(self.folder), "key": self.key, "settings": self.settings, "log": self.log}
        )

    def in_words(self) -> list[str]:
        """What was done, in a few sentences."""
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
    """The finished manipulation in a folder, checked.

    :param folder: where it is.
    """
    opened, table = read_manipulation(folder)
    return Manipulation(Path(folder), table, opened.settings, tuple(opened.read_log()))


def read_manipulation(folder: str | Path) -> tuple[RunFolder, Tabulated]:
    """The same without its log, which is not needed to manipulate data.

    :param folder: where it is.
    """
    opened = RunFolder(folder)
    if not is_run(folder) or opened.kind != MANIPULATION:
        raise InputError(
            "folder",
            "hold a manipulation",
            got=str(folder),
            remedy=("make one with ", Call("manipulate", "runs", out=str(folder))),
        )
    if not opened.is_finished:
        opened.model_header()  # names a file that is there and damaged
        refuse_unresumable(opened)
        raise InputError(
            problem=f"the manipulation in {folder} is not finished",
            remedy="give the same command again to resume it",
        )
    return opened, Tabulated.read(opened.model_file)


OTHER_LOOP = "0.2."
"""Begins the versions whose attacks had a loop of their own: their checkpoints lack sums that this loop averages."""


def refuse_unresumable(folder: RunFolder) -> None:
    """Refuse to resume an attack that version 0.2.0 began and left with a checkpoint.

    A finished manipulation of 0.2.0 is opened as any other, but it cannot be made longer.

    :param folder: of a manipulation that lacks steps, or of nothing yet.
    """
    if not folder.is_begun or not folder.checkpoints.steps:
        return
    version = str(folder.settings.get("polariscope", ""))
    if version.startswith(OTHER_LOOP):
        step, steps = folder.checkpoints.steps[-1], folder.settings["training"]["steps"]
        raise InputError(
            problem=(
                f"{folder.path} holds a manipulation that version {version} of polariscope began, with a checkpoint "
                f"at step {step:,} of {steps:,}, which this version cannot resume"
            ),
            remedy="choose another folder, or delete this one and make the manipulation again",
        )
