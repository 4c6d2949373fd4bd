"""Targets of a probe: a factor as classes, numbers or angles."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from polariscope.analysis.code_table import Table
from polariscope.numerics.circle import mean_direction
from polariscope.numerics.classifiers import (
    best_ridge_strength,
    best_strength,
    boosted_trees,
    logistic_predictions,
    ridge_predictions,
)

Rows = Int[np.ndarray, " _"]
Codes = Float[np.ndarray, "sample latent"]


class AbstractTarget(abc.ABC):
    """A factor to predict from codes.

    The *gain* of a test sample is its spread minus its error, where the spread is the error of the best constant. The
    score of the factor is the mean gain divided by the mean spread: the accuracy, for which spreads are 1, or R².
    """

    is_classes = False
    uniform_guess = 0.0

    @abc.abstractmethod
    def best_strength(self, codes: Codes, rows: Rows, strengths: Sequence[float], n_folds: int) -> float:
        """Select the strength of a linear predictor by cross-validation on these rows."""

    @abc.abstractmethod
    def gain(self, codes: Codes, train: Rows, test: Rows, strength: float | None) -> Float[np.ndarray, " _"]:
        """Return the gain of each test sample, by a linear predictor of this strength, or by boosted trees if None."""

    @abc.abstractmethod
    def spread(self, test: Rows) -> Float[np.ndarray, " _"]:
        """Return the error of the best constant for each test sample; 1 for classes."""

    def constant_guess(self, train: Rows, test: Rows) -> float:
        """Return the score of the best constant on the training samples; 0 for numbers and angles."""
        return 0.0


class ClassTarget(AbstractTarget):
    """A factor predicted as classes."""

    is_classes = True

    def __init__(self, classes: Int[np.ndarray, " sample"], n_classes: int) -> None:
        self.classes, self.n_classes = classes, n_classes
        self.uniform_guess = 1 / n_classes

    def best_strength(self, codes: Codes, rows: Rows, strengths: Sequence[float], n_folds: int) -> float:
        return best_strength(codes[rows], self.classes[rows], strengths, n_folds)

    def gain(self, codes: Codes, train: Rows, test: Rows, strength: float | None) -> Float[np.ndarray, " _"]:
        train_codes, labels, test_codes = codes[train], self.classes[train], codes[test]
        if strength is None:
            predicted = boosted_trees(train_codes, labels, test_codes, n_classes=self.n_classes)[1]
        else:
            predicted = logistic_predictions(train_codes, labels, test_codes, (strength,))[0]
        return (predicted == self.classes[test]).astype(np.float64)

    def spread(self, test: Rows) -> Float[np.ndarray, " _"]:
        return np.ones(len(test))

    def constant_guess(self, train: Rows, test: Rows) -> float:
        return float((self.classes[test] == np.bincount(self.classes[train]).argmax()).mean())


class AbstractRegressedTarget(AbstractTarget):
    """A factor predicted by regression."""

    values: Float[np.ndarray, "sample column"]

    def best_strength(self, codes: Codes, rows: Rows, strengths: Sequence[float], n_folds: int) -> float:
        return best_ridge_strength(codes[rows], self.values[rows], strengths, n_folds)

    def gain(self, codes: Codes, train: Rows, test: Rows, strength: float | None) -> Float[np.ndarray, " _"]:
        train_codes, values, test_codes = codes[train], self.values[train], codes[test]
        if strength is None:
            columns = [
                boosted_trees(train_codes, column, test_codes, n_classes=None)[1] for column in values.T
            ]
            predicted = np.stack(columns, axis=1)
        else:
            predicted = ridge_predictions(train_codes, values, test_codes, (strength,))[0]
        return self.spread(test) - self.errors(predicted, test)

    @abc.abstractmethod
    def errors(self, predicted: Float[np.ndarray, "_ column"], test: Rows) -> Float[np.ndarray, " _"]:
        """Return the squared error of each prediction."""


class NumberTarget(AbstractRegressedTarget):
    """An ordinal or continuous factor."""

    def __init__(self, values: Float[np.ndarray, " sample"]) -> None:
        self.values = values[:, None]

    def errors(self, predicted: Float[np.ndarray, "_ column"], test: Rows) -> Float[np.ndarray, " _"]:
        return ((predicted - self.values[test]) ** 2)[:, 0]

    def spread(self, test: Rows) -> Float[np.ndarray, " _"]:
        return ((self.values[test].mean() - self.values[test]) ** 2)[:, 0]


class AngleTarget(AbstractRegressedTarget):
    """A cyclic factor, predicted as a direction; errors are squared chords."""

    def __init__(self, angles: Float[np.ndarray, " sample"]) -> None:
        self.angles = angles
        # As cosine and sine, because the difference of two angles near 0 and 2π is small.
        self.values = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def errors(self, predicted: Float[np.ndarray, "_ column"], test: Rows) -> Float[np.ndarray, " _"]:
        return 2 - 2 * np.cos(np.arctan2(predicted[:, 1], predicted[:, 0]) - self.angles[test])

    def spread(self, test: Rows) -> Float[np.ndarray, " _"]:
        return 2 - 2 * np.cos(mean_direction(self.angles[test]) - self.angles[test])


def make_target(table: Table, factor: int, as_classes: bool) -> AbstractTarget:
    """Return a factor of the table as the target of its kind, or as classes."""
    kind = table.factor_kinds[factor]
    if as_classes or kind == "categorical":
        return ClassTarget(table.classes[:, factor], table.n_classes[factor])
    if kind == "cyclic":
        return AngleTarget(table.angles(factor))
    return NumberTarget(table.factors[:, factor])
