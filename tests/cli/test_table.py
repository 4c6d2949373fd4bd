"""Which columns of runs are on the screen, and how wide they are."""

from __future__ import annotations

from pathlib import Path

import pytest

import polariscope as ps
from polariscope.cli.console import print_in_parts
from polariscope.cli.table import follows, main_results
from polariscope.studies.table import Table
from polariscope.studies.table_rows import runs_table


def test_an_option_that_a_record_leaves_out_has_its_value_in_the_table(tmp_path: Path) -> None:
    """With an empty cell it looked like an option of the other learning rate, and was not shown."""
    data = ps.load_dataset("gaussian", n_samples=60)
    for name, options in {
        "a": {"adam_beta1": 0.5, "learning_rate": 1e-3},
        "b": {"learning_rate": 1e-4},
    }.items():
        ps.train(data, net="mlp", n_latents=2, steps=2, out=tmp_path / name, **options)
    table = runs_table([tmp_path / "a", tmp_path / "b"])
    assert table.frame["adam_beta1"].tolist() == [0.5, 0.9]
    assert not follows(table, "adam_beta1")
    assert not {"split", "split_column", "group_column"} & {*table.settings}


@pytest.mark.parametrize(("second", "column"), [(0.2, "kl"), (None, "loss.rate")])
def test_the_kl_is_that_of_the_log_if_a_run_was_not_diagnosed(second: float | None, column: str) -> None:
    rows = [
        {"run": "a", "seed": 0, "loss": 2.0, "loss.rate": 0.5, "kl": 0.1},
        {"run": "b", "seed": 1, "loss": 2.0, "loss.rate": 0.4, "kl": second},
        {"run": "waiting", "seed": 2, "loss": None, "loss.rate": None, "kl": None},
    ]
    assert main_results(Table(rows, ("seed",))) == ["loss", column]


def test_a_cell_wider_than_the_terminal_leaves_the_names_of_the_rows_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = {"run": ["runs/first", "runs/second"], "data.variants": ["standardised-" + "1.25," * 60, "none"]}
    print_in_parts(cells, keys=("run",))
    assert cells["data.variants"][0] in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("polariscope.cli.console.is_terminal", lambda console: True)
    print_in_parts(cells, keys=("run",))
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert any(line.split()[:1] == ["runs/first"] and "…" in line for line in lines)
    assert any(line.split() == ["runs/second", "none"] for line in lines)
