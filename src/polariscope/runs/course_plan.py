"""Plan of a course: steps, observations and options, checked before anything is computed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from polariscope.core.errors import Argument, InputError
from polariscope.data.observations import Subset
from polariscope.runs.trained_run import TrainedRun

K = 20
"""Number of neighbours for the estimates of dimension; equal at every step, so steps are comparable."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """Steps, observations and options of a course."""

    steps: tuple[int, ...]
    latent: int | None
    n_samples: int
    seed: int
    alpha: float
    part: str
    layers: bool
    n_layer_samples: int
    measure: str
    memory: float

    @property
    def observations(self) -> dict[str, Any]:
        """Settings that select the observations."""
        return {"n_samples": self.n_samples, "seed": self.seed}

    def settings(self, other: TrainedRun | None) -> dict[str, Any]:
        """Return all settings that the course depends on, besides the models and the data.

        :param other: the run that layers are compared with, or None.
        """
        settings: dict[str, Any] = {**self.observations, "alpha": self.alpha}
        settings |= {} if self.latent is None else {"latent": self.latent}
        if self.layers:
            settings |= {"layer_samples": self.n_layer_samples, "measure": self.measure}
        if other is not None:
            settings |= {"against": other.name, "against_model": other.digest()}
        return settings


def plan_course(
    run: TrainedRun,
    subset: Subset,
    *,
    latent: int | None,
    steps: Sequence[int] | None,
    layers: bool,
    against: str | Path | TrainedRun | None,
    measure: str,
    alpha: float,
    n_layer_samples: int,
    memory: float,
) -> tuple[Plan, Int[np.ndarray, " sample"], TrainedRun | None]:
    """Check the arguments of a course, and return its plan, the indices of its observations and the other run.

    The arguments are those of :meth:`polariscope.runs.run.Run.course`.

    :param run: the run.
    :param subset: the observations.
    :param latent: latent whose correlations are tracked.
    :param steps: steps of the models to use; None for all.
    :param layers: if True, compute results for layers too.
    :param against: another run or its folder, or None.
    :param measure: a member of ``polariscope.similarity``.
    :param alpha: tolerance of the rule that names the types.
    :param n_layer_samples: number of observations for the results on layers.
    :param memory: gigabytes of memory for layers.
    """
    from polariscope.analysis.course import check_latent
    from polariscope.analysis.similarity import similarity

    if latent is not None:
        check_latent(latent, run.settings["model"]["n_latents"])
    _ = similarity[measure]  # raises an error for an unknown name
    selected = tuple(run.steps if steps is None else sorted(set(steps)))
    if not selected:
        raise InputError(
            problem=f"{run.path} has no model yet", remedy="wait for its first checkpoint, or train it"
        )
    if len(selected) == 1 and steps is None:
        raise InputError(
            problem=f"{run.path} has only the model of step {selected[0]}, and a course requires at least two steps",
            remedy=(
                "train with ",
                Argument("keep_checkpoints", "all"),
                " and, for example, ",
                Argument("checkpoint_every", 100),
            ),
        )
    indices = run.choose(subset)
    if len(indices) < 2:
        raise InputError("n_samples", "be at least 2", got=len(indices))
    other = against if against is None or isinstance(against, TrainedRun) else TrainedRun(against)
    n_layer_samples = min(n_layer_samples, len(indices))
    if (layers or other is not None) and n_layer_samples <= K:
        raise InputError(
            "n_layer_samples",
            f"be more than {K}, the number of neighbours for estimates of dimension",
            got=n_layer_samples,
            remedy="use more observations",
        )
    plan = Plan(
        steps=selected,
        latent=latent,
        n_samples=len(indices),
        seed=subset.seed,
        alpha=alpha,
        part=subset.part,
        layers=layers or other is not None,
        n_layer_samples=n_layer_samples,
        measure=measure,
        memory=memory,
    )
    return plan, indices, other
