"""Selection of the entangled and the disentangled runs, and checks on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from polariscope.core.errors import Argument, InputError
from polariscope.data.dataset import AbstractDataset
from polariscope.data.observations import Subset
from polariscope.runs.run import Run


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """A run and the statistics of its model."""

    run: Run
    digest: str
    """Hash of the model."""
    score: float | None
    """Score by which the run was selected; None if the caller chose it."""
    order: Int[np.ndarray, " latent"]
    """Latents in order of increasing mean posterior variance; the first carries the most information."""
    variance: Float[np.ndarray, " latent"]
    """Mean posterior variance of each latent."""

    def describe(self) -> dict[str, Any]:
        """Return plain values for JSON, without the run folder."""
        return {
            "run": self.run.name,
            "digest": self.digest,
            "score": self.score,
            "order": self.order.tolist(),
            "variance": self.variance.tolist(),
        }


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
    """The runs of both sides, and the metric by which they were selected."""

    entangled: tuple[Candidate, ...]
    disentangled: tuple[Candidate, ...]
    data: AbstractDataset
    metric: str | None
    """Metric of the ranking; None if the caller chose the runs."""

    def describe(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "metric": self.metric,
            "entangled": [candidate.describe() for candidate in self.entangled],
            "disentangled": [candidate.describe() for candidate in self.disentangled],
        }


def choose_runs(
    runs: Sequence[Run],
    *,
    metric: str = "mig",
    ensemble: int = 1,
    entangled: Sequence[Run] = (),
    disentangled: Sequence[Run] = (),
    n_samples: int | None = Subset.n_samples,
    seed: int = 0,
) -> Choice:
    """Return the runs with the lowest and the highest scores, or the caller's; refuse runs that cannot be attacked.

    :param runs: candidates with the same settings and data.
    :param metric: (default "mig") metric for ranking the runs, a member of ``polariscope.metrics``, including ``udr``.
    :param ensemble: (default 1) number of runs on each side.
    :param entangled: (default none) the entangled runs, instead of ranking.
    :param disentangled: (default none) the disentangled runs.
    :param n_samples: (default 10,000) number of observations that are encoded to score the runs.
    :param seed: (default 0) seed for drawing the observations.
    """
    if bool(entangled) != bool(disentangled):
        raise InputError("entangled and disentangled", "be used together, or not at all")
    if entangled and runs:
        raise InputError(
            problem=("runs to select from cannot be combined with ", Argument("entangled")),
            remedy="use either runs to select from, or both kinds",
        )
    if not entangled and len(runs) < 2 * ensemble:
        raise InputError(
            "runs",
            f"be at least {2 * ensemble}, {ensemble} for each side",
            got=len(runs),
            remedy="train the same model with more seeds",
        )
    candidates = [*runs, *entangled, *disentangled]
    data = _check(candidates)
    n_samples = len(Subset(n_samples, seed).choose(len(data), None))
    sides: list[list[tuple[Run, float | None]]]
    if entangled:
        sides = [[(run, None) for run in side] for side in (entangled, disentangled)]
        ranked_by = None
    else:
        scored = sorted(zip(scores_of(runs, metric, n_samples, seed), range(len(runs)), strict=True))
        # Lowest scores first, and highest scores first.
        low, high = scored[:ensemble], scored[: -ensemble - 1 : -1]
        # The best of the entangled side must be below the worst of the other side.
        if not low[-1][0] < high[-1][0]:
            raise InputError(
                problem=(
                    f"the runs cannot be ranked by {metric}: one of the lowest and one of the highest both score "
                    f"{low[-1][0]:.4g}"
                ),
                remedy=("use other runs or another ", Argument("metric")),
            )
        sides = [[(runs[number], score) for score, number in side] for side in (low, high)]
        ranked_by = metric
    chosen_sides = [tuple(_candidate(run, score, n_samples, seed) for run, score in side) for side in sides]
    return Choice(chosen_sides[0], chosen_sides[1], data, ranked_by)


def scores_of(runs: Sequence[Run], metric: str, n_samples: int, seed: int) -> list[float]:
    """Return the score of each run, negated if lower is better.

    :param runs: the runs.
    :param metric: a metric of codes and factors, or of models together.
    :param n_samples: number of observations that are encoded.
    :param seed: seed for drawing the observations.
    """
    from polariscope.analysis.metrics import family as metrics

    name = metric.partition(":")[0]
    sign = 1 if metrics.traits(name)["higher_is_better"] else -1
    if "models" in metrics.traits(name)["needs"]:
        codes = [run.representation(n_samples, seed) for run in runs]
        values = metrics[name](codes, seed=seed).details["per_model"]
        return [sign * float(value) for value in values]
    return [sign * run.scores([metric], n_samples=n_samples, seed=seed)[metric].value for run in runs]


def _candidate(run: Run, score: float | None, n_samples: int, seed: int) -> Candidate:
    r"""Return a run with its latents in the order of non-linear principal components.

    .. math:: k^{(j)} = \arg\min_{l \notin \{k^{(0)}, …, k^{(j-1)}\}} \langle \sigma_l^2 \rangle

    Reference: zietlow2022 Eqs 4.7–4.8.
    """
    variance = np.asarray(run.representation(n_samples, seed).variance, dtype=np.float64).mean(axis=0)
    return Candidate(run, run.digest(), score, np.argsort(variance, kind="stable"), variance)


def _check(runs: Sequence[Run]) -> AbstractDataset:
    """Refuse runs that cannot be attacked together, and return their data."""
    first = runs[0]
    for run in runs:
        if run.fingerprint != first.fingerprint:
            raise InputError(
                "runs",
                "be trained on the same data",
                got=f"{first.name} of {first.settings['data']['name']} and {run.name} of other data "
                f"({run.settings['data']['name']})",
                remedy="choose runs of the same dataset, options and variants",
            )
    data = first.data()
    if not data.factor_names:
        raise InputError(
            problem=f"{data.name} has no known factors, which are the input of a manipulation",
            remedy="add factors when you create it",
        )
    seen: dict[str, Run] = {}
    for run in runs:
        model = run.model()
        if model.decoder is None or not model.has_density or model.needs_counts:
            lacks = (
                "no decoder"
                if model.decoder is None
                else "a likelihood of counts"
                if model.needs_counts
                else "no noise in its latents"
            )
            raise InputError(
                problem=f"the model of {run.name} has {lacks}, so it cannot be attacked",
                remedy="choose variational autoencoders",
            )
        digest = run.digest()
        if digest in seen:
            raise InputError(
                problem=f"{seen[digest].name} and {run.name} have equal models",
                remedy="choose runs that differ in their seed",
            )
        seen[digest] = run
    return data
