"""Arrays in the cache folder are whole or not there, made once, and mapped."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from forked import Forks
from polariscope.core.errors import InputError
from polariscope.core.progress import Progress
from polariscope.data import cache
from polariscope.data import cached_array as cached_arrays
from polariscope.data.cache import VARIABLE, array_file, cache_folder, cached_array, is_cached
from polariscope.data.cached_array import CachedArray


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def count(array: np.ndarray, progress: Progress) -> None:
    array[:] = np.arange(array.size).reshape(array.shape)
    progress(1, 1)


def make(key: str = "toy/numbers", write=count, shape=(4, 3), dtype=np.int32) -> CachedArray:
    return cached_array(key, shape, dtype, write, "toy: counting")


def refuse(array: np.ndarray, progress: Progress) -> None:
    raise AssertionError("it is there already")


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_an_array_is_made_once_and_mapped_read_only() -> None:
    assert not is_cached("toy/numbers")
    np.testing.assert_array_equal(make()[...], np.arange(12).reshape(4, 3))
    assert is_cached("toy/numbers")
    again = make(write=refuse)[...]
    np.testing.assert_array_equal(again, np.arange(12).reshape(4, 3))
    assert isinstance(again, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        again[0] = 1


def test_the_folder_is_the_variables_or_the_users(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == folder
    assert array_file("toy/a-1") == folder / "arrays" / "toy" / "a-1.npy"
    monkeypatch.setenv(VARIABLE, "~/somewhere")
    assert cache_folder() == Path.home().resolve() / "somewhere"
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/polariscope")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "polariscope"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == Path.home() / "Library" / "Caches" / "polariscope"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert cache_folder() == Path("/local/polariscope")


def test_what_fails_half_way_leaves_no_array(folder: Path) -> None:
    def break_off(array: np.ndarray, progress: Progress) -> None:
        array[:2] = 1
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        make(write=break_off)
    assert not any(name.endswith((".npy", ".part")) for name in files_in(folder))
    np.testing.assert_array_equal(make()[...], np.arange(12).reshape(4, 3))


def test_a_process_killed_half_way_leaves_no_array(folder: Path, forks: Forks) -> None:
    program = (
        "import os, numpy as np\n"
        "from polariscope.data.cache import cached_array\n"
        "def write(array, progress):\n"
        "    array[:] = 9\n"
        "    os.kill(os.getpid(), 9)\n"
        "cached_array('toy/numbers', (4, 3), np.int32, write, 'toy')\n"
    )
    assert forks.run(program).returncode == -9
    assert not is_cached("toy/numbers")
    np.testing.assert_array_equal(make()[...], np.arange(12).reshape(4, 3))
    assert not any(name.endswith(".part") for name in files_in(folder))


def test_who_comes_second_waits_and_takes_what_the_first_made(monkeypatch: pytest.MonkeyPatch) -> None:
    make()
    seen = iter([None])  # the first look finds nothing: the other process has not finished
    opened = cache.open_sealed
    monkeypatch.setattr(cache, "open_sealed", lambda *args: next(seen, opened(*args)))
    np.testing.assert_array_equal(make(write=refuse)[...], np.arange(12).reshape(4, 3))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
        lambda path: np.save(path, np.zeros((4, 4), np.int32)),
        lambda path: np.save(path, np.zeros((4, 3), np.int64)),
        lambda path: np.save(path, np.array([{}] * 12, dtype=object).reshape(4, 3)),
    ],
)
def test_a_file_that_is_not_this_array_is_made_again(damage) -> None:
    make()
    damage(array_file("toy/numbers"))
    np.testing.assert_array_equal(make()[...], np.arange(12).reshape(4, 3))


@pytest.mark.parametrize("place", [0.02, 0.3, 0.7, 0.98])
def test_a_byte_that_changed_anywhere_is_noticed_and_the_array_is_made_again(
    place: float, caplog: pytest.LogCaptureFixture
) -> None:
    """The places lie in the header, in the data, in the digests and in the seal."""
    make()
    path = array_file("toy/numbers")
    damaged = bytearray(path.read_bytes())
    damaged[int(place * len(damaged))] ^= 0x40
    path.write_bytes(damaged)
    np.testing.assert_array_equal(make()[...], np.arange(12).reshape(4, 3))
    assert "numbers.npy is damaged" in caplog.text
    assert "created again" in caplog.text
    np.testing.assert_array_equal(make(write=refuse)[...], np.arange(12).reshape(4, 3))


def test_blocks_are_checked_once_and_only_if_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 24 bytes in blocks of 16: row 1 is in blocks 1 and 2, and rows −1 and 0 are in 4, 5 and 0, 1."""
    monkeypatch.setattr(cached_arrays, "BLOCK", 16)
    make(shape=(4, 6), dtype=np.int32)
    array = make(shape=(4, 6), dtype=np.int32, write=refuse)
    checked = []
    digest = cached_arrays._block_digest
    monkeypatch.setattr(
        cached_arrays, "_block_digest", lambda data, block: checked.append(block) or digest(data, block)
    )
    np.testing.assert_array_equal(array[np.array([1, 1])], [np.arange(6, 12)] * 2)
    assert checked == [1, 2]
    np.testing.assert_array_equal(array[np.array([-1, 0])], [np.arange(18, 24), np.arange(6)])
    assert checked == [1, 2, 0, 4, 5]
    assert array[...].sum() == 23 * 12
    assert checked == [1, 2, 0, 4, 5, 3]
    array[:2], array[3]
    assert len(checked) == 6


