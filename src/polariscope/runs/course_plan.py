"""What is followed through the checkpoints of a run, checked before anything is computed."""

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
"""Neighbours behind each dimension, the same at every step, so steps can be compared."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is followed, and on which observations."""

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
    def chosen(self) -> dict[str, Any]:
        """On which observations."""
        return {"n_samples": self.n_samples, "seed": self.seed}

    def settings(self, other: TrainedRun | None) -> dict[str, Any]:
        """All that the course depends on beside the models and the data."""
        settings: dict[str, Any] = {**self.chosen, "alpha": self.alpha}
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
    """Return the plan of a course, its observations and the other run; refuses what cannot be followed.

    The arguments are those of :meth:`polariscope.runs.run.Run.course`.

    :param run: the run.
    :param subset: the observations.
    :param latent: whose correlations are followed.
    :param steps: (None: all) only the models of these steps.
    :param layers: follow the layers too.
    :param against: (None: no other) another run, or its folder.
    :param measure: a member of ``polariscope.similarity``.
    :param alpha: tolerance of the rule that names the types.
    :param n_layer_samples: observations that the layers are measured with.
    :param memory: gigabytes for layers.
    """
    from polariscope.analysis.course import check_latent
    from polariscope.analysis.similarity import similarity

    if latent is not None:
        check_latent(latent, run.settings["model"]["n_latents"])
    _ = similarity[measure]  # refuses an unknown one
    wanted = tuple(run.steps if steps is None else sorted(set(steps)))
    if not wanted:
        raise InputError(
            problem=f"{run.path} has no model yet", remedy="wait for its first checkpoint, or train it"
        )
    if len(wanted) == 1 and steps is None:
        raise InputError(
            problem=f"{run.path} has a model of step {wanted[0]} only, so there is no course to follow",
            remedy=(
                "train with ",
                Argument("keep_checkpoints", "all"),
                " and a smaller ",
                Argument("checkpoint_every"),
            ),
        )
    indices = run.choose(subset)
    if len(indices) < 2:
        raise InputError("n_samples", "be at least 2", got=len(indices))
    other = against if against is None or isinstance(against, TrainedRun) else TrainedRun(against)
    n_seen = min(n_layer_samples, len(indices))
    if (layers or other is not None) and n_seen <= K:
        raise InputError(
            "n_layer_samples",
            f"be more than {K}, the neighbours behind each dimension",
            got=n_seen,
            remedy="look at more observations",
        )
    plan = Plan(
        steps=wanted,
        latent=latent,
        n_samples=len(indices),
        seed=subset.seed,
        alpha=alpha,
        part=subset.part,
        layers=layers or other is not None,
        n_layer_samples=n_seen,
        measure=measure,
        memory=memory,
    )
    return plan, indices, other
