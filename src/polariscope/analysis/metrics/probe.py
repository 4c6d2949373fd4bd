"""Probe: how well simple classifiers read each factor from the codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from polariscope.analysis.metrics import Score, metric
from polariscope.analysis.metrics.support.checks import FactorKind
from polariscope.analysis.metrics.support.shared import Shared, prepare
from polariscope.analysis.regime.structure import SELECTIONS, select
from polariscope.analysis.regime.types import TYPES, classify
from polariscope.core.errors import InputError, unknown
from polariscope.core.options import check_options
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
)
def probe(
    codes: Any,
    factors: Any,
    *,
    variant: Literal["logistic", "boosted"] = "logistic",
    sizes: Sequence[int] = SIZES,
    n_selection: int = 500,
    types: Sequence[str] | None = None,
    variance: Any = None,
    factor_names: Sequence[str] = (),
    factor_kinds: Sequence[FactorKind] | None = None,
    seed: int = 0,
    shared: Shared | None = None,
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

    >>> factors = np.random.default_rng(0).integers(3, size=(300, 1))
    >>> score = probe(factors.astype(float), factors)
    >>> score.value, sorted(score.details["accuracy_by_size"])
    (1.0, [10, 100, 200])
    """
    check_options("metric 'probe'", probe, {"variant": variant, "n_selection": n_selection})
    names = {"factor_names": factor_names, "factor_kinds": factor_kinds}
    shared = prepare(shared, codes, factors, seed=seed, variance=variance, **names)
    _check_sizes(sizes, n_selection)
    if types is None and shared.has_variance:
        types = classify(shared.variance.mean(axis=0), shared.variance.var(axis=0))
    train, test = shared.split()
    train = generator(seed, "metrics", "probe").permutation(train)
    counts = sorted({min(size, len(train)) for size in sizes})
    everything = tuple(range(shared.n_latents))
    selections = {} if types is None else _selections(types, shared.n_latents)
    factor_range = range(shared.n_factors)
    plan: list[Fit] = [(everything, count, k) for count in counts for k in factor_range]
    subsets = {latents for latents in selections.values() if latents and latents != everything}
    plan += [(latents, counts[-1], k) for latents in sorted(subsets) for k in factor_range]
    fits = _fit_all(shared, plan, train, test, variant, n_selection)

    def correct(latents: tuple[int, ...], count: int) -> Bool[np.ndarray, "test factor"]:
        return np.stack([fits[latents, count, k] for k in factor_range], axis=1)

    best = correct(everything, counts[-1])
    by_size = {count: float(correct(everything, count).mean()) for count in counts}
    by_types = {
        name: correct(latents, counts[-1]).mean(axis=0) for name, latents in selections.items() if latents
    }
    constant = _constant_accuracy(shared, train, test)
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
            "uniform_guess": 1 / np.array(shared.n_classes),
        },
        notes=tuple(_notes(shared, sizes, len(train), types)),
    )


def _fit_all(
    shared: Shared,
    plan: list[Fit],
    train: Int[np.ndarray, " train"],
    test: Int[np.ndarray, " test"],
    variant: Literal["logistic", "boosted"],
    n_selection: int,
) -> dict[Fit, Bool[np.ndarray, " test"]]:
    """Which test samples each planned classifier gets right."""
    z, classes = shared.standardised, shared.classes
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
                predicted = boosted_trees(learnt, labels, asked, n_classes=shared.n_classes[k])[1]
            else:
                strength = strengths[n_choice[task], k]
                predicted = logistic_predictions(learnt, labels, asked, (strength,))[0]
            return predicted == classes[test, k]

        # The largest first, so that no thread is left alone with one at the end.
        order = sorted(plan, key=lambda task: -task[1] * shared.n_classes[task[2]])
        return dict(zip(order, in_threads(fit, order), strict=True))


def _selections(types: Sequence[str], n_latents: int) -> dict[str, tuple[int, ...]]:
    """The latents of every combination of types."""
    if len(types) != n_latents:
        raise InputError(f"types must name each of the {n_latents} latents, got {len(types)}.")
    known = [name for word in types for name in TYPES if name == word]
    for word in types:
        if word not in TYPES:
            raise InputError(unknown("variable type", str(word), TYPES))
    return {name: tuple(select(known, name)) for name in SELECTIONS}


def _constant_accuracy(
    shared: Shared, train: Int[np.ndarray, " train"], test: Int[np.ndarray, " test"]
) -> Float[np.ndarray, " factor"]:
    """Accuracy of answering with the most frequent class of the training samples."""
    frequent = [np.bincount(column).argmax() for column in shared.classes[train].T]
    return (shared.classes[test] == frequent).mean(axis=0)


def _check_sizes(sizes: Sequence[int], n_selection: int) -> None:
    if not sizes or min(sizes) < 1:
        raise InputError(f"sizes must be numbers of training samples, each at least 1, got {tuple(sizes)}.")
    if n_selection < 2:
        raise InputError(
            f"n_selection must be at least 2, so that a sample can be left out, got {n_selection}."
        )


def _notes(shared: Shared, sizes: Sequence[int], n_train: int, types: Sequence[str] | None) -> list[str]:
    notes = []
    if max(sizes) > n_train:
        notes.append(
            f"Trained on {n_train} samples where {max(sizes)} were asked for: two thirds of the samples at hand."
        )
    if types is None:
        notes.append("Without posterior variances or types, subsets of variable types are not compared.")
    return [*notes, *shared.grid_notes]
