"""Scores come back as they were, and the page shows them or says what is missing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from polariscope.analysis.metrics import Score, Scores, family
from polariscope.analysis.score import score
from polariscope.pages.record import ReportRecord, make_record
from polariscope.pages.report import report_page
from polariscope.pages.sections.scores import is_no_better_than_chance, scores_view
from polariscope.runs.encode import encode
from polariscope.runs.run import Run

METRICS = "mig,dci:lasso,probe,sap:r2,tc,udr"


@pytest.fixture(scope="module")
def scored_run(image_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("scored") / "image"
    shutil.copytree(image_run, run)
    Run(run).scores(METRICS, n_samples=600)
    return run


@pytest.fixture(scope="module")
def record(scored_run: Path) -> ReportRecord:
    return make_record(scored_run, n_samples=500)


@pytest.fixture(scope="module")
def page(record: ReportRecord) -> str:
    text = report_page(record).render()
    return text[text.index('<section aria-labelledby="scores">') : text.index('aria-labelledby="geometry"')]


def test_what_is_read_is_what_was_scored(scored_run: Path) -> None:
    expected = score(encode(scored_run, n_samples=600), METRICS)
    assert Run(scored_run).scores(METRICS, n_samples=600).to_dict() == expected.to_dict()
    assert expected["tc"].bounds == (0.0, np.inf)


def test_the_record_holds_the_scores_and_the_page_their_numbers_and_meaning(
    record: ReportRecord, page: str
) -> None:
    assert isinstance(record.parts["scores"].scores, Scores)
    assert set(record.parts["scores"].scores.scores) == {"mig", "dci:lasso", "probe", "sap:r2", "tc"}
    rows = re.findall(r'<tr><th scope="row".*?</tr>', page)
    assert len(rows) == 5
    for row, (word, found) in zip(rows, record.parts["scores"].scores.scores.items(), strict=True):
        assert f">{word.partition(':')[0]} " in row
        assert found.variant in row
        assert f"{found.value:.3f}" in row
        assert ("higher" if found.higher_is_better else "lower") in row
        assert family.summary(found.metric).replace("'", "&#39;") in row
    assert "Not scored (udr): it compares several models" in page


def test_the_figures_show_every_latent_and_factor(record: ReportRecord, page: str) -> None:
    for key in ("information", "importance", "probe-sizes", "probe-types"):
        assert f'id="{key}-' in page
    charts = page.split('<div class="card chart">')[1:3]
    assert "scores" in record.parts
    for chart in charts:
        for label in (
            *record.parts["scores"].scores.factor_names,
            *map(str, range(record.parts["scores"].scores.n_latents)),
        ):
            assert f">{label}</text>" in chart


def test_the_information_map_names_the_latent_that_knows_most(record: ReportRecord, page: str) -> None:
    assert "scores" in record.parts
    found = record.parts["scores"].scores["mig"]
    assert found.matrix is not None
    for column, name in enumerate(record.parts["scores"].scores.factor_names):
        share = found.matrix[:, column].max() / found.details["factor_entropies"][column]
        assert f"{name} latent {found.matrix[:, column].argmax()} ({share:.2f})" in page


def test_without_scores_one_line_says_how_to_make_them(image_run: Path, image_record: ReportRecord) -> None:
    assert "scores" not in image_record.parts
    page = (image_run / "report.html").read_text(encoding="utf-8")
    assert f"<code>polariscope score {image_run}</code>" in page
    assert "Factors encoded by each latent" not in page


@pytest.mark.parametrize(
    ("metric", "interval", "chance", "expected"),
    [
        ("mig", (0.1, 0.3), 0.05, False),
        ("mig", (0.1, 0.3), 0.15, True),
        ("mig", None, 0.3, True),
        ("mig", (0.1, 0.3), None, False),
        ("hoyer", (0.1, 0.3), 0.4, False),  # knows no factors, so that chance is no bar to clear
    ],
)
def test_no_better_than_chance_is_when_the_interval_reaches_it(
    metric: str, interval: tuple[float, float] | None, chance: float | None, expected: bool
) -> None:
    found = Score(0.2, interval, chance, (0.0, 1.0), True, "", metric=metric).described()
    assert is_no_better_than_chance(found) is expected


def test_scores_without_figures_have_a_table_only(record: ReportRecord) -> None:
    assert "scores" in record.parts
    few = Scores({"tc": record.parts["scores"].scores["tc"]}, {}, "mean", 600, 6, (), 0)
    view = scores_view(few, record.regime)
    assert view["information"] is view["importance"] is None
    assert view["accuracy"] == []
    assert [row["bar"] for row in view["rows"]] == [None]  # a range without end has no bar
