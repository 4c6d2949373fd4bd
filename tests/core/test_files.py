"""Writing and reading files so that nothing half-written looks whole."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from forked import Forks
from polariscope.core import files
from polariscope.core.errors import PolariscopeError
from polariscope.core.parsing import read_json

TENSORS = {
    "weight": torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "bias": torch.tensor([0.1, -0.0, 1e-300], dtype=torch.float64),
    "scalar": torch.tensor(7),
    "empty": torch.zeros(0, 4),
    "bytes": torch.arange(5, dtype=torch.uint8),
}
METADATA = {"step": 12, "λ": [1.5, None, "é"], "nested": {"variance": 0.1}}


def same_tensors(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return files.digest_tensors(a) == files.digest_tensors(b) and a.keys() == b.keys()


def test_an_exception_while_writing_keeps_the_old_file_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    files.write_json(path, {"a": 1})

    def write_half() -> None:
        with files.atomic(path) as part:
            part.write_text('{"a"')
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    assert read_json(path) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["record.json"]


def test_a_value_that_is_not_json_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    files.write_json(path, {"a": 1})
    for value in (float("nan"), float("inf"), {1, 2}):
        with pytest.raises((ValueError, TypeError)):
            files.write_json(path, {"a": value})
    assert read_json(path) == {"a": 1}
    assert len(list(tmp_path.iterdir())) == 1


def test_folders_on_the_way_are_made_and_the_mode_follows_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "note.txt"
    files.write_text(path, "ναί\n")
    assert path.read_bytes() == "ναί\n".encode()
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_json_comes_back_as_it_was(tmp_path: Path) -> None:
    value = {"é": [1, 2.5, None, True, "λ"], "tiny": 5e-324, "third": 1 / 3}
    files.write_json(tmp_path / "v.json", value)
    assert read_json(tmp_path / "v.json") == value


def test_every_truncation_of_a_json_file_is_named_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    files.write_json(path, {"λ": [1, 2], "name": "beta"})
    whole = path.read_bytes().rstrip(b"\n")
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(PolariscopeError, match=r"v\.json is damaged: it is not (JSON|text)"):
            read_json(path)


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "step-1"
    with files.atomic_folder(path) as part:
        (part / "a.txt").write_text("one")
        assert not path.exists()

    def write_half() -> None:
        with files.atomic_folder(path) as part:
            (part / "a.txt").write_text("two")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    assert (path / "a.txt").read_text() == "one"
    with files.atomic_folder(path) as part:
        (part / "b.txt").write_text("three")
    assert [file.name for file in path.iterdir()] == ["b.txt"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["step-1"]


def test_an_old_folder_is_never_half_deleted_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Deleting is where a kill would strike: when it starts, the name must already show the new folder.
    path = tmp_path / "step-1"
    with files.atomic_folder(path) as part:
        (part / "old.txt").write_text("old")
    seen: list[list[str]] = []
    monkeypatch.setattr(
        files.shutil, "rmtree", lambda *_, **__: seen.append([file.name for file in path.iterdir()])
    )
    with files.atomic_folder(path) as part:
        (part / "new.txt").write_text("new")
    assert seen
    assert all(names == ["new.txt"] for names in seen)


def test_tensors_and_their_metadata_come_back_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    files.write_tensors(path, TENSORS, METADATA)
    tensors, metadata = files.read_tensors(path)
    assert same_tensors(tensors, TENSORS)
    assert metadata == METADATA


def test_the_same_tensors_make_the_same_bytes(tmp_path: Path) -> None:
    for number in range(8):
        files.write_tensors(tmp_path / str(number), TENSORS, METADATA)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_a_strided_tensor_is_stored_by_its_values(tmp_path: Path) -> None:
    strided = torch.arange(48.0).reshape(1, 3, 4, 4).to(memory_format=torch.channels_last)
    files.write_tensors(tmp_path / "t", {"x": strided, "y": strided[:, :, ::2]}, {})
    tensors, _ = files.read_tensors(tmp_path / "t")
    assert torch.equal(tensors["x"], strided)
    assert torch.equal(tensors["y"], strided[:, :, ::2])


def test_a_flipped_byte_anywhere_is_detected_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    files.write_tensors(path, TENSORS, METADATA)
    whole = path.read_bytes()
    harmless = []
    for position in range(len(whole)):
        for bit in (1, 4):  # another character of the same kind, and another kind
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                tensors, metadata = files.read_tensors(path)
            except PolariscopeError as error:
                assert str(path) in str(error)  # noqa: PT017
                continue
            harmless.append(position)
            assert same_tensors(tensors, TENSORS)
            assert metadata == METADATA
    assert len(harmless) < 10, "only padding may be flipped without notice"


def test_a_truncated_file_is_named_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    files.write_tensors(path, TENSORS, METADATA)
    whole = path.read_bytes()
    for length in (0, 1, 7, 8, 20, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(PolariscopeError, match=r"t\.safetensors is damaged"):
            files.read_tensors(path)


def test_a_safetensors_file_from_elsewhere_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"x": torch.ones(2)}, tmp_path / "foreign")
    with pytest.raises(PolariscopeError, match="was not written by polariscope"):
        files.read_tensors(tmp_path / "foreign")


def test_a_digest_ignores_the_order_of_keys_and_nothing_else() -> None:
    assert files.digest({"a": 1, "b": [1, 2]}) == files.digest({"b": [1, 2], "a": 1})
    values = [{"a": 1}, {"a": 1.5}, {"a": "1"}, {"b": 1}, {"a": [1]}, {"a": None}, [1, 2], [2, 1], "é", "e"]
    assert len({files.digest(value) for value in values}) == len(values)
    # Frozen: run names on disk depend on it. SHA-256 of {"a":1,"λ":"é"} in UTF-8.
    expected = __import__("hashlib").sha256('{"a":1,"λ":"é"}'.encode()).hexdigest()
    assert files.digest({"λ": "é", "a": 1}) == expected


def test_the_digest_of_an_array_sees_values_type_and_shape_but_not_layout() -> None:
    array = np.arange(12.0).reshape(3, 4)
    different = [
        array,
        array.astype(np.float32),
        array.reshape(4, 3),
        array + 1,
        array.ravel(),
        array[:0],
        array > 2,
    ]
    assert len({files.digest_array(a) for a in different}) == len(different)
    assert files.digest_array(np.asfortranarray(array)) == files.digest_array(array)
    assert files.digest_array(array[:, ::-1][:, ::-1]) == files.digest_array(array)


def test_the_digest_of_tensors_sees_names_values_types_and_shapes() -> None:
    x = torch.arange(6.0)
    different = [
        {"x": x},
        {"y": x},
        {"x": x.double()},
        {"x": x.reshape(2, 3)},
        {"x": x, "y": x},
        {"x": x.clone().index_fill_(0, torch.tensor(0), -0.0)},
        {},
    ]
    assert len({files.digest_tensors(tensors) for tensors in different}) == len(different)
    assert files.digest_tensors({"a": x, "b": 2 * x}) == files.digest_tensors({"b": 2 * x, "a": x})


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert files.digest_file(tmp_path / "abc").startswith("ba7816bf8f01cfea414140de5dae2223")  # FIPS 180-2


WRITER = """
import sys, itertools
from pathlib import Path
import torch
from polariscope.core import files
folder = Path(sys.argv[1])
for number in itertools.count():
    files.write_json(folder / "v.json", {"number": number, "again": [number] * 2000})
    files.write_tensors(folder / "t.safetensors", {"x": torch.full((2000,), float(number))}, {"number": number})
    if number == 0:
        print("started", flush=True)
