"""Disentanglement score of Zietlow et al.: the gap between the two latents that predict a factor best."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from polariscope.analysis.code_table import Table, gap
from polariscope.analysis.metrics import Score, metric
from polariscope.core.errors import InputError
from polariscope.numerics.circle import mean_direction
from polariscope.numerics.intervals import recentred_interval

NEIGHBOURS = 5
TRAIN = 0.8
ROUNDING = 1e-12
"""What may be left, where a resample has a single value, of 2 − 2R, of the variance beside that of all test samples,
or of 1 less the share of the most frequent class."""
Way = Literal["number", "angle", "class"]
WAYS: dict[str, dict[str, Way]] = {
    "circle": {"categorical": "class", "ordinal": "number", "cyclic": "angle", "continuous": "number"},
    "numbers": {"categorical": "class", "ordinal": "number", "cyclic": "number", "continuous": "number"},
    "classes": {"categorical": "class", "ordinal": "class", "cyclic": "class", "continuous": "number"},
}
"""How a factor of each kind is predicted."""


@metric(
    "ds",
    bounds=(0, np.inf),
    higher_is_better=True,
    needs=("codes", "factors"),
    invariant_to={"order", "shift", "scale", "sign"},
)
def ds(
    table: Table,
    *,
    variant: Literal["corrected", "printed"] = "corrected",
    kinds: Literal["circle", "numbers", "classes"] = "circle",
) -> Score:
    r"""How much better the best latent predicts each factor than the second best, whatever the shape of the relation.

    .. math:: \mathrm{DS} = \frac1K \sum_k \frac{A_{(1)k} - A_{(2)k}}{M_k}

    where A_jk is what latent j alone says of factor k and M_k the most there is to say, by 5 nearest neighbours along
    that latent, trained on 80 % of the samples and tested on the rest:

    * a continuous or ordinal factor: A = √var(w) − √mse, M = √var(w), the prediction being the neighbours' mean;
    * a cyclic one, at the angles θ = 2πw/n of its n values: A = √(2 − 2R) − √(mean of |e^{iθ} − e^{iθ'}|²) and
      M = √(2 − 2R), with θ' the mean direction of the neighbours, arg Σ e^{iθ}. The squared chord is 2 − 2cos(θ − θ');
      its mean over the samples is smallest for the constant θ' = arg Σ e^{iθ}, where it is 2 − 2R, R being the length
      of the mean of e^{iθ}: 0 for values all around the circle;
    * a categorical one, ``printed``: A = accuracy, M = accuracy of the best constant guess. A summand can then exceed
      1: (0.95 − 0.4)/0.33 for three classes;
    * a categorical one, ``corrected``, the default: A = accuracy − that of the constant guess, M = 1 − that of the
      constant guess.

    ``corrected`` also takes A = 0 where a latent predicts worse than a constant would. Five neighbours of pure noise
    have mse = 1.2 var(w), so as printed even a continuous factor can exceed 1: up to 1.095. Corrected, the
    score lies between 0, two latents equally good or none good, and 1, all in one latent. All integer factors are
    categorical unless ``factor_kinds`` says otherwise. The interval is that of the test samples.

    Reference: zietlow2022 §3.3.1, Eqs 3.32–3.38, which knows regression and classification only, and does not say
    which factors of dSprites it takes as continuous. Its number is ``variant="printed", kinds="numbers"``.

    :param variant: (default "corrected") how the advantage in predicting a class is counted.
    :param kinds: (default "circle") how ordinal and cyclic factors are predicted: as numbers, cyclic ones on the
        circle; all of them as numbers, as in the source; or all as classes.

    >>> factors = np.array([[a, b] for a in range(2) for b in range(2)] * 20)
    >>> ds(factors.astype(float), factors).value
    1.0
    """
    train, test = table.split(TRAIN)
    if len(train) < NEIGHBOURS:
        raise InputError(
            problem=f"{NEIGHBOURS} neighbours need at least as many training samples",
            got=f"{len(train)} of {table.n_samples}",
            remedy="draw more samples",
        )
    times = table.resamples[:, test].astype(np.float64)
    # A resample of very few test samples may miss them all; it then counts each once.
    times[times.sum(axis=1) == 0] = 1
    weights = np.vstack([np.ones(len(test)), times])
    ways = [WAYS[kinds][kind] for kind in table.factor_kinds]
    advantage, most = _advantages(table, weights / weights.sum(axis=1, keepdims=True), ways, variant)
    single = most.min(axis=1) <= 0
    if single[0]:
        name = table.factor_names[int(most[0].argmin())]
        raise InputError(
            problem=f"factor {name!r} has a single value in the {len(test)} test samples",
            remedy="draw more samples",
        )
    per_factor = gap(advantage)[~single] / most[~single]
    shuffled, shuffled_most = _advantages(table.permuted(), weights[:1] / len(test), ways, variant)
    value = float(per_factor[0].mean())
    high = 1.0 if variant == "corrected" else np.inf
    return Score.of(
        "ds",
        value,
        interval=recentred_interval(value, per_factor[1:].mean(axis=1), (0, high)),
        chance=float((gap(shuffled[0]) / shuffled_most[0]).mean()),
        variant=variant,
        bounds=(0, high),
        per_factor=per_factor[0],
        matrix=advantage[0] / most[0],
        details={"factor_names": table.factor_names, "factor_kinds": table.factor_kinds},
        notes=table.grid_notes,
    )


def _advantages(
    table: Table, weights: Float[np.ndarray, "replicate test"], ways: list[Way], variant: str
) -> tuple[Float[np.ndarray, "replicate latent factor"], Float[np.ndarray, "replicate factor"]]:
    """A and M under each weighting of the test samples (rows add up to 1)."""
    train, test = table.split(TRAIN)
    neighbours = [train[_nearest(column[train], column[test])] for column in table.codes.T]
    advantage = np.empty((len(weights), table.n_latents, table.n_factors))
    most = np.empty((len(weights), table.n_factors))
    for k, way in enumerate(ways):
        if way == "number":
            truth = table.factors[:, k]
            errors = np.stack([(truth[near].mean(axis=1) - truth[test]) ** 2 for near in neighbours], axis=1)
            centred = truth[test] - truth[test].mean()
            spread = weights @ centred**2 - (weights @ centred) ** 2
            most[:, k] = np.sqrt(np.where(spread > ROUNDING * (centred**2).mean(), spread, 0.0))
            advantage[:, :, k] = most[:, [k]] - np.sqrt(weights @ errors)
        elif way == "angle":
            angles = table.angles(k)
            towards = mean_direction(angles[train])
            predicted = [mean_direction(angles[near], otherwise=towards) for near in neighbours]
            chords = np.stack([2 - 2 * np.cos(angles[test] - each) for each in predicted], axis=1)
            spread = 2 - 2 * np.abs(weights @ np.exp(1j * angles[test]))
            most[:, k] = np.sqrt(np.where(spread > ROUNDING, spread, 0.0))
            advantage[:, :, k] = most[:, [k]] - np.sqrt(weights @ chords)
        else:
            labels = table.classes[:, k]
            hits = np.stack([_vote(labels[near]) == labels[test] for near in neighbours], axis=1)
            constant = (weights @ np.eye(labels.max() + 1)[labels[test]]).max(axis=1)
            advantage[:, :, k], most[:, k] = weights @ hits, constant
            if variant == "corrected":
                advantage[:, :, k] -= constant[:, None]
                most[:, k] = np.where(1 - constant > ROUNDING, 1 - constant, 0.0)
    return (np.maximum(advantage, 0) if variant == "corrected" else advantage), most


def _nearest(
    train: Float[np.ndarray, " train"], test: Float[np.ndarray, " test"]
) -> Int[np.ndarray, "test neighbour"]:
    """The 5 nearest training values of each test value, one latent at a time, once for all factors.

    They are consecutive in sorted order: the window of 5 whose two ends are nearest. Equal distances go to the
    smaller value.
    """
    order = np.argsort(train, kind="stable")
    values = train[order]
    first = np.maximum(np.searchsorted(values, test) - NEIGHBOURS, 0)
    for _ in range(NEIGHBOURS):  # move up while the value that enters is nearer than the one that leaves
        after = np.minimum(first + NEIGHBOURS, len(values) - 1)
        nearer = np.abs(values[after] - test) < np.abs(values[first] - test)
        first += nearer & (first + NEIGHBOURS < len(values))
    return order[first[:, None] + np.arange(NEIGHBOURS)]


def _vote(labels: Int[np.ndarray, "test neighbour"]) -> Int[np.ndarray, " test"]:
    """The most frequent label of each row; the smallest of several."""
    size = int(labels.max()) + 1
    cells = np.arange(len(labels))[:, None] * size + labels
    return np.bincount(cells.ravel(), minlength=len(labels) * size).reshape(-1, size).argmax(axis=1)
