"""Which runs are the entangled and the disentangled ones, and what is refused."""

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
    """A run, and what is known of its model."""

    run: Run
    digest: str
    """Hash of the model."""
    score: float | None
    """By which it was chosen; none: it was given."""
    order: Int[np.ndarray, " latent"]
    """Its latents by increasing mean posterior variance: the first carries the most."""
    variance: Float[np.ndarray, " latent"]
    """Mean posterior variance of each latent."""

    def describe(self) -> dict[str, Any]:
        """As JSON, without the folder of the run."""
        return {
            "run": self.run.name,
            "digest": self.digest,
            "score": self.score,
            "order": self.order.tolist(),
            "variance": self.variance.tolist(),
        }


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
    """The runs of both sides, and by what they were chosen."""

    entangled: tuple[Candidate, ...]
    disentangled: tuple[Candidate, ...]
    data: AbstractDataset
    metric: str | None
    """None: they were given."""

    def describe(self) -> dict[str, Any]:
        """As JSON."""
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
    """The runs with the lowest and the highest scores, or those given; what cannot be attacked is refused.

    :param runs: candidates, trained alike on the same data.
    :param metric: (default "mig") a member of ``polariscope.metrics`` by which they are ranked, ``udr`` included.
    :param ensemble: (default 1) how many runs on each side.
    :param entangled: (default none) the entangled runs, instead of ranking.
    :param disentangled: (default none) the disentangled runs.
    :param n_samples: (default 10,000) observations that are encoded to score them.
    :param seed: (default 0) seed of their choice.
    """
    if bool(entangled) != bool(disentangled):
        raise InputError("entangled and disentangled", "be given together, or not at all")
    if entangled and runs:
        raise InputError(
            problem=("runs to choose from were given, and also ", Argument("entangled")),
            remedy="give either runs to choose from, or both kinds",
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
        low, high = scored[:ensemble], scored[: -ensemble - 1 : -1]
        if not low[-1][0] < high[-1][0]:
            raise InputError(
                problem=(
                    f"the runs do not differ in {metric}: {low[-1][0]:.4g} is the score of one on each side"
                ),
                remedy=("take other runs or another ", Argument("metric")),
            )
        sides = [[(runs[number], score) for score, number in side] for side in (low, high)]
        ranked_by = metric
    chosen_sides = [tuple(_candidate(run, score, n_samples, seed) for run, score in side) for side in sides]
    return Choice(chosen_sides[0], chosen_sides[1], data, ranked_by)


def scores_of(runs: Sequence[Run], metric: str, n_samples: int, seed: int) -> list[float]:
    """The score of each run; of a metric where lower is better, its negative.

    :param runs: the runs.
    :param metric: a metric of codes and factors, or of models together.
    :param n_samples: observations that are encoded.
    :param seed: of their choice.
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
    r"""A run with its latents in order, as non-linear principal components.

    .. math:: k^{(j)} = \arg\min_{l \notin \{k^{(0)}, …, k^{(j-1)}\}} \langle \sigma_l^2 \rangle

    Reference: zietlow2022 Eqs 4.7–4.8.
    """
    variance = np.asarray(run.representation(n_samples, seed).variance, dtype=np.float64).mean(axis=0)
    return Candidate(run, run.digest(), score, np.argsort(variance, kind="stable"), variance)


def _check(runs: Sequence[Run]) -> AbstractDataset:
    """Refuse runs that cannot be set against each other; the data of all of them."""
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
            problem=f"{data.name} has no known factors, from which a manipulation is drawn",
            remedy="give it factors when you make it",
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
