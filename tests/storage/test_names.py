"""Names of runs: that of the folder, or the readable link of a study."""

from __future__ import annotations

from pathlib import Path

import pytest

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.storage import LINKS, readable_name


def test_a_run_of_a_study_has_the_name_of_its_link(tmp_path: Path) -> None:
    run, other = tmp_path / "runs" / "0123abcd", tmp_path / "runs" / "4567cdef"
    link = tmp_path / LINKS / "beta=4,seed=0"
    for folder in (run, other, link.parent):
        folder.mkdir(parents=True)
    link.symlink_to(run, target_is_directory=True)
    assert readable_name(run) == readable_name(link) == "beta=4,seed=0"
    assert readable_name(other) == "4567cdef"


def test_a_file_of_codes_is_not_taken_for_a_run_to_be_trained(tmp_path: Path) -> None:
    file = tmp_path / "codes.npz"
    file.write_bytes(b"")
    with pytest.raises(InputError, match=r"codes\.npz is a file, not a run folder; for files of codes use"):
        ps.open_run(file)
