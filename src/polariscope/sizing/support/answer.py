"""The answer to "how many latents?", with the path that led to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from polariscope.core.errors import PolariscopeError
from polariscope.core.records import from_plain, to_plain

Decision = Literal["fits", "too many", "undecided"]
Target = Literal["latents", "beta"]


@dataclasses.dataclass(frozen=True)
class Trial:
    """One model that was trained on the way to an answer."""

    n_latents: int
    seed: int
    statistic: float
    """What was measured of it, for FONDUE Σ E[σ²]."""
    decision: Decision
    """Whether the statistic is at most the threshold; undecided when that could still change."""
    steps: int
    """Gradient steps it was trained for."""
    beta: float | None = None
    """Weight of the rate, where that is what is searched for."""
    projected: tuple[float, float] | None = None
    """Where the statistic may be if it is trained on."""
    keeps: int | None = None
    """How many of its latents are within the threshold together in the worst case, as a narrower model's would be."""
    curve: tuple[tuple[int, float], ...] = ()
    """The statistic while training: (step, value)."""
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Size:
    """How many latents the data need (or, for ``target`` beta, how large β may be): the answer first."""

    value: float | int | None
    """The number of latents, or β; None when the method found none (``notes`` say why)."""
    interval: tuple[float | int, float | int] | None
    """Range of the answer; ``meaning_of_interval`` says of what."""
    method: str
    target: Target = "latents"
    statistic: str = "Σ E[σ²]"
    """What ``trials`` measure."""
    threshold: float | int | None = None
    per_seed: tuple[float | int, ...] = ()
    """The answer of each seed."""
    trials: tuple[Trial, ...] = ()
    """The path taken, in order."""
    n_steps: int = 0
    """Gradient steps spent in all; a model that was continued counts once."""
    meaning_of_interval: str = ""
    notes: tuple[str, ...] = ()
    summary: str = ""
    """What the method does, in a line. It is kept with the answer, so a page need not open the method."""

    @property
    def n_latents(self) -> int:
        """The number of latents: the answer, or what β was sought for."""
        if self.target == "beta":
            return self.trials[0].n_latents
        if self.value is None:
            raise PolariscopeError(f"{self.method} found no answer: {' '.join(self.notes)}")
        return int(self.value)

    @property
    def answer(self) -> str:
        """The answer in words.

        >>> Size(11, (10, 12), "fondue").answer
        '11 latents (10–12)'
        >>> Size(2.5, (2.0, 3.0), "fondue", target="beta").answer
        'β = 2.5 (2–3)'
        """
        if self.value is None or self.interval is None:
            return "no answer"
        low, high = self.interval
        if self.target == "beta":
            return f"β = {self.value:.3g} ({low:.3g}–{high:.3g})"
        noun = "latent" if self.value == 1 else "latents"
        around = f"{low:g}" if low == high else f"{low:g}–{high:g}"
        return f"{self.value:g} {noun} ({around})"

    def __str__(self) -> str:
        rows = [f"{self.answer} by {self.method}, {self.n_steps:,} gradient steps."]
        rows += ["", *_table(self)] if self.trials else []
        rows += ["", *self.notes] if self.notes else []
        return "\n".join(rows)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return to_plain(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Size:
        """What :meth:`to_dict` wrote, equal in every bit; anything else is refused."""
        return from_plain(cls, stored, "size the data again")


def _table(size: Size) -> list[str]:
    """The path as aligned text."""
    columns = path_table(size)
    widths = [max(len(row[i]) for row in columns) for i in range(len(columns[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in columns]


def path_table(size: Size) -> list[tuple[str, ...]]:
    """The path taken: a heading, then a row for each model."""
    seeds = len({trial.seed for trial in size.trials}) > 1
    is_beta = size.target == "beta"
    heading = ["β" if is_beta else "latents", size.statistic, "steps", "decision", "may become"]
    rows: list[tuple[str, ...]] = [(*(["seed"] if seeds else []), *heading)]
    for trial in size.trials:
        first = f"{trial.beta:.3g}" if is_beta and trial.beta is not None else str(trial.n_latents)
        span = "" if trial.projected is None else f"{trial.projected[0]:.2f}–{trial.projected[1]:.2f}"
        cells = [first, f"{trial.statistic:.3f}", f"{trial.steps:,}", trial.decision, span]
        rows.append((*([str(trial.seed)] if seeds else []), *cells))
    return rows


def settle(answers: Sequence[float | int]) -> float | int:
    """One answer for several seeds: the median; between two, the larger, since a latent too many does less harm.

    >>> settle([10, 11, 11, 13]), settle([10, 11])
    (11, 11)
    """
    ordered = sorted(answers)
    return ordered[len(ordered) // 2]
