"""A cache folder of its own for every test, and a place for original files."""

from __future__ import annotations

from pathlib import Path

import pytest

import originals
from polariscope.data.cache import VARIABLE
from polariscope.data.published.mpi3d import MPI3DDataset


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder; the small MPI3D of the tests is known as one of its grids."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(MPI3DDataset, "grids", (*MPI3DDataset.grids, originals.MPI3D_GRID))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    return tmp_path / "files"
