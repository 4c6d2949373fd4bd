"""Predictors that several metrics train: logistic regression and boosted trees."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

TREES, DEPTH, RATE = 100, 3, 0.1  # scikit-learn's defaults, which the published numbers were made with
BINS = 1023
"""With few bins of equal count, one bin holds the edge between two classes, and trees mend it with wrong latents."""

ROUGH = 1e-3
"""Tolerance of the fits that only choose a strength: ten times the usual one, half the time."""


@contextlib.contextmanager
def quiet_logistic() -> Iterator[None]:
    """Inside, logistic regression may end at its 100 iterations without a warning.

    That happens where the penalty is weak, long after the accuracy has settled. Entered once, around all threads:
    filters of warnings belong to the process.
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def logistic_predictions(
    train: Float[np.ndarray, "train feature"],
    labels: Int[np.ndarray, " train"],
    test: Float[np.ndarray, "test feature"],
    strengths: Sequence[float] = (1.0,),
    tolerance: float = 1e-4,
) -> Int[np.ndarray, "strength test"]:
    """Classes that multinomial logistic regression gives the test rows, for each strength, in :func:`quiet_logistic`.

    A strength C makes the loss C · Σ cross-entropy + ½‖w‖². Each fit starts from the one before, so that a path of
    rising strengths costs little more than its last. It ends where no slope of the mean loss exceeds ``tolerance``.
    Labels of a single class: it is the answer.
    """
    from sklearn.linear_model import LogisticRegression

    if (labels == labels[0]).all():
        return np.full((len(strengths), len(test)), labels[0])
    model = LogisticRegression(warm_start=True, tol=tolerance)
    return np.stack([model.set_params(C=strength).fit(train, labels).predict(test) for strength in strengths])


def best_strength(
    codes: Float[np.ndarray, "sample feature"],
    labels: Int[np.ndarray, " sample"],
    strengths: Sequence[float],
    n_folds: int,
) -> float:
    """The strength with the highest accuracy over contiguous folds; of equals the weakest, which is the simplest."""
    folds = np.array_split(np.arange(len(codes)), min(n_folds, len(codes)))
    right = np.zeros(len(strengths))
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(codes)), fold)
        predicted = logistic_predictions(codes[rest], labels[rest], codes[fold], strengths, ROUGH)
        right += (predicted == labels[fold]).sum(axis=1)
    return float(strengths[int(right.argmax())])


def boosted_trees(
    train: Float[np.ndarray, "train feature"],
    target: Float[np.ndarray, " train"] | Int[np.ndarray, " train"],
    test: Float[np.ndarray, "test feature"],
    *,
    n_classes: int | None,
    n_trees: int = TREES,
) -> tuple[Float[np.ndarray, " feature"], Float[np.ndarray, " test"] | Int[np.ndarray, " test"]]:
    """Gain importances, which sum to 1, and predictions of the test rows, by histogram gradient boosting.

    ``target`` holds classes 0 … ``n_classes`` − 1, or numbers when that is None. One thread: deterministic, and
    factors run side by side. Where no feature helps, importances are 0.
    """
    import lightgbm

    parameters: dict[str, Any] = {
        **_objective(n_classes),
        **{
            "metric": "None",
            "verbosity": -1,
            "num_threads": 1,
            "deterministic": True,
            "force_col_wise": True,
        },
        **{"learning_rate": RATE, "max_depth": DEPTH, "num_leaves": 2**DEPTH, "seed": 0},
        # Gradients are kept in 32 bits, whose rounding lets a pure leaf gain by a split; that is no gain.
        **{"max_bin": BINS, "min_data_in_bin": 1, "min_data_in_leaf": 1, "min_gain_to_split": 1e-3},
    }
    kept: dict[str, np.ndarray] = {}

    def keep(predictions: np.ndarray, _: Any) -> tuple[str, float, bool]:
        kept["test"] = predictions
        return "kept", 0.0, False

    varies = np.ptp(train, axis=0) > 0
    importance = np.zeros(train.shape[1])
    if not varies.any():
        return importance, _constant(target, n_classes, len(test))
    table = lightgbm.Dataset(train[:, varies], target, params=parameters)
    # The scores of the test rows are brought along while boosting; predicting afterwards walks every tree again.
    held_out = lightgbm.Dataset(test[:, varies], np.zeros(len(test)), reference=table, params=parameters)
    model = lightgbm.train(parameters, table, n_trees, valid_sets=[held_out], feval=keep)
    gain = model.feature_importance("gain")
    importance[varies] = gain / gain.sum() if gain.sum() > 0 else 0.0
    return importance, _decide(kept["test"], n_classes)


def _objective(n_classes: int | None) -> dict[str, Any]:
    if n_classes is None:
        return {"objective": "regression"}
    return {"objective": "binary"} if n_classes == 2 else {"objective": "multiclass", "num_class": n_classes}


def _decide(scores: np.ndarray, n_classes: int | None) -> np.ndarray:
    if n_classes is None:
        return scores
    return (scores > 0.5).astype(np.intp) if n_classes == 2 else scores.argmax(axis=1)


def _constant(target: np.ndarray, n_classes: int | None, count: int) -> np.ndarray:
    """What is answered when nothing is known: the mean, or the most frequent class."""
    return np.full(count, target.mean() if n_classes is None else np.bincount(target).argmax())
