"""Disentanglement score of Zietlow et al.: gap between the two latents that predict a factor best."""

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
"""Rounding error that counts as 0 if a resample has a single value: of 2 − 2R, of the variance relative to that of all
test samples, or of 1 minus the share of the most frequent class."""
Way = Literal["number", "angle", "class"]
WAYS: dict[str, dict[str, Way]] = {
    "circle": {"categorical": "class", "ordinal": "number", "cyclic": "angle", "continuous": "number"},
    "numbers": {"categorical": "class", "ordinal": "number", "cyclic": "number", "continuous": "number"},
    "classes": {"categorical": "class", "ordinal": "class", "cyclic": "class", "continuous": "number"},
}
"""Type of prediction for each kind of factor."""


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
    r"""Gap in nearest-neighbour prediction between the two latents that predict each factor best.

    .. math:: \mathrm{DS} = \frac1K \sum_k \frac{A_{(1)k} - A_{(2)k}}{M_k}

    where A_jk is the performance of latent j alone in predicting factor k, and M_k its maximum. Predictions are those
    of the 5 nearest neighbours along that latent, trained on 80 % of the samples and tested on the rest:

    * for a continuous or ordinal factor, A = √var(w) − √mse and M = √var(w); the prediction is the neighbours' mean;
    * for a cyclic one, at the angles θ = 2πw/n of its n values, A = √(2 − 2R) − √(mean of |e^{iθ} − e^{iθ'}|²) and
      M = √(2 − 2R), with θ' the mean direction of the neighbours, arg Σ e^{iθ}. The squared chord is 2 − 2cos(θ − θ').
      Its mean over the samples is smallest for the constant θ' = arg Σ e^{iθ}, where it is 2 − 2R, with R the length of
      the mean of e^{iθ}, which is 0 for values all around the circle;
    * for a categorical one, ``printed``, A = accuracy and M = accuracy of the best constant guess. A summand can then
      exceed 1: (0.95 − 0.4)/0.33 for three classes;
    * for a categorical one, ``corrected``, the default, A = accuracy − that of the constant guess and M = 1 − that of
      the constant guess.

    ``corrected`` also sets A = 0 if a latent predicts worse than a constant. Five neighbours of pure noise have
    mse = 1.2 var(w), so ``printed`` can exceed 1 even for a continuous factor, up to 1.095. ``corrected`` is 0 if two
    latents predict equally well or none does, and 1 if a single latent determines each factor. All integer factors are
    categorical unless ``factor_kinds`` is passed. The interval covers the draw of the test samples.

    Reference: zietlow2022 §3.3.1, Eqs 3.32–3.34 and 3.37 (M_k follows it without a number). It defines regression and
    classification only, and does not list the factors of dSprites that are continuous. Its score is
    ``variant="printed", kinds="numbers"``.

    :param variant: (default "corrected") normalisation of the accuracy of categorical factors.
    :param kinds: (default "circle") prediction of ordinal and cyclic factors: as numbers and as angles ("circle"), both
        as numbers, as in the source ("numbers"), or both as classes ("classes").

    >>> factors = np.array([[a, b] for a in range(2) for b in range(2)] * 20)
    >>> ds(factors.astype(float), factors).value
    1.0
    """
    train, test = table.split(TRAIN)
    if len(train) < NEIGHBOURS:
        raise InputError(
            problem=f"{NEIGHBOURS} neighbours require at least as many training samples",
            got=f"{len(train)} of {table.n_samples}",
            remedy="draw more samples",
        )
    times = table.resamples[:, test].astype(np.float64)
    # A resample of very few test samples can miss them all; each then counts once.
    times[times.sum(axis=1) == 0] = 1
    # The first row weights every test sample once and gives the value; the others are resamples.
    weights = np.vstack([np.ones(len(test)), times])
    ways = [WAYS[kinds][kind] for kind in table.factor_kinds]
    advantage, maximum = _advantages(table, weights / weights.sum(axis=1, keepdims=True), ways, variant)
    single = maximum.min(axis=1) <= 0
    if single[0]:
        name = table.factor_names[int(maximum[0].argmin())]
        raise InputError(
            problem=f"factor {name!r} has a single value in the {len(test)} test samples",
            remedy="draw more samples",
        )
    # A resample with a single value of some factor has no defined score.
    per_factor = gap(advantage)[~single] / maximum[~single]
    shuffled, shuffled_maximum = _advantages(table.permuted(), weights[:1] / len(test), ways, variant)
    value = float(per_factor[0].mean())
    high = 1.0 if variant == "corrected" else np.inf
    return Score.of(
        "ds",
        value,
        interval=recentred_interval(value, per_factor[1:].mean(axis=1), (0, high)),
        chance=float((gap(shuffled[0]) / shuffled_maximum[0]).mean()),
        variant=variant,
        bounds=(0, high),
        per_factor=per_factor[0],
        matrix=advantage[0] / maximum[0],
        details={"factor_names": table.factor_names, "factor_kinds": table.factor_kinds},
        notes=table.grid_notes,
    )


