"""Probe: how well simple classifiers read each factor from the codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge
from jaxtyping import Bool, Float, Int

from polariscope.analysis.metrics import Score, metric
from polariscope.analysis.metrics.support.table import Table
from polariscope.analysis.regime.structure import SELECTIONS, select
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.numerics.classifiers import (
    best_strength,
    boosted_trees,
    logistic_predictions,
    quiet_logistic,
)
from polariscope.numerics.intervals import interval_of_accuracy
from polariscope.numerics.parallel import in_threads

SIZES = (10, 100, 1_000, 10_000)
STRENGTHS = tuple(np.logspace(-4, 4, 10).tolist())
N_FOLDS = 5
FEWEST = 50
"""Training samples from which the strength is chosen; folds of fewer would choose by luck, and it is 1."""
Fit = tuple[tuple[int, ...], int, int]  # latents, number of training samples, factor


@metric(
    "probe",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("codes", "factors"),
    invariant_to={"order", "shift", "scale", "sign"},
    uses=("types", "variance"),
    evidence="accuracy",
)
def probe(
    table: Table,
    *,
    variant: Literal["logistic", "boosted"] = "logistic",
    sizes: tuple[Annotated[int, Ge(1)], ...] = SIZES,
    n_selection: Annotated[int, Ge(2)] = 500,
) -> Score:
    r"""Accuracy with which a classifier names each factor from the codes, averaged over factors.

    .. math:: \frac1K \sum_{k=1}^{K} \frac{1}{|T|} \sum_{i \in T} \mathbb{1}[\hat w_k(z_i) = w_{ik}]

    with T the third of the samples that was kept for testing and ŵ_k trained on the others: ``logistic``,
    multinomial logistic regression whose strength (of 10) is chosen over 5 unshuffled folds, or ``boosted``, 100
    trees of depth 3 (LightGBM). 1: every factor can be read; chance is the most frequent class every time.

    ``details`` hold three comparisons. *Sample efficiency*: the accuracy after training on ``sizes`` samples
    (no more than there are), and the ratio of 100 to the most. *Variable types*: the accuracy from the active,
    mixed and passive latents alone and together; types are given, or found from ``variance`` for a prior
    N(0, 1). Of a sampled representation, passive latents should do no better than chance and active+mixed as well
    as all; of the mean, passive ones gain with regularisation. *Baselines*: the constant and the uniform guess.

    The interval is that of the test samples, the classifiers being given. Measured factors are told by 20 bins.

    Reference: bonheme2023 §6.4.1 (types) and §8.4.1, mushom2020 §5.6 (sample efficiency). Ours: the strength is
    chosen on at most ``n_selection`` training samples, and with all latents (it is the variance of a prior on the
    weights, which does not depend on their number), and is 1 for fewer than 50; train and test are 2/3 and 1/3 of
    the samples at hand, where the references had 10 000 and 5 000.

    :param variant: (default "logistic") the classifier.
    :param sizes: (default 10, 100, 1,000, 10,000) numbers of training samples to compare; the largest gives the value.
    :param n_selection: (default 500) training samples on which the strength of ``logistic`` is chosen.

    >>> factors = np.random.default_rng(0).integers(3, size=(300, 1))
    >>> score = probe(factors.astype(float), factors)
    >>> score.value, sorted(score.details["accuracy_by_size"])
    (1.0, [10, 100, 200])
    """
    if not sizes:
        raise InputError("sizes must be numbers of training samples, got none.")
    types = table.types
    train, test = table.split()
    train = generator(table.seed, "metrics", "probe").permutation(train)
    counts = sorted({min(size, len(train)) for size in sizes})
    everything = tuple(range(table.n_latents))
    selections = {} if types is None else {name: tuple(select(types, name)) for name in SELECTIONS}
    factor_range = range(table.n_factors)
    plan: list[Fit] = [(everything, count, k) for count in counts for k in factor_range]
    subsets = {latents for latents in selections.values() if latents and latents != everything}
    plan += [(latents, counts[-1], k) for latents in sorted(subsets) for k in factor_range]
    fits = _fit_all(table, plan, train, test, variant, n_selection)

    def correct(latents: tuple[int, ...], count: int) -> Bool[np.ndarray, "test factor"]:
        return np.stack([fits[latents, count, k] for k in factor_range], axis=1)

    best = correct(everything, counts[-1])
    by_size = {count: float(correct(everything, count).mean()) for count in counts}
    by_types = {
        name: correct(latents, counts[-1]).mean(axis=0) for name, latents in selections.items() if latents
    }
    constant = _constant_accuracy(table, train, test)
    return Score.of(
        "probe",
        float(best.mean()),
        interval=interval_of_accuracy(best),
        chance=float(constant.mean()),
        variant=variant,
        per_factor=best.mean(axis=0),
        details={
            "accuracy_by_size": by_size,
            "sample_efficiency": by_size[100] / by_size[counts[-1]] if 100 in by_size else None,
            "types": None if types is None else list(types),
            "accuracy_by_types": {name: float(found.mean()) for name, found in by_types.items()},
            "accuracy_by_types_and_factor": by_types,
            "constant_guess": constant,
            "uniform_guess": 1 / np.array(table.n_classes),
        },
        notes=tuple(_notes(table, sizes, len(train), types)),
    )


def _fit_all(
    table: Table,
    plan: list[Fit],
    train: Int[np.ndarray, " train"],
    test: Int[np.ndarray, " test"],
    variant: Literal["logistic", "boosted"],
    n_selection: int,
) -> dict[Fit, Bool[np.ndarray, " test"]]:
    """Which test samples each planned classifier gets right."""
    z, classes = table.standardised, table.classes
    n_choice = {fit: min(fit[1], n_selection) for fit in plan}
    searches = (
        sorted({(n_choice[fit], fit[2]) for fit in plan}, reverse=True) if variant == "logistic" else []
    )

    def search(task: tuple[int, int]) -> float:
        count, k = task
        if count < FEWEST:
            return 1.0
        return best_strength(z[train[:count]], classes[train[:count], k], STRENGTHS, N_FOLDS)

    with quiet_logistic():
        strengths = dict(zip(searches, in_threads(search, searches), strict=True))

        def fit(task: Fit) -> Bool[np.ndarray, " test"]:
            latents, count, k = task
            rows, columns = train[:count], z[:, latents]
            learnt, asked = columns[rows], columns[test]
            labels = classes[rows, k]
            if variant == "boosted":
                predicted = boosted_trees(learnt, labels, asked, n_classes=table.n_classes[k])[1]
            else:
                strength = strengths[n_choice[task], k]
                predicted = logistic_predictions(learnt, labels, asked, (strength,))[0]
            return predicted == classes[test, k]

        # The largest first, so that no thread is left alone with one at the end.
        order = sorted(plan, key=lambda task: -task[1] * table.n_classes[task[2]])
        return dict(zip(order, in_threads(fit, order), strict=True))


def _constant_accuracy(
    table: Table, train: Int[np.ndarray, " train"], test: Int[np.ndarray, " test"]
) -> Float[np.ndarray, " factor"]:
    """Accuracy of answering with the most frequent class of the training samples."""
    frequent = [np.bincount(column).argmax() for column in table.classes[train].T]
    return (table.classes[test] == frequent).mean(axis=0)


def _notes(table: Table, sizes: Sequence[int], n_train: int, types: Sequence[str] | None) -> list[str]:
    notes = []
    if max(sizes) > n_train:
        notes.append(
            f"Trained on {n_train} samples where {max(sizes)} were asked for: two thirds of the samples at hand."
        )
    if types is None:
        notes.append("Without posterior variances or types, subsets of variable types are not compared.")
    return [*notes, *table.grid_notes]
