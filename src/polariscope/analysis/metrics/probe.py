"""Probe: prediction of each factor from the codes by simple predictors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Int

from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics import Score, metric
from polariscope.analysis.metrics.support.probing import AbstractTarget, make_target
from polariscope.analysis.regime.latent_types import SELECTIONS, select
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.numerics.classifiers import quiet_logistic
from polariscope.numerics.intervals import interval_of_accuracy, wilson_interval
from polariscope.numerics.parallel import in_threads

SIZES = (10, 100, 1_000, 10_000)
STRENGTHS = tuple(np.logspace(-4, 4, 10).tolist())
N_FOLDS = 5
MIN_SAMPLES = 50
"""Minimum number of training samples for selecting the strength; with fewer, folds are too noisy and it is 1."""
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
    kinds: Literal["own", "classes"] = "own",
    sizes: tuple[Annotated[int, Ge(1)], ...] = SIZES,
    n_selection: Annotated[int, Ge(2)] = 500,
) -> Score:
    r"""Performance of a simple predictor of each factor from the codes, averaged over factors.

    With T the third of the samples that is held out, and the predictor trained on the others, a categorical factor is
    scored by accuracy, and an ordinal or continuous one by R², or 0 if that is negative:

    .. math:: \frac{1}{|T|} \sum_{i \in T} \mathbb{1}[\hat w(z_i) = w_i], \qquad
              1 - \frac{\sum_{i \in T} (\hat w(z_i) - w_i)^2}{\sum_{i \in T} (\bar w - w_i)^2}

    A cyclic factor is scored by the analogue of R² on the circle, 1 − Σ (2 − 2cos(θ' − θ)) / Σ (2 − 2cos(θ° − θ)), at
    the angles θ = 2πw/n of its n values. θ' is the direction of the predicted (cos θ, sin θ), θ° = arg Σ e^{iθ} the
    best constant, and 2 − 2cos the squared chord.

    ``logistic`` uses multinomial logistic regression for classes, and ridge regression for numbers and directions. The
    strength is selected from 10 values by cross-validation with 5 unshuffled folds. ``boosted`` uses 100 trees of depth
    3 (LightGBM) for all factors. The score is 1 if every factor can be predicted. Chance is the most frequent class,
    and 0 for numbers and angles.

    ``details`` contains three comparisons, in which "accuracy" is the quantity above. *Sample efficiency*: scores after
    training on ``sizes`` samples (at most all of them), and the ratio of the score with 100 samples to that with the
    most. *Variable types*: scores of the active, mixed and passive latents alone and combined; types are passed, or
    computed from ``variance`` for a prior N(0, 1). In a sampled representation, passive latents should score at chance
    level, and active+mixed as high as all latents. In the mean representation, passive latents gain from
    regularisation. *Baselines*: the constant and the uniform guess.

    The interval covers the draw of the test samples for fixed predictors.

    Reference: bonheme2023 §6.4.1 (types) and §8.4.1, mushom2020 §5.6 (sample efficiency), who treat every factor as
    classes (``kinds="classes"``; measured ones in 20 bins). Ours: the strength is selected on at most ``n_selection``
    training samples with all latents (it is the variance of a prior on the weights, which does not depend on their
    number), and is 1 for fewer than 50 samples. Training and test sets are 2/3 and 1/3 of the samples, whereas the
    papers used 10 000 and 5 000.

    :param variant: (default "logistic") predictor: linear, or boosted trees ("boosted").
    :param kinds: (default "own") treatment of factors: each by its kind, or all as classes ("classes").
    :param sizes: (default 10, 100, 1,000, 10,000) numbers of training samples to compare; the largest gives the value.
    :param n_selection: (default 500) number of training samples for selecting the strength of a linear predictor.

    >>> factors = np.random.default_rng(0).integers(3, size=(300, 1))
    >>> score = probe(factors.astype(float), factors)
    >>> score.value, sorted(score.details["accuracy_by_size"])
    (1.0, [10, 100, 200])
    """
    if not sizes:
        raise InputError("sizes", "contain at least one number of training samples", got="none")
    types = table.types
    train, test = table.split()
    # The split is sorted; shuffled, every prefix is a random subset.
    train = generator(table.seed, "metrics", "probe").permutation(train)
    counts = sorted({min(size, len(train)) for size in sizes})
    everything = tuple(range(table.n_latents))
    selections = {} if types is None else {name: tuple(select(types, name)) for name in SELECTIONS}
    factor_range = range(table.n_factors)
    targets = [make_target(table, k, kinds == "classes") for k in factor_range]
    plan: list[Fit] = [(everything, count, k) for count in counts for k in factor_range]
    # Selections can be equal, for example if there are no mixed latents; each is fitted once.
    subsets = {latents for latents in selections.values() if latents and latents != everything}
    plan += [(latents, counts[-1], k) for latents in sorted(subsets) for k in factor_range]
    fits = _fit_all(table, targets, plan, train, test, variant, n_selection)
    spreads = np.stack([target.spread(test) for target in targets], axis=1)

    def gains(latents: tuple[int, ...], count: int) -> Float[np.ndarray, "test factor"]:
        """Return the contribution of each test sample to each factor; the means are the scores."""
        return _gains(np.stack([fits[latents, count, k] for k in factor_range], axis=1), spreads)

    best = gains(everything, counts[-1])
    by_size = {count: float(gains(everything, count).mean()) for count in counts}
    by_types = {
        name: gains(latents, counts[-1]).mean(axis=0) for name, latents in selections.items() if latents
    }
    constant = np.array([target.constant_guess(train, test) for target in targets])
    return Score.of(
        "probe",
        float(best.mean()),
        interval=_interval(best, spreads, targets),
        chance=float(constant.mean()),
        variant=variant,
        per_factor=best.mean(axis=0),
        details={
            "accuracy_by_size": by_size,
            "sample_efficiency": _ratio(by_size.get(100), by_size[counts[-1]]),
            "types": None if types is None else list(types),
            "accuracy_by_types": {name: float(accuracies.mean()) for name, accuracies in by_types.items()},
            "accuracy_by_types_and_factor": by_types,
            "constant_guess": constant,
            "uniform_guess": np.array([target.uniform_guess for target in targets]),
        },
        notes=tuple(_notes(table, targets, sizes, len(train), types)),
    )


def _fit_all(
    table: Table,
    targets: Sequence[AbstractTarget],
    plan: list[Fit],
    train: Int[np.ndarray, " train"],
    test: Int[np.ndarray, " test"],
    variant: Literal["logistic", "boosted"],
    n_selection: int,
) -> dict[Fit, Float[np.ndarray, " test"]]:
    """Return the gain of each test sample by each planned predictor."""
    z = table.standardised
    n_choice = {fit: min(fit[1], n_selection) for fit in plan}
    searches = (
        # Largest first, as for the fits below.
        sorted({(n_choice[fit], fit[2]) for fit in plan}, reverse=True) if variant == "logistic" else []
    )

    def search(task: tuple[int, int]) -> float:
        count, k = task
        if count < MIN_SAMPLES:
            return 1.0
        return targets[k].best_strength(z, train[:count], STRENGTHS, N_FOLDS)

    with quiet_logistic():
        strengths = dict(zip(searches, in_threads(search, searches), strict=True))

        def fit(task: Fit) -> Float[np.ndarray, " test"]:
            latents, count, k = task
            strength = strengths[n_choice[task], k] if variant == "logistic" else None
            return targets[k].gain(z[:, latents], train[:count], test, strength)

        # Largest first, so all threads finish at about the same time.
        order = sorted(plan, key=lambda task: -task[1] * table.n_classes[task[2]])
        return dict(zip(order, in_threads(fit, order), strict=True))


def _gains(
    gains: Float[np.ndarray, "test factor"], spreads: Float[np.ndarray, "test factor"]
) -> Float[np.ndarray, "test factor"]:
    """Return gains in units of the mean spread of each factor; 0 for a factor predicted worse than by a constant."""
    means = spreads.mean(axis=0)
    scaled = np.divide(gains, means, out=np.zeros_like(gains), where=means > 0)
    return np.where(scaled.mean(axis=0) > 0, scaled, 0.0)


def _interval(
    best: Float[np.ndarray, "test factor"],
    spreads: Float[np.ndarray, "test factor"],
    targets: Sequence[AbstractTarget],
) -> tuple[float, float]:
    """Return Wilson's interval, with the variance of the ratio by the delta method if spreads are measured."""
    if all(target.is_classes for target in targets):
        return interval_of_accuracy(best > 0)
    # The influence of a sample on a ratio of means: its own term minus the ratio times its share of the
    # divisor.
    shares = np.divide(spreads, means := spreads.mean(axis=0), out=np.ones_like(spreads), where=means > 0)
    influence = (best - best.mean(axis=0) * shares).mean(axis=1)
    return wilson_interval(float(best.mean()), float((influence**2).mean()) / len(best), float(len(best)))


def _ratio(score: float | None, reference: float) -> float | None:
    return None if score is None or reference == 0 else score / reference


def _notes(
    table: Table,
    targets: Sequence[AbstractTarget],
    sizes: Sequence[int],
    n_train: int,
    types: Sequence[str] | None,
) -> list[str]:
    notes = []
    if max(sizes) > n_train:
        notes.append(
            f"Predictors were trained on {n_train} samples, two thirds of all, instead of {max(sizes)}."
        )
    if types is None:
        notes.append("Without posterior variances or types, subsets of variable types are not compared.")
    described = zip(table.factor_names, targets, strict=True)
    regressed = [name for name, target in described if not target.is_classes]
    if regressed:
        notes.append(f"The score is R², not accuracy, for {', '.join(regressed)}.")
    return [*notes, *table.grid_notes]
