"""Aggregate posterior: scale of the codes, and fit of their distribution to the prior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polariscope.models.aggregate import aggregate_of_model
from polariscope.pages.sections import AbstractSection, Subject, section

if TYPE_CHECKING:
    from polariscope.analysis.aggregate_posterior import AggregatePosterior
    from polariscope.pages.record import ReportRecord

ROWS_UNFOLDED = 24
"""Maximum number of rows that are not folded."""


@section("aggregate", title="Aggregate posterior", order=45)
class AggregateSection(AbstractSection):
    """Aggregate posterior."""

    def measure(self, subject: Subject) -> AggregatePosterior:
        """Return the aggregate posterior, compared with draws of the model's prior if it is not Gaussian."""
        return aggregate_of_model(subject.representation, subject.model, subject.seed)

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return the table and the numbers for all values, sorted as the table of latents."""
        part: AggregatePosterior = self.part(record)
        rows = [part.marginals[index] for index in record.regime.order]
        return {
            "aggregate": part,
            "rows": rows[:ROWS_UNFOLDED],
            "others": rows[ROWS_UNFOLDED:],
            "in_use": [index for index in record.regime.order if index in part.in_use],
        }
