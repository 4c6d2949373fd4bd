"""β-VAE metric: prediction of the factor that two samples share, from distances between their codes."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge
from jaxtyping import Bool, Float, Int

from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics import Score, metric
from polariscope.analysis.metrics.support.batches import (
    Groups,
    assumptions,
    blocks,
    check_several,
    halves,
    mean_by,
)
from polariscope.core.seeds import generator
from polariscope.numerics.classifiers import logistic_predictions, quiet_logistic
from polariscope.numerics.intervals import interval_from_halves

N_HALF_TRAIN, N_HALF_TEST = 2_000, 1_000


@metric(
    "beta-vae",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("codes", "factors"),
    invariant_to={"order", "shift", "sign", "scale"},
)
def beta_vae(
    table: Table,
    *,
    variant: Literal["standardised", "raw"] = "standardised",
    batch_size: Annotated[int, Ge(2)] = 64,
    n_train: Annotated[int, Ge(1)] = 10_000,
    n_test: Annotated[int, Ge(1)] = 5_000,
) -> Score:
    r"""Accuracy of a linear classifier that predicts which factor was fixed, from mean distances between codes.

    To compute a feature, fix factor k, draw L pairs of different samples that share the value of factor k, and average
    the distances of their codes for each latent,

    .. math:: f_j = \frac1L \sum_{l=1}^{L} |z_{lj} - z'_{lj}|

    Multinomial logistic regression is trained to predict k on ``n_train`` features; the score is its accuracy on
    ``n_test`` others.

    It is 1 if the distances identify the fixed factor. That does not require a latent per factor: two factors mixed
    into two latents in different ways can still be distinguished, so the metric saturates early. Chance is 1/K with K
    factors, also for constant codes, up to sampling noise. A single factor would always be predicted correctly and
    raises an error, and so does a factor with one value.

    ``standardised`` first divides every feature by its standard deviation, so the penalty (C = 1) does not depend on
    the scale of the latents; ``raw`` does not, as in the code of locatello2019. ``matrix`` contains the mean distance
    with each factor fixed, divided by the mean distance in all features: it is small for a latent that is constant if
    the factor is fixed. The interval is the spread of the score over halves of the samples, the chance level that of
    shuffled codes (at most 3 000 features each).

    Reference: Higgins et al., β-VAE (higgins2017); numbers as in Locatello et al. (locatello2019). Ours: pairs are
    drawn from the encoded table, values are fixed as often as they occur, and a sample is never paired with itself.

    :param variant: (default "standardised") features divided by their standard deviation, or "raw".
    :param batch_size: (default 64) number of pairs for each feature.
    :param n_train: (default 10,000) number of features to train the classifier on.
    :param n_test: (default 5,000) number of features to test it on.

    >>> factors = np.stack(np.meshgrid(np.arange(4), np.arange(5)), axis=-1).reshape(-1, 2).repeat(10, axis=0)
    >>> beta_vae(factors.astype(float), factors, n_train=500, n_test=500).value
    1.0
    """
    check_several(table)
    groups = Groups(table.classes, table.factor_names)
    z = table.standardised if variant == "standardised" else table.codes

    def measured(
        z: Float[np.ndarray, "sample latent"], groups: Groups, stream: str, n_train: int, n_test: int
    ) -> tuple[Float[np.ndarray, "batch latent"], Int[np.ndarray, " batch"], Bool[np.ndarray, " test"]]:
        draw = generator(table.seed, "metrics", "beta-vae", stream)
        factor = draw.integers(table.n_factors, size=n_train + n_test)
        features = distances(z, groups, factor, batch_size, draw)
        return features, factor, _correct(features, factor, n_train, variant == "standardised")

    features, factor, correct = measured(z, groups, "features", n_train, n_test)
    value = float(correct.mean())
    n_half = min(n_train, N_HALF_TRAIN), min(n_test, N_HALF_TEST)
    _, _, by_chance = measured(z[table.permutations[0]], groups, "chance", *n_half)
    of_halves = [
        float(measured(z[rows], half, f"half {number}", *n_half)[2].mean())
        for number, (rows, half) in enumerate(halves(table, "beta-vae"))
    ]
    return Score.of(
        "beta-vae",
        value,
        interval=interval_from_halves(value, of_halves),
        chance=float(by_chance.mean()),
        variant=variant,
        per_factor=mean_by(factor[n_train:], correct, table.n_factors),
        matrix=_relative(features, factor, table.n_factors),
        notes=assumptions(table, groups),
    )


def distances(
    z: Float[np.ndarray, "sample latent"],
    groups: Groups,
    factor: Int[np.ndarray, " batch"],
    batch_size: int,
    draw: np.random.Generator,
) -> Float[np.ndarray, "batch latent"]:
    """Return the mean distance of the codes of ``batch_size`` pairs that share the value of each batch's factor."""
    features = np.empty((len(factor), z.shape[1]))
    for block in blocks(len(factor), batch_size, z.shape[1]):
        # Each batch repeats its factor for all its pairs.
        repeated = np.broadcast_to(factor[block, None], (len(factor[block]), batch_size))
        first, second = groups.pairs(repeated, draw)
        gap = z[first]
        # In place, because the gathered codes are the largest arrays.
        gap -= z[second]
        features[block] = np.abs(gap, out=gap).mean(axis=1)
    return features


def _correct(
    features: Float[np.ndarray, "batch latent"],
    factor: Int[np.ndarray, " batch"],
    n_train: int,
    standardise: bool,
) -> Bool[np.ndarray, " test"]:
    """Return True for each remaining feature whose factor logistic regression on the first ``n_train`` predicts."""
    if standardise:
        spread = features[:n_train].std(axis=0)
        # Moments of the training features only, so the test features stay held out.
        features = (features - features[:n_train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    with quiet_logistic():
        predicted = logistic_predictions(features[:n_train], factor[:n_train], features[n_train:])[0]
    return predicted == factor[n_train:]


def _relative(
    features: Float[np.ndarray, "batch latent"], factor: Int[np.ndarray, " batch"], n_factors: int
) -> Float[np.ndarray, "latent factor"]:
    """Return the mean distance with each factor fixed, divided by the mean of all; 1 for a constant latent."""
    means = np.stack([mean_by(factor, column, n_factors) for column in features.T])
    overall = features.mean(axis=0)[:, None]
    return np.divide(means, overall, out=np.ones_like(means), where=overall > 0)
