"""The planner: learning rate, batch size and length of a new training, from the data and the net.

Net, likelihood and units are chosen by :func:`polariscope.training.plan.choose`; together they are what a user gets who
names nothing but the data, from ``train``, ``size`` and :class:`polariscope.VAE` alike.
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
    """How fast and how long a model is trained."""

    learning_rate: float
    batch_size: int
    steps: int


IMAGES = Pace(learning_rate=1e-4, batch_size=64, steps=20_000)
"""Images: rate and batch of the published models (bonheme2023 Tab. A.1), which have 300,000 steps."""
TABLES = Pace(learning_rate=1e-3, batch_size=64, steps=2_000)
"""Tables: the searches for the number of latents were tested with this rate and batch (docs/sizing.md). The steps are
the fewest; docs/planner.md has the lengths that were compared."""
PASSES = 100
"""Passes over a table, if these are more steps than the fewest. Small tables are overfitted by more of them."""
QUICK_IMAGES = Pace(learning_rate=3e-3, batch_size=128, steps=2_000)
"""Images in the estimator, which trains with a decaying rate and whose users expect an answer within a minute."""
SEARCH_RATE = 2e-4
"""Learning rate of a search on images, in which models are compared after few steps. ``train --size`` takes it over."""


def pace_for(
    shape: Sequence[int], n_observations: int, net: AbstractNet | type[AbstractNet] | None = None
) -> Pace:
    """Return how a new model is trained.

    Images have the fixed pace of the published models. Tables get 100 passes over the data, from 2,000 to 20,000 steps,
    in hundreds.

    :param shape: shape of an observation: three numbers for images, one for tables.
    :param n_observations: number of observations.
    :param net: (default None) the net; one with a learning rate of its own keeps it.

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
    """Return a pace with as many more steps as a rate is smaller than the planned one, at most 20,000 steps.

    The length of a table's training was chosen for its planned rate. With a tenth of that rate, as many steps end long
    before the model has converged. A larger rate keeps the length.

    :param pace: the planned pace.
    :param rate: the learning rate that was given; None: the planned one.

    >>> [slowed(TABLES, rate).steps for rate in (None, 1e-2, 5e-4, 1e-4, 1e-6)]
    [2000, 2000, 4000, 20000, 20000]
    """
    if not isinstance(rate, int | float) or not 0 < rate < pace.learning_rate:
        return pace
    steps = min(pace.steps * pace.learning_rate / rate, max(pace.steps, IMAGES.steps))
    return dataclasses.replace(pace, steps=int(round(steps, -2)))


def planned_training(
    data: AbstractDataset,
    net: AbstractNet | type[AbstractNet],
    given: Mapping[str, object],
    recorded: Mapping[str, float | int] | None = None,
    pace: Pace | None = None,
) -> Planned:
    """Return the options of the training that the planner decides, without those that were given.

    :param data: what is trained on.
    :param net: the net.
    :param given: options of the training that were given, by the caller or by the objective, checked.
    :param recorded: (default None: a new run) recorded options of the run that is continued; they win.
    :param pace: (default None: :func:`pace_for`) how a new model is trained.
    """
    pace = pace_for(data.shape, len(data), net) if pace is None else pace
    if len(data.shape) != 3:
        pace = slowed(pace, given.get("learning_rate"))
    now = {name: value for name, value in pace.to_dict().items() if name not in given}
    if given.get("epochs") not in (None, "none"):
        now.pop("steps", None)
    options = now if recorded is None else {name: recorded.get(name, value) for name, value in now.items()}
    return Planned(options, {name: value for name, value in now.items() if value != options[name]})


@dataclasses.dataclass(frozen=True)
class Planned:
    """Options of a training that nobody named."""

    options: Mapping[str, float | int]
    """By name: those of a new run, or the recorded ones of a run that is continued."""
    otherwise: Mapping[str, float | int]
    """Values that a new run would have, if they differ."""

    @property
    def in_words(self) -> tuple[str, ...]:
        """The options in one clause, with what a new run would have; empty if all were named.

        >>> Planned({"learning_rate": 1e-4, "steps": 5000}, {"learning_rate": 1e-3}).in_words
        ('learning rate 0.0001 (as this run was begun; a new one would have 0.001), 5,000 steps',)
        """
        texts = [_in_words(name, value, self.otherwise) for name, value in self.options.items()]
        return (", ".join(texts),) if texts else ()


def _in_words(name: str, value: float | int, otherwise: Mapping[str, float | int]) -> str:
    text = f"{value:,} steps" if name == "steps" else f"{name.replace('_', ' ')} {value:g}"
    if name not in otherwise:
        return text
    return f"{text} (as this run was begun; a new one would have {otherwise[name]:,g})"
