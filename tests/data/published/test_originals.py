"""Every published dataset gives back what small files in its original format hold."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import originals
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.references import references
from polariscope.data.cache import originals_folder
from polariscope.data.dataset import family
from polariscope.data.originals import AbstractPublishedDataset
from polariscope.data.sources import load_dataset, load_recorded

NAMES = [name for name in family if issubclass(family[name], AbstractPublishedDataset)]


def arrays_in(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*.npy") if "sizes" not in path.name)


def test_every_published_dataset_is_tried():
    assert sorted(originals.WRITERS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_images_and_factors_are_those_of_the_files(name: str, folder: Path) -> None:
    written = originals.WRITERS[name](folder)
    data = load_dataset(name, path=str(folder))
    everything = np.arange(len(data))
    np.testing.assert_array_equal(data.factors(everything), written.factors)
    if written.images is not None:
        np.testing.assert_array_equal(data.images(everything), written.images)
    values = data.values(everything[::-1])
    np.testing.assert_array_equal(values, data.images(everything)[::-1].astype(np.float32) / np.float32(255))


@pytest.mark.parametrize("name", NAMES)
def test_files_are_unpacked_once_and_only_when_an_image_is_asked_for(
    name, folder, cache, monkeypatch
) -> None:
    originals.WRITERS[name](folder)
    data = load_dataset(name, path=str(folder))
    assert data.footprint().disk_bytes > 0
    assert "will be put into the cache folder" in data.footprint().words
    assert arrays_in(cache) == []
    first = data.images([0, 1])
    (array,) = arrays_in(cache)
    assert (
        array.stat().st_size - 128 - 2 * 32 == data.cached_bytes
    )  # a header, the digest of a block and a seal
    assert "are in the cache folder" in data.footprint().words
    again = load_dataset(name, path=str(folder))
    monkeypatch.setattr(type(again), "_write", lambda *args: pytest.fail("it was unpacked before"))
    np.testing.assert_array_equal(again.images([0, 1]), first)


@pytest.mark.parametrize("name", NAMES)
def test_by_name_alone_the_cache_folder_is_looked_in(name: str) -> None:
    where = originals_folder(name)
    with pytest.raises(
        InputError, match=rf"{name} needs .*, but .*originals/{name} does not exist; .*{name}:PATH"
    ):
        load_dataset(name)
    where.mkdir(parents=True)
    with pytest.raises(
        InputError,
        match=rf"originals/{name} does not contain it; .*download.* to .*originals/{name}",
    ):
        load_dataset(name)
    written = originals.WRITERS[name](where)
    np.testing.assert_array_equal(load_dataset(name).factors([1]), written.factors[1:2])


@pytest.mark.parametrize("name", NAMES)
def test_who_can_be_fetched_says_how_and_others_say_where_they_are(name: str) -> None:
    kind = family[name]
    words = "polariscope data fetch" if all(file.url for file in kind.files_for()) else kind.homepage
    with pytest.raises(InputError, match=words):
        load_dataset(name)
    assert kind.homepage.startswith("http")
    assert kind.licence
    assert kind.citation in references()


@pytest.mark.parametrize("name", NAMES)
def test_a_record_leads_back_to_the_same_files_until_they_change(name: str, folder: Path) -> None:
    originals.WRITERS[name](folder)
    data = load_dataset(name, path=str(folder))
    record = json.loads(json.dumps(data.describe(), allow_nan=False))
    again = load_recorded(record)
    assert again.describe() == record
    changed = max(
        (file for file in folder.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size
    )
    changed.write_bytes(changed.read_bytes() + b"x")
    with pytest.raises(PolariscopeError):  # the file is refused, or it is noticed that it changed
        load_recorded(record).images([0])


@pytest.mark.parametrize("name", NAMES)
def test_the_fingerprint_is_that_of_the_contents_wherever_they_lie(
    name: str, folder: Path, tmp_path: Path
) -> None:
    originals.WRITERS[name](folder)
    fingerprint = load_dataset(name, path=str(folder)).fingerprint
    moved = folder.rename(tmp_path / "moved")
    assert load_dataset(name, path=str(moved)).fingerprint == fingerprint


@pytest.mark.parametrize("name", NAMES)
def test_another_process_opens_the_files_itself(name: str, folder: Path) -> None:
    originals.WRITERS[name](folder)
    data = load_dataset(name, path=str(folder))
    data.images([0])
    sent = pickle.dumps(data)
    assert len(sent) < 1000
    np.testing.assert_array_equal(pickle.loads(sent).images([0, 1]), data.images([0, 1]))


@pytest.mark.parametrize("name", NAMES)
def test_memory_stays_within_what_is_stated(name: str, folder: Path) -> None:
    import tracemalloc

    originals.WRITERS[name](folder)
    data = load_dataset(name, path=str(folder))
    data.values([0])
    indices = np.arange(64) % len(data)
    stated = data.footprint().memory_bytes
    tracemalloc.start()
    data.values(indices)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= stated


@pytest.mark.parametrize("name", NAMES)
def test_every_cut_of_the_largest_file_is_refused_and_leaves_no_images(name, folder, cache) -> None:
    originals.WRITERS[name](folder)
    largest = max(
        (file for file in folder.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size
    )
    whole = largest.read_bytes()
    for share in (0, 0.1, 0.5, 0.9):
        largest.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(InputError) as error:
            load_dataset(name, path=str(folder)).images([0])
        assert folder.name in str(error.value)
        assert arrays_in(cache) == []
        assert not list(cache.rglob("*.part"))
