"""Explicitness: accuracy of linear classifiers that predict the factors from the codes."""

from __future__ import annotations

import math
import statistics
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics import Score, metric
from polariscope.core.errors import InputError
from polariscope.numerics.intervals import wilson_interval
from polariscope.numerics.newton import binary_classifiers


@metric(
    "explicitness",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("codes", "factors"),
    invariant_to={"order", "shift", "scale", "sign"},
)
def explicitness(
    table: Table,
    *,
    variant: Literal["auc", "normalised"] = "auc",
) -> Score:
    r"""Area under the ROC curve of logistic regressions of each class of each factor against the rest.

    .. math:: \mathrm{E} = \frac1K \sum_k \frac{1}{|C_k|} \sum_{c \in C_k} \mathrm{AUC}_{kc}

    with AUC the area under the curve of true against false positives, on the third of the samples that is held out. It
    is the probability that a sample of the class is ranked above one of the rest. The score is 1 if every class is
    linearly separable from the rest, and ½ if the codes carry no information. It does not depend on which latents carry
    the information. ``auc``, the default, is this mean; ``normalised`` is 2 AUC − 1, which is 0 by chance, with
    negative values set to 0. A linear classifier cannot separate the middle classes of an ordered factor.

    Classes are weighted by 1/frequency. Codes are standardised (the paper does not standardise), so the penalty, C = 1,
    does not depend on their scale. A class that is missing from a part of the split is left out. The interval covers
    the draw of the test samples for fixed classifiers. It is Wilson's interval, with the variance of the delta method
    and an effective number of observations (:func:`worth`), so it has a positive width even if every pair is ranked
    correctly.

    Reference: Ridgeway & Mozer, Learning Deep Disentangled Embeddings with the F-Statistic Loss (ridgeway2018).

    :param variant: (default "auc") mean area, or "normalised", rescaled so that chance is 0.

    >>> factors = np.array([[a, b] for a in range(2) for b in range(2)] * 9)
    >>> explicitness(factors.astype(float), factors).value
    1.0
    """
    areas, influence, n_worth, left_out = _areas(table)
    shuffled = _areas(table.permuted())[0]
    stretch, offset = (2.0, 1.0) if variant == "normalised" else (1.0, 0.0)
    per_factor = np.clip(stretch * areas - offset, 0, 1)
    value = float(per_factor.mean())
    # Mean square of the influences divided by n, for the mean over factors.
    variance = float((influence.mean(axis=1) ** 2).sum()) / len(influence) ** 2
    low, high = wilson_interval((value + offset) / stretch, variance, n_worth)
    notes = table.grid_notes
    if left_out:
        notes += (f"{left_out} classes are missing from a part of the split and are left out.",)
    return Score.of(
        "explicitness",
        value,
        interval=(max(0.0, stretch * low - offset), stretch * high - offset),
        chance=float(np.clip(stretch * shuffled - offset, 0, 1).mean()),
        variant=variant,
        per_factor=per_factor,
        details={"factor_names": table.factor_names},
        notes=notes,
    )


def _areas(
    table: Table,
) -> tuple[Float[np.ndarray, " factor"], Float[np.ndarray, "test factor"], float, int]:
    """Return the AUC of each factor, the influence of each test sample, the effective number of answers, and the
    number of classes left out."""
    train, test = table.split()
    x = table.standardised
    areas, influences, answers, left_out = [], [], [], 0
    for labels, name in zip(table.classes.T, table.factor_names, strict=True):
        truth = labels[:, None] == np.arange(labels.max() + 1)
        both = truth[train].any(axis=0) & truth[test].any(axis=0)
        left_out += int((~both).sum())
        truth = truth[:, both]
        if not both.any() or truth[train].all() or truth[test].all():
            raise InputError(
                problem=(
                    f"factor {name!r} has no two classes that occur in both parts of the split ({len(train)} "
                    f"and {len(test)} samples)"
                ),
                remedy="draw more samples",
            )
        weights = logistic_regressions(x[train], truth[train])
        decisions = x[test] @ weights[:-1]  # the intercept does not change their order
        of_fold = [area_under_curve(*pair) for pair in zip(decisions.T, truth[test].T, strict=True)]
        areas.append(math.fsum(area for area, _ in of_fold) / len(of_fold))
        influences.append(np.mean([influence for _, influence in of_fold], axis=0))
        answers.append(worth(truth[test].sum(axis=0), len(test)))
    return np.array(areas), np.stack(influences, axis=1), statistics.harmonic_mean(answers), left_out


def worth(n_positive: Int[np.ndarray, " label"], n: int) -> float:
    r"""Return the number of binary answers that would estimate a mean AUC near 1 with the same precision.

    For m positives and n − m negatives, Hanley and McNeil's variance of the area A tends to

    .. math:: A (1 - A) \frac{n + 2}{4 m (n - m)} \quad (A \to 1)

    so a class is worth 4m(n − m)/(n + 2) answers: about n if it has half of the samples, and 4m if it is rare. The mean
    of C classes is worth C/2 times their harmonic mean, because two classes are one comparison, and at most n.

    Reference: Hanley & McNeil, The Meaning and Use of the Area under a ROC Curve
    (hanley1982).

    >>> worth(np.array([10, 10]), 20), worth(np.array([1, 19]), 20)
    (18.181818181818183, 3.4545454545454546)
    """
    each = 4 * n_positive * (n - n_positive) / (n + 2)
    return min(float(n), len(each) / 2 * statistics.harmonic_mean(each.tolist()))


def logistic_regressions(
    x: Float[np.ndarray, "train latent"], truth: Bool[np.ndarray, "train problem"]
) -> Float[np.ndarray, "latent+1 problem"]:
    """Return the weights and intercept of logistic regression for each column of ``truth``, with balanced classes."""
    n, positive = len(truth), truth.sum(axis=0)
    # Both classes of each problem have the same total weight, n/2.
    cost = n / (2 * np.where(truth, positive, n - positive))
    return binary_classifiers(x, np.where(truth, 1.0, -1.0), cost, "logistic", intercept_penalty=0.0)


def area_under_curve(
    decisions: Float[np.ndarray, " test"], truth: Bool[np.ndarray, " test"]
) -> tuple[float, Float[np.ndarray, " test"]]:
    r"""Return P(decision of a positive > that of a negative), with ties counted as ½, and the influence of each sample.

    It is computed from ranks. The influence of a positive is (share of negatives below it − AUC) / share of positives,
    and likewise for a negative, so the variance of the area is the mean square of the influences divided by n.

    >>> area_under_curve(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))[0]
    0.75
    """
    from scipy.stats import rankdata

    n_positive = int(truth.sum())
    n_negative = len(truth) - n_positive
    ranks, below = rankdata(decisions), np.empty(len(truth))
    # Rank among all minus rank among the positives is the number of negatives below, with ties as one half.
    below[truth] = (ranks[truth] - rankdata(decisions[truth])) / n_negative
    below[~truth] = 1 - (ranks[~truth] - rankdata(decisions[~truth])) / n_positive
    area = float(below[truth].mean())
    share = np.where(truth, n_positive, n_negative) / len(truth)
    return area, (below - area) / share
