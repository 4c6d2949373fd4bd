"""Similarity of many layers: each layer is compressed once, then pairs of compressed layers are scored."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.core.types import OptionValue

COLUMNS_AT_ONCE = 1 << 16
BY_SVD = 128
"""Size up to which singular values are computed by SVD; above it, eigenvalues are three times as fast."""

Compress = Callable[..., np.ndarray]


@dataclasses.dataclass(frozen=True)
class AbstractForm(abc.ABC):
    """A measure in two steps: ``score(compress(x), compress(y))`` is the measure of x and y.

    Compressed layers can be rounded to ``stored_as``, which changes a score by less than 2e-7.
    """

    compress: Compress
    """Function from an array (sample, feature), and the measure's options as keywords, to a smaller array."""

    stored_as: ClassVar[np.dtype[np.generic]] = np.dtype(np.float32)

    @abc.abstractmethod
    def score(self, x: Any, y: Any) -> float:
        """Return the measure of two compressed layers."""

    @abc.abstractmethod
    def score_all(
        self, layers: Sequence[Shaped[np.ndarray, "..."]]
    ) -> Float[np.ndarray, "layer other_layer"]:
        """Return the measure of every pair of compressed layers, which can be memory-mapped files."""

    def measure(self, x: np.ndarray, y: np.ndarray, **options: OptionValue) -> float:
        """Return the measure of two representations."""
        return self.score(self.compress(x, **options), self.compress(y, **options))


@dataclasses.dataclass(frozen=True)
class VectorForm(AbstractForm):
    r"""Form in which a layer is a vector v of length 1, and the score of two layers is :math:`v \cdot w`.

    The vector has an entry for each pair of samples. All scores are then one matrix product VVᵀ, computed in blocks of
    columns. Rounding v by δ and w by ε changes the score by at most ‖δ‖ + ‖ε‖ (Cauchy–Schwarz).
    """

    def score(self, x: Float[np.ndarray, " pair"], y: Float[np.ndarray, " pair"]) -> float:
        return float(self.score_all([x, y])[0, 1])

    def score_all(
        self, layers: Sequence[Shaped[np.ndarray, "..."]]
    ) -> Float[np.ndarray, "layer other_layer"]:
        scores = np.zeros((len(layers), len(layers)))
        for start in range(0, len(layers[0]), COLUMNS_AT_ONCE):
            # Only a part is read and converted at a time, because layers can be memory-mapped files.
            part = np.stack([layer[start : start + COLUMNS_AT_ONCE] for layer in layers]).astype(np.float64)
            scores += part @ part.T
        return np.clip(scores, -1, 1)  # rounding


@dataclasses.dataclass(frozen=True)
class FactorForm(AbstractForm):
    r"""Form in which a layer is a matrix F (sample × rank), and the score of two layers :math:`\|F^\top G\|_*`.

    ‖·‖_* is the nuclear norm, the sum of the singular values.

    This takes the singular values of a rank × rank matrix instead of a feature × feature one. Rounding F by Δ changes
    the score by at most ‖Δ‖_F ‖G‖_F (Hölder). With ``of_smaller`` the score is divided by the smaller rank, which gives
    a mean of correlations.
    """

    of_smaller: bool = False

    def score(self, x: Float[np.ndarray, "sample r"], y: Float[np.ndarray, "sample s"]) -> float:
        product = np.asarray(x, np.float64).T @ np.asarray(y, np.float64)
        total = nuclear_norm(product)
        return float(np.minimum(total / min(product.shape) if self.of_smaller else total, 1.0))  # rounding

    def score_all(
        self, layers: Sequence[Shaped[np.ndarray, "..."]]
    ) -> Float[np.ndarray, "layer other_layer"]:
        scores = np.empty((len(layers), len(layers)))
        widest_first = sorted(range(len(layers)), key=lambda index: -layers[index].shape[1])
        for position, i in enumerate(widest_first):
            wide = np.asarray(layers[i], np.float64)  # read and converted once, not for each narrow partner
            for j in widest_first[position:]:
                scores[i, j] = scores[j, i] = self.score(wide, layers[j])
        return scores


def nuclear_norm(matrix: Float[np.ndarray, "r s"]) -> float:
    r"""Return the sum of the singular values.

    Those of a large matrix are computed as the roots of the eigenvalues of its smaller Gram matrix. The eigenvalues are
    accurate to about 1e-16 λ_max, so the error of a singular value is up to 1e-8 σ_max if it is itself smaller, and
    much less otherwise. For layers of networks the sum is accurate to 1e-8.
    """
    if min(matrix.shape) <= BY_SVD:
        return float(np.linalg.svd(matrix, compute_uv=False).sum())
    small = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    return float(np.sqrt(np.maximum(np.linalg.eigvalsh(small), 0)).sum())


@dataclasses.dataclass(frozen=True)
class NeighbourForm(AbstractForm):
    """Form in which a layer is the table of each sample's k nearest neighbours; the score is the share in common.

    With layers as rows of zeros and ones, and a column for each ordered pair of samples, all scores are one sparse
    product.
    """

    stored_as: ClassVar[np.dtype[np.generic]] = np.dtype(np.int32)

    def score(self, x: Shaped[np.ndarray, "sample k"], y: Shaped[np.ndarray, "sample k"]) -> float:
        return float(self.score_all([x, y])[0, 1])

    def score_all(
        self, layers: Sequence[Shaped[np.ndarray, "..."]]
    ) -> Float[np.ndarray, "layer other_layer"]:
        from scipy.sparse import csr_array

        n, k = layers[0].shape
        # The pair of sample i and neighbour j has the number n i + j.
        columns = np.concatenate([(np.arange(n)[:, None] * n + layer).ravel() for layer in layers])
        # Number only pairs that occur, so the sparse matrix has no empty columns.
        _, columns = np.unique(columns, return_inverse=True)
        # Each layer has n k entries, so the beginnings of the rows are known.
        starts = np.arange(len(layers) + 1) * (n * k)
        rows = csr_array((np.ones(len(columns), dtype=np.int64), columns, starts))
        return (rows @ rows.T).toarray() / (n * k)


def unit(vector: Float[np.ndarray, " pair"]) -> Float[np.ndarray, " pair"]:
    """Return a vector divided by its length."""
    return vector / np.linalg.norm(vector)
