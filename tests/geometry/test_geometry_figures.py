"""Figures show the numbers of their records; animations their frames."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageSequence

from geometry.models import codes, curved_model, optimal_model
from polariscope.core.errors import InputError
from polariscope.core.pictures import to_pictures
from polariscope.geometry import geometry_figures as figures
from polariscope.geometry.animation import write_gif
from polariscope.geometry.eigenfaces import eigenfaces
from polariscope.geometry.interpolation import interpolate
from polariscope.geometry.loss_split import split_reconstruction
from polariscope.geometry.orthogonality import decoder_orthogonality
from polariscope.geometry.pca import align_with_pca
from polariscope.geometry.robustness.corruption_probe import corruption_probe
from polariscope.geometry.traversals import Traversals, traverse_code, traverse_plane

IMAGES = np.random.default_rng(0).random((40, 1, 8, 8)).round().astype(np.float32)


def svg(figure):
    file = io.StringIO()
    figure.savefig(file, format="svg")
    return file.getvalue()


def picture_count(figure):
    return sum(len(axes.images) for axes in figure.axes)


def test_charts_show_the_numbers_of_their_records():
    import matplotlib

    model = curved_model(shape=(1, 8, 8))
    found = decoder_orthogonality(model, codes(30, 3))
    split = split_reconstruction(model, IMAGES)
    probed = corruption_probe(model, IMAGES)
    linear, _, _ = optimal_model(np.array([9.0, 4.0, 2.0]), 2)
    aligned = align_with_pca(linear, codes(20, 3))
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        chart = svg(figures.draw_orthogonality(found))
        assert f"random rotation, {found.haar:.2f}" in chart
        assert f"this decoder, {found.value:.2f}" in chart
        assert f"alignment {aligned.value:.3f}" in svg(figures.draw_pca_alignment(aligned))
        assert "flip 0.05" in svg(figures.draw_corruptions(probed))
    bars = figures.draw_loss_split({"a": split, "b": split}).axes[0].patches
    widths = [bar.get_width() for bar in bars]
    np.testing.assert_allclose(widths, [split.deterministic] * 2 + [split.stochastic] * 2)
    heights = [bar.get_height() for bar in figures.draw_corruptions(probed).axes[0].patches]
    expected = [p.retained for p in probed.values()] + [p.spread for p in probed.values()]
    np.testing.assert_allclose(heights, expected)


def test_sheets_hold_every_image_at_its_place():
    model = curved_model(shape=(1, 8, 8))
    plane = traverse_plane(model, np.zeros(3), (0, 1), n_steps=4)
    figure = figures.draw_plane(plane)
    assert picture_count(figure) == 16
    shown = figure.axes[6].images[0].get_array()
    np.testing.assert_array_equal(shown, to_pictures(plane.outputs[1, 2:3])[0, :, :, 0])
    assert picture_count(figures.draw_eigenfaces(eigenfaces(model, IMAGES, n_faces=2))) == 6
    path = interpolate(model, np.zeros(3), np.ones(3), n_steps=5)
    assert picture_count(figures.draw_interpolation(path)) == 5
    values = np.linspace(-1, 1, 3)
    outputs = traverse_code(model, np.zeros(3), (1, 2), values)
    moved = Traversals(0, outputs[0, 0], values, "prior", (1, 2), outputs, None)
    assert picture_count(figures.draw_traversals(moved)) == 6
    assert svg(figures.draw_traversals(moved))


@pytest.mark.usefixtures("unannotated")
def test_flat_data_and_empty_records_are_refused():
    plane = traverse_plane(curved_model(), np.zeros(3), (0, 1), n_steps=3)
    with pytest.raises(InputError, match="requires images"):
        figures.draw_plane(plane)
    for draw in (figures.draw_loss_split, figures.draw_corruptions):
        with pytest.raises(InputError, match="at least one"):
            draw({})


@pytest.mark.usefixtures("unannotated")
def test_what_is_not_a_picture_is_refused(tmp_path):
    with pytest.raises(InputError, match="must be finite"):
        to_pictures(np.full((1, 1, 2, 2), np.nan))
    with pytest.raises(InputError, match="tables have no pictures"):
        to_pictures(np.zeros((3, 7)))
    with pytest.raises(InputError, match="frames must have shape"):
        write_gif(tmp_path / "a.gif", np.zeros((2, 3, 7)))
    with pytest.raises(InputError, match="seconds"):
        write_gif(tmp_path / "a.gif", np.zeros((1, 2, 1, 8, 8)), seconds=0)
    assert list(tmp_path.iterdir()) == []


def test_an_animation_goes_there_and_back_for_ever(tmp_path):
    levels = np.linspace(0, 1, 4)
    frames = np.broadcast_to(levels[None, :, None, None, None], (2, 4, 1, 8, 8)).astype(np.float32)
    path = write_gif(tmp_path / "deep" / "moves.gif", frames, seconds=1.0)
    with Image.open(path) as image:
        assert image.info["loop"] == 0
        assert image.info["duration"] == 250
        shown = [int(np.asarray(frame.convert("L"))[0, 0]) for frame in ImageSequence.Iterator(image)]
        assert image.size == (2 * 64 + 4, 64)
    np.testing.assert_allclose(shown, [0, 85, 170, 255, 170, 85], atol=1)
    assert [file.name for file in path.parent.iterdir()] == ["moves.gif"]


def test_colours_are_kept_and_one_way_is_one_way(tmp_path):
    frames = np.zeros((1, 3, 3, 64, 64), dtype=np.float32)
    frames[0, 0, 0] = frames[0, 1, 1] = frames[0, 2, 2] = 1.0
    with Image.open(write_gif(tmp_path / "colour.gif", frames, bounce=False)) as image:
        shown = [np.asarray(frame.convert("RGB"))[5, 5].tolist() for frame in ImageSequence.Iterator(image)]
    assert shown == [[255, 0, 0], [0, 255, 0], [0, 0, 255]]
