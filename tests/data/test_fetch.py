"""Downloads go on where they broke off, and only whole, checked files get their name."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import originals
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.data import fetch as fetching
from polariscope.data.cache import VARIABLE, originals_folder
from polariscope.data.dataset import family
from polariscope.data.fetch import download, fetch
from polariscope.data.originals import OriginalFile
from polariscope.data.published.dsprites import DSpritesDataset
from polariscope.data.published.mnist import MNISTDataset
from polariscope.data.published.smallnorb import SmallNORBDataset
from polariscope.data.sources import load_dataset

CONTENT = np.random.default_rng(0).bytes(100_000)
MD5 = hashlib.md5(CONTENT).hexdigest()


@dataclasses.dataclass
class Server:
    """A web server on this machine that serves files and may break off."""

    url: str
    contents: dict[str, bytes]
    breaks: list[int] = dataclasses.field(default_factory=list)
    """After how many bytes each of the next connections ends."""
    ranges: bool = True
    """Whether it sends parts of files."""
    edition: str | None = '"1"'
    """What it calls the edition of every file."""
    refusal: int | None = None
    """The code it refuses every request with."""
    asked: list[str | None] = dataclasses.field(default_factory=list)
    """The ranges that were asked for."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = state.contents.get(self.path.removeprefix("/"))
            wanted = self.headers.get("Range")
            state.asked.append(wanted)
            if state.refusal or content is None:
                self.send_error(state.refusal or 404)
                return
            begin = 0
            if state.ranges and wanted and self.headers.get("If-Range") == state.edition:
                begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if begin >= len(content):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(content)}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
            self.send_response(206 if begin else 200)
            if begin:
                self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
            if state.edition:
                self.send_header("ETag", state.edition)
            self.send_header("Content-Length", str(len(content) - begin))
            self.end_headers()
            end = begin + state.breaks.pop(0) if state.breaks else len(content)
            self.wfile.write(content[begin:end])
            self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    monkeypatch.setattr(fetching, "PAUSE", 0.0)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        state = Server(f"http://127.0.0.1:{running.server_port}/", {"file.bin": CONTENT})
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield state
        running.shutdown()


def file_of(server: Server, md5: str | None = MD5) -> OriginalFile:
    return OriginalFile("file.bin", f"{server.url}file.bin", md5)


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


