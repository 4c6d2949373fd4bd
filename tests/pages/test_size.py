"""A sizing as a page: what it says is what was found, for every kind of answer."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from pages.test_browser import browser  # noqa: F401 (a fixture)
from pages.test_report import Checker
from polariscope.analysis.convergence import TrainingState
from polariscope.analysis.noise import Noise
from polariscope.analysis.verdict import Verdict
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.pages.report import report
from polariscope.pages.sections.size import (
    MAX_PANELS,
    candidate_value,
    latest,
    panels_of,
    path_figure,
    save_figure,
    size_view,
)
from polariscope.pages.size import disagreements, read_sizes, size_page, verdict, write_size_page
from polariscope.sizing.result import DataDimension, Size, path_table
from polariscope.sizing.size import keep_size, write_size
from polariscope.sizing.trial import Trial
from polariscope.storage.documents import read_settings
from tooltips import without_tooltips

HOSTILE = "<script>alert('note')</script>"


def trial(n: int, statistic: float, decision: Any, seed: int = 0, steps: int = 800, **more: Any) -> Trial:
    curve = tuple((step, statistic + n * 0.5 ** (step / 50)) for step in range(25, steps + 1, 25))
    return Trial(n, seed, statistic, decision, steps, curve=curve, **more)


FONDUE = Size(
    11,
    (10, 12),
    "fondue",
    threshold=1.0,
    per_seed=(11, 11),
    trials=(
        trial(64, 21.0, "too many", steps=400, role="wide"),
        trial(11, 0.6, "undecided", steps=400, projected=(0.4, 1.3)),
        trial(11, 0.5, "fits", projected=(0.4, 0.6)),
        trial(12, 1.2, "undecided", steps=1600, projected=(0.9, 1.6), cause="above-unsettled"),
        trial(10, 0.4, "fits", seed=1),
        trial(11, 0.5, "fits", seed=1),
        trial(12, 1.4, "too many", seed=1),
    ),
    n_steps=6000,
    meaning_of_interval="lowest and highest of 2 seeds",
    notes=(HOSTILE,),
)
BETA = Size(
    2.83,
    (2.83, 3.36),
    "fondue",
    target="beta",
    threshold=1.0,
    per_seed=(2.83,),
    trials=tuple(
        dataclasses.replace(trial(7, value, decision), beta=beta)
        for beta, value, decision in ((1.0, 0.4, "fits"), (4.0, 1.9, "too many"), (2.83, 0.9, "fits"))
    ),
    n_steps=2400,
)
ELBOW = Size(
    8,
    (7, 9),
    "elbow",
    statistic="reconstruction loss",
    per_seed=(8,),
    trials=tuple(
        Trial(n, 0, 100.0 + max(0, 8 - n), "fits" if n <= 8 else "too many", 2000) for n in (2, 4, 8, 16)
    ),
    n_steps=8000,
)
UNITS = Size(
    12,
    (12, 13),
    "active-units",
    statistic="latents in use",
    per_seed=(12,),
    trials=(trial(32, 12.0, "too many"),),
)
DIMENSION = Size(5, (5, 6), "id", statistic="intrinsic dimension", per_seed=(5,))
NONE = Size(None, None, "probe-elbow", statistic="probe accuracy", notes=("There is no knee.",))
NEGATIVE = Size(
    3,
    (3, 3),
    "fondue-ib",
    statistic="H(z) − I(x, x̂)",
    threshold=-0.01,
    per_seed=(3,),
    trials=(Trial(3, 0, -0.5, "fits", 100), Trial(4, 0, 0.2, "too many", 100)),
)
ALL = (FONDUE, ELBOW, UNITS, DIMENSION, NONE, NEGATIVE)
SETTINGS = {
    "data": {"name": "sprites", "image_size": 32, "fingerprint": "ab"},
    "method": "fondue",
    "target": "latents",
    "seed": 0,
    "seeds": 2,
    "goal": {
        "threshold": 1.0,
        "n_init": None,
        "cap": 512,
        "steps": None,
        "epochs": None,
        "learning_rate": 0.001,
    },
    "recipe": {"objective": "vae", "net": "conv"},
}


def folder_of(place: Path, size: Size) -> Path:
    write_size(place, size, {**SETTINGS, "method": size.method, "target": size.target})
    return place


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("sizes")
    made = {}
    for name, size in {"fondue": FONDUE, "beta": BETA, "id": DIMENSION, "negative": NEGATIVE}.items():
        made[name] = write_size_page(folder_of(place / name, size))
    for size in ALL:
        if size.value is not None:  # a method without an answer keeps none
            folder_of(place / "<b>all" / size.method, size)
    made["all"] = write_size_page(place / "<b>all", ALL)
    return made


NAMES = ("fondue", "beta", "id", "negative", "all")


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_one_well_formed_file_that_needs_nothing_else(pages: dict[str, Path], name: str) -> None:
    page = pages[name].read_text(encoding="utf-8")
    checker = Checker(page)
    assert checker.open == []
    assert page.startswith("<!DOCTYPE html>")
    ids = [attributes["id"] for _, attributes in checker.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for tag, a in checker.tags if tag == "a" and a["href"]} <= set(ids)
    assert not re.search(r"https?://", page)
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert "<b>all" not in page
    assert all("scope" in attributes for tag, attributes in checker.tags if tag == "th")
    charts = [a for tag, a in checker.tags if tag == "svg" and a.get("role") == "img"]
    assert all(a["aria-label"] for a in charts)
    assert len(page.encode()) < 1_000_000


def test_the_page_says_the_answer_first_then_path_notes_and_settings(pages: dict[str, Path]) -> None:
    page = pages["fondue"].read_text(encoding="utf-8")
    assert "<h1>11 latents (10–12)</h1>" in page
    rows = re.findall(r"<tr><td>(\d)</td><td>(\d+)</td><td>([\d.]+)</td><td>([\d,]+)</td>", page)
    assert rows == [
        (str(t.seed), str(t.n_latents), f"{t.statistic:.3f}", f"{t.steps:,}") for t in FONDUE.trials
    ]
    assert page.count('<span class="pill mixed">undecided</span>') == 2
    assert page.count("&lt;script&gt;alert(") == 1
    assert "lowest and highest of 2 seeds" in page
    assert "image_size=32" in page
    assert "learning_rate=0.001" not in page  # it was not given: the method's own


def test_the_page_begins_with_the_state_and_shows_three_numbers(tmp_path: Path) -> None:
    fit = Verdict(11, tuple(range(9)), (9, 10), TrainingState("converged", 2000))
    size = dataclasses.replace(FONDUE, verdict=fit, dimension=DataDimension(4.2, (4.0, 4.4), 500))
    write_size(tmp_path, size, SETTINGS)
    page = write_size_page(tmp_path).read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", "", page)  # words of the glossary are marked up
    assert "Training has converged. A model uses 11 latents" in text
    cards = re.findall(
        r'<span class="name">([^<]+)</span><span class="figure">([^<]+)</span>', without_tooltips(page)
    )
    assert ("latents", "11") in cards
    assert ("in use in the fit", "9") in cards
    assert ("intrinsic dimension of the data", "4") in cards
    assert size.about_differences in text
    equal = dataclasses.replace(size, verdict=None, dimension=None)
    write_size(tmp_path, equal, SETTINGS)
    assert "answer different questions" not in write_size_page(tmp_path).read_text(encoding="utf-8")


def test_the_code_that_repeats_it_is_python_and_asks_the_same(pages: dict[str, Path], tmp_path: Path) -> None:
    for size, expected in ((FONDUE, "ps.size("), (BETA, "n_latents=7")):
        page = size_page(read_sizes(folder_of(tmp_path / size.target, size))).render()
        code = re.search(r"<code>(import polariscope.*?)</code>", page, flags=re.S).group(1)  # type: ignore[union-attr]
        code = code.replace("&#39;", "'")
        compile(code, "repeat", "exec")
        assert expected in code
    assert "ps.compare_sizes(" in pages["all"].read_text(encoding="utf-8")


def test_the_same_record_gives_the_same_bytes(pages: dict[str, Path]) -> None:
    first = pages["fondue"]
    before = first.read_bytes(), (first.parent / "size.png").read_bytes()
    write_size_page(first.parent)
    assert (first.read_bytes(), (first.parent / "size.png").read_bytes()) == before


def test_a_comparison_shows_every_method_its_cost_and_its_disagreement(pages: dict[str, Path]) -> None:
    page = pages["all"].read_text(encoding="utf-8")
    for size in ALL:
        assert f"{size.method}: {size.answer}</h2>" in page
        assert f'<th scope="row" class="left">{size.method}</th>' in page
    assert "−3, intervals do not overlap" in page
    assert "not comparable" in page
    assert verdict(ALL) in page


def test_disagreement_is_the_difference_and_whether_intervals_meet() -> None:
    found = {row.size.method: (row.difference, row.overlaps) for row in disagreements(ALL)}
    assert found["fondue"] == (0, True)
    assert found["elbow"] == (-3, False)  # 7–9 and 10–12
    assert found["active-units"] == (1, True)
    assert found["probe-elbow"] == (None, False)
    assert verdict((FONDUE, UNITS)).endswith("1 of the 1 other agrees with fondue within the intervals.")
    assert verdict((NONE, NONE)) == "None of the 2 methods has an answer."
    assert verdict((FONDUE, NONE)) == "Only fondue of the 2 methods has an answer: 11 latents."
    assert verdict((FONDUE, NONE, UNITS)).startswith("The 2 of 3 methods that have an answer give ")
    assert verdict((NONE, FONDUE, UNITS)).endswith(f"; {NONE.method} has no answer.")
    assert [row.difference for row in disagreements((NONE, FONDUE))] == [None, None]


def test_the_last_word_on_a_candidate_is_drawn() -> None:
    assert [(t.n_latents, t.seed, t.statistic) for t in latest(FONDUE)] == [
        *((10, 1, 0.4), (11, 0, 0.5), (11, 1, 0.5)),
        *((12, 0, 1.2), (12, 1, 1.4), (64, 0, 21.0)),
    ]
    assert [candidate_value(BETA, t) for t in latest(BETA)] == [1.0, 2.83, 4.0]


def test_the_figure_holds_every_candidate_the_threshold_and_the_answer() -> None:
    axes = path_figure(FONDUE).axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert sorted(zip(*lines["fits"].get_data(), strict=True)) == [(10, 0.4), (11, 0.5), (11, 0.5)]
    assert sorted(zip(*lines["too many"].get_data(), strict=True)) == [(12, 1.4), (64, 21.0)]
    assert lines["undecided"].get_markerfacecolor() == "white"
    levels = [line.get_ydata()[0] for line in axes.get_lines() if line.get_linestyle() == "--"]
    assert levels == [1.0]
    assert "threshold 1" in {text.get_text() for text in axes.texts}
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert path_figure(NEGATIVE).axes[0].get_yscale() == "linear"


def test_many_candidates_show_the_trainings_next_to_the_answer() -> None:
    many = dataclasses.replace(FONDUE, trials=tuple(trial(n, n / 11, "fits") for n in range(1, 31)))
    shown = panels_of(many)
    assert len(shown) == MAX_PANELS
    assert shown == [float(n) for n in range(5, 17)]
    assert size_view(many, "key")["n_hidden"] == 30 - MAX_PANELS


def test_columns_in_which_nothing_is_said_are_left_out() -> None:
    assert size_view(FONDUE, "key")["heading"][-2:] == ("projected", "note")
    assert size_view(ELBOW, "key")["heading"] == ("latents", "reconstruction loss", "steps", "decision")
    assert size_view(UNITS, "key")["path"] is None  # a single point is no curve


def test_a_folder_without_an_answer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no size.json; make one with polariscope.size"):
        read_sizes(tmp_path)


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    file = folder_of(tmp_path, FONDUE) / "size.json"
    text = file.read_text(encoding="utf-8")
    file.write_text(
        text[:-40] if damage == "cut" else text.replace('"value": 11', '"value": 12'), encoding="utf-8"
    )
    with pytest.raises(PolariscopeError, match=r"size\.json"):
        read_sizes(tmp_path)


def test_a_run_with_a_size_shows_it_in_its_report_and_one_without_does_not(
    busy_run: Path, tmp_path: Path
) -> None:
    assert 'id="size"' not in (busy_run / "report.html").read_text(encoding="utf-8")
    run = shutil.copytree(busy_run, tmp_path / "run")
    settings = {**SETTINGS, "data": read_settings(run)["data"]}
    write_size(tmp_path / "size", FONDUE, settings)
    keep_size(tmp_path / "size", run)
    page = report(run, n_samples=500).read_text(encoding="utf-8")
    checker = Checker(page)
    ids = [attributes["id"] for _, attributes in checker.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert '<h2 id="size">Number of latents</h2>' in page
    assert "11 latents (10–12)" in page
    assert "This model has 2." in page


@pytest.mark.browser
@pytest.mark.parametrize("width", [1400, 500])
@pytest.mark.parametrize("name", ["fondue", "beta", "all"])
def test_the_page_reads_well_in_a_browser(
    browser: Any,  # noqa: F811
    pages: dict[str, Path],
    name: str,
    width: int,
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(pages[name].as_uri())
    assert complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    heights = page.evaluate(
        "[...document.querySelectorAll('.chart svg')].map(s => s.getBoundingClientRect().height)"
    )
    assert min(heights) > 60
    page.close()


def test_an_answer_of_0_is_drawn_without_a_warning(tmp_path: Path) -> None:
    """On a logarithmic axis, which 1 and 64 latents ask for, 0 has no place."""
    trials = (trial(64, 21.0, "too many"), trial(1, 18.3, "undecided"))
    size = Size(0, (0, 512), "fondue", threshold=1.0, per_seed=(0,), trials=trials)
    save_figure([size], tmp_path / "size.png")
    assert "latents" in size_view(size, "size")["path"]


def test_the_noise_of_the_answer_stands_beside_it_and_that_of_each_model_in_its_row(tmp_path: Path) -> None:
    trials = tuple(dataclasses.replace(each, gamma=0.125) for each in FONDUE.trials)
    size = dataclasses.replace(FONDUE, noise=Noise(0.125, True, 1.0, 1e-4), trials=trials)
    said = "γ = 0.125 (learned; the mean feature variance is 1): directions with variance below γ count as noise."
    assert said in str(size)
    assert Size.from_dict(json.loads(json.dumps(size.to_dict()))) == size
    heading, *rows = path_table(size).lines
    assert heading[-1] == "γ"
    assert {row[-1] for row in rows} == {"0.125"}
    page = write_size_page(folder_of(tmp_path / "size", size)).read_text(encoding="utf-8")
    assert said in re.sub("<[^>]*>", "", page)
    assert "count as noise" not in str(FONDUE)


def test_answers_from_before_there_was_noise_are_read() -> None:
    stored = FONDUE.to_dict()
    del stored["noise"]
    for each in stored["trials"]:
        del each["gamma"]
    assert Size.from_dict(stored) == FONDUE
