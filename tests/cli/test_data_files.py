"""Files of published datasets on the command line: info, fetch, clean, train."""

from __future__ import annotations

from pathlib import Path

import pytest

import originals
from polariscope.data import fetch as fetching
from polariscope.data.cache import VARIABLE, originals_folder
from polariscope.data.originals import OriginalFile
from polariscope.data.published.mnist import MNISTDataset


@pytest.fixture(autouse=True)
def cache(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(elsewhere / "cache"))
    return elsewhere / "cache"


@pytest.fixture
def mnist(elsewhere: Path) -> Path:
    folder = elsewhere / "mnist"
    folder.mkdir()
    originals.mnist(folder)
    return folder


def test_info_tells_room_terms_and_what_to_cite(call, mnist: Path) -> None:
    printed = call("data info mnist:mnist").out
    assert "9 observations of 28×28 pixels, grey." in printed
    assert ["digit", "10", "categorical"] in [line.split() for line in printed.splitlines()]
    assert "7 kB of unpacked images will be put into the cache folder at first use" in printed
    assert "Licence: CC BY-SA 3.0." in printed
    assert "Cite: LeCun et al. (1998), Gradient-Based Learning Applied to Document Recognition" in printed
    assert call("data preview mnist:mnist").code == 0
    assert "unpacked images are in the cache folder" in call("data info mnist:mnist").out


def test_info_of_drawn_data_states_memory_and_no_disk(call) -> None:
    printed = call("data info sprites").out
    assert "no disk space. Observations are computed when they are needed." in printed
    assert "Licence" not in printed


def test_a_missing_file_is_named_with_what_to_do_and_nothing_is_written(call, elsewhere: Path) -> None:
    for words in ("data info dsprites", "train dsprites --steps 1 --out run"):
        refused = call(words)
        assert refused.code == 2
        assert "dsprites needs dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz, but " in refused.err
        assert "originals/dsprites does not exist; " in refused.err
        assert "'polariscope data fetch dsprites' downloads to" in refused.err
    assert not list(elsewhere.iterdir())


def test_data_list_names_published_datasets_with_or_without_their_files(call, mnist: Path) -> None:
    assert "mnist:PATH" in call("data list").out
    originals_folder("mnist").parent.mkdir(parents=True)
    mnist.rename(originals_folder("mnist"))
    rows = [line.split()[:3] for line in call("data list").out.splitlines()]
    assert ["mnist", "9", "1"] in rows


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:40] + b"?" + data[41:]])
def test_a_damaged_file_is_refused_by_the_training_and_leaves_nothing(
    call, elsewhere, mnist, cache, damage
) -> None:
    file = mnist / "train-images-idx3-ubyte.gz"
    file.write_bytes(damage(file.read_bytes()))
    refused = call("train mnist:mnist --steps 1 --out run")
    assert refused.code == 2
    assert "train-images-idx3-ubyte.gz is damaged" in refused.err
    assert not (elsewhere / "run").exists()
    assert not list(cache.rglob("*.npy"))


def test_what_unpacks_to_too_much_is_allowed_by_a_flag(call, mnist: Path) -> None:
    refused = call("data info mnist:mnist --max-unpacked 0.0000001")
    assert refused.code == 2
    assert "raise the limit with --max-unpacked (in gigabytes" in refused.err
    assert call("data info mnist:mnist --max-unpacked 1").code == 0


def test_a_model_is_trained_on_original_files(call, mnist: Path, elsewhere: Path) -> None:
    trained = call("train mnist:mnist --net linear --latents 2 --steps 3 --batch-size 4 --out run --quiet")
    assert trained.code == 0, trained.err
    assert (elsewhere / "run").is_dir()


def test_clean_says_what_it_frees_asks_and_frees_it(call, mnist: Path, cache: Path, monkeypatch) -> None:
    assert f"Nothing is cached in {cache}" in call("data clean").out
    call("data preview mnist:mnist")
    asked = []
    monkeypatch.setattr("typer.confirm", lambda text: asked.append(text))
    assert "Nothing was deleted." in call("data clean mnist").out
    assert asked == [f"Delete 7 kB in {cache}?"]
    assert list(cache.rglob("*.npy"))
    freed = call("data clean mnist --yes").out
    assert "mnist: 2 files, 7 kB" in freed  # the array and its lock
    assert "Freed 7 kB." in freed
    assert not list(cache.rglob("*.npy"))
    assert mnist.exists()
    assert call("data clean mnst").code == 2


def test_clean_leaves_fetched_files_unless_told(call, mnist: Path) -> None:
    target = originals_folder("mnist")
    target.parent.mkdir(parents=True)
    mnist.rename(target)
    assert "Nothing" in call("data clean --yes").out
    assert "mnist: 4 files" in call("data clean --originals --yes").out
    assert not target.exists()


def test_fetch_without_a_network_fails_in_words(call, cache: Path, monkeypatch) -> None:
    monkeypatch.setattr(fetching, "PAUSE", 0.0)
    nowhere = OriginalFile("train-images-idx3-ubyte.gz", "http://127.0.0.1:9/train-images-idx3-ubyte.gz")
    monkeypatch.setattr(MNISTDataset, "originals", (nowhere,))
    failed = call("data fetch mnist")
    assert failed.code == 1
    assert f"put it at {cache}/originals/mnist/train-images-idx3-ubyte.gz." in failed.err
    assert call("data fetch sprites").code == 2


def test_fetch_of_what_is_there_says_whether_it_is_the_published_file(call, mnist: Path) -> None:
    said = call("data fetch mnist --to mnist").out
    assert said.count("already present; its MD5 differs from the published one") == 4
    assert "Inspect the dataset: polariscope data info mnist:mnist" in said
