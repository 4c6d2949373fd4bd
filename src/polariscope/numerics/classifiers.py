"""Predictors of several metrics: logistic and ridge regression, boosted trees."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from polariscope.numerics.newton import softmax_path, with_ones

TREES, DEPTH, RATE = 100, 3, 0.1  # scikit-learn's defaults, with which the published numbers were computed
BINS = 1023
"""Number of bins. With few, a bin can contain the boundary of two classes, and trees then split on other latents."""

QUICK_BINS = 63
"""Number of bins for intervals and chance levels, which are the same as with 1023 bins, in a third of the time."""

MAX_WEIGHTS = 1500
"""Maximum number of weights for Newton's method; beyond it a step takes seconds, and L-BFGS is used."""

MAX_ITERATIONS = 1000


@contextlib.contextmanager
def quiet_logistic() -> Iterator[None]:
    """Limit each fit of :func:`logistic_predictions` to one thread, and suppress convergence warnings.

    Fits run in parallel, so several threads in each would wait for each other. Fits of more than 1500 weights stop
    after 1000 iterations, for weak penalties possibly before they have converged. Enter the context once, around all
    threads, because warning filters and numbers of threads belong to the process.
    """
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def logistic_predictions(
    train: Float[np.ndarray, "train feature"],
    labels: Int[np.ndarray, " train"],
    test: Float[np.ndarray, "test feature"],
    strengths: Sequence[float] = (1.0,),
) -> Int[np.ndarray, "strength test"]:
    """Predict classes of the test rows by logistic regression, for each strength; call in :func:`quiet_logistic`.

    For a strength C the loss is C · Σ cross-entropy + ½‖w‖², without a penalty on intercepts. Each fit starts from the
    previous one, so a path of rising strengths costs little more than its last fit. Newton's method stops when no slope
    of the mean loss exceeds 1e-6. With more than 1500 weights, L-BFGS stops at 1e-4 or after 1000 iterations. If there
    is a single class, it is the prediction.
    """
    present, numbered = np.unique(labels, return_inverse=True)
    if len(present) == 1:
        return np.full((len(strengths), len(test)), labels[0])
    if len(present) * (train.shape[1] + 1) > MAX_WEIGHTS:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(warm_start=True, max_iter=MAX_ITERATIONS)
        return np.stack(
            [model.set_params(C=strength).fit(train, labels).predict(test) for strength in strengths]
        )
    rows = with_ones(test)
    return np.stack([present[(rows @ w).argmax(axis=1)] for w in softmax_path(train, numbered, strengths)])


def best_strength(
    codes: Float[np.ndarray, "sample feature"],
    labels: Int[np.ndarray, " sample"],
    strengths: Sequence[float],
    n_folds: int,
) -> float:
    """Return the strength with the highest accuracy over contiguous folds, the weakest one in case of ties."""
    folds = np.array_split(np.arange(len(codes)), min(n_folds, len(codes)))
    right = np.zeros(len(strengths))
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(codes)), fold)
        predicted = logistic_predictions(codes[rest], labels[rest], codes[fold], strengths)
        right += (predicted == labels[fold]).sum(axis=1)
    # argmax returns the first of equal values, which is the weakest, because strengths rise.
    return float(strengths[int(right.argmax())])


def ridge_predictions(
    train: Float[np.ndarray, "train feature"],
    targets: Float[np.ndarray, "train target"],
    test: Float[np.ndarray, "test feature"],
    strengths: Sequence[float] = (1.0,),
) -> Float[np.ndarray, "strength test target"]:
    """Predict the targets of the test rows by ridge regression, for each strength.

    For a strength C the loss is C · ½ Σ (y − ŷ)² + ½‖w‖², without a penalty on the intercept, so a strength has the
    same meaning as in :func:`logistic_predictions`. All strengths share one eigendecomposition.
    """
    centre, offset = train.mean(axis=0), targets.mean(axis=0)
    x = train - centre
    values, vectors = np.linalg.eigh(x.T @ x)
    products = vectors.T @ (x.T @ (targets - offset))
    rotated = (test - centre) @ vectors
    # Rounding can make eigenvalues of a singular matrix slightly negative.
    scales = np.maximum(values, 0)[:, None]
    return np.stack([rotated @ (products / (scales + 1 / strength)) + offset for strength in strengths])