def test_a_block_that_nobody_reads_does_not_stop_anyone_and_one_that_is_read_does(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cached_arrays, "BLOCK", 16)
    make(shape=(4, 4), dtype=np.int32)
    path = array_file("toy/numbers")
    with path.open("rb+") as file:
        file.seek(128 + 3 * 16)
        file.write(bytes(16))
    array, other = make(shape=(4, 4), write=count), make(shape=(4, 4), write=count)
    np.testing.assert_array_equal(array[0], np.arange(4))
    assert not caplog.text
    np.testing.assert_array_equal(array[3], np.arange(12, 16))
    assert "bytes 48 to 64 do not match their digest" in caplog.text
    caplog.clear()
    np.testing.assert_array_equal(other[3], np.arange(12, 16))  # mapped before, and made again by another
    assert not caplog.text


def test_an_array_of_another_key_is_not_taken_for_this_one(caplog: pytest.LogCaptureFixture) -> None:
    make("toy/zeros", write=lambda array, progress: progress(1, 1))
    make()
    array_file("toy/zeros").replace(array_file("toy/numbers"))
    np.testing.assert_array_equal(make()[...], np.arange(12).reshape(4, 3))
    assert "is damaged or belongs to other data. It is created again" in caplog.text


def test_an_array_of_an_earlier_version_is_made_again(caplog: pytest.LogCaptureFixture) -> None:
    path = array_file("toy/numbers")
    path.parent.mkdir(parents=True)
    np.save(path, np.zeros((4, 3), np.int32))
    np.testing.assert_array_equal(make()[...], np.arange(12).reshape(4, 3))
    assert "was written by an earlier version, without digests. It is created again" in caplog.text


def test_an_array_without_rows_is_empty() -> None:
    assert make(shape=(0, 3))[...].shape == make(shape=(0, 3), write=refuse)[...].shape == (0, 3)


@pytest.mark.parametrize("key", ["../toy", "/toy", "toy/../../x", "Toy", "", "toy//x", ".toy", "toy/.x"])
def test_a_key_stays_in_the_folder(key: str) -> None:
    with pytest.raises(InputError, match="key must be lower-case words"):
        make(key)


def test_a_disk_without_room_is_named_before_anything_is_written(folder: Path) -> None:
    with pytest.raises(InputError, match=r"needs 18014398\.5 GB more, and its disk has .* free"):
        make(shape=(2**50, 4))
    assert not any(name.endswith(".npy") for name in files_in(folder))


def test_a_folder_that_cannot_be_written_is_named_with_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache.files, "atomic", denied)
    with pytest.raises(InputError, match=rf"cannot be written \(Permission denied\); set .* {VARIABLE}"):
        make()


