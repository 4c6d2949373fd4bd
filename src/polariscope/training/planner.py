"""The planner: learning rate, batch size and length of a new training, from the data and the net.

Net, likelihood and units are chosen by :func:`polariscope.training.plan.choose`. Together they are the defaults of
``train``, ``size`` and :class:`polariscope.VAE`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from polariscope.core.records import AbstractRecord

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset
    from polariscope.models.nets import AbstractNet


@dataclasses.dataclass(frozen=True)
class Pace(AbstractRecord):
    """Learning rate, batch size and number of steps."""

    learning_rate: float
    batch_size: int
    steps: int


IMAGES = Pace(learning_rate=1e-4, batch_size=64, steps=20_000)
"""Pace for images: rate and batch of the published models (bonheme2023 Tab. A.1), which have 300,000 steps."""
TABLES = Pace(learning_rate=1e-3, batch_size=64, steps=2_000)
"""Pace for tables: the searches for the number of latents were tested with this rate and batch (docs/sizing.md). The
steps are the minimum; docs/planner.md lists the lengths that were compared."""
PASSES = 100
"""Number of passes over a table, if they exceed the minimum number of steps. More passes overfit small tables."""
QUICK_IMAGES = Pace(learning_rate=3e-3, batch_size=128, steps=2_000)
"""Pace for images in the estimator, which uses a decaying rate and should finish within a minute."""
SEARCH_RATE = 2e-4
"""Learning rate of a search on images, which compares models after few steps. ``train --size`` uses it, too."""


def pace_for(
    shape: Sequence[int], n_observations: int, net: AbstractNet | type[AbstractNet] | None = None
) -> Pace:
    """Return the pace of a new training.

    Images have the fixed pace of the published models. Tables get 100 passes over the data, from 2,000 to 20,000 steps,
    rounded to hundreds.

    :param shape: shape of an observation: three numbers for images, one for tables.
    :param n_observations: number of observations.
    :param net: (default None) the net; if it has its own learning rate, that is used.

    >>> pace_for((1, 64, 64), 10_000).steps
    20000
    >>> [pace_for((30,), n).steps for n in (178, 1_797, 10_000, 100_000)]
    [2000, 2800, 15600, 20000]
    """
    pace = IMAGES
    if len(shape) != 3:
        steps = round(PASSES * n_observations / TABLES.batch_size, -2)
        pace = dataclasses.replace(TABLES, steps=int(min(max(TABLES.steps, steps), IMAGES.steps)))
    rate = None if net is None else net.sizing_rate
    return pace if rate is None else dataclasses.replace(pace, learning_rate=rate)


def slowed(pace: Pace, rate: object) -> Pace:
    """Return a pace with more steps, in proportion, if the rate is smaller than planned; at most 20,000 steps.

    The length of a table's training was chosen for its planned rate. With a tenth of that rate, the same number of
    steps ends long before the model has converged. A larger rate keeps the length.

    :param pace: the planned pace.
    :param rate: the learning rate of the caller; None for the planned one.

    >>> [slowed(TABLES, rate).steps for rate in (None, 1e-2, 5e-4, 1e-4, 1e-6)]
    [2000, 2000, 4000, 20000, 20000]
    """
    if not isinstance(rate, int | float) or not 0 < rate < pace.learning_rate:
        return pace
    # A planned pace that is already longer is not shortened.
    steps = min(pace.steps * pace.learning_rate / rate, max(pace.steps, IMAGES.steps))
    return dataclasses.replace(pace, steps=int(round(steps, -2)))


def planned_training(
    data: AbstractDataset,
    net: AbstractNet | type[AbstractNet],
    named: Mapping[str, object],
    recorded: Mapping[str, float | int] | None = None,
    pace: Pace | None = None,
) -> Planned:
    """Return the options of the training that the planner chooses, without those that were passed.

    :param data: the training data.
    :param net: the net.
    :param named: checked options of the training from the caller or the objective.
    :param recorded: (default None: a new run) recorded options of the resumed run, which take precedence.
    :param pace: (default None: :func:`pace_for`) pace of a new training.
    """
    pace = pace_for(data.shape, len(data), net) if pace is None else pace
    if len(data.shape) != 3:
        pace = slowed(pace, named.get("learning_rate"))
    now = {name: value for name, value in pace.to_dict().items() if name not in named}
    if named.get("epochs") not in (None, "none"):
        now.pop("steps", None)
    options = now if recorded is None else {name: recorded.get(name, value) for name, value in now.items()}
    return Planned(options, {name: value for name, value in now.items() if value != options[name]})


@dataclasses.dataclass(frozen=True)
class Planned:
    """Training options that the planner chose."""

    options: Mapping[str, float | int]
    """Options by name: those of a new run, or the recorded ones of a resumed run."""
    otherwise: Mapping[str, float | int]
    """Values that a new run would have, if they differ."""

    @property
    def in_words(self) -> tuple[str, ...]:
        """The options in one clause, with those of a new run if they differ; empty if all were passed.

        >>> Planned({"learning_rate": 1e-4, "steps": 5000}, {"learning_rate": 1e-3}).in_words
        ('learning rate 0.0001 (recorded with this run; a new one would have 0.001), 5,000 steps',)
        """
        texts = [_in_words(name, value, self.otherwise) for name, value in self.options.items()]
        return (", ".join(texts),) if texts else ()


def _in_words(name: str, value: float | int, otherwise: Mapping[str, float | int]) -> str:
    text = f"{value:,} steps" if name == "steps" else f"{name.replace('_', ' ')} {value:g}"
    if name not in otherwise:
        return text
    return f"{text} (recorded with this run; a new one would have {otherwise[name]:,g})"
