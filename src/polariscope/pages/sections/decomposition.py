"""Decomposition of the rate into mutual information, total correlation and dimension-wise KL, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polariscope.pages.sections import AbstractSection, Subject, section

if TYPE_CHECKING:
    from polariscope.analysis.decomposition import Decomposition
    from polariscope.pages.record import ReportRecord

MEANINGS = {
    "mutual_information": ("mutual information", "information of the latents about the observation"),
    "total_correlation": ("total correlation", "dependence between the latents"),
    "dimension_wise_kl": ("dimension-wise KL", "divergence of each latent, taken alone, from its prior"),
    "aggregate_kl": ("KL(q(z) ‖ p(z))", "divergence of the distribution of all codes from the prior"),
    "rate": ("rate", "sum of the parts: the KL from the prior, estimated from samples"),
    "exact_rate": ("rate in closed form", "the same without sampling noise"),
}


@section("decomposition", title="Rate", order=60)
class DecompositionSection(AbstractSection):
    """Decomposition of the rate."""

    def measure(self, subject: Subject) -> Decomposition | None:
        """Return the newest cached decomposition of a run; compute it for other codes."""
        stored = subject.newest("decomposition")
        if stored is None and (subject.run is not None or not subject.has_rate):
            return None
        from polariscope.analysis.decomposition import Decomposition, affordable_samples, decompose

        if stored is not None:
            return Decomposition.from_dict(stored)
        return decompose(subject.representation, affordable_samples(subject.representation), subject.seed)

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return a row for each part."""
        view = decomposition_view(self.part(record))
        if record.regime.positions is not None:
            # Codes with positions are flattened: every value is a latent of the decomposition.
            view["rows"] = [
                {**row, "meaning": row["meaning"].replace("latent", "value")} for row in view["rows"]
            ]
        return view


def decomposition_view(parts: Decomposition) -> dict[str, Any]:
    """Return the values for the template."""
    shown = ["mutual_information", "total_correlation"]
    shown += ["dimension_wise_kl"] if parts.dimension_wise_kl is not None else ["aggregate_kl"]
    shown += ["rate", "exact_rate"]
    rows = [
        {"name": name, "meaning": meaning, "value": value, "error": parts.errors.get(key)}
        for key in shown
        if (value := getattr(parts, key)) is not None
        for name, meaning in [MEANINGS[key]]
    ]
    return {"parts": parts, "rows": rows}
