"""Settings of training."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from polariscope.core.errors import Argument, InputError
from polariscope.core.option_values import Advice
from polariscope.core.options import affecting, checked, option, to_record
from polariscope.data.splits import (
    PARTS,
    Split,
    parts_of_column,
    split,
    split_everything,
    split_groups,
    split_parts,
)
from polariscope.training.planner import IMAGES, Pace

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

VALIDATE_EVERY = 1000
MAX_STEPS = 10**9
"""Maximum number of gradient steps; a thousand steps a second would take twelve days."""
ADAM_BETA1 = 0.9
"""Default β₁ of Adam; other optimisers accept no other value."""
ADAMS = ("adam", "amsgrad")
"""Optimisers that are Adam or a variant of it."""


@checked
@dataclasses.dataclass(frozen=True)
class TrainSettings:
    """Length, optimiser, schedule and record of a training run; defaults as in bonheme2023 Tab. A.1."""

    steps: Annotated[int, Ge(1), Le(MAX_STEPS)] = IMAGES.steps
    """Number of gradient steps; for tables, by default 100 passes (2,000 to 20,000 steps). Published models use
    300,000."""
    epochs: Annotated[float, Gt(0)] | None = option(None, affects="files")
    """Length in passes over the training split, instead of steps."""
    batch_size: Annotated[int, Ge(1)] = IMAGES.batch_size
    """Number of samples per step."""
    optimiser: Literal["adam", "amsgrad", "adagrad", "sgd"] = "adam"
    """Optimiser. Adam uses β₁ = adam_beta1, β₂ = 0.999, ε = 1e-8."""
    adam_beta1: Annotated[float, Ge(0), Lt(1), Advice("0.9 is usual, 0.5 for a generator")] = option(
        ADAM_BETA1, since="0.2", absent=0.9
    )
    """β₁ of adam and amsgrad, the decay rate of the running mean of gradients."""
    learning_rate: Annotated[float, Gt(0)] = IMAGES.learning_rate
    """Maximum learning rate; the default for tables is 0.001, and for linear nets 0.01."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Decay of the learning rate from its maximum to 0 at the last step; constant for no decay."""
    warmup_steps: Annotated[int, Ge(0)] = 0
    """Number of steps over which the learning rate first rises linearly from 0."""
    clip_gradient: Annotated[float, Gt(0)] | None = None
    """Maximum Euclidean norm of the gradient; longer gradients are clipped to it."""
    patience: Annotated[int, Ge(0), Advice("0 never stops early, 5 is usual")] = option(
        0, since="0.3", absent=0
    )
    """Stop training after this number of validations without a lower held-out loss, and keep the model with the lowest
    loss; 0 to train for all steps. Validations count only after the warm-up and the schedules of the objective have
    ended. With an adversary, the sum of reconstruction and rate is monitored."""
    train_fraction: Annotated[float, Gt(0), Le(1), Advice("0.9 is usual")] = 0.9
    """Share of the data used for training; the rest is halved into validation and test. With 1, all data are used for
    training, and some training samples for validation. If a predefined split has no validation part, this share of its
    training part is used for training."""
    split: Literal["auto", "official", "random"] = option("auto", since="0.2", absent="auto")
    """Train, validation and test: the dataset's own split (official) or a random one; auto for its own if it exists."""
    split_column: str | None = option(None, since="0.2", absent=None)
    """Factor or column of the data that contains train, validation or test (or 0, 1, 2) for each observation."""
    group_column: str | None = option(None, since="0.2", absent=None)
    """Factor or column that defines groups: all observations with the same value are in the same part."""
    seed: int = 0
    """Seed of the weights, the split, the order of the data and the noise."""
    log_every: Annotated[int, Ge(1)] = option(100, affects="log")
    """Number of steps between two lines of the log."""
    validate_every: Annotated[int, Ge(1)] | None = option(None, affects="log")
    """Number of steps between two evaluations of the loss on validation samples, a multiple of log_every; by default
    the first multiple from 1000 on."""
    probe_samples: Annotated[int, Ge(1)] = option(256, affects="log")
    """Number of validation samples from which the state of the latents is logged."""
    checkpoint_every: Annotated[int, Ge(1)] = option(1000, affects="files")
    """Number of steps between two checkpoints; a killed run loses at most this many."""
    keep_checkpoints: Literal["last", "all"] = option("last", affects="files")
    """"all" keeps every checkpoint, to follow a model through training; "last" keeps only those needed to resume."""
    max_memory: Annotated[float, Gt(0)] | None = option(None, since="0.3", absent=None, affects="files")
    """Limit in gigabytes for weights, gradients, the state of the optimiser and one batch; larger trainings are refused
    before they start. By default the memory of the machine."""

    def __post_init__(self) -> None:
        if self.validate_every is not None and self.validate_every % self.log_every:
            raise InputError(
                "validate_every",
                ("be a multiple of ", Argument("log_every")),
                got=f"{self.validate_every} and {self.log_every}",
            )
        if self.adam_beta1 != ADAM_BETA1 and self.optimiser not in ADAMS:
            raise InputError(
                problem=(
                    Argument("adam_beta1"),
                    " has no effect with ",
                    Argument("optimiser", self.optimiser),
                ),
                remedy="leave it out",
            )
        if self.split_column is not None and self.split != "auto":
            raise InputError(
                problem=(Argument("split_column"), " and ", Argument("split"), " both define the split"),
                remedy="pass one of them",
            )

    @property
    def pace(self) -> Pace:
        """Learning rate, batch size and number of steps."""
        return Pace(self.learning_rate, self.batch_size, self.steps)

    def resolved(self, n_train: int) -> TrainSettings:
        """Return the settings with ``epochs`` converted to steps, from the size of the training split."""
        steps = self.steps
        if self.epochs is not None:
            # As in DataOrder: an incomplete batch is dropped, and a split smaller than a batch is one batch.
            per_epoch = max(1, n_train // self.batch_size)
            if self.epochs * per_epoch > MAX_STEPS:
                raise InputError(
                    "epochs",
                    f"be at most {MAX_STEPS / per_epoch:,.0f} for these data",
                    got=f"{self.epochs:g}",
                )
            steps = max(1, round(self.epochs * per_epoch))
        every = self.validate_every or self.log_every * math.ceil(VALIDATE_EVERY / self.log_every)
        return dataclasses.replace(self, steps=steps, epochs=None, validate_every=every)

    def for_data(self, data: AbstractDataset) -> TrainSettings:
        """Return the settings with the dataset's own split, if it has one and no other split is requested."""
        parts = data.parts() if self.split != "random" and self.split_column is None else None
        if self.split == "official" and parts is None:
            raise InputError(
                problem=f"{data.name} has no official split",
                remedy=("use ", Argument("split", "random"), " or ", Argument("split_column")),
            )
        return self if parts is None else dataclasses.replace(self, split="official")

    def split_of(self, data: AbstractDataset) -> Split:
        """Return training, validation and test indices: from a column, from the dataset, or at random."""
        n, rest = len(data), (1 - self.train_fraction) / 2
        everything = np.arange(n)
        groups = data.groups(everything) if self.group_column is None else data.column(self.group_column)
        parts = None
        if self.split_column is not None:
            parts = parts_of_column(data.column(self.split_column), self.split_column)
        elif self.split != "random":
            parts = data.parts()
        if parts is not None:
            return split_parts(parts, n, self.train_fraction, self.seed, groups)
        if groups is not None and self.train_fraction < 1:
            return split_groups(groups, (rest, rest), self.seed)
        return self.random_split(n)

    def random_split(self, n_samples: int) -> Split:
        """Return a random split of ``n_samples`` samples."""
        rest = (1 - self.train_fraction) / 2
        if not rest:
            return split_everything(n_samples, self.seed)
        return split(n_samples, (self.train_fraction, rest, rest), self.seed)

    def split_in_words(self, data: AbstractDataset, parts: Split) -> dict[str, str | int]:
        """Return the record of the split: its kind, the size of each part, and whether validation is held out."""
        kind = "random"
        if self.split_column is not None:
            kind = f"column {self.split_column}"
        elif self.split == "official":
            kind = "official"
        elif self.train_fraction < 1 and (
            self.group_column is not None or data.groups(np.arange(len(data))) is not None
        ):
            kind = "groups"
        return {
            "by": kind,
            "held_out": parts.is_held_out,
            **{name: len(getattr(parts, name)) for name in PARTS},
        }

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of the step after ``step`` finished ones."""
        # step + 1, because a first step with rate 0 would be lost.
        warmup = min(1.0, (step + 1) / self.warmup_steps) if self.warmup_steps else 1.0
        # Both limits avoid a division by 0 and a negative rate if the warm-up is longer than the training.
        progress = min(1.0, max(0, step - self.warmup_steps) / max(1, self.steps - self.warmup_steps))
        decay = {
            "constant": 1.0,
            "linear": 1 - progress,
            "cosine": 0.5 * (1 + math.cos(math.pi * progress)),
        }[self.schedule]
        return self.learning_rate * warmup * decay

    def describe(self) -> dict[str, Any]:
        """Return all settings by name, as the run records them (:func:`polariscope.core.options.to_record`)."""
        return to_record(self)

    def identity(self) -> dict[str, object]:
        """Return the settings that must be equal to resume a run: all that change the weights or the log.

        The number of steps can grow, unless the schedule depends on it.
        """
        names = affecting(TrainSettings, "weights", "log") - (
            {"steps"} if self.schedule == "constant" else set()
        )
        return {name: value for name, value in self.describe().items() if name in names}
