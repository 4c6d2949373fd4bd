"""SymSol: labels from names, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import originals
from polariscope.core.errors import InputError
from polariscope.data.published.symsol import SymSolDataset


def test_a_folder_of_pictures_is_the_same_as_the_archive(folder: Path) -> None:
    written = originals.symsol(folder, packed=False)
    data = SymSolDataset(str(folder))
    np.testing.assert_array_equal(data.images(np.arange(6)), written.images)
    np.testing.assert_array_equal(data.factors(np.arange(6)), written.factors)
    assert data.ids([0, 5]).tolist() == ["000_tet_x.png", "005_cone_x.png"]


@pytest.mark.parametrize("name", ["sphere.png", "cube_cone.png", "x.png"])
def test_a_name_with_no_shape_or_two_is_refused(folder: Path, name: str) -> None:
    originals.symsol(folder, packed=False)
    (folder / "symsol" / name).write_bytes(originals.picture(originals.noise(64, 64), "PNG"))
    with pytest.raises(InputError, match=f"one of tet, cube, icosa, cone, cyl in their names, got '{name}'"):
        SymSolDataset(str(folder))


def test_pictures_of_another_size_are_resized_and_oblong_ones_refused(folder: Path) -> None:
    originals.symsol(folder, packed=False)
    file = folder / "symsol" / "000_tet_x.png"
    file.write_bytes(originals.picture(np.full((224, 224, 3), 90, np.uint8), "PNG"))
    assert (SymSolDataset(str(folder)).images([0]) == 90).all()
    file.write_bytes(originals.picture(np.full((64, 32), 90, np.uint8), "PNG"))
    with pytest.raises(InputError, match="must contain square pictures"):
        SymSolDataset(str(folder)).images([0])


def test_a_folder_with_several_archives_is_ambiguous(folder: Path) -> None:
    originals.symsol(folder)
    (folder / "b.zip").write_bytes((folder / "symsol_reduced.zip").read_bytes())
    with pytest.raises(InputError, match=r"one zip file, or the file, got .* with 2"):
        SymSolDataset(str(folder))
    assert len(SymSolDataset(str(folder / "b.zip"))) == 6
