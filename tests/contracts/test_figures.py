"""Every figure keeps the contract of its family."""

from __future__ import annotations

from pathlib import Path

import pytest

from polariscope.core.errors import InputError
from polariscope.studies.figures import family, make_figure
from polariscope.studies.table import Table
from polariscope.testing import FigureContract
from polariscope.testing.figures import cells
from polariscope.testing.study_tables import by_beta


def log() -> Table:
    runs = by_beta(cells).rows[:-1]
    return Table(tuple({**row, "step": step} for row in runs for step in (10, 20)), ("beta", "seed"))


def codes() -> Table:
    rows = [
        {
            "run": "a",
            "sample": i,
            "mean.1": float(i),
            "mean.0": 1.0,
            "categorical.shape": i % 2,
            "cyclic.turn": i,
        }
        for i in range(5)
    ]
    return Table(tuple(rows), ())


def layers() -> Table:
    names = ("input", "mean", "decoder/1")
    rows = [
        {
            "measure": m,
            "title": m,
            "first": "a",
            "second": "b",
            "row": r,
            "column": c,
            "similarity": 0.5,
            "sd": None,
            "pairs": 1,
        }
        for m in ("cka", "procrustes")
        for r in names
        for c in names
    ]
    return Table(tuple(rows), ())


OTHERS = {"losses": log, "latent-scatter": codes, "layer-heat-map": layers}


class TestFigures(FigureContract):
    names = list(family)

    def table(self, name: str) -> Table:
        return OTHERS[name]() if name in OTHERS else super().table(name)

    def test_figures_of_other_tables_are_known(self) -> None:
        assert {name for name in self.names if not self.is_of_runs(name)} == set(OTHERS)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    made = make_figure(family["types-by-strength"](), by_beta(cells))
    with pytest.raises(InputError, match=r"out must end in .svg, .pdf or .png, got 'figure.gif'"):
        made.save(tmp_path / "figure.gif")
    for end in ("pdf", "png"):
        assert made.save(tmp_path / f"figure.{end}").stat().st_size > 1000
