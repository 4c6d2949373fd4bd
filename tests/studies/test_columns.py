"""What columns are, and what to add to have them."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import pytest

from polariscope.core.errors import InputError
from polariscope.runs.run import Run
from polariscope.studies.analyses import family as analyses
from polariscope.studies.columns import column_of, metric_columns, metric_of, need, need_metric, remedy_for
from polariscope.studies.ledger import Ledger
from polariscope.studies.table_rows import study_table
from polariscope.studies.worker import Worker
from polariscope.testing.study_tables import by_beta
from tiny_studies import tiny

DETAILED = {
    "data": {"name": "square-linear", "n_samples": 60},
    "each": {
        "diagnose": {"n_samples": 40, "n_bootstrap": 5},
        "decompose": {"n_samples": 40},
        "score": {"n_samples": 40, "metrics": "mig,sap"},
        "geometry": {"n_samples": 40, "n_points": 5, "n_observations": 5},
        "dimension": {"n_samples": 40},
        "probes": {"n_samples": 40},
    },
    "over": {"udr": {"n_samples": 40}, "agreement": {"n_samples": 40}},
    "seeds": 2,
    "grid": {"beta": [1.0]},
}


def test_an_analysis_declares_every_column_that_it_gives(tmp_path: Path) -> None:
    ledger = Ledger(tiny(tmp_path / "study", **DETAILED))
    ledger.prepare()
    Worker(ledger).drain()
    opened = Run(ledger.runs[0].folder, read_only=True)
    for name, analysis in ledger.study.analyses("each").items():
        measured = analysis.measure(opened)
        for column in {**analysis.columns(measured), **analysis.details(measured)}:
            patterns = analyses.traits(name)["gives"]
            declared = any(fnmatch.fnmatchcase(column, pattern) for pattern in patterns)
            word = column.partition(".by_")[0].removesuffix(".low").removesuffix(".high")
            assert declared or metric_of(word), (name, column)
    table = study_table(ledger, details=True)
    need(table, "udr", "agreement", "probes.mean.full", "tc.mean.by_types.full")
    # Details are what the figures need, and only on request.
    assert [c for c in table.columns if "mig.by_factor." in c] == [
        c for c in table.columns if c.startswith("mig.by_")
    ]
    assert [c for c in table.columns if ".by_" in c]
    assert not [c for c in study_table(ledger).columns if ".by_" in c]
    row = table.rows[0]
    factors = [value for column, value in row.items() if column.startswith("mig.by_factor.")]
    assert sum(factors) / len(factors) == pytest.approx(row["mig"])  # the score is their mean
    assert row["tc.mean.by_types.full"] == pytest.approx(row["tc.mean"])


def test_columns_say_what_they_are_and_which_way_is_better() -> None:
    assert column_of("probes.mean.full").higher_is_better is True
    assert column_of("loss.reconstruction").higher_is_better is False
    assert (column_of("passive").label, column_of("passive").higher_is_better) == ("passive latents", None)
    assert column_of("mig").higher_is_better is True
    assert column_of("anything").label == "anything"


def test_metrics_are_those_that_look_at_factors() -> None:
    table = by_beta(
        lambda beta, seed: {"loss": 1.0, "tc.sampled": 1.0, "udr": 1.0, "mig.sampled": 1.0, "mig.low": 0.0}
    )
    assert metric_columns(table) == ["mig.sampled"]
    assert need_metric(table, "") == "mig.sampled"
    with pytest.raises(
        InputError,
        match=r"a value in column 'mig'; in the study file add mig to the metrics of \[each.score\], then run",
    ):
        need_metric(table, "mig")


def test_what_to_add_is_where_the_analysis_stands() -> None:
    assert remedy_for("udr") == "in the study file add [over.udr], then run it again"
    assert remedy_for("mig.sampled") == (
        'in the study file add mig to the metrics of [each.score] with source = "sampled", then run it again'
    )
    assert "objectives with this term" in remedy_for("loss.rate")
    assert "validate_every" in remedy_for("validation.rate")
    assert remedy_for("nothing") == "choose a column of the table"
