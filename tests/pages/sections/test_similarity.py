"""The comparison of layers comes back from the run, and the page shows it or says how to make it."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

from polariscope.pages.record import ReportRecord, make_record
from polariscope.pages.report import report_page
from polariscope.pages.sections.similarity import similarity_view
from polariscope.runs.compare_models import compare
from polariscope.runs.run import Run


@pytest.fixture(scope="module")
def compared_run(flat_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("compared") / "flat"
    shutil.copytree(flat_run, run)
    Run(run).comparison(n_samples=200)
    return run


def test_the_page_has_the_heat_map_with_its_blocks(compared_run: Path) -> None:
    record = make_record(compared_run, n_samples=200)
    assert "similarity" in record.parts
    page = report_page(record).render()
    section = page[page.index('<section aria-labelledby="similarity">') :]
    section = section[: section.index("</section>")]
    for block in record.parts["similarity"].blocks:
        assert f">{block}</text>" in section
    assert 'id="similarity-' in section
    assert "Not compared yet" not in section
    assert report_page(record).render() == page


def test_layers_of_the_same_name_are_listed_for_two_models_and_not_for_one_with_itself(
    compared_run: Path, tmp_path: Path
) -> None:
    alone = Run(compared_run).comparison(n_samples=200)
    assert similarity_view(alone)["matching"] == {}
    shutil.copytree(compared_run, tmp_path / "twin")
    both = similarity_view(compare([compared_run, tmp_path / "twin"], n_samples=200))
    assert tuple(both["matching"]) == alone.layers
    # the draws of the sampled layer, and what follows from them, need not be the same
    assert both["matching"]["mean"][0] == pytest.approx(1, abs=1e-6)


def test_without_a_comparison_one_line_says_how_to_make_it(flat_run: Path, flat_record: ReportRecord) -> None:
    assert "similarity" not in flat_record.parts
    page = (flat_run / "report.html").read_text(encoding="utf-8")
    assert f"<code>polariscope compare {flat_run}</code>" in page


def test_checkpoints_are_shown_step_against_step_with_a_small_map_for_each_layer() -> None:
    rng = np.random.default_rng(0)
    models = [{"mean": rng.normal(size=(50, 2)), "decoder/1": rng.normal(size=(50, 3))} for _ in range(3)]
    found = compare(models)
    assert similarity_view(found)["steps"] is None
    view = similarity_view(dataclasses.replace(found, checkpoints=((0, 5), (0, 10), (0, 15))))
    assert view["heat_map"].rows == ("step 5", "step 10", "step 15")
    assert view["matching"] == {}
    for word in ("mean", "decoder/1", "5", "15"):
        assert f">{word}</text>" in view["steps"]


def test_many_checkpoints_make_no_large_page() -> None:
    """40 steps of 6 layers: a shape for each cell would be 40 × 6 and 6 × 40 × 40 of them."""
    rng = np.random.default_rng(0)
    models = [{f"layer {i}": rng.normal(size=(30, 2)) for i in range(6)} for _ in range(40)]
    found = dataclasses.replace(compare(models), checkpoints=tuple((0, 5 * step) for step in range(40)))
    view = similarity_view(found)
    assert len(view["heat_map"].rows) == 12
    assert "(12 of 40 steps)" in view["heat_map"].about
    assert 12 * 6 <= view["chart"].count("<path") < 12 * 6 + 30
    assert view["steps"].count("<path") < 30
    assert view["steps"].count("<image") == 6 + 1  # and the bar of colours
    assert len(view["chart"]) + len(view["steps"]) < 150_000


def test_a_map_of_many_layers_is_an_image() -> None:
    rng = np.random.default_rng(0)
    found = compare([{f"layer {i}": rng.normal(size=(30, 2)) for i in range(30)}])
    assert similarity_view(found)["chart"].count("<path") < 100


@pytest.mark.usefixtures("undrawn")
def test_the_page_says_what_the_steps_are(compared_run: Path) -> None:
    record = make_record(compared_run, n_samples=200)
    rng = np.random.default_rng(0)
    found = compare([{"mean": rng.normal(size=(50, 2))} for _ in range(3)])
    found = dataclasses.replace(found, checkpoints=((0, 5), (0, 10), (0, 15)))
    page = report_page(dataclasses.replace(record, parts={**record.parts, "similarity": found})).render()
    assert "each step with itself at step 15" in page
    assert "Similarity between steps" in page
    assert 'id="similarity-steps-' in page
