"""Looking at datasets."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import polariscope as ps
from polariscope.cli.preview import GAP, GREY, contact_sheet


def test_data_list_names_every_dataset_and_how_files_are_given(call):
    printed = call("data list").out
    assert "737,280" in printed
    assert "arrays:PATH" in printed
    for name in ps.datasets:
        assert f" {name}" in printed


def test_data_info_tells_size_shape_and_factors(call):
    printed = call("data info sprites --image-size 32").out
    assert "737,280 observations of 32×32 pixels, grey." in printed
    rows = [line.split() for line in printed.splitlines()]
    assert ["orientation", "40", "cyclic"] in rows
    assert "image_size = 32" in printed


def test_data_info_of_a_file(call):
    np.savez("rows.npz", X=np.zeros((7, 3)))
    printed = call("data info arrays:rows.npz")
    assert printed.code == 0
    assert "7 observations of 3 features." in printed.out
    assert "No known factors." in printed.out


def test_a_sheet_holds_the_images_row_by_row_between_grey_gaps():
    images = np.arange(5 * 200 * 300, dtype=np.uint32).reshape(5, 1, 200, 300).astype(np.uint8)
    sheet = np.asarray(contact_sheet(images))
    assert sheet.shape == (2 * 202 + GAP, 3 * 302 + GAP)
    for position in range(5):
        row, column = divmod(position, 3)
        top, left = GAP + row * 202, GAP + column * 302
        assert (sheet[top : top + 200, left : left + 300] == images[position, 0]).all()
    assert (sheet[:GAP] == GREY).all()
    assert (sheet[GAP + 202 :, GAP + 2 * 302 :] == GREY).all()  # the empty sixth place


def test_preview_writes_the_same_sheet_for_the_same_seed_and_another_for_another(call, elsewhere):
    assert (
        call("data preview sprites --image-size 16 --samples 9 --out a.png").out
        == "9 images of sprites in a.png\n"
    )
    call("data preview sprites --image-size 16 --samples 9 --out b.png")
    call("data preview sprites --image-size 16 --samples 9 --seed 1 --out c.png")
    first, again, other = ((elsewhere / name).read_bytes() for name in ("a.png", "b.png", "c.png"))
    assert first == again != other
    with Image.open("a.png") as image:
        assert image.size[0] % (3 * 18 + GAP) == 0
    assert {path.name for path in elsewhere.iterdir()} == {"a.png", "b.png", "c.png"}


def test_preview_of_flat_data_is_a_table_of_the_first_rows(call):
    data = ps.load_dataset("gaussian", eigenvalues=(3.0, 2.0))
    printed = call("data preview gaussian --eigenvalues 3,2 --samples 10000").out
    row = next(line.split() for line in printed.splitlines() if line.split()[:1] == ["1"])
    values = data.values(np.arange(len(data)))
    assert float(row[2]) == pytest.approx(values[:, 1].std(), rel=1e-3)  # shown with four digits
    assert float(row[5]) == pytest.approx(values[0, 1], rel=1e-3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("data info sprits", "no dataset named 'sprits'; .*Did you mean 'sprites'"),
        ("data info sprites --image-sze 32", "no option --image-sze; did you mean --image-size"),
        ("data info sprites --image-size 3", "--image-size must be at least 8"),
        ("data info sprites --eigenvalues 3", "it belongs to data gaussian"),
        ("data info missing.npz", "there is no file .*missing.npz"),
        ("data info arrays:missing.npz", "missing.npz"),
        ("data preview sprites --out a.jpg", "--out must end in .png, got a.jpg"),
        ("data preview sprites --out .", "--out must end in .png"),
        ("data preview gaussian --out a.png", "--out is for images"),
        ("data preview sprites --image-size 512 --samples 400", "draw fewer"),
    ],
)
def test_a_wrong_call_is_refused_in_words_and_writes_nothing(call, elsewhere, words, message):
    import re

    refused = call(words)
    assert refused.code == 2
    assert re.search(message, refused.err)
    assert not list(elsewhere.iterdir())
