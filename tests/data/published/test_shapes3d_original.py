"""Shapes3D: kinds of factors, and what is refused."""

from __future__ import annotations

import importlib
from pathlib import Path

import h5py
import numpy as np
import pytest

import originals
from polariscope.core.errors import InputError
from polariscope.data.published.shapes3d_original import Shapes3DOriginalDataset


def test_hues_go_round_and_the_cameras_angle_does_not(folder: Path) -> None:
    originals.shapes3d(folder)
    data = Shapes3DOriginalDataset(str(folder))
    kinds = dict(zip(data.factor_names, data.factor_kinds, strict=True))
    assert [name for name, kind in kinds.items() if kind == "cyclic"] == [
        "floor hue",
        "wall hue",
        "object hue",
    ]
    assert kinds["orientation"] == "ordinal"
    assert int(np.prod(data.original_sizes)) == 480_000


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"images": np.zeros((96, 32, 32, 3), np.uint8)}, "'images' with rows of shape"),
        ({"images": np.zeros((96, 64, 64, 3), np.float32)}, "'images' with rows of shape .* got float32"),
        ({"images": np.zeros((95, 64, 64, 3), np.uint8)}, "have 96 images"),
        ({"labels": np.zeros((96, 6))}, "every combination of its factors once"),
        ({"labels": originals.grid(2, 2, 2, 2, 2, 3)[::-1].astype(float)}, "in the order of the original"),
        ({"labels": originals.grid(2, 2, 1, 1, 24, 1).astype(float)}, "at most 10·10·10·8·4·15"),
    ],
)
def test_a_file_that_contradicts_shapes3d_is_refused(folder: Path, other: dict, words: str) -> None:
    originals.shapes3d(folder, **other)
    with pytest.raises(InputError, match=words):
        Shapes3DOriginalDataset(str(folder))


def test_links_to_other_files_are_not_followed(folder: Path) -> None:
    originals.shapes3d(folder)
    (folder / "3dshapes.h5").rename(folder / "other.h5")
    with h5py.File(folder / "3dshapes.h5", "w") as file:
        file["images"] = h5py.ExternalLink("other.h5", "images")
        file["labels"] = h5py.ExternalLink("other.h5", "labels")
    with pytest.raises(InputError, match="contains a link to another file"):
        Shapes3DOriginalDataset(str(folder))
    with h5py.File(folder / "3dshapes.h5", "w") as file:
        file.create_dataset("images", (96, 64, 64, 3), np.uint8, external=[("other.h5", 0, 96 * 64 * 64 * 3)])
    with pytest.raises(InputError, match="contains an array stored in another file"):
        Shapes3DOriginalDataset(str(folder))


def test_an_array_that_declares_more_than_is_allowed_is_refused(folder: Path) -> None:
    with h5py.File(folder / "3dshapes.h5", "w") as file:
        file.create_dataset(
            "images", (480_000, 64, 64, 3), np.uint8, chunks=(1, 64, 64, 3), compression="gzip"
        )
    with pytest.raises(InputError, match=r"would unpack to 5\.9 GB, more than the limit of 4 GB"):
        Shapes3DOriginalDataset(str(folder))


def test_without_h5py_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    originals.shapes3d(folder)

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(
        InputError, match=r"h5py, which is not installed; install it with pip install 'polariscope\[hdf5\]'"
    ):
        Shapes3DOriginalDataset(str(folder))
