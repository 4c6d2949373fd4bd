"""Paths that users pass."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.core.paths import check_regular, user_path


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", r"^out must not be empty, got ''; the current folder is '\.'\.$"),
        ("a\0b", r"^out must not contain the character NUL"),
        ("a\udcff", r"^out must be a path in UTF-8, got 'a\\udcff'; rename"),
        (
            "~no-such-user/runs",
            r"^out must have the name of a user after ~, got '~no-such-user/runs', but there is no",
        ),
    ],
)
def test_paths_that_cannot_be_used_are_refused_with_the_rule(path: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        user_path(path, "out")


@pytest.mark.parametrize("path", [b"bytes", 3, None, object()])
def test_values_that_are_not_paths_are_refused(path: object) -> None:
    with pytest.raises(InputError, match="out must be the path of a file or folder"):
        user_path(path, "out")


def test_the_home_folder_is_expanded_for_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    ps.train(ps.load_dataset("digits"), net="linear", n_latents=2, steps=1, out="~/run")
    assert (tmp_path / "run" / "settings.json").is_file()
    assert ps.open_run("~/run").path == tmp_path / "run"
    assert ps.load_model("~/run").n_latents == 2
    assert ps.report("~/run", out="~/page.html") == tmp_path / "page.html"


@pytest.mark.parametrize("ending", ["csv", "npz", "npy", "npz.gz", "csv.gz", "parquet", "h5ad", "zip", "png"])
def test_pipes_are_refused_at_once(tmp_path: Path, ending: str) -> None:
    pipe = tmp_path / f"data.{ending}"
    os.mkfifo(pipe)
    with pytest.raises(InputError):
        ps.load_dataset(str(pipe))
    with pytest.raises(InputError, match="pipe"):
        check_regular(pipe)


@pytest.mark.parametrize("source", ["~no-such-user/x.csv", "mnist:~no-such-user/x", "~no-such-user"])
def test_an_unknown_user_in_the_path_of_data_is_refused(source: str) -> None:
    with pytest.raises(InputError, match="must have the name of a user after ~"):
        ps.load_dataset(source)
