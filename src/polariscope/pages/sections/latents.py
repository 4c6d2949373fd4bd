"""Table of the latents: type, confidence, KL, and agreement with other criteria."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polariscope.analysis.regime.sentences import alphas
from polariscope.core.text import readable
from polariscope.pages.sections import AbstractSection, section

if TYPE_CHECKING:
    from polariscope.pages.record import ReportRecord

ROWS_UNFOLDED = 12


@section("latents", title="Latents", order=10)
class LatentsSection(AbstractSection):
    """Table of the latents."""

    def applies(self, record: ReportRecord) -> bool:
        """Return True: every diagnosis contains these results."""
        return True

    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return the rows, sorted by KL; the template separates unused latents if there are many."""
        rows = rows_of(record)
        used = set(record.regime.in_use)
        in_use = [row for row in rows if row["latent"].index in used]
        unused = [row for row in rows if row["latent"].index not in used]
        return {"rows": rows, "in_use": in_use, "unused": unused, "rows_unfolded": ROWS_UNFOLDED}


def rows_of(record: ReportRecord) -> list[dict[str, Any]]:
    """Return the rows of the table of latents, sorted by KL."""
    regime = record.regime
    sizes = [latent.kl if record.has_rate else latent.std_of_mean for latent in regime.latents]
    # At least 1 nat: otherwise collapsed latents would have long bars in a collapsed model.
    longest = max([*(size for size in sizes if np.isfinite(size)), 1.0 if record.has_rate else 1e-12])
    # The first criterion is the one in use; the others are compared with it.
    _, *others = regime.criteria.in_use
    return [
        {
            "latent": regime.latents[j],
            "use": regime.uses[j],
            "kl": readable(regime.latents[j].kl) if record.has_rate else "–",
            "alphas": alphas(regime.latents[j]),
            "bar": round(100 * min(max(sizes[j], 0.0) / longest, 1.0), 1),
            "agree": sum(rule[j] == regime.uses[j].in_use for rule in others),
            "of": len(others),
            "against": ", ".join(
                name
                for name, rule in zip(regime.criteria.names[1:], others, strict=True)
                if rule[j] != regime.uses[j].in_use
            ),
        }
        for j in regime.order
    ]