def best_ridge_strength(
    codes: Float[np.ndarray, "sample feature"],
    targets: Float[np.ndarray, "sample target"],
    strengths: Sequence[float],
    n_folds: int,
) -> float:
    """Return the strength with the smallest squared error over contiguous folds, the weakest one in case of ties."""
    folds = np.array_split(np.arange(len(codes)), min(n_folds, len(codes)))
    errors = np.zeros(len(strengths))
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(codes)), fold)
        predicted = ridge_predictions(codes[rest], targets[rest], codes[fold], strengths)
        errors += ((predicted - targets[fold]) ** 2).sum(axis=(1, 2))
    return float(strengths[int(errors.argmin())])


def boosted_trees(
    train: Float[np.ndarray, "train feature"],
    target: Float[np.ndarray, " train"] | Int[np.ndarray, " train"],
    test: Float[np.ndarray, "test feature"],
    *,
    n_classes: int | None,
    n_trees: int = TREES,
    n_bins: int = BINS,
) -> tuple[Float[np.ndarray, " feature"], Float[np.ndarray, " test"] | Int[np.ndarray, " test"]]:
    """Return gain importances, which sum to 1, and predictions of the test rows by histogram gradient boosting.

    ``target`` contains classes 0 … ``n_classes`` − 1, or numbers if that is None. A fit uses one thread, which makes it
    deterministic; factors are fitted in parallel. If no feature helps, importances are 0.
    """
    import lightgbm

    parameters: dict[str, Any] = {
        **_objective(n_classes),
        **{
            "metric": "None",
            "verbosity": -1,
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,  # the same trees, slightly faster
        },
        # LightGBM grows leaf by leaf; with 2^depth leaves only the depth limits a tree.
        **{"learning_rate": RATE, "max_depth": DEPTH, "num_leaves": 2**DEPTH, "seed": 0},
        # Gradients have 32 bits, so rounding makes splits of pure leaves look like a small gain.
        **{"max_bin": n_bins, "min_data_in_bin": 1, "min_data_in_leaf": 1, "min_gain_to_split": 1e-3},
    }
    predicted: dict[str, np.ndarray] = {}

    def record(predictions: np.ndarray, _: Any) -> tuple[str, float, bool]:
        predicted["test"] = predictions
        return "recorded", 0.0, False

    varies = np.ptp(train, axis=0) > 0
    importance = np.zeros(train.shape[1])
    if not varies.any():
        return importance, _constant(target, n_classes, len(test))
    table = lightgbm.Dataset(train[:, varies], target, params=parameters)
    # Test rows are scored during boosting, because predicting afterwards would evaluate every tree again.
    held_out = lightgbm.Dataset(test[:, varies], np.zeros(len(test)), reference=table, params=parameters)
    model = lightgbm.train(parameters, table, n_trees, valid_sets=[held_out], feval=record)
    gain = model.feature_importance("gain")
    importance[varies] = gain / gain.sum() if gain.sum() > 0 else 0.0
    return importance, _decide(predicted["test"], n_classes)


def _objective(n_classes: int | None) -> dict[str, Any]:
    if n_classes is None:
        return {"objective": "regression"}
    return {"objective": "binary"} if n_classes == 2 else {"objective": "multiclass", "num_class": n_classes}


def _decide(scores: np.ndarray, n_classes: int | None) -> np.ndarray:
    if n_classes is None:
        return scores
    return (scores > 0.5).astype(np.intp) if n_classes == 2 else scores.argmax(axis=1)


def _constant(target: np.ndarray, n_classes: int | None, count: int) -> np.ndarray:
    """Return the best constant prediction: the mean, or the most frequent class."""
    return np.full(count, target.mean() if n_classes is None else np.bincount(target).argmax())
