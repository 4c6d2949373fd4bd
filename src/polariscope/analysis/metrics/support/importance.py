"""Importance of each latent for predicting each factor, and accuracy of the predictions."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from polariscope.analysis.code_table import Table
from polariscope.numerics.classifiers import BINS, DEPTH, RATE, boosted_trees
from polariscope.numerics.parallel import in_threads

Predictor = Literal["boosted", "reference", "forest", "lasso"]
Fitted = tuple[np.ndarray, np.ndarray]  # importance of each latent, prediction of each test sample


@dataclasses.dataclass(frozen=True, eq=False)
class Importance:
    """Importances and accuracies of one predictor per factor."""

    matrix: Float[np.ndarray, "latent factor"]
    """Share of each latent in predicting each factor; columns sum to 1, or to 0 if no latent contributes."""
    informativeness: Float[np.ndarray, " factor"]
    """Accuracy on the test samples, or R² of a predicted number."""
    baseline: Float[np.ndarray, " factor"]
    """Informativeness of a constant: the most frequent class, or the mean."""


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """Predictors of all factors, trained on some rows of ``codes`` and tested on others."""

    codes: Float[np.ndarray, "sample latent"]
    train: Int[np.ndarray, " train"]
    test: Int[np.ndarray, " test"]
    n_trees: int
    n_bins: int = BINS
    """Number of bins of each latent for ``boosted``; the other predictors do not use bins."""


def importances(table: Table, jobs: Sequence[Job], predictor: Predictor) -> list[Importance]:
    """Return the result of each job; factors of all jobs are fitted independently in threads."""
    # The lasso regresses on the numbers of the classes, as in the original paper.
    as_numbers = [predictor == "lasso" or kind == "continuous" for kind in table.factor_kinds]

    def target(k: int) -> np.ndarray:
        if not as_numbers[k]:
            return table.classes[:, k]
        column = table.factors[:, k]
        # Standardised, so one grid of penalties suits every factor.
        return (column - column.mean()) / column.std()

    targets = [target(k) for k in range(table.n_factors)]

    def fit(task: tuple[int, int]) -> Fitted:
        job, k = jobs[task[0]], task[1]
        n_classes = None if as_numbers[k] else table.n_classes[k]
        train, test = job.codes[job.train], job.codes[job.test]
        return PREDICTORS[predictor](train, targets[k][job.train], test, n_classes, job)

    def cost(task: tuple[int, int]) -> int:
        job, k = jobs[task[0]], task[1]
        return len(job.train) * job.n_trees * job.n_bins * table.n_classes[k]

    # Largest first, so all threads finish at about the same time.
    tasks = itertools.product(range(len(jobs)), range(table.n_factors))
    order = sorted(tasks, key=cost, reverse=True)
    fitted = dict(zip(order, in_threads(fit, order), strict=True))
    results = []
    for index, job in enumerate(jobs):
        informed, baseline = [], []
        for k, values in enumerate(targets):
            learnt, truth = values[job.train], values[job.test]
            constant = learnt.mean() if as_numbers[k] else np.bincount(learnt).argmax()
            informed.append(_informativeness(truth, fitted[index, k][1], as_numbers[k]))
            baseline.append(_informativeness(truth, np.full_like(truth, constant), as_numbers[k]))
        matrix = np.stack([fitted[index, k][0] for k in range(table.n_factors)], axis=1)
        results.append(Importance(matrix, np.array(informed), np.array(baseline)))
    return results


def _informativeness(truth: np.ndarray, predicted: np.ndarray, as_numbers: bool) -> float:
    if not as_numbers:
        return float((truth == predicted).mean())
    spread = ((truth - truth.mean()) ** 2).mean()
    # R² is not defined for a constant target.
    return float(1 - ((truth - predicted) ** 2).mean() / spread) if spread > 0 else 0.0


def _boosted(
    train: np.ndarray, target: np.ndarray, test: np.ndarray, n_classes: int | None, job: Job
) -> Fitted:
    return boosted_trees(train, target, test, n_classes=n_classes, n_trees=job.n_trees, n_bins=job.n_bins)


def _reference(
    train: np.ndarray, target: np.ndarray, test: np.ndarray, n_classes: int | None, job: Job
) -> Fitted:
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    kind = GradientBoostingRegressor if n_classes is None else GradientBoostingClassifier
    model = kind(n_estimators=job.n_trees, max_depth=DEPTH, learning_rate=RATE, random_state=0)
    model.fit(train, target)
    return model.feature_importances_, model.predict(test)


def _forest(
    train: np.ndarray, target: np.ndarray, test: np.ndarray, n_classes: int | None, job: Job
) -> Fitted:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if n_classes is None else RandomForestClassifier
    # With leaves below five samples, splits on noise would give importance to uninformative latents.
    model = kind(n_estimators=job.n_trees, min_samples_leaf=5, max_features="sqrt", random_state=0)
    model.fit(train, target)
    return model.feature_importances_, model.predict(test)


def _lasso(
    train: np.ndarray, target: np.ndarray, test: np.ndarray, _n_classes: int | None, _job: Job
) -> Fitted:
    from sklearn.linear_model import LassoCV

    # Codes and target have variance 1, so all weights are 0 at a penalty of 1 or more.
    model = LassoCV(cv=5, alphas=np.logspace(0, -4, 20)).fit(train, target)
    weights = np.abs(model.coef_)
    return weights / weights.sum() if weights.any() else weights, model.predict(test)


PREDICTORS: dict[Predictor, Callable[..., Fitted]] = {
    "boosted": _boosted,
    "reference": _reference,
    "forest": _forest,
    "lasso": _lasso,
}
