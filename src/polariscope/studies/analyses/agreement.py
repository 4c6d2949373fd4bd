"""Agreement between latents of models trained with different seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from annotated_types import Ge

from polariscope.numerics.assignment import assign
from polariscope.numerics.dependence import ranked
from polariscope.studies.analyses import AbstractOver, Column, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run


@analysis(
    "agreement", scope="over", gives={"agreement": Column("agreement over seeds", higher_is_better=True)}
)
@dataclasses.dataclass(frozen=True)
class AgreementAnalysis(AbstractOver):
    r"""Mean correlation of latents matched one to one, over every pair of seeds.

    For two models with absolute rank correlations :math:`R_{ab}` between their latents, the one-to-one matching
    :math:`\pi` with the largest sum gives :math:`\frac1d \sum_a R_{a \pi(a)}`, where d is the smaller number of latents
    in use (mean KL over 0.01 nats). The value is 1 if the latents are equal up to order and a monotone map, and about 0
    if they have nothing in common. A model without a latent in use does not agree with any other.
    """

    n_samples: Annotated[int, Ge(10)] = 1000
    """Number of observations encoded by all models."""
    seed: Annotated[int, Ge(0)] = 0
    """Seed for drawing the observations."""

    def measure(self, runs: Sequence[Run]) -> dict[str, Any]:
        from polariscope.analysis.regime.posterior import gaussian_kl

        ranks = []
        for run in runs:
            codes = run.representation(self.n_samples, self.seed)
            used = gaussian_kl(codes.mean, codes.variance).mean(axis=0) > 0.01
            columns = ranked(codes.mean[:, used])
            # The correlation of a constant column is NaN.
            varies = np.ptp(columns, axis=0) > 0 if columns.size else np.zeros(0, dtype=bool)
            ranks.append(columns[:, varies])
        matrix = np.eye(len(runs))
        for i in range(len(runs)):
            for j in range(i):
                matrix[i, j] = matrix[j, i] = matched(ranks[i], ranks[j])
        # Without the agreement of a run with itself, which is 1.
        others = (matrix.sum(axis=1) - 1) / (len(runs) - 1)
        return {
            "agreement": float(others.mean()),
            "matrix": matrix.tolist(),
            "rows": [{"agreement": float(value)} for value in others],
        }


def matched(x: np.ndarray, y: np.ndarray) -> float:
    """Return the mean absolute correlation of the columns of two arrays under the best one-to-one matching.

    >>> codes = np.array([[a, b] for a in range(3) for b in range(3)], dtype=float)
    >>> round(matched(codes, -codes[:, ::-1]), 6)
    1.0
    """
    smaller = min(x.shape[1], y.shape[1])
    if smaller == 0:
        return 0.0
    # corrcoef returns all pairs of columns; this is the block of x against y.
    related = np.abs(np.corrcoef(x, y, rowvar=False)[: x.shape[1], x.shape[1] :])
    rows, columns = assign(related)
    return float(related[rows, columns].mean())
