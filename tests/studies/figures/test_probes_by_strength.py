"""Accuracy of probes by type of latent."""

from __future__ import annotations

import pytest

from polariscope.core.errors import InputError
from polariscope.studies.figures.probes_by_strength import ProbesByStrength
from polariscope.testing.study_tables import by_beta


def test_selections_and_chance_are_lines_and_sources_are_panels() -> None:
    def cells(beta: float, seed: int) -> dict[str, float]:
        numbers = {
            f"probes.{s}.{sel}": 0.5 + seed / 10
            for s in ("mean", "sampled")
            for sel in ("full", "active+mixed")
        }
        return {**numbers, "probes.mean.chance": 0.2, "probes.sampled.chance": 0.2}

    rows = {
        (r["panel"], r["selection"], r["strength"]): r for r in ProbesByStrength().numbers(by_beta(cells))
    }
    assert len(rows) == 2 * 3 * 2
    assert rows["sampled", "full", 1.0]["mean"] == pytest.approx(0.6)
    assert rows["mean", "chance", 4.0]["mean"] == pytest.approx(0.2)


def test_without_probes_the_analysis_to_add_is_named() -> None:
    with pytest.raises(
        InputError, match=r"'probes.sampled.full'; in the study file add \[each.probes\], then"
    ):
        ProbesByStrength().numbers(by_beta(lambda beta, seed: {"loss": 1.0}))
