"""smallNORB: the official split, the instance as a factor, and what is refused."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import originals
from polariscope.core.errors import InputError
from polariscope.data.published.smallnorb import SmallNORBDataset

TRAINING = "smallnorb-5x46789x9x18x6x2x96x96-training"


def test_gzipped_and_plain_files_hold_the_same(folder: Path) -> None:
    written = originals.smallnorb(folder, packed=False)
    data = SmallNORBDataset(str(folder))
    np.testing.assert_array_equal(data.images(np.arange(12)), written.images)
    np.testing.assert_array_equal(data.factors(np.arange(12)), written.factors)


def test_training_toys_and_testing_toys_are_the_official_parts(folder: Path) -> None:
    originals.smallnorb(folder)
    data = SmallNORBDataset(str(folder), instance_factor=True)
    parts = data.parts()
    assert {name: len(part) for name, part in parts.items()} == {"train": 7, "test": 5}
    assert set(data.factors(parts["train"])[:, 1]) <= {4, 6, 7, 8, 9}
    assert set(data.factors(parts["test"])[:, 1]) <= {0, 1, 2, 3, 5}


def test_with_the_instance_factors_lead_to_images_and_without_they_do_not(folder: Path) -> None:
    originals.smallnorb(folder)
    plain, full = SmallNORBDataset(str(folder)), SmallNORBDataset(str(folder), instance_factor=True)
    assert plain.factor_names == ("category", "elevation", "azimuth", "lighting")
    assert full.factor_sizes == (5, 10, 9, 18, 6)
    assert dict(zip(full.factor_names, full.factor_kinds, strict=True))["azimuth"] == "cyclic"
    np.testing.assert_array_equal(full.index_of(full.factors(np.arange(12))), np.arange(12))
    np.testing.assert_array_equal(full.images(np.arange(12)), plain.images(np.arange(12)))
    assert full.fingerprint != plain.fingerprint
    with pytest.raises(InputError, match="not a full grid"):
        plain.index_of(plain.factors([0]))
    with pytest.raises(InputError, match="factors must be integers of shape"):
        full.index_of([[0, 0]])
    absent = next(
        row
        for row in originals.grid(5, 10, 9, 18, 6)
        if row.tolist() not in full.factors(np.arange(12)).tolist()
    )
    with pytest.raises(InputError, match="has no image with the factors"):
        full.index_of([absent])


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        ("dat", np.zeros((7, 2, 32, 32), np.uint8), "matrix of uint8 of shape"),
        ("dat", np.zeros((6, 2, 96, 96), np.uint8), "describe 6 images, as its -dat does, got 7"),
        ("cat", np.zeros(7, np.uint8), "matrix of int32 of shape .* got uint8"),
        ("cat", np.full(7, 5, np.int32), "values of its category from 0 to 4, got"),
        ("info", np.full((7, 4), 1, np.int32), "number the azimuths 0, 2 … 34, got 1"),
        ("info", np.full((7, 4), 6, np.int32), "values of its lighting from 0 to 5"),
        ("info", np.full((7, 3), 6, np.int32), "matrix of int32 of shape"),
    ],
)
def test_matrices_that_contradict_smallnorb_are_refused(
    folder: Path, kind: str, values: np.ndarray, words: str
) -> None:
    originals.smallnorb(folder, packed=False)
    (folder / f"{TRAINING}-{kind}.mat").write_bytes(originals.norb_matrix(values))
    with pytest.raises(InputError, match=words):
        SmallNORBDataset(str(folder)).factors([0])


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data + b"1",
        lambda data: data[:-1],
        lambda data: struct.pack("<I", 1) + data[4:],
        lambda data: data[:9],
    ],
)
def test_a_lying_or_cut_matrix_is_refused(folder: Path, change) -> None:
    originals.smallnorb(folder, packed=False)
    for kind in ("dat", "cat"):
        file = folder / f"{TRAINING}-{kind}.mat"
        whole = file.read_bytes()
        file.write_bytes(change(whole))

        def use() -> None:
            data = SmallNORBDataset(str(folder))
            data.factors([0])
            data.images([0])

        with pytest.raises(InputError, match=r"-(dat|cat)\.mat is damaged"):
            use()
        file.write_bytes(whole)


def test_one_of_the_files_is_not_enough(folder: Path) -> None:
    originals.smallnorb(folder)
    with pytest.raises(InputError, match="path must be the folder with the files of smallnorb"):
        SmallNORBDataset(str(folder / f"{TRAINING}-dat.mat.gz"))
    (folder / f"{TRAINING}-cat.mat.gz").unlink()
    with pytest.raises(InputError, match=f"smallnorb needs {TRAINING}-cat.mat.gz"):
        SmallNORBDataset(str(folder))
