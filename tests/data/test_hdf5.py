"""HDF5 files that would read other files."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import polariscope as ps
from polariscope.core.errors import InputError


def table(path: Path, x: object = None) -> h5py.File:
    """Write a table as AnnData does, with or without its matrix, and return the open file."""
    file = h5py.File(path, "w")
    for name, count in (("obs", 20), ("var", 3)):
        group = file.create_group(name)
        group.attrs["_index"] = "_index"
        group["_index"] = [f"{name}{number}".encode() for number in range(count)]
    if x is not None:
        file["X"] = x
    return file


def external_link(path: Path, secret: Path) -> None:
    with table(path) as file:
        file["X"] = h5py.ExternalLink(str(secret), "X")


def external_storage(path: Path, secret: Path) -> None:
    with table(path) as file:
        file.create_dataset("X", (20, 3), dtype="f4", external=[(str(secret), 0, h5py.h5f.UNLIMITED)])


def virtual(path: Path, secret: Path) -> None:
    layout = h5py.VirtualLayout(shape=(20, 3), dtype="f4")
    layout[:] = h5py.VirtualSource(str(secret), "X", shape=(20, 3))
    with table(path) as file:
        file.create_virtual_dataset("X", layout)


@pytest.mark.parametrize("attack", [external_link, external_storage, virtual])
def test_files_that_pull_in_another_file_are_refused(tmp_path: Path, attack) -> None:
    rows = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    table(tmp_path / "secret.h5ad", rows).close()
    assert len(ps.load_dataset(str(tmp_path / "secret.h5ad"))) == 20
    attack(tmp_path / "a.h5ad", tmp_path / "secret.h5ad")
    with pytest.raises(InputError, match="another file"):
        ps.load_dataset(str(tmp_path / "a.h5ad"))
