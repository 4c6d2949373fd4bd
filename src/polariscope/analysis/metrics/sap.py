"""Separated attribute predictability."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Gt
from jaxtyping import Bool, Float, Int

from polariscope.analysis.code_table import Table, correlations, gap
from polariscope.analysis.metrics import Score, metric
from polariscope.core.errors import InputError
from polariscope.numerics.intervals import recentred_interval
from polariscope.numerics.newton import binary_classifiers


@metric(
    "sap",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("codes", "factors"),
    invariant_to={"order", "sign"},
)
def sap(
    table: Table,
    *,
    variant: Literal["svm", "r2"] = "svm",
    strength: Annotated[float, Gt(0)] = 0.01,
) -> Score:
    r"""Gap in prediction between the two latents that predict each factor best.

    .. math:: \mathrm{SAP} = \frac1K \sum_k \bigl( S_{(1)k} - S_{(2)k} \bigr)

    with S_jk the performance of latent j alone in predicting factor k. It is 0 if two latents predict equally well, or
    none does. The maximum of ``svm`` is below 1, because an uninformative latent is sometimes correct by chance.

    * ``svm``, the default, as in published comparisons: test accuracy of a linear support vector classifier
      (squared hinge loss, ``strength`` C = 0.01, classes weighted by 1/frequency, one against the rest), trained on
      two thirds of the samples; every factor is a set of classes. A line cannot separate a class in the middle, so
      even codes = factors score low if there are many classes. The score depends on the scale of the codes, which
      are not standardised, and on their shift, because the intercept is regularised too.
    * ``r2``: squared correlation of latent and factor over all samples, for ordered factors. It is 0 for constant
      latents and does not depend on shift and scale.

    The support vector problem of one latent has two unknowns per class. It is solved to rounding precision by Newton's
    method for all classes at once, whereas the usual solver (liblinear) stops at a tolerance. The interval of ``svm``
    covers the draw of the test samples for fixed classifiers.

    Reference: Kumar et al., Variational Inference of Disentangled Latent Concepts from Unlabeled Observations
    (kumar2018). The settings are those of disentanglement_lib.

    :param variant: (default "svm") predictor: a support vector classifier, or linear regression ("r2").
    :param strength: (default 0.01) C of the support vector classifiers; larger values fit the training samples more
        closely.

    >>> factors = np.array([[a, b] for a in range(2) for b in range(2)] * 9)
    >>> round(sap(factors * 2.0 - 1, factors, variant="r2").value, 6)
    1.0
    """
    if variant == "r2":
        once = np.ones((1, table.n_samples), dtype=np.uint8)
        predictability = correlations(table.codes, table.factors, once)[0] ** 2
        resampled = correlations(table.codes, table.factors, table.resamples) ** 2
        shuffled = [
            correlations(table.codes[order], table.factors, once)[0] ** 2 for order in table.permutations
        ]
        chance = float(gap(np.stack(shuffled)).mean())
    else:
        hits = _hits(table, strength)
        predictability = hits.mean(axis=0)
        times = table.resamples[:, table.split()[1]]
        # A resample can contain no test sample at all.
        shares = times / np.maximum(times.sum(axis=1, keepdims=True), 1)
        resampled = (shares @ hits.reshape(len(hits), -1)).reshape(-1, *predictability.shape)
        chance = float(gap(_hits(table.permuted(), strength).mean(axis=0)).mean())
    per_factor = gap(predictability)
    value = float(per_factor.mean())
    order = np.argsort(-predictability, axis=0, kind="stable")
    return Score.of(
        "sap",
        value,
        interval=recentred_interval(value, gap(resampled).mean(axis=1), (0, 1)),
        chance=chance,
        variant=variant,
        per_factor=per_factor,
        matrix=predictability,
        details={
            "best_latent": order[0],
            "second_latent": order[1],
            "factor_names": table.factor_names,
        },
        notes=table.grid_notes,
    )


def _hits(table: Table, strength: float) -> Bool[np.ndarray, "test latent factor"]:
    """Return True if the classifier of each latent and factor is correct, for each test sample."""
    train, test = table.split()
    hits = np.empty((len(test), table.n_latents, table.n_factors), dtype=bool)
    for k, (labels, name) in enumerate(zip(table.classes.T, table.factor_names, strict=True)):
        # Classes that are missing from the training samples cannot be predicted, so classes are numbered
        # again.
        present, within = np.unique(labels[train], return_inverse=True)
        if len(present) < 2:
            raise InputError(
                problem=f"factor {name!r} has a single class in the {len(train)} training samples",
                remedy="draw more samples",
            )
        for j, column in enumerate(table.codes.T):
            weight, intercept = support_vectors(column[train], within, strength)
            decisions = column[test, None] * weight + intercept
            # Two classes share one classifier, whose positive class is the second.
            predicted = decisions.argmax(axis=1) if len(present) > 2 else (decisions[:, 0] > 0).astype(int)
            hits[:, j, k] = present[predicted] == labels[test]
    return hits


def support_vectors(
    x: Float[np.ndarray, " sample"], classes: Int[np.ndarray, " sample"], strength: float
) -> tuple[Float[np.ndarray, " problem"], Float[np.ndarray, " problem"]]:
    r"""Fit the weight w and intercept b of the linear support vector classifier of each class against the rest.

    .. math:: \min_{w, b} \tfrac12 (w^2 + b^2) + C \sum_i c_i \max(0, 1 - y_i (w x_i + b))^2

    with y_i = 1 for the class and −1 for the rest; c_i = n/(K n_k) for the class k, and 1 for the rest, as in liblinear
    with balanced classes. For two classes there is one problem, the second class against the first, and both are
    weighted.
    """
    counts = np.bincount(classes)
    balanced = len(classes) / (len(counts) * counts)
    targets = np.arange(len(counts)) if len(counts) > 2 else np.array([1])
    # liblinear weights the rest only if there are two classes.
    rest = 1.0 if len(counts) > 2 else balanced[0]
    y = np.where(classes[:, None] == targets, 1.0, -1.0)
    cost = strength * np.where(y > 0, balanced[targets], rest)
    weight, intercept = binary_classifiers(x[:, None], y, cost, "squared-hinge", intercept_penalty=1.0)
    return weight, intercept
