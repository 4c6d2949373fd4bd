"""How a model is trained."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Lt

from polariscope.core.errors import Argument, InputError
from polariscope.core.options import Advice, checked
from polariscope.data.splits import Split, split

VALIDATE_EVERY = 1000


@checked
@dataclasses.dataclass(frozen=True)
class TrainSettings:
    """Length, optimiser, schedule and record of a training run; defaults as in bonheme2023 Tab. A.1."""

    steps: Annotated[int, Ge(1)] = 20_000
    """Number of gradient steps. The published models have 300,000."""
    epochs: Annotated[float, Gt(0)] | None = None
    """Length in passes over the training split, instead of steps."""
    batch_size: Annotated[int, Ge(1)] = 64
    """Samples per step."""
    optimiser: Literal["adam", "amsgrad", "adagrad", "sgd"] = "adam"
    """Adam has β₁ = 0.9, β₂ = 0.999, ε = 1e-8."""
    learning_rate: Annotated[float, Gt(0)] = 1e-4
    """Step size of the optimiser, at its highest."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """How the learning rate goes from its highest value to 0 at the last step; constant: it does not."""
    warmup_steps: Annotated[int, Ge(0)] = 0
    """Steps over which the learning rate first rises linearly from 0."""
    clip_gradient: Annotated[float, Gt(0)] | None = None
    """Longest gradient (Euclidean norm); longer ones are shortened to it."""
    train_fraction: Annotated[float, Gt(0), Lt(1), Advice("0.9 is usual")] = 0.9
    """Share of the data that is trained on; the rest is halved into validation and test."""
    seed: int = 0
    """Seed of the weights, the split, the order of the data and the noise."""
    log_every: Annotated[int, Ge(1)] = 100
    """Steps between two lines of the log."""
    validate_every: Annotated[int, Ge(1)] | None = None
    """Steps between two evaluations of the loss on validation samples, a multiple of log_every; by default the first
    multiple from 1000 on."""
    probe_samples: Annotated[int, Ge(1)] = 256
    """Validation samples from which the state of the latents is logged."""
    checkpoint_every: Annotated[int, Ge(1)] = 1000
    """Steps between two checkpoints; a killed run loses at most this many."""
    keep_checkpoints: Literal["last", "all"] = "last"
    """Keep every checkpoint, to compare a model with its younger self, or only what resuming needs."""

    def __post_init__(self) -> None:
        if self.validate_every is not None and self.validate_every % self.log_every:
            raise InputError(
                "validate_every",
                ("be a multiple of ", Argument("log_every")),
                got=f"{self.validate_every} and {self.log_every}",
            )

    def resolved(self, n_train: int) -> TrainSettings:
        """The same with ``epochs`` turned into steps, given the size of the training split, and nothing left open."""
        steps = self.steps
        if self.epochs is not None:
            steps = max(1, round(self.epochs * max(1, n_train // self.batch_size)))
        every = self.validate_every or self.log_every * math.ceil(VALIDATE_EVERY / self.log_every)
        return dataclasses.replace(self, steps=steps, epochs=None, validate_every=every)

    def split(self, n_samples: int) -> Split:
        """Training, validation and test indices of data of so many samples."""
        rest = (1 - self.train_fraction) / 2
        return split(n_samples, (self.train_fraction, rest, rest), self.seed)

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of the step after ``step`` finished ones."""
        warmup = min(1.0, (step + 1) / self.warmup_steps) if self.warmup_steps else 1.0
        progress = min(1.0, max(0, step - self.warmup_steps) / max(1, self.steps - self.warmup_steps))
        decay = {
            "constant": 1.0,
            "linear": 1 - progress,
            "cosine": 0.5 * (1 + math.cos(math.pi * progress)),
        }[self.schedule]
        return self.learning_rate * warmup * decay

    def identity(self) -> dict[str, object]:
        """What must be the same for a run to be continued: all that decides the weights and the log.

        The number of steps may grow, unless the schedule depends on it; how often checkpoints are written and
        which are kept changes nothing.
        """
        record = dataclasses.asdict(self)
        for name in ("checkpoint_every", "keep_checkpoints", "epochs"):
            del record[name]
        if self.schedule == "constant":
            del record["steps"]
        return record
