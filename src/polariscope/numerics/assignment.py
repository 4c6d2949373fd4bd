"""Closest signed permutation of a matrix, by linear assignment."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from polariscope.core.errors import InputError


def closest_signed_permutation(V: Float[np.ndarray, "*batch d d"]) -> Float[np.ndarray, "*batch d d"]:
    r"""Find the matrix P with one ±1 in each row and column that is closest to V, with entries in [−1, 1].

    .. math:: \sum_{ij} |V_{ij} - P_{ij}| = \sum_{ij} |V_{ij}| + \sum_i \bigl(1 - 2|V_{i\pi(i)}|\bigr)

    because |V_ij| ≤ 1. The best π maximises Σ|V_iπ(i)|, a linear assignment, and the signs are those of V. The same
    π minimises the Frobenius distance, because ‖V − P‖² = ‖V‖² + d − 2 Σ|V_iπ(i)|. V can have batch axes.

    Reference: zietlow2022 Eqs 3.26–3.29 solve it as a mixed-integer program.

    >>> closest_signed_permutation(np.array([[0.6, -0.8], [0.8, 0.6]])).tolist()
    [[0.0, -1.0], [1.0, 0.0]]
    """
    V = np.asarray(V, dtype=np.float64)
    square = V.ndim >= 2 and V.shape[-1] == V.shape[-2] and V.size > 0
    if not square or not np.isfinite(V).all() or np.abs(V).max() > 1 + 1e-6:
        raise InputError(
            "V", "be square with finite entries between -1 and 1, like a rotation", got=f"shape {V.shape}"
        )
    matrices = V.reshape(-1, *V.shape[-2:])
    P = np.zeros(matrices.shape)
    for number, sizes in enumerate(np.abs(matrices)):
        rows, columns = assign(sizes)
        # A zero gets the sign +1, which np.sign would leave 0.
        P[number, rows, columns] = np.where(matrices[number, rows, columns] < 0, -1.0, 1.0)
    return P.reshape(V.shape)


def signed_permutation_distance(V: Float[np.ndarray, "sample d d"]) -> Float[np.ndarray, " sample"]:
    """Return the Frobenius distance of each orthogonal V from its closest signed permutation.

    It equals √(2d − 2 Σ|V_iπ(i)|), but is computed from the entries, because that root would turn a rounding error of
    10⁻¹⁶ into a distance of 10⁻⁸.
    """
    return np.sqrt(((V - closest_signed_permutation(V)) ** 2).sum(axis=(-2, -1)))


def assign(
    weights: Float[np.ndarray, "row column"],
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the pairs of rows and columns with the largest sum of weights."""
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(weights, maximize=True)
