"""Looking at datasets."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_a_first_line_that_could_be_names_or_a_sample_is_decided_by_a_flag(call):
    Path("iris.csv").write_text("5.1,3.5,Iris-setosa\n4.9,3.0,Iris-setosa\n7.0,3.2,Iris-versicolor\n")
    refused = call("data info iris.csv --labels 2")
    assert refused.code == 2
    assert "--header yes|no" in refused.err
    assert "3 observations of 2 features." in call("data info iris.csv --header no --labels 2").out
    assert "2 observations of 2 features." in call("data info iris.csv --header yes --labels Iris-setosa").out


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
        ("data preview sprites --out .", "--out must be a file, got the folder"),
        ("data preview gaussian --out a.png", "--out is for images"),
        ("data preview sprites --image-size 512 --samples 400", "draw fewer"),
    ],
)
def test_a_wrong_call_is_refused_in_words_and_writes_nothing(call, elsewhere, words, message):
    refused = call(words)
    assert refused.code == 2
    assert re.search(message, refused.err)
    assert not list(elsewhere.iterdir())


TABLE = "name,height,weight,species\nann,1.5,3,owl\nbob,2.5,4,cat\neve,3.5,8,owl\n"
READ = "--labels species --row-names name"


def test_info_and_preview_of_a_table_show_its_names(call):
    Path("table.csv").write_text(TABLE)
    printed = call(f"data info table.csv {READ}").out
    assert "3 observations of 2 features." in printed
    assert "Classes of species: cat, owl" in printed
    assert "Features: height, weight" in printed
    assert f"polariscope data preview table.csv {READ}\n" in printed
    rows = [line.split() for line in call(f"data preview table.csv {READ}").out.splitlines()]
    assert ["feature", "mean", "std", "min", "max", "ann", "bob", "eve"] in rows
    assert ["weight", "5", "2.16", "3", "8", "3", "4", "8"] in rows


def test_info_says_how_a_file_was_read(call):
    np.savez("data.npz", X=np.eye(3), y=np.arange(3), weights=np.ones(3))
    printed = call("data info data.npz").out
    assert "How it was read: factors are 'y'; not used: 'weights'." in printed
    assert printed.count("factors are 'y'") == 1


def test_a_folder_is_previewed_as_the_network_sees_it(call):
    Path("photos").mkdir()
    for number in range(4):
        Image.fromarray(np.full((10, 12), 50 * number, np.uint8)).save(f"photos/{number}.png")
    assert call("data preview photos --out sheet.png").out == "4 images of images in sheet.png\n"
    with Image.open("sheet.png") as sheet:
        assert sheet.mode == "L"
        assert set(np.unique(np.asarray(sheet))) == {0, 50, 100, 150, GREY}


def bad_files() -> None:
    """One file or folder of each kind that cannot be used."""
    Path("text.csv").write_text(TABLE)
    Path("missing.csv").write_text("a,b\n1,2\n3,\n")
    Path("odd.xlsx").write_text("x")
    Path("broken.npz").write_text("x")
    np.savez("objects.npz", X=np.array([{}], dtype=object))
    np.savez("nan.npz", X=np.array([[np.nan]]))
    np.savez("mixed.npz", X=np.eye(3), y=np.arange(2))
    for name in ("empty", "mixed", "cut", "plain"):
        Path(name).mkdir()
    for name in ("mixed/a.png", "plain/a.png", "cut/a.png"):
        Image.new("L", (8, 8)).save(name)
    Image.new("L", (9, 8)).save("mixed/b.png")
    Path("cut/b.png").write_bytes(Path("cut/a.png").read_bytes()[:40])
    Path("labels.csv").write_text("file,kind\nb.png,owl\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "text.csv",
            "column 'name' contains 'ann' in row 0, which is not a number; column 'species' .*--columns.*--labels",
        ),
        ("missing.csv", "column 'b' lacks 1 value, first in row 1"),
        ("odd.xlsx", "no dataset reads odd.xlsx"),
        ("broken.npz", "broken.npz must be an npz file of plain arrays"),
        ("objects.npz", "without object arrays"),
        ("nan.npz", "nan.npz lacks 1 of 1 values"),
        ("mixed.npz", "a row for each of the 3 samples"),
        ("empty", "be a folder with files ending in"),
        ("mixed", "2 sizes.*--image-size 64"),
        ("cut", "b.png cannot be read as an image"),
        ("plain --labels labels.csv", "labels.csv does not match the pictures: there is no picture 'b.png'"),
    ],
)
def test_data_that_cannot_be_used_are_refused_with_the_reason_before_anything_is_written(
    call, elsewhere, words, message
):
    bad_files()
    before = sorted(elsewhere.rglob("*"))
    for command in ("data info", "train"):
        refused = call(command, words)
        assert refused.code == 2
        assert re.search(message, refused.err)
        assert "Traceback" not in refused.err
    assert sorted(elsewhere.rglob("*")) == before


def test_a_table_trains_and_its_names_reach_the_representation(call):
    values = np.random.default_rng(0).normal(size=(60, 2))
    rows = [f"r{number},{a:.4f},{b:.4f}" for number, (a, b) in enumerate(values)]
    Path("table.csv").write_text("\n".join(["name,left,right", *rows]))
    called = call("train table.csv --row-names name --net linear --latents 1 --steps 3 --out run --quiet")
    assert (called.code, called.out) == (0, "run\n")
    representation = ps.encode("run", n_samples=None)
    assert representation.ids.tolist() == [f"r{number}" for number in range(60)]
