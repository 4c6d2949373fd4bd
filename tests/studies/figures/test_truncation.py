"""Dependence with and without the latents of each type."""

from __future__ import annotations

import pytest

from polariscope.core.errors import InputError
from polariscope.studies.figures.truncation import TruncationFigure
from polariscope.testing.study_tables import by_beta


def cells(beta: float, seed: int) -> dict[str, float]:
    columns = {
        f"{quantity}.{source}.by_types.{selection}": beta * scale + seed
        for quantity, scale in (("tc", 1), ("mi", 10))
        for source in (("mean", "sampled") if quantity == "tc" else ("mean.raw", "sampled.raw"))
        for selection in ("full", "active", "active+mixed")
    }
    # Only one seed has two latents that are active or passive.
    return {**columns, **({"tc.mean.by_types.active+passive": 7.0} if (beta, seed) == (4, 0) else {})}


def test_each_selection_is_averaged_over_the_seeds_that_have_it() -> None:
    rows = {
        (r["source"], r["selection"], r["strength"]): r for r in TruncationFigure().numbers(by_beta(cells))
    }
    assert rows["mean", "full", 4.0]["mean"] == 5
    assert (rows["mean", "active+passive", 4.0]["n"], rows["mean", "active+passive", 4.0]["mean"]) == (1, 7)
    assert ("mean", "active+passive", 1.0) not in rows
    assert len(rows) == 2 * 2 * 3 + 1
    assert {row["panel"] for row in rows.values()} == {"mean", "sampled"}


def test_mutual_information_is_another_quantity_and_an_unknown_selection_is_refused() -> None:
    rows = TruncationFigure(quantity="mi", selections=("full",)).numbers(by_beta(cells))
    assert [row["mean"] for row in rows if row["source"] == "mean"] == [11, 41]
    with pytest.raises(InputError, match="no selection of latents named 'activ'"):
        TruncationFigure(selections=("activ",))
