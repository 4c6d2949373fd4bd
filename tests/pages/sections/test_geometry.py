"""The decoder's geometry in the record and on the page, or the reason why it is not there."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from polariscope.core import pictures as grids
from polariscope.geometry.decoder_function import decode
from polariscope.geometry.orthogonality import N_POINTS, decoder_orthogonality
from polariscope.geometry.summary import N_OBSERVATIONS
from polariscope.geometry.traversals import central_sample
from polariscope.pages.record import ReportRecord, make_record
from polariscope.pages.report import report_page
from polariscope.pages.sections.decoder import N_STEPS
from polariscope.runs.run import Run


def section_of(run: Path) -> str:
    page = (run / "report.html").read_text(encoding="utf-8")
    start = page.index('<section aria-labelledby="geometry">')
    return page[start : page.index("</section>", start)]


def test_the_orthogonality_is_that_of_the_latents_in_use(image_run: Path, image_record: ReportRecord) -> None:
    run = Run(image_run)
    model, codes = run.model(), run.representation(1000).mean
    types = image_record.regime.types
    expected = decoder_orthogonality(model, codes, types=types)
    assert "geometry" in image_record.parts
    found = image_record.parts["geometry"].orthogonality
    assert found is not None
    assert (found.value, found.haar, found.overlap) == (expected.value, expected.haar, expected.overlap)
    assert len(found.distances) == N_POINTS == 500
    assert found.latents == tuple(j for j, kind in enumerate(types) if kind != "passive")
    text = section_of(image_run)
    for number in (found.value, found.haar, found.overlap):
        assert f"{number:.3f}" in text


def test_the_parts_of_the_loss_add_up(image_record: ReportRecord, flat_record: ReportRecord) -> None:
    for record in (image_record, flat_record):
        assert "geometry" in record.parts
        split = record.parts["geometry"].split
        assert split.n_samples == N_OBSERVATIONS
        assert split.total == pytest.approx(split.deterministic + split.stochastic + split.interaction)
        assert split.stochastic > 0


def test_the_noise_of_a_linear_model_neither_biases_nor_is_free(flat_record: ReportRecord) -> None:
    """Draws come with their mirror images, so that the interaction of a linear decoder is rounding error."""
    assert "geometry" in flat_record.parts
    split = flat_record.parts["geometry"].split
    assert abs(split.interaction) < 1e-4 * split.total


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("interaction", "words"), [(-30.0, "the total is 30% less than the sum of the two losses"), (0.0, None)]
)
def test_an_interaction_that_matters_is_said(
    flat_record: ReportRecord, interaction: float, words: str | None
) -> None:
    assert "geometry" in flat_record.parts
    split = dataclasses.replace(
        flat_record.parts["geometry"].split,
        deterministic=60.0,
        stochastic=40.0,
        interaction=interaction,
        total=100.0 + interaction,
        deviation=(1.0, 1.0, 1.0),
    )
    geometry = dataclasses.replace(flat_record.parts["geometry"], split=split)
    page = report_page(
        dataclasses.replace(flat_record, parts={**flat_record.parts, "geometry": geometry})
    ).render()
    assert ("they are not shares of the total" in page) is (words is not None)
    assert words is None or words in page


def test_the_plane_moves_the_two_latents_that_say_most(image_run: Path, image_record: ReportRecord) -> None:
    model, representation = Run(image_run).model(), Run(image_run).representation(1000)
    assert image_record.views is not None
    plane = image_record.views.plane
    assert plane is not None
    first, second = image_record.regime.order[:2]
    assert plane.latents == (first, second)
    assert plane.outputs.shape[:2] == (N_STEPS, N_STEPS)
    code = representation.mean[central_sample(representation, np.zeros(6), np.ones(6))].copy()
    code[first], code[second] = plane.values[1], plane.values[-1]
    np.testing.assert_allclose(plane.outputs[1, -1], decode(model, code[None])[0], atol=1e-5)
    assert f"Latents {first} and {second} together" in section_of(image_run)


def test_flat_data_have_numbers_and_no_pictures(flat_run: Path, flat_record: ReportRecord) -> None:
    assert flat_record.views is not None
    assert flat_record.views.plane is None
    text = section_of(flat_run)
    assert "<img" not in text
    assert "distance to orthogonality" in text


def test_fewer_than_two_latents_in_use_is_the_reason_shown(colour_run: Path) -> None:
    text = section_of(colour_run)
    assert "Orthogonality was not computed: no latent is in use, and an angle requires two latents." in text
    assert "together</h3>" not in text
    assert "Error added by posterior noise" in text


def test_a_model_without_a_decoder_has_no_such_section(headless_run: Path) -> None:
    assert make_record(headless_run, n_samples=200).parts.get("geometry") is None
    page = (headless_run / "report.html").read_text(encoding="utf-8")
    assert "geometry" not in page.lower()


def test_a_deterministic_encoder_has_no_noise(point_run: Path) -> None:
    assert Run(point_run).geometry(n_samples=200).split.stochastic == 0
    assert "has no noise" in section_of(point_run)


@pytest.mark.parametrize(("size", "shown"), [(8, 8), (200, grids.MAX_PIXELS)])
def test_a_sheet_has_every_image_with_gaps_and_large_ones_are_shrunk(size: int, shown: int) -> None:
    images = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3, 1, 1, 1) * np.ones(
        (1, size, size), np.float32
    )
    sheet = grids.sheet(images, (0.0, 1.0))
    gap = max(1, shown // 16)
    assert sheet.shape == (2 * shown + gap, 3 * shown + 2 * gap, 1)
    middles = sheet[shown // 2 :: shown + gap, shown // 2 :: shown + gap, 0]
    np.testing.assert_array_equal(middles, [[0, 51, 102], [153, 204, 255]])