def _advantages(
    table: Table, weights: Float[np.ndarray, "replicate test"], ways: list[Way], variant: str
) -> tuple[Float[np.ndarray, "replicate latent factor"], Float[np.ndarray, "replicate factor"]]:
    """Return A and M under each weighting of the test samples (rows add up to 1)."""
    train, test = table.split(TRAIN)
    neighbours = [train[_nearest(column[train], column[test])] for column in table.codes.T]
    advantage = np.empty((len(weights), table.n_latents, table.n_factors))
    maximum = np.empty((len(weights), table.n_factors))
    for k, way in enumerate(ways):
        if way == "number":
            truth = table.factors[:, k]
            errors = np.stack([(truth[near].mean(axis=1) - truth[test]) ** 2 for near in neighbours], axis=1)
            centred = truth[test] - truth[test].mean()
            spread = weights @ centred**2 - (weights @ centred) ** 2
            # Differences of rounded sums are not exactly 0 for a constant.
            maximum[:, k] = np.sqrt(np.where(spread > ROUNDING * (centred**2).mean(), spread, 0.0))
            advantage[:, :, k] = maximum[:, [k]] - np.sqrt(weights @ errors)
        elif way == "angle":
            angles = table.angles(k)
            towards = mean_direction(angles[train])
            predicted = [mean_direction(angles[near], otherwise=towards) for near in neighbours]
            chords = np.stack([2 - 2 * np.cos(angles[test] - each) for each in predicted], axis=1)
            spread = 2 - 2 * np.abs(weights @ np.exp(1j * angles[test]))
            maximum[:, k] = np.sqrt(np.where(spread > ROUNDING, spread, 0.0))
            advantage[:, :, k] = maximum[:, [k]] - np.sqrt(weights @ chords)
        else:
            labels = table.classes[:, k]
            hits = np.stack([_vote(labels[near]) == labels[test] for near in neighbours], axis=1)
            # One-hot rows times weights are the shares of the classes; the largest is the accuracy of a
            # constant guess.
            constant = (weights @ np.eye(labels.max() + 1)[labels[test]]).max(axis=1)
            advantage[:, :, k], maximum[:, k] = weights @ hits, constant
            if variant == "corrected":
                advantage[:, :, k] -= constant[:, None]
                maximum[:, k] = np.where(1 - constant > ROUNDING, 1 - constant, 0.0)
    return (np.maximum(advantage, 0) if variant == "corrected" else advantage), maximum


def _nearest(
    train: Float[np.ndarray, " train"], test: Float[np.ndarray, " test"]
) -> Int[np.ndarray, "test neighbour"]:
    """Return the 5 nearest training values of each test value, for one latent.

    They are consecutive in sorted order: the window of 5 whose two ends are nearest. At equal distances the smaller
    value is used.
    """
    order = np.argsort(train, kind="stable")
    values = train[order]
    # No neighbour can be more than five places below the insertion point.
    first = np.maximum(np.searchsorted(values, test) - NEIGHBOURS, 0)
    for _ in range(
        NEIGHBOURS
    ):  # move up while the value that enters the window is nearer than the one that leaves
        after = np.minimum(first + NEIGHBOURS, len(values) - 1)
        nearer = np.abs(values[after] - test) < np.abs(values[first] - test)
        first += nearer & (first + NEIGHBOURS < len(values))
    return order[first[:, None] + np.arange(NEIGHBOURS)]


def _vote(labels: Int[np.ndarray, "test neighbour"]) -> Int[np.ndarray, " test"]:
    """Return the most frequent label of each row, the smallest one in case of ties."""
    size = int(labels.max()) + 1
    cells = np.arange(len(labels))[:, None] * size + labels
    return np.bincount(cells.ravel(), minlength=len(labels) * size).reshape(-1, size).argmax(axis=1)