def test_a_download_that_breaks_off_goes_on_where_it_was(server: Server, tmp_path: Path) -> None:
    server.breaks = [30_000, 0, 20_000]
    assert download(file_of(server), tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=30000-", "bytes=30000-", "bytes=50000-"]
    assert names_in(tmp_path) == {"file.bin"}


def test_the_same_command_again_goes_on_after_giving_up(server: Server, tmp_path: Path) -> None:
    server.breaks = [40_000, *[0] * fetching.TRIES]
    with pytest.raises(
        PolariscopeError, match=r"could not be downloaded .*40 kB of it were received; run the same command"
    ):
        download(file_of(server), tmp_path)
    assert names_in(tmp_path) == {"file.bin.part", "file.bin.part.json"}
    assert download(file_of(server), tmp_path).read_bytes() == CONTENT
    assert server.asked[-1] == "bytes=40000-"


def test_parts_of_two_editions_are_never_joined(server: Server, tmp_path: Path) -> None:
    server.breaks = [40_000, *[0] * fetching.TRIES]
    with pytest.raises(PolariscopeError):
        download(file_of(server), tmp_path)
    server.edition, server.contents["file.bin"] = '"2"', CONTENT[::-1]
    assert download(file_of(server, md5=None), tmp_path).read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("change", [{"ranges": False}, {"edition": None}, {"edition": 'W/"1"'}])
def test_a_server_that_cannot_resume_begins_again(server: Server, tmp_path: Path, change: dict) -> None:
    for name, value in change.items():
        setattr(server, name, value)
    server.breaks = [40_000]
    assert download(file_of(server), tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_whole_already_is_taken(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    (tmp_path / "file.bin.part.json").write_text('"\\"1\\""')
    assert download(file_of(server), tmp_path).read_bytes() == CONTENT
    assert server.asked == ["bytes=100000-"]


def test_a_part_longer_than_the_file_is_dropped(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT + b"more")
    (tmp_path / "file.bin.part.json").write_text('"\\"1\\""')
    assert download(file_of(server), tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum_removes_the_file(server: Server, tmp_path: Path) -> None:
    server.contents["file.bin"] = CONTENT[:-1] + b"?"
    with pytest.raises(
        PolariscopeError, match=f"is not the published file: its MD5 is .*, not {MD5}. It was removed"
    ):
        download(file_of(server), tmp_path)
    assert names_in(tmp_path) == set()


@pytest.mark.parametrize(("code", "tries"), [(404, 1), (403, 1), (503, fetching.TRIES)])
def test_a_refusal_is_told_with_where_the_file_is_expected(
    server, tmp_path: Path, code: int, tries: int
) -> None:
    server.refusal = code
    with pytest.raises(PolariscopeError, match=rf"the server returned {code} .*put it at .*file\.bin\."):
        download(file_of(server), tmp_path)
    assert len(server.asked) == tries


def test_without_a_network_it_says_which_file_it_expects_where(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(fetching, "PAUSE", 0.0)
    nowhere = OriginalFile("file.bin", "http://127.0.0.1:9/file.bin")  # the port nobody listens at
    with pytest.raises(PolariscopeError, match=r"Connection refused\).*put it at .*file\.bin\.$"):
        download(nowhere, tmp_path)


def test_without_a_network_all_files_that_are_missing_are_named(tmp_path: Path, monkeypatch) -> None:
    def unreachable(file: OriginalFile, folder: Path) -> Path:
        raise fetching.UnreachableError(f"put it at {folder / file.name}.")

    monkeypatch.setattr(fetching, "download", unreachable)
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(b"unpacked by hand")
    pattern = r"train-images-idx3-ubyte\.gz\. The other files of mnist .*/train-labels-[^,]*, [^,]*/t10k-images-[^,]*$"
    with pytest.raises(PolariscopeError, match=pattern):
        fetch("mnist", folder=tmp_path)


def test_other_kinds_of_addresses_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    with pytest.raises(InputError, match="url must begin with http"):
        download(OriginalFile("file.bin", f"file://{tmp_path}/secret"), tmp_path)


@pytest.fixture
def served(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Small files of three datasets on the server, two of them with their checksums."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    for kind, name, has_checksum in (
        (MNISTDataset, "mnist", True),
        (DSpritesDataset, "dsprites", True),
        (SmallNORBDataset, "smallnorb", False),
    ):
        folder = tmp_path / "served" / name
        folder.mkdir(parents=True)
        originals.WRITERS[name](folder)
        files = []
        for file in kind.originals:
            data = (folder / file.name).read_bytes()
            server.contents[file.name] = data
            md5 = hashlib.md5(data).hexdigest() if has_checksum else None
            files.append(OriginalFile(file.name, f"{server.url}{file.name}", md5))
        monkeypatch.setattr(kind, "originals", tuple(files))
    return server


@pytest.mark.parametrize("name", ["mnist", "dsprites", "smallnorb"])
def test_a_fetched_dataset_is_found_by_its_name(served: Server, name: str) -> None:
    fetched = fetch(name)
    assert {file.path.parent for file in fetched} == {originals_folder(name)}
    assert not any(file.was_there for file in fetched)
    assert len(load_dataset(name)) > 0
    before = len(served.asked)
    assert all(file.was_there for file in fetch(name))
    assert len(served.asked) == before


def test_the_files_of_a_look_alike_are_those_of_its_original(served: Server, monkeypatch) -> None:
    assert "sprites" in family  # opens its file, which declares its traits
    monkeypatch.setitem(family._traits, "sprites", {"original": "dsprites"})
    assert [file.path.parent for file in fetch("sprites")] == [originals_folder("dsprites")]


def test_how_a_file_was_checked_is_said(served: Server) -> None:
    assert {file.check for file in fetch("mnist")} == {"its MD5 matches the published one"}
    (words,) = {file.check for file in fetch("smallnorb")}
    assert words == "no checksum is published; its size, header and shapes are correct"


def test_a_file_packed_anew_is_known_by_its_contents(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(CONTENT, mtime=1))
    assert fetching.unpacked_md5(path) == MD5
    published = OriginalFile("file.gz", None, hashlib.md5(gzip.compress(CONTENT, mtime=0)).hexdigest(), MD5)
    assert fetching.checked_by(published, path) == "the MD5 of its contents matches the published one"
    path.write_bytes(gzip.compress(CONTENT, mtime=0))
    assert fetching.checked_by(published, path) == "its MD5 matches the published one"
    path.write_bytes(gzip.compress(CONTENT[1:], mtime=0))
    assert "differs from the published one" in fetching.checked_by(published, path)


def test_files_of_no_known_checksum_are_opened_and_removed_if_they_are_something_else(served: Server) -> None:
    name = SmallNORBDataset.originals[0].name
    served.contents[name] = b"<html>Not here any more</html>"
    with pytest.raises(PolariscopeError, match=r"and were removed: .*does not begin like a matrix"):
        fetch("smallnorb")
    assert not list(originals_folder("smallnorb").glob("*.gz"))


def test_another_folder_may_be_given(served: Server, tmp_path: Path) -> None:
    fetch("dsprites", folder=tmp_path / "here")
    assert len(load_dataset("dsprites", path=str(tmp_path / "here"))) == 48


def test_what_has_no_files_or_only_a_browser_can_get_is_said() -> None:
    with pytest.raises(InputError, match="'sprites' has no files to fetch; these have: cars3d, celeba"):
        fetch("sprites")
    with pytest.raises(InputError, match="can only be downloaded with a browser, from https://mmlab"):
        fetch("celeba")
    with pytest.raises(InputError, match=r"shapes_ordered\.npz of mpi3d can only"):
        fetch("mpi3d", {"edition": "complex"})
    with pytest.raises(InputError, match="no dataset named 'mnst'"):
        fetch("mnst")
