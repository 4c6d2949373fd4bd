"""The parts of the rate: mutual information, total correlation and what is left, as a bar and a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polariscope.pages.sections import AbstractSection, Subject, section

if TYPE_CHECKING:
    from polariscope.analysis.decomposition import Decomposition
    from polariscope.pages.record import ReportRecord

MEANINGS = {
    "mutual_information": ("mutual information", "what the latents say about which observation they encode"),
    "total_correlation": ("total correlation", "how far the latents are from independent"),
    "dimension_wise_kl": ("dimension-wise KL", "how far each latent, taken alone, is from its prior"),
    "aggregate_kl": ("KL(q(z) ‖ p(z))", "how far all codes together are from the prior"),
    "rate": ("rate", "the sum of the parts: the KL from the prior, at these draws"),
    "exact_rate": ("rate in closed form", "the same without the noise of the draws"),
}


@section("decomposition", title="Rate", order=60)
class DecompositionSection(AbstractSection):
    """Where the rate goes."""

    def measure(self, subject: Subject) -> Decomposition | None:
        """The newest one of a run; that of other codes is computed."""
        stored = subject.newest("decomposition")
        if stored is None and (subject.run is not None or not subject.has_rate):
            return None
        from polariscope.analysis.decomposition import Decomposition, decompose

        if stored is not None:
            return Decomposition.from_dict(stored)
        return decompose(subject.representation, seed=subject.seed)

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """A row for each part."""
        return decomposition_view(self.part(record))


def decomposition_view(parts: Decomposition) -> dict[str, Any]:
    """What the template shows of the parts of the rate."""
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
