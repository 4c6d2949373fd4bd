"""Manipulated data: bounded, with the factors of the original, and known by what the folder holds."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from manipulations import keep_untrained
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.data.chain import apply_variants, parse_variant
from polariscope.data.dataset import AbstractDataset
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.sources import load_dataset, load_recorded
from polariscope.storage.folder import RunFolder

EPSILON = 0.1


@pytest.fixture(scope="module")
def base() -> AbstractDataset:
    return load_dataset("sprites", image_size=16, variants=["subset:n=400"])


@pytest.fixture(scope="module")
def folder(base: AbstractDataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attack") / "m"
    keep_untrained(folder, base, EPSILON)
    return folder


def test_no_value_changes_by_more_than_epsilon_and_factors_stay(base: AbstractDataset, folder: Path) -> None:
    data = apply_variants(base, f"manipulated:{folder}")
    every = np.arange(len(base))
    change = data.images(every).astype(int) - base.images(every).astype(int)
    assert np.abs(change).max() == 25  # ⌊255 · 0.1⌋, and the untrained network reaches it
    assert (change != 0).any(axis=(1, 2, 3)).all()
    np.testing.assert_array_equal(data.factors(every), base.factors(every))


def test_only_settings_and_weights_are_needed_and_nothing_of_the_data_is_in_them(
    base: AbstractDataset, folder: Path, tmp_path: Path
) -> None:
    run = RunFolder(folder)
    (tmp_path / "copy").mkdir()
    for file in (run.model_file, run.model_file.with_name("settings.json")):
        shutil.copy(file, tmp_path / "copy")
    copied = apply_variants(base, f"manipulated:{tmp_path / 'copy'}")
    original = apply_variants(base, f"manipulated:{folder}")
    assert copied.fingerprint == original.fingerprint
    np.testing.assert_array_equal(copied.values([1, 2]), original.values([1, 2]))
    # The table has at most 1,025 knots of 256 values, however many observations there are.
    assert run.model_file.stat().st_size < 4 * 1025 * 256 + 2_000_000


def test_another_manipulation_in_the_same_folder_is_refused(base: AbstractDataset, tmp_path: Path) -> None:
    keep_untrained(tmp_path / "m", base, EPSILON)
    record = apply_variants(base, f"manipulated:{tmp_path / 'm'}").describe()
    assert load_recorded(record).fingerprint == record["fingerprint"]
    shutil.rmtree(tmp_path / "m")
    keep_untrained(tmp_path / "m", base, EPSILON, seed=1)
    with pytest.raises(PolariscopeError, match="contains a different manipulation than the recorded one"):
        load_recorded(record)


def test_what_it_was_not_made_for_is_refused(folder: Path, tmp_path: Path) -> None:
    variant = f"manipulated:{folder}"
    with pytest.raises(
        InputError, match=r"observations of shape \(1, 16, 16\), and sprites has \(1, 32, 32\)"
    ):
        apply_variants(SpritesDataset(image_size=32), variant)
    with pytest.raises(
        InputError, match="trained for the factors shape, scale, orientation, x, y, and norb has"
    ):
        apply_variants(load_dataset("norb", image_size=16), variant)
    with pytest.raises(InputError, match=r"folder must contain a manipulation, got .*manipulate"):
        apply_variants(SpritesDataset(image_size=16), f"manipulated:{tmp_path}")


def test_an_unfinished_manipulation_is_refused(base: AbstractDataset, tmp_path: Path) -> None:
    keep_untrained(tmp_path / "m", base)
    RunFolder(tmp_path / "m").model_file.unlink()
    with pytest.raises(InputError, match="is not finished; run the same command again"):
        apply_variants(base, f"manipulated:{tmp_path / 'm'}")


def test_a_damaged_manipulation_is_named(base: AbstractDataset, tmp_path: Path) -> None:
    keep_untrained(tmp_path / "m", base)
    file = RunFolder(tmp_path / "m").model_file
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    with pytest.raises(PolariscopeError, match="damaged: its hash does not match"):
        apply_variants(base, f"manipulated:{tmp_path / 'm'}")


def test_the_folder_is_written_alone_or_as_an_option() -> None:
    assert parse_variant("manipulated:a/b=c") == {"name": "manipulated", "folder": "a/b=c"}
    assert parse_variant("manipulated:folder=a/b") == {"name": "manipulated", "folder": "a/b"}
    assert parse_variant("manipulated:a,key=12") == {"name": "manipulated", "folder": "a", "key": "12"}
    with pytest.raises(InputError, match="be NAME or NAME:OPTION=VALUE"):
        parse_variant("manipulated:a,b")
