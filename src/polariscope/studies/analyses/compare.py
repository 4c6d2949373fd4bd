"""Comparison of the layers of models trained with different seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge

from polariscope.analysis.similarity import family
from polariscope.studies.analyses import AbstractOver, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run


@analysis("compare", scope="over", gives={})
@dataclasses.dataclass(frozen=True)
class CompareAnalysis(AbstractOver):
    """Similarity of all pairs of layers, over seeds; cached with the first run."""

    similarity: str = "cka"
    """A member of ``polariscope.similarity``."""
    n_samples: Annotated[int, Ge(10)] = 1000
    """Number of observations encoded by all models."""
    seed: Annotated[int, Ge(0)] = 0
    """Seed for drawing the observations."""

    def __post_init__(self) -> None:
        # Raises an error for an unknown name.
        family[self.similarity]

    def measure(self, runs: Sequence[Run]) -> dict[str, Any]:
        runs[0].comparison(list(runs[1:]), self.similarity, self.n_samples, self.seed)
        return {"kept_in": str(runs[0].path), "rows": [{} for _ in runs]}
