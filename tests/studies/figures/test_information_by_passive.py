"""Dependence against the number of passive latents."""

from __future__ import annotations

from polariscope.studies.figures.information_by_passive import InformationByPassive
from polariscope.testing.study_tables import by_beta


def test_runs_with_as_many_passive_latents_are_one_point_whatever_their_strength() -> None:
    def cells(beta: float, seed: int) -> dict[str, float]:
        passive = seed
        names = ("tc.mean", "tc.sampled", "mi.mean.raw", "mi.sampled.raw")
        numbers = dict.fromkeys(names, beta + seed)
        return {
            **{
                "passive": passive,
                "mixed": 1,
                "active": 9 - passive,
                "rank.mean": 9.5 - passive,
                "rank.sampled": 9.9,
            },
            **numbers,
        }

    rows = {
        (row["quantity"], row["source"], row["passive"]): row
        for row in InformationByPassive().numbers(by_beta(cells))
    }
    assert len(rows) == 3 * 2 * 3
    assert (rows["tc", "mean", 2]["n"], rows["tc", "mean", 2]["mean"]) == (2, 4.5)
    assert rows["rank", "mean", 2]["predicted"] == 8  # latents that are not passive
    assert rows["rank", "sampled", 2]["predicted"] == 10  # all of them
    assert "predicted" not in rows["tc", "mean", 2]
