"""MPI3D: its two grids, and files that are memory-mapped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import originals
from polariscope.core.errors import InputError
from polariscope.data.published.mpi3d import MPI3DDataset


def test_the_published_grids_have_the_published_numbers_of_images() -> None:
    counts = {int(np.prod(sizes)) for sizes in MPI3DDataset.grids if len(sizes) == 7}
    assert counts >= {1_036_800, 460_800}


def test_a_file_that_is_not_compressed_is_mapped_and_nothing_is_copied(folder: Path, cache: Path) -> None:
    written = originals.mpi3d(folder, packed=False)
    data = MPI3DDataset(str(folder))
    np.testing.assert_array_equal(data.images(np.arange(len(data))), written.images)
    np.testing.assert_array_equal(data.factors(np.arange(len(data))), written.factors)
    assert not list(cache.rglob("*.npy"))
    assert "memory-mapped" in data.footprint().words
    assert data.footprint().disk_bytes == (folder / "mpi3d_toy.npz").stat().st_size


def test_images_in_the_shape_of_the_grid_are_the_same(folder: Path) -> None:
    written = originals.mpi3d(folder)
    pixels = written.images.transpose(0, 2, 3, 1).reshape(*originals.MPI3D_GRID, 64, 64, 3)
    np.savez(folder / "mpi3d_toy.npz", images=pixels)
    np.testing.assert_array_equal(MPI3DDataset(str(folder)).images([3, 1]), written.images[[3, 1]])


def test_editions_are_files_of_their_own(folder: Path) -> None:
    originals.mpi3d(folder)
    with pytest.raises(InputError, match=r"mpi3d needs mpi3d_real\.npz.*polariscope data fetch mpi3d"):
        MPI3DDataset(str(folder), edition="real")
    with pytest.raises(InputError, match=r"needs real3d_complicated_shapes_ordered\.npz.*rr-learning"):
        MPI3DDataset(str(folder), edition="complex")
    assert len(MPI3DDataset(str(folder / "mpi3d_toy.npz"), edition="real")) == 24


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((23, 64, 64, 3), np.uint8),
        np.zeros((24, 64, 64), np.uint8),
        np.zeros((24, 64, 64, 3), np.float32),
    ],
)
def test_other_numbers_and_shapes_are_refused(folder: Path, images: np.ndarray) -> None:
    np.savez(folder / "mpi3d_toy.npz", images=images)
    with pytest.raises(
        InputError, match=r"'images', bytes of shape \(1036800, 64, 64, 3\) or \(460800, 64, 64, 3\)"
    ):
        MPI3DDataset(str(folder))
