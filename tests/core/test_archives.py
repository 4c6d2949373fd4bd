"""Archives are looked at before anything is unpacked; what lies, is damaged or would fill the disk is refused."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from polariscope.core import archives
from polariscope.core.archives import open_archive, open_stream
from polariscope.core.array_files import map_stored_array, read_arrays
from polariscope.core.errors import InputError

CONTENTS = {"a.txt": b"first", "folder/b.bin": bytes(range(256)) * 20, "empty": b""}


def write_zip(path: Path, contents: dict[str, bytes] = CONTENTS, method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in contents.items():
            file.writestr(name, data)
    return path


def write_tar(path: Path, contents: dict[str, bytes] = CONTENTS, *others: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as file:
        for name, data in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
        for info in others:
            file.addfile(info)
    return path


def all_of(path: Path, **options: float) -> dict[str, bytes]:
    return {entry.name: stream.read(10**9) for entry, stream in open_archive(path, **options).walk()}


def refused(path: Path, words: str, **options: float) -> None:
    """Exit code 2, with the file's name, and nothing is written beside it."""
    before = sorted(path.parent.iterdir())
    with pytest.raises(InputError, match=words) as error:
        all_of(path, **options)
    assert path.name in str(error.value)
    assert sorted(path.parent.iterdir()) == before


