"""What a dataset says it takes is what it takes."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polariscope as ps
from polariscope.data.footprint import BATCH, batch_bytes, disk_bytes, held_bytes


def test_arrays_count_wherever_they_are_held_and_mapped_files_do_not(tmp_path: Path) -> None:
    array = np.zeros((3, 4))
    np.save(tmp_path / "x.npy", array)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert held_bytes(array) == 96
    assert held_bytes((1, [array, {"x": array}])) == 192
    assert held_bytes(("a" * 100, "b" * 100)) >= 200
    assert held_bytes([mapped, mapped[1:], np.asarray(mapped)]) == 0


def test_room_on_disk_is_that_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a").write_bytes(bytes(10))
    (tmp_path / "deep" / "b").write_bytes(bytes(5))
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert [disk_bytes(place) for place in (tmp_path, tmp_path / "a", tmp_path / "gone", None)] == [
        15,
        10,
        0,
        0,
    ]


def datasets(folder: Path) -> dict[str, Any]:
    images = np.random.default_rng(0).integers(256, size=(200, 32, 32), dtype=np.uint8)
    np.savez(folder / "images.npz", X=images)
    return {
        "sprites": ps.load_dataset("sprites"),
        "gaussian": ps.load_dataset("gaussian"),
        "arrays": ps.load_dataset("arrays", path=str(folder / "images.npz")),
    }


@pytest.mark.parametrize("name", ["sprites", "gaussian", "arrays"])
def test_a_batch_and_what_is_held_stay_within_what_is_stated(tmp_path: Path, name: str) -> None:
    data = datasets(tmp_path)[name]
    stated = data.footprint().memory_bytes
    tracemalloc.start()
    data.values(np.linspace(0, len(data) - 1, BATCH, dtype=int))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= stated


def test_what_is_held_is_counted(tmp_path: Path) -> None:
    made = datasets(tmp_path)
    assert made["arrays"].footprint().memory_bytes == pytest.approx(
        200 * 32 * 32 + batch_bytes(1024), abs=1000
    )
    assert made["arrays"].footprint().disk_bytes == (tmp_path / "images.npz").stat().st_size
    rows = made["gaussian"]
    assert rows.footprint().memory_bytes >= rows.values(np.arange(len(rows))).nbytes
    assert made["sprites"].footprint().disk_bytes == 0
