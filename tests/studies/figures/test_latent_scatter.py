"""Codes of one run, and its factors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.runs.run import Run
from polariscope.studies.details import codes_table
from polariscope.studies.figures.latent_scatter import LatentScatter
from polariscope.studies.ledger import Ledger
from polariscope.studies.table import Table
from polariscope.studies.worker import Worker
from tiny_studies import tiny

ROWS = tuple(
    {"run": "a", "state": "done", "sample": i, "mean.2": float(i), "mean.0": -float(i), "categorical.shape": i % 2,
     "cyclic.angle": i}
    for i in range(4)
)  # fmt: skip


def test_points_are_the_two_latents_that_come_first_for_each_factor() -> None:
    rows = LatentScatter().numbers(Table(ROWS, ()))
    assert [(row["factor"], row["kind"]) for row in rows[::4]] == [
        ("shape", "categorical"),
        ("angle", "cyclic"),
    ]
    assert [(row["first"], row["second"], row["value"]) for row in rows[4:]] == [(i, -i, i) for i in range(4)]
    assert rows[0]["first_latent"] == "mean.2"
    assert LatentScatter(latents=(0, 2)).numbers(Table(ROWS, ()))[0]["first_latent"] == "mean.0"
    with pytest.raises(InputError, match="latents must be two of the 2 latents"):
        LatentScatter(latents=(0, 5)).numbers(Table(ROWS, ()))


def test_the_table_of_codes_is_what_the_run_kept_by_kl(tmp_path: Path) -> None:
    ledger = Ledger(tiny(tmp_path / "study", data={"name": "square-linear", "n_samples": 60}))
    with pytest.raises(InputError, match="no run of the study is done yet"):
        codes_table(ledger)
    ledger.prepare()
    Worker(ledger).drain()
    run = ledger.runs[1]
    codes = Run(run.folder, read_only=True).representation(40)
    kl = 0.5 * (codes.mean**2 + codes.variance - 1 - np.log(codes.variance)).mean(axis=0)
    table = codes_table(ledger, run.name, 10)
    means = [name for name in table.columns if name.startswith("mean.")]
    assert means == [f"mean.{latent}" for latent in np.argsort(-kl)]
    assert [row[means[0]] for row in table.rows] == codes.mean[:10, int(np.argmax(kl))].tolist()
    assert len(LatentScatter(run=run.name, n_samples=10).numbers(table)) == 10 * len(codes.factor_names)
    with pytest.raises(InputError, match="run must name a run that is done"):
        codes_table(ledger, "beta=9")
