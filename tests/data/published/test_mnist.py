"""MNIST and Fashion-MNIST: gzipped or not, the official split, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import originals
from polariscope.core.errors import InputError
from polariscope.data.cache import array_file
from polariscope.data.published.fashion_mnist import FashionMNISTDataset
from polariscope.data.published.mnist import MNISTDataset


def test_gzipped_and_plain_files_are_the_same_data(folder: Path, tmp_path: Path) -> None:
    written = originals.mnist(folder)
    plain = tmp_path / "plain"
    plain.mkdir()
    originals.mnist(plain, packed=False)
    first, second = MNISTDataset(str(folder)), MNISTDataset(str(plain))
    assert first.fingerprint == second.fingerprint
    np.testing.assert_array_equal(second.images(np.arange(9)), written.images)
    assert first.fingerprint != FashionMNISTDataset(str(folder)).fingerprint


def test_training_images_come_before_those_of_the_test(folder: Path) -> None:
    originals.mnist(folder)
    parts = MNISTDataset(str(folder)).parts()
    assert {name: part.tolist() for name, part in parts.items()} == {
        "train": [0, 1, 2, 3, 4, 5],
        "test": [6, 7, 8],
    }


def test_zeros_in_the_unpacked_images_are_noticed_and_the_images_are_unpacked_again(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written = originals.mnist(folder)
    data = MNISTDataset(str(folder))
    data.images([0])
    with array_file(f"mnist/{data._key}").open("rb+") as file:
        file.seek(1000)
        file.write(bytes(3000))
    np.testing.assert_array_equal(MNISTDataset(str(folder)).images(np.arange(9)), written.images)
    assert "do not match their digest. It is created again" in caplog.text


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("train-images-idx3-ubyte", originals.idx(originals.noise(6, 28)), "IDX file of bytes with 3 axes"),
        ("train-images-idx3-ubyte", b"\0\0\x0d\3" + bytes(12), "IDX file of bytes with 3 axes"),
        (
            "train-images-idx3-ubyte",
            originals.idx(originals.noise(6, 28, 28)) + b"1",
            "contains another number",
        ),
        (
            "train-images-idx3-ubyte",
            originals.idx(originals.noise(6, 28, 28))[:-1],
            "contains another number",
        ),
        (
            "train-images-idx3-ubyte",
            originals.idx(originals.noise(6, 32, 32)),
            "images of one size in both parts",
        ),
        ("train-images-idx3-ubyte", b"\0\0\x08\3" + b"\xff" * 12, "declares the shape"),
        (
            "train-labels-idx1-ubyte",
            originals.idx(originals.noise(5, most=10)),
            "a label for each of the 6 images, got 5",
        ),
        ("train-labels-idx1-ubyte", originals.idx(np.full(6, 10, np.uint8)), "labels below 10, got 10"),
    ],
)
def test_files_that_contradict_mnist_are_refused(folder: Path, name: str, data: bytes, words: str) -> None:
    originals.mnist(folder)
    (folder / f"{name}.gz").write_bytes(gzip.compress(data))

    def use() -> None:
        made = MNISTDataset(str(folder))
        made.factors([0])
        made.images([0])

    with pytest.raises(InputError, match=words):
        use()
