"""``polariscope study figure``, ``polariscope study select`` and tables for a paper."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from polariscope.testing.study_tables import by_data

FILE = """
objective = "beta"
seeds = 2
[data]
name = "square-linear"
n_samples = 60
[settings]
net = "linear"
n_latents = 2
batch_size = 8
steps = 6
[grid]
beta = [1, 4]
[each.diagnose]
n_samples = 40
n_bootstrap = 5
[each.score]
n_samples = 40
metrics = "mig"
"""


@pytest.fixture
def study(call, elsewhere: Path) -> Path:
    file = elsewhere / "mine.toml"
    file.write_text(FILE)
    assert call("study run mine.toml").code == 0
    return file.parent


def test_figures_are_listed_drawn_and_refused_and_runs_are_chosen(call, study: Path) -> None:
    listed = call("study figure mine.toml")
    ready, lacking = listed.out.split("These figures require more")
    assert "types-by-strength" in ready
    assert "bonheme2023 Fig. 6.5" in " ".join(ready.split())
    assert "probes-by-strength" in lacking
    assert "[each.probes]" in lacking
    assert "[each.geometry]" in lacking

    drawn = call("study figure mine.toml types-by-strength --out f.svg --csv f.csv")
    assert drawn.code == 0
    assert "<text" in (study / "f.svg").read_text()
    rows = list(csv.DictReader((study / "f.csv").read_text().splitlines()))
    assert [(row["strength"], row["type"]) for row in rows[:2]] == [("1", "active"), ("1", "mixed")]
    call("study figure mine.toml truncation --quantity mi --where beta=4 --csv t.csv")
    assert (study / "mine/figures/truncation.svg").exists()
    assert {row["strength"] for row in csv.DictReader((study / "t.csv").read_text().splitlines())} == {"4"}

    wrong = call("study figure mine.toml types-by-strength --strengt beta")
    assert wrong.code == 2
    assert "did you mean --strength?" in wrong.err
    missing = call("study figure mine.toml distance-line-search")
    assert missing.code == 2
    assert "add ds to the metrics of [each.score] and add [each.geometry], then run" in missing.err
    unknown = call("study figure mine.toml tipes")
    assert unknown.code == 2
    assert "no figure named 'tipes'" in unknown.err

    chosen = call(
        "study select mine.toml --metric mig"
    )  # 12 steps: no run uses as many latents as factors vary
    assert chosen.code == 2
    assert (
        "every run with a value in column 'mig' has fewer latents in use than factors that vary" in chosen.err
    )

    paper = call("study paper mine.toml --format latex --columns mig").out
    assert paper.startswith("\\begin{tabular}{lr}\n\\toprule\nbeta & MIG \\\\")
    assert call("study paper mine.toml --out t.md").code == 0
    assert (study / "t.md").read_text().startswith("| beta | MIG |")
    assert call("study paper mine.toml --out t.tex --digits 1").code == 0
    assert (study / "t.tex").read_text().startswith("\\begin{tabular}")
    refused = call("study table mine.toml --across beta")
    assert refused.code == 2
    assert "No such option: --across" in refused.err
    wrong = call("study paper mine.toml --format csv")
    assert wrong.code == 2
    assert "--format must be one of md, latex" in wrong.err
    assert "there are latex, md" in call("study paper mine.toml --out t.csv").err
    assert call("study table mine.toml --paper --over-seeds").code == 2
    long = call("study seeds mine.toml --format md --columns mig").out
    assert long.startswith("| beta | column | n | mean |")


def test_runs_are_chosen_within_each_dataset_and_the_text_says_so(
    call, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere / "mine.toml").write_text(FILE)
    runs = by_data(lambda data, seed: {"mig": 0.1 * seed + (data == "original"), "udr": float(seed)})
    monkeypatch.setattr("polariscope.studies.table_rows.study_table", lambda _: runs)
    shown = call("study select mine.toml --metric mig").out
    first, second = shown.split("data=changed:")
    assert first.startswith("data=original:\n")
    assert "original,3" in first
    assert "changed,3" in second
    assert "original" not in second
    assert "Runs are ranked within each dataset (data), not across datasets." in second
