"""Mutual information between latents, from one table of bin counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

N_BINS = 20
ON_EDGE = 1e-6
"""Share of the range below an edge that still belongs to it."""


def discretise(
    x: Float[np.ndarray, "sample latent"], n_bins: int = N_BINS
) -> Int[np.ndarray, "sample latent"]:
    """Number of the bin each value falls in: equal-width bins over each latent's own range.

    A bin holds its left edge; the last one also its right. Values that are within a millionth of the range of an edge
    are on it: those of a grid, which lie on edges, then fall the same way whatever their unit and precision. A
    constant latent is all in bin 0.

    >>> discretise(np.array([[0.0], [0.4], [0.5], [1.0]]), n_bins=2).ravel()
    array([0, 0, 1, 1])
    """
    x = x.astype(np.float64)
    edges = np.linspace(x.min(axis=0), x.max(axis=0), n_bins + 1)
    edges -= ON_EDGE * np.ptp(x, axis=0)
    # The first edge is the minimum, so that only the edges between bins have to be looked up.
    columns = [
        np.searchsorted(edge[1:-1], column, side="right") for edge, column in zip(edges.T, x.T, strict=True)
    ]
    bins = np.stack(columns, axis=1)
    bins[:, np.ptp(x, axis=0) == 0] = 0
    return bins


def mutual_information_table(bins: Int[np.ndarray, "sample latent"]) -> Float[np.ndarray, "latent latent"]:
    r"""Plug-in mutual information in nats of every pair of discrete columns; their entropies on the diagonal.

    .. math:: I(a, b) = H(a) + H(b) - H(a, b), \qquad H = \log n - \tfrac1n \sum_c n_c \log n_c

    with n_c the number of samples in cell c. The plug-in estimate of independent columns with K bins each is
    not 0 but about (K − 1)²/2n.

    >>> mutual_information_table(np.array([[0, 0], [0, 1], [1, 0], [1, 1]])).round(6)
    array([[0.693147, 0.      ],
           [0.      , 0.693147]])
    """
    columns = np.ascontiguousarray(bins.T)
    n_latents, size = len(columns), int(bins.max()) + 1
    entropies = np.array([_entropy(np.bincount(column)) for column in columns])
    table = np.diag(entropies)
    for i in range(n_latents):
        rows = columns[i] * size
        for j in range(i):
            joint = _entropy(np.bincount(rows + columns[j]))
            table[i, j] = table[j, i] = max(0.0, entropies[i] + entropies[j] - joint)
    return table


def averaged_mutual_information(
    table: Float[np.ndarray, "latent latent"], latents: Sequence[int] | None = None
) -> float:
    r"""Mutual information averaged over the ordered pairs of different latents, of all or of some.

    .. math:: \overline{I} = \frac{1}{k^2 - k} \sum_{i \ne j} I(z_i, z_j)

    0 when every pair is independent. Adding latents that are independent of all others leaves the sum and
    raises k² − k: it falls though nothing about the old latents has changed. A single latent has no pair: 0.

    Reference: bonheme2023 Eqs 6.9–6.10, Thm 6.4.2.
    """
    chosen = table if latents is None else table[np.ix_(latents, latents)]
    k = len(chosen)
    return float(chosen[~np.eye(k, dtype=bool)].mean()) if k > 1 else 0.0


def _entropy(counts: Int[np.ndarray, " cell"]) -> float:
    counts = counts[counts > 0]
    total = counts.sum()
    return float(np.log(total) - (counts * np.log(counts)).sum() / total)
