"""The page in a real browser, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HEADINGS = [
    "At a glance",
    "Latents, by KL",
    "Effect of each latent",
    "Training",
    "Course of the run",
    "Distributions",
]
HEADINGS += [
    "Aggregate posterior",
    "Dependence between latents",
    "Scores",
    "Geometry of the decoder",
    "Similarity of layers",
    "Settings",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium on this machine")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1400, 700])
@pytest.mark.parametrize("name", ["image_run", "flat_run", "colour_run"])
def test_the_page_reads_well_in_a_browser(
    browser: Any, request: pytest.FixtureRequest, name: str, width: int
) -> None:
    run: Path = request.getfixturevalue(name)
    page = browser.new_page(viewport={"width": width, "height": 900})
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda sent: requests.append(sent.url))
    page.goto((run / "report.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")

    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("h2").all_inner_texts() == HEADINGS
    pictures = page.evaluate("[...document.images].map(image => image.complete && image.naturalWidth > 0)")
    assert pictures
    assert all(pictures)
    charts = page.evaluate(
        "[...document.querySelectorAll('.chart svg')].map(s => s.getBoundingClientRect().height)"
    )
    assert min(charts) > 60
    assert page.evaluate("getComputedStyle(document.body).fontFamily").startswith(
        "system-ui"
    )  # the CSP lets styles in
    page.close()
