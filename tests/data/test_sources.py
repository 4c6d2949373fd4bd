"""Names, command-line sources and records lead to the same dataset."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import originals
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.data.cache import VARIABLE, originals_folder
from polariscope.data.dataset import family
from polariscope.data.own.arrays import from_arrays
from polariscope.data.sources import load_dataset, load_recorded, parse_source, source_name


@pytest.fixture
def npz(tmp_path):
    np.savez(tmp_path / "rows.npz", X=np.arange(12.0).reshape(4, 3))
    return tmp_path / "rows.npz"


def test_datasets_are_made_by_name_with_checked_options():
    assert load_dataset("sprites", image_size=16).shape == (1, 16, 16)
    with pytest.raises(InputError, match=r"no dataset named 'sprite'; .* Did you mean 'sprites'"):
        load_dataset("sprite")
    with pytest.raises(InputError, match="no option of dataset 'sprites' named 'size'"):
        load_dataset("sprites", size=3)
    with pytest.raises(
        InputError, match="option image_size of dataset 'sprites' must be an integer, got 'large'"
    ):
        load_dataset("sprites", image_size="large")


def test_what_is_in_memory_is_no_name():
    with pytest.raises(InputError, match=r"name must be the name of a dataset or the path .*use from_arrays"):
        load_dataset(None)


def test_sources_of_a_command_line(npz, tmp_path):
    assert parse_source("sprites", {"image_size": "32"}).shape == (1, 32, 32)
    assert parse_source("gaussian", {"eigenvalues": "2,1", "n_samples": "10"}).shape == (2,)
    np.testing.assert_array_equal(parse_source(f"arrays:{npz}").values([1]), [[3, 4, 5]])
    Image.new("RGB", (4, 4)).save(tmp_path / "x.png")
    assert parse_source(f"images:{tmp_path}", {"image_size": "16", "channels": "1"}).shape == (1, 16, 16)


def test_a_path_may_hold_colons(tmp_path):
    np.save(tmp_path / "a:b.npy", np.eye(2))
    assert len(parse_source(f"arrays:{tmp_path}/a:b.npy")) == 2


def test_a_look_alike_with_a_path_is_its_original(tmp_path, monkeypatch):
    originals.dsprites(tmp_path)
    assert "sprites" in family  # opens its file, which declares its traits
    monkeypatch.setitem(family._traits, "sprites", {"original": "dsprites"})
    data = parse_source(f"sprites:{tmp_path}")
    assert (data.name, len(data)) == ("dsprites", 48)
    assert len(parse_source("sprites")) == 737_280
    assert source_name("sprites:") == "sprites"  # no path follows


def test_a_published_dataset_needs_no_path_where_its_files_are_in_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(InputError, match="'polariscope data fetch dsprites' downloads to"):
        parse_source("dsprites")
    originals_folder("dsprites").mkdir(parents=True)
    originals.dsprites(originals_folder("dsprites"))
    assert len(parse_source("dsprites", {"max_unpacked": "1"})) == 48


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("sprits", {}, "Did you mean 'sprites'"),
        ("sprites:here", {}, "'sprites' does not read files, so write 'sprites' without a path"),
        ("arrays", {}, "reads files; give their path: arrays:PATH"),
        ("images:", {}, "reads files; give their path: images:PATH"),
        ("data/rows.npz", {}, "there is no file .*data/rows.npz"),
        ("data/photos/", {}, "there is no file or folder data/photos/"),
        ("photos", {}, "no dataset named 'photos'"),
        ("arrays:x.npz", {"path": "y.npz"}, "path was passed twice"),
        ("arrays:nowhere.npz", {}, "there is no file .*nowhere.npz"),
    ],
)
def test_sources_that_make_no_sense_are_refused(source, options, words):
    with pytest.raises(InputError, match=words):
        parse_source(source, options)


def test_records_of_files_are_loaded_again_from_anywhere(npz, monkeypatch):
    monkeypatch.chdir(npz.parent)
    data = parse_source("arrays:rows.npz")
    record = json.loads(json.dumps(data.describe()))
    monkeypatch.chdir("/")
    again = load_recorded(record)
    assert again.fingerprint == data.fingerprint
    np.testing.assert_array_equal(again.values(range(4)), data.values(range(4)))


def test_records_of_files_that_changed_are_refused(npz):
    record = parse_source(f"arrays:{npz}").describe()
    np.savez(npz, X=np.zeros((4, 3)))
    with pytest.raises(PolariscopeError, match=r"rows\.npz has changed since it was recorded"):
        load_recorded(record)


def test_records_of_folders_are_loaded_again_until_they_change(tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "x.png")
    record = json.loads(json.dumps(load_dataset("images", path=str(tmp_path), mode="crop").describe()))
    assert load_recorded(record).describe() == record
    Image.new("RGB", (4, 4)).save(tmp_path / "y.png")
    with pytest.raises(PolariscopeError, match="has changed since it was recorded"):
        load_recorded(record)


def test_arrays_in_memory_cannot_be_loaded_again():
    data = from_arrays(np.zeros((5, 2)))
    record = json.loads(json.dumps(data.describe()))
    assert record["shape"] == [5, 2]
    assert record["fingerprint"] == data.fingerprint
    with pytest.raises(
        InputError, match=r"arrays in memory, of shape \(5, 2\), .* pass data with the same arrays"
    ):
        load_recorded(record)


def test_a_record_without_a_name_is_refused():
    with pytest.raises(InputError, match="a dataset's record requires a 'name', got \\['path'\\]"):
        load_recorded({"path": "x"})


def test_paths_need_no_name_in_front(npz, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "photos").mkdir()
    Image.new("L", (5, 4)).save(tmp_path / "photos" / "x.png")
    for source, name, shape in (
        ("rows.npz", "arrays", (3,)),
        (str(npz), "arrays", (3,)),
        ("table.csv", "table", (2,)),
        ("./table.csv", "table", (2,)),
        ("table:table.csv", "table", (2,)),
        ("photos", "images", (1, 4, 5)),
        ("photos/", "images", (1, 4, 5)),
    ):
        for data in (parse_source(source), load_dataset(source)):
            assert (data.name, data.shape) == (name, shape)
    assert load_dataset(npz).name == "arrays"
    (tmp_path / "sprites").mkdir()
    assert parse_source("sprites").name == "sprites"  # a name wins; ./sprites is the folder
    for make in (lambda: parse_source("./sprites"), lambda: load_dataset(Path("sprites"))):
        with pytest.raises(InputError, match="be a folder with files ending in"):
            make()
    (tmp_path / "notes.docx").write_text("x")
    with pytest.raises(
        InputError, match=r"no dataset reads notes.docx; use a folder, or a file ending in \.csv,"
    ):
        parse_source("notes.docx")


def test_every_ending_belongs_to_one_dataset():
    endings = [ending for name in family for ending in family.traits(name).get("endings", ())]
    assert len(set(endings)) == len(endings)
    assert {".npy", ".npz", ".csv", ".tsv", ".parquet", ".h5ad", "/"} <= set(endings)