def patch(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


@pytest.mark.parametrize("name", ["x.zip", "x.tar", "x.tar.gz"])
def test_every_kind_gives_back_what_was_put_in(tmp_path: Path, name: str) -> None:
    path = write_zip(tmp_path / name) if name.endswith("zip") else write_tar(tmp_path / name)
    assert all_of(path) == CONTENTS
    archive = open_archive(path)
    assert {entry.name: entry.size for entry in archive.entries} == {
        name: len(data) for name, data in CONTENTS.items()
    }
    with archive.open("folder/b.bin") as stream:
        assert [stream.read(3), stream.read(10**6)] == [b"\0\1\2", CONTENTS["folder/b.bin"][3:]]
    with (
        pytest.raises(InputError, match=r"must contain 'c', got a.txt, folder/b.bin, empty"),
        archive.open("c"),
    ):
        pass
    assert [entry.name for entry, _ in archive.walk(lambda entry: entry.size == 5)] == ["a.txt"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*x\.zip"):
        open_archive(tmp_path / "x.zip")


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", "C:/x", "\\\\host\\x", "a\\..\\b"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    words = "would be outside the archive"
    refused(write_zip(tmp_path / "x.zip", {name: b"1"}), words)
    refused(write_tar(tmp_path / "x.tar.gz", {name: b"1"}), words)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.linkname = kind, "/etc/passwd"
    refused(write_tar(tmp_path / "x.tar", {}, info), "'x' is not a regular file")


def test_links_in_a_zip_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        info = zipfile.ZipInfo("x")
        info.external_attr = 0o120777 << 16
        file.writestr(info, "/etc/passwd")
    refused(tmp_path / "x.zip", "'x' is a link")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        file.writestr("a", "1")
        file.writestr("a", "2")
    refused(tmp_path / "x.zip", "two entries 'a'")


def test_too_many_entries_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_ENTRIES", 2)
    refused(write_zip(tmp_path / "x.zip"), "more than 2 entries")
    refused(write_tar(tmp_path / "x.tar"), "more than 2 entries")


def test_an_encrypted_entry_and_a_strange_method_are_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", {"a": b"12345"})
    where = path.read_bytes().index(b"PK\x01\x02")
    whole = bytearray(path.read_bytes())
    whole[where + 8] |= 1
    path.write_bytes(whole)
    refused(path, "'a' is encrypted")
    refused(write_zip(tmp_path / "y.zip", {"a": b"1"}, zipfile.ZIP_LZMA), r"uses a compression method \(14\)")


def declare(path: Path, size: int) -> None:
    """Let the first entry of a zip say that it unpacks to another size, in both of its headers."""
    whole = bytearray(path.read_bytes())
    struct.pack_into("<I", whole, whole.index(b"PK\x03\x04") + 22, size)
    struct.pack_into("<I", whole, whole.index(b"PK\x01\x02") + 24, size)
    path.write_bytes(whole)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("size", [999, 1001])
def test_an_entry_that_lies_about_its_size_is_refused(tmp_path: Path, method: int, size: int) -> None:
    path = write_zip(tmp_path / "x.zip", {"a": bytes(1000)}, method)
    declare(path, size)
    refused(path, "is damaged: ")


def test_a_bomb_that_declares_little_gives_no_more_than_that(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", {"a": bytes(10**7)})
    declare(path, 10**6)
    with open_archive(path).open("a") as stream:
        assert stream.read(5) == bytes(5)
        with pytest.raises(InputError, match="damaged"):
            stream.read(10**7)


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", {"a": b"the contents"}, zipfile.ZIP_STORED)
    patch(path, b"the contents", b"thy contents")
    refused(path, "Bad CRC-32")


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz", "x.tar"])
def test_every_truncation_is_refused(tmp_path: Path, name: str) -> None:
    contents = {"a": bytes(range(200)), "b": b"2"}
    path = write_zip(tmp_path / name, contents) if name == "x.zip" else write_tar(tmp_path / name, contents)
    whole = path.read_bytes()
    lengths = range(0, len(whole), 7) if name != "x.tar" else (0, 100, 600, 700)
    for length in lengths:
        path.write_bytes(whole[:length])
        refused(path, "damaged")


def test_the_limit_is_4_gb_or_200_times_the_file_whichever_is_more(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.write_bytes(b"1")
    assert archives.unpacked_limit(path) == 4 * 10**9
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(30_000_000)  # a file with a hole: it takes no room
    assert archives.unpacked_limit(large) == 6 * 10**9
    assert archives.unpacked_limit(large, 0.5) == 5 * 10**8
    with pytest.raises(InputError, match="max_unpacked must be a positive number of gigabytes, got 0"):
        archives.unpacked_limit(large, 0.0)


@pytest.mark.parametrize("name", ["x.zip", "x.tar", "x.tar.gz"])
def test_more_than_the_limit_is_refused_with_the_option_that_allows_it(tmp_path: Path, name: str) -> None:
    contents = {"a": bytes(6000), "b": bytes(6000)}
    path = write_zip(tmp_path / name, contents) if name == "x.zip" else write_tar(tmp_path / name, contents)
    refused(
        path,
        r"the limit of 1e-05 GB.*raise the limit with max_unpacked \(in gigabytes; default",
        max_unpacked=1e-5,
    )
    assert all_of(path, max_unpacked=1e-3) == contents


def test_a_declared_bomb_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", {"a": bytes(1000)})
    declare(path, 4 * 10**9 + 1)
    with pytest.raises(InputError, match=r"would unpack to 4\.0 GB"):
        open_archive(path)


def test_a_gzip_bomb_stops_at_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(bytes(10**6)))
    with open_stream(path) as stream:
        assert stream.read() == bytes(10**6)

    def read_all() -> None:
        with open_stream(path, 1e-4) as stream:
            while stream.read(1000):
                pass

    with pytest.raises(InputError, match="would unpack to more than the limit of"):
        read_all()


def test_a_gzip_file_that_is_cut_or_damaged_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(bytes(range(256)) * 10)
    damage = {"cut": whole[:-5], "checksum": whole[:-8] + bytes(4) + whole[-4:], "method": whole[:2] + b"\0"}

    def read(data: bytes) -> None:
        (tmp_path / "x.gz").write_bytes(data)
        with open_stream(tmp_path / "x.gz") as stream:
            stream.read()

    read(whole)
    for data in damage.values():
        with pytest.raises(InputError, match=r"x\.gz is damaged"):
            read(data)


def test_a_tar_header_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("long")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2**30
    (tmp_path / "x.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(4096))
    refused(tmp_path / "x.tar", "a header of 1,073,741,824 bytes")


ARRAYS = {
    "X": np.arange(24.0).reshape(2, 3, 4),
    "order": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
    "words": np.array(["a", "bcd"]),
    "one": np.array(3),
    "none": np.zeros((0, 4), np.uint8),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_come_back_as_they_were(tmp_path: Path, save) -> None:
    save(tmp_path / "x.npz", **ARRAYS)
    found = read_arrays(tmp_path / "x.npz")
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert found[name].flags.writeable
    assert read_arrays(tmp_path / "x.npz", wanted=("one",)).keys() == {"one"}


def test_a_bare_array_is_read_if_it_is_exactly_what_its_header_says(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, ARRAYS["order"])
    np.testing.assert_array_equal(read_arrays(path)[""], ARRAYS["order"])
    whole = path.read_bytes()
    for data in (whole[:-1], whole + b"1", whole[:20]):
        path.write_bytes(data)
        with pytest.raises(InputError, match="must be an npz file of plain arrays"):
            read_arrays(path)


class Trap:
    def __reduce__(self):
        return pytest.fail, ("it was unpickled",)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=np.array([Trap()], dtype=object))
    np.save(tmp_path / "x.npy", np.array([Trap()], dtype=object))
    record = np.zeros(2, dtype=[("a", "i4"), ("b", "O")])
    np.savez(tmp_path / "record.npz", X=record)
    for name in ("x.npz", "x.npy", "record.npz"):
        with pytest.raises(InputError, match="contains Python objects"):
            read_arrays(tmp_path / name)
    (tmp_path / "p.npy").write_bytes(pickle.dumps([1]))
    with pytest.raises(InputError, match="does not have the header of an array"):
        read_arrays(tmp_path / "p.npy")


def test_objects_that_are_not_asked_for_are_not_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=np.eye(2), metadata=np.array([Trap()], dtype=object))
    np.testing.assert_array_equal(read_arrays(tmp_path / "x.npz", wanted={"X"})["X"], np.eye(2))


def test_an_array_that_declares_more_than_its_entry_holds_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 100)}
    )
    write_zip(tmp_path / "x.npz", {"X.npy": buffer.getvalue() + bytes(80)})
    with pytest.raises(InputError, match="declares an array of 800,000,000,000 bytes in an entry of"):
        read_arrays(tmp_path / "x.npz")
    write_zip(tmp_path / "x.npz", {"X.npy": b"no array"})
    with pytest.raises(InputError, match="does not have the header of an array"):
        read_arrays(tmp_path / "x.npz")


def test_stored_arrays_are_mapped_and_compressed_ones_are_not(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **ARRAYS)
    np.savez_compressed(tmp_path / "y.npz", **ARRAYS)
    mapped = map_stored_array(tmp_path / "x.npz", "X")
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(mapped, ARRAYS["X"])
    assert not mapped.flags.writeable
    assert map_stored_array(tmp_path / "x.npz", "order") is None  # Fortran's order
    assert map_stored_array(tmp_path / "y.npz", "X") is None
    np.savez(tmp_path / "z.npz", X=np.array([Trap()], dtype=object))
    with pytest.raises(InputError, match="contains Python objects"):
        map_stored_array(tmp_path / "z.npz", "X")