def test_a_cache_folder_that_is_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    with pytest.raises(InputError, match=rf"cannot be written \(Not a directory\); set .* {VARIABLE}"):
        make()


def test_what_is_kept_is_listed_and_freed_by_dataset(folder: Path) -> None:
    make("toy/a"), make("toy/deeper/b"), make("other/c")
    originals = cache.originals_folder("toy")
    originals.mkdir(parents=True)
    (originals / "file.bin").write_bytes(b"12345")
    (folder / "mine.txt").write_text("not of the cache")
    kept = [file for file in cache.cached_files("toy") if file.path.suffix == ".npy"]
    assert {(file.dataset, file.path.name, file.n_bytes) for file in kept} == {
        ("toy", "a.npy", 128 + 48 + 64),
        ("toy", "b.npy", 128 + 48 + 64),
    }
    assert {file.dataset for file in cache.cached_files()} == {"toy", "other"}
    cache.remove_cached(cache.cached_files("toy"))
    assert {name for name in files_in(folder) if not name.endswith(".lock")} == {
        "arrays/other/c.npy",
        "originals/toy/file.bin",
        "mine.txt",
    }
    assert not (folder / "arrays" / "toy").exists()
    cache.remove_cached(cache.cached_files(originals=True))
    assert files_in(folder) == {"mine.txt"}


def test_what_a_link_leads_to_is_not_deleted(folder: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.npz"
    mine.write_bytes(b"1")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "x").write_bytes(b"1")
    originals = cache.originals_folder("toy")
    originals.mkdir(parents=True)
    (originals / "file.npz").symlink_to(mine)
    (originals.parent / "linked").symlink_to(tmp_path / "more")
    cache.remove_cached(cache.cached_files(originals=True))
    assert mine.exists()
    assert (tmp_path / "more" / "x").exists()


def test_the_digest_of_a_large_file_is_read_once_and_follows_its_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LARGE", 10)
    path = tmp_path / "large.bin"
    path.write_bytes(b"0123456789")
    first = cache.content_digest(path)
    assert first == cache.files.digest_file(path)
    with monkeypatch.context() as patch:
        patch.setattr(cache.files, "digest_file", lambda path: pytest.fail("it was read before"))
        assert cache.content_digest(path) == first
    path.write_bytes(b"01234567890")
    assert cache.content_digest(path) != first


def damaged_notes() -> dict[str, object]:
    return {
        "zeros": lambda text: "\0" * len(text),
        "cut": lambda text: text[: len(text) // 2],
        "nothing": lambda text: "",
        "other digest": lambda text: text.replace(json.loads(text)["sha256"], "0" * 64),
        "other check": lambda text: text.replace(json.loads(text)["check"], "0" * 64),
        "of an earlier version": lambda text: json.dumps("0" * 64),
        "a list": lambda text: "[]",
        "nested": lambda text: "[" * 100_000,
    }


@pytest.mark.parametrize("damage", damaged_notes().values(), ids=damaged_notes())
def test_a_digest_that_is_damaged_is_not_believed(
    damage, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LARGE", 10)
    path = tmp_path / "large.bin"
    path.write_bytes(b"0123456789")
    first = cache.content_digest(path)
    (note,) = (folder / "digests").iterdir()
    note.write_text(damage(note.read_text()))
    assert cache.content_digest(path) == first
    with monkeypatch.context() as patch:
        patch.setattr(cache.files, "digest_file", lambda path: pytest.fail("the digest was written again"))
        assert cache.content_digest(path) == first


def test_a_digest_of_another_file_or_of_an_earlier_state_is_not_believed(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LARGE", 10)
    one, two = tmp_path / "one.bin", tmp_path / "two.bin"
    one.write_bytes(b"0123456789"), two.write_bytes(b"9876543210")
    first = cache.content_digest(one)
    (note,) = (folder / "digests").iterdir()
    second = cache.content_digest(two)
    (other,) = set((folder / "digests").iterdir()) - {note}
    other.write_text(note.read_text())
    assert cache.content_digest(two) == second != first
    state = one.stat()
    one.write_bytes(b"0000000000")
    os.utime(one, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert cache.content_digest(one) == cache.files.digest_file(one) != first