"""


def test_a_killed_writer_never_leaves_a_torn_file(tmp_path: Path, forks: Forks) -> None:
    pause = random.Random(0)
    numbers = []
    for _ in range(4):
        process = forks.start(WRITER, str(tmp_path))
        while not process.stdout:
            assert process.poll() is None
            time.sleep(0.001)
        time.sleep(pause.uniform(0.0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        value = read_json(tmp_path / "v.json")
        assert value["again"] == [value["number"]] * 2000
        tensors, metadata = files.read_tensors(tmp_path / "t.safetensors")
        assert torch.equal(tensors["x"], torch.full((2000,), float(metadata["number"])))
        numbers.append(value["number"])
    assert max(numbers) > 1, "the writers were killed before they wrote again"
    assert {entry.suffix for entry in tmp_path.iterdir()} <= {".json", ".safetensors", ".part"}


KILLED_IN_A_WRITE = """
import resource, signal, sys
from pathlib import Path
import torch
from polariscope.core import files
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
files.write_tensors(Path(sys.argv[1]) / "t.safetensors", {"x": torch.zeros(100_000)}, {})
"""


def test_a_writer_killed_in_the_middle_leaves_only_a_file_known_to_be_a_part(
    tmp_path: Path, forks: Forks
) -> None:
    assert forks.run(KILLED_IN_A_WRITE, str(tmp_path)).returncode == -signal.SIGXFSZ
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".t.safetensors.")
    assert left.suffix == ".part"


def test_the_next_write_in_a_folder_removes_what_a_killed_writer_left(tmp_path: Path, forks: Forks) -> None:
    forks.run(KILLED_IN_A_WRITE, str(tmp_path))
    assert len(list(tmp_path.glob(".*.part"))) == 1
    files.write_text(tmp_path / "note.txt", "other")
    assert [entry.name for entry in tmp_path.iterdir()] == ["note.txt"]


def test_what_is_being_written_is_no_leftover_and_other_peoples_parts_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / ".download.part").write_text("a browser's")
    with files.atomic(tmp_path / "a.txt") as part, files.atomic_folder(tmp_path / "folder") as folder:
        assert files.remove_leftovers(tmp_path) == []
        part.write_text("a")
        (folder / "b.txt").write_text("b")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".download.part", "a.txt", "folder"]


def test_a_folder_left_by_a_killed_writer_is_removed_too(tmp_path: Path) -> None:
    left = tmp_path / f".step-1.abc{files.PART}"
    left.mkdir()
    (left / "half.txt").write_text("half")
    assert files.remove_leftovers(tmp_path) == [left]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_named_with_the_file_and_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v.json"
    files.write_json(path, {"a": 1})

    def to_full_disk(part: Path, text: str, **options: str) -> None:
        with open("/dev/full", "w", **options) as full:
            full.write(text)

    monkeypatch.setattr(Path, "write_text", to_full_disk)
    with pytest.raises(files.WriteError, match=r"v\.json could not be written: No space left on device"):
        files.write_json(path, {"a": 2})
    monkeypatch.undo()
    assert read_json(path) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["v.json"]


def test_a_header_is_read_without_the_tensors_and_a_broken_one_named(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    files.write_tensors(path, TENSORS, METADATA)
    assert files.read_header(path) == METADATA
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(PolariscopeError, match=r"t\.safetensors is damaged"):
        files.read_header(path)


def test_a_folder_that_was_being_replaced_is_put_back(tmp_path: Path) -> None:
    """A kill between the two renames leaves the old folder under another name, and the new one unfinished."""
    old = tmp_path / f".estimator.abc{files.OLD}"
    old.mkdir()
    (old / "whole.txt").write_text("whole")
    (tmp_path / f".estimator.abc{files.PART}").mkdir()
    files.write_text(tmp_path / "note.txt", "other")
    assert (tmp_path / "estimator" / "whole.txt").read_text() == "whole"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["estimator", "note.txt"]


def test_where_there_are_no_locks_files_are_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(files.fcntl, "flock", refuse)
    left = tmp_path / f".a.txt.abc{files.PART}"
    left.write_text("being written, or left behind: nobody can tell")
    files.write_text(tmp_path / "a.txt", "a")
    with files.atomic_folder(tmp_path / "b") as part:
        (part / "c.txt").write_text("c")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [left.name, "a.txt", "b"]


def test_a_folder_that_cannot_be_written_is_named_itself(tmp_path: Path) -> None:
    def write() -> None:
        with files.atomic_folder(tmp_path / "step-1") as part, files.atomic(part / "model"):
            raise OSError(28, "No space left on device")

    with pytest.raises(files.WriteError, match=r"step-1 could not be written: No space left on device\."):
        write()


def test_a_link_stays_and_the_file_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    file, link = tmp_path / "elsewhere" / "real.json", tmp_path / "link.json"
    for text in ("first", "second"):  # first the link leads nowhere, then to a file
        link.unlink(missing_ok=True)
        link.symlink_to(Path("elsewhere") / "real.json")
        files.write_text(link, text)
        assert link.is_symlink()
        assert file.read_text() == text
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == ["elsewhere", "link.json", "real.json"]


def test_a_link_to_a_folder_stays_and_the_folder_is_replaced(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    (real / "old.txt").write_text("old")
    link.symlink_to(real)
    with files.atomic_folder(link) as part:
        (part / "new.txt").write_text("new")
    assert link.is_symlink()
    assert [entry.name for entry in real.iterdir()] == ["new.txt"]


def test_what_is_no_plain_file_is_refused_and_stays(tmp_path: Path) -> None:
    pipe, folder, circle = tmp_path / "pipe", tmp_path / "folder", tmp_path / "circle"
    os.mkfifo(pipe)
    folder.mkdir()
    circle.symlink_to(circle)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for path, reason in (
        (pipe, "got the pipe"),
        (link, "got the pipe"),
        (folder, "got the folder"),
        (circle, "got the circular link"),
    ):
        with pytest.raises(PolariscopeError, match=rf"must be a file, {reason}"):
            files.write_text(path, "text")
    assert pipe.is_fifo()
    assert link.is_symlink()
    with pytest.raises(PolariscopeError, match="must be a folder, got the pipe"), files.atomic_folder(pipe):
        pass
    with pytest.raises(PolariscopeError, match="json must be a file"):
        files.check_target(pipe, "json")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["circle", "folder", "link", "pipe"]


def test_a_folder_that_cannot_be_made_is_named_in_words(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a file")
    with pytest.raises(
        files.WriteError, match=r"a\.json could not be written: (Not a directory|File exists)"
    ):
        files.write_text(tmp_path / "notes.txt" / "a.json", "text")


def test_a_folder_is_deleted_under_another_name_which_the_next_writer_clears(tmp_path: Path) -> None:
    for name in ("step-1", f".step-2.gone{files.PART}", f".step-3.old{files.PART}"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_text("half")
    files.remove_folder(tmp_path / "step-1")
    assert len(files.remove_leftovers(tmp_path)) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_being_replaced_is_not_put_back_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old.txt").write_text("old")
    rename = Path.rename
    seen = []

    def rename_then_another_cleans(path: Path, to: Path) -> Path:
        moved = rename(path, to)
        seen.append(files.remove_leftovers(tmp_path))
        return moved

    monkeypatch.setattr(Path, "rename", rename_then_another_cleans)
    with files.atomic_folder(target) as part:
        (part / "new.txt").write_text("new")
    assert seen == [[], []]
    assert [entry.name for entry in target.iterdir()] == ["new.txt"]
