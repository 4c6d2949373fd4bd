"""The page of a study: everything of the table is on it, nothing is from outside, and it sorts, filters and draws."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polariscope.pages.study import StudyRecord, study_page, write_study_page
from polariscope.storage import report_file
from polariscope.studies.ledger import Ledger
from polariscope.studies.table import Table
from polariscope.studies.worker import Worker
from tiny_studies import tiny


def record(n_seeds: int, strengths: tuple[float, ...] = (1.0, 4.0)) -> StudyRecord:
    """A study with made-up numbers; the last run failed."""
    noise = np.random.default_rng(0)
    rows: list[dict[str, Any]] = [
        {
            **{"run": f"beta={beta:g},seed={seed}", "state": "done", "beta": beta, "seed": seed},
            **{
                "loss": 100.0 + beta + float(noise.normal()),
                "mig": 0.1 * beta,
                "mig.low": 0.05,
                "folder": "f",
            },
        }
        for beta in strengths
        for seed in range(n_seeds)
    ]
    message = "it <b>failed</b> & stopped</script>"
    rows[-1] = {**{k: rows[-1][k] for k in ("run", "beta", "seed")}, "state": "failed", "message": message}
    rows[-1]["mig"] = 0.0  # of an unfinished model, which is not drawn
    table = Table(tuple(rows), ("beta", "seed"), ("One was left out.",))
    return StudyRecord(
        name="made-up",
        design=tiny(Path("x"), grid={"beta": list(strengths)}, seeds=n_seeds).to_dict(),
        counts={"waiting": 0, "running": 0, "done": len(rows) - 1, "failed": 1},
        table=table,
        aggregates=tuple(table.aggregate()),
        failures=((rows[-1]["run"], "error", message),),
        reports={"beta=1,seed=0": "runs/a/page.html"},
    )


def test_the_page_has_every_run_the_design_and_what_failed() -> None:
    page = study_page(record(2)).render()
    assert "<h1>4 runs: 3 done, 1 failed</h1>" in page
    for text in (
        "beta=1,seed=1",
        "One was left out.",
        '<a href="runs/a/page.html">beta=1,seed=0</a>',
        "gaussian",
    ):
        assert text in page
    assert "it &lt;b&gt;failed&lt;/b&gt; &amp; stopped&lt;/script&gt;" in page
    assert page.count("</script>") == 2  # a message cannot end the script
    assert page == study_page(record(2)).render()


def test_the_page_needs_nothing_from_outside_and_runs_only_its_own_script() -> None:
    page = study_page(record(2)).render()
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", page)
    assert re.search(r"default-src 'none'.*script-src 'sha256-[\w+/=]+'", page)
    assert "unsafe-eval" not in page


def test_the_page_of_a_study_on_disk_links_to_the_reports_of_its_runs(tmp_path: Path) -> None:
    ledger = Ledger(tiny(tmp_path, grid={"beta": [1.0]}))
    ledger.prepare()
    Worker(ledger).drain()
    run = ledger.runs[0]
    report_file(run.folder).write_text("a report")
    page = write_study_page(ledger)
    assert page.parent == tmp_path
    link = re.search(r'<a href="(runs/[^"]+)">seed=0</a>', page.read_text())
    assert link is not None
    assert (tmp_path / link[1]).read_text() == "a report"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium on this machine")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=chromium, args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()


@pytest.mark.browser
@pytest.mark.parametrize(("n_seeds", "width"), [(2, 1400), (100, 700)])
def test_the_page_sorts_filters_and_draws(browser: Any, tmp_path: Path, n_seeds: int, width: int) -> None:
    file = tmp_path / "page.html"
    strengths = (1.0, 4.0) if n_seeds == 2 else (1.0, 2.0, 4.0, 8.0)
    file.write_text(study_page(record(n_seeds, strengths)).render(), encoding="utf-8")
    total = n_seeds * len(strengths)
    page = browser.new_page(viewport={"width": width, "height": 900})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("table.runs tbody tr").count() == total
    assert page.locator("#plot circle").count() == total - 1
    page.select_option("#y", "loss")
    assert page.locator("#chosen").inner_text() == "loss"
    head = page.locator('table.runs th[data-name="loss"]')
    head.locator("button").click()
    head.locator("button").click()
    losses = page.locator("table.runs tbody tr td:nth-child(5)").all_inner_texts()
    numbers = [float(text) for text in losses if text]
    assert numbers == sorted(numbers, reverse=True)
    assert losses[-1] == ""  # what has no value comes last
    page.fill("#filter", "beta=4 mig>0.3")
    last_failed = strengths[-1] == 4.0
    assert page.locator("#count").inner_text() == f"{n_seeds - last_failed} of {total}"
    assert page.locator("#plot circle").count() == n_seeds - last_failed
    assert complaints == []
    page.close()
