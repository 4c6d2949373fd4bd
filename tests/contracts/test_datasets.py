"""Every dataset keeps the contract of its family: those made without a file, and published ones from small files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import originals
from polariscope.core.options import options_of
from polariscope.data.cache import VARIABLE, originals_folder
from polariscope.data.dataset import family
from polariscope.data.published.mpi3d import MPI3DDataset
from polariscope.testing import DatasetContract

NAMES = [name for name in family if not any(option.required for option in options_of(family[name]).values())]


@pytest.fixture(scope="module", autouse=True)
def published(tmp_path_factory) -> Iterator[None]:
    """Small files of the published datasets in a cache folder of this module, where they are found by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("cache")))
        patch.setattr(MPI3DDataset, "grids", (originals.MPI3D_GRID,))
        for name, write in originals.WRITERS.items():
            originals_folder(name).mkdir(parents=True)
            write(originals_folder(name))
        yield


def test_the_folder_lists_the_datasets():
    assert set(NAMES) >= {"sprites", "gaussian", "square-linear", "square-nonlinear"}
    assert set(family) - set(NAMES) >= {"arrays", "images"}


class TestDatasets(DatasetContract):
    names = NAMES
    need_options = sorted(set(family) - set(NAMES))
    decided_by_files = originals.WRITERS
