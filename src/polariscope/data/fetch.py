"""Download of a dataset's original files: interrupted downloads resume, and files are checked before use.

A file is downloaded under its name with the suffix ``.part`` and gets its final name once it has been checked. The
server's identifier of the file's edition is stored next to it, so parts of two editions are never joined.
"""

from __future__ import annotations

import dataclasses
import hashlib
import http.client
import os
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import filelock

from polariscope import __version__
from polariscope.core import archives, files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.options import check_options
from polariscope.core.parsing import read_json
from polariscope.core.paths import user_path
from polariscope.core.progress import Task, shown_progress
from polariscope.core.text import file_size
from polariscope.data.cache import originals_folder
from polariscope.data.dataset import family
from polariscope.data.originals import AbstractPublishedDataset, OriginalFile
from polariscope.data.sources import original_of

BLOCK = 2**18
TIMEOUT = 30.0
"""Seconds without a byte after which a connection counts as broken."""
TRIES = 5
"""Number of consecutive connections without data after which a download fails."""
PAUSE = 1.0
"""Seconds before the second connection; each further one waits twice as long."""
BROKEN = (OSError, http.client.HTTPException)
"""Exceptions of a connection that breaks off; an unknown host raises them too."""


class UnreachableError(PolariscopeError):
    """A file could not be downloaded."""


@dataclasses.dataclass(frozen=True)
class Fetched:
    """A downloaded file of a dataset."""

    path: Path
    """Path of the file."""
    check: str
    """Result of the check, in words."""
    was_there: bool
    """If True, the file was present before and nothing had to be downloaded."""


def fetch(
    name: str,
    options: Mapping[str, object] | None = None,
    folder: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Fetched]:
    """Download the missing files of a published dataset and check them.

    Each file is compared with its published checksum. If none is published, the dataset is opened, which checks the
    file's size as reported by the server, its header and its shapes.

    :param name: name of the dataset, "dsprites", or of a rendered counterpart that names its original.
    :param options: (default none) options of the dataset that determine which files are needed.
    :param folder: (default: the folder in the cache that the dataset reads) destination folder.
    :param say: (default nothing) function that is called with a description of each step.
    """
    name = original_of(name)
    kind = family[name]
    if not _is_published(kind):
        fetchable = [each for each in family.working() if _is_published(family[each])]
        raise InputError(
            problem=f"dataset {name!r} has no files to fetch", remedy=f"these have: {', '.join(fetchable)}"
        )
    arguments: dict[str, Any] = check_options(f"dataset {name!r}", kind, options or {})
    target = (originals_folder(name) if folder is None else user_path(folder, "folder")).resolve()
    wanted = kind.files_for(**arguments)
    by_hand = [file.name for file in wanted if file.url is None and not (target / file.name).exists()]
    if by_hand:
        raise InputError(
            problem=f"{', '.join(by_hand)} of {name} can only be downloaded with a browser, from {kind.homepage}",
            remedy=f"put it into {target}",
        )
    fetched, new = [], []
    for number, file in enumerate(wanted):
        existing = _existing(target / file.name)
        if existing is None:
            say(f"{file.name} from {file.url}")
            try:
                new.append(download(file, target))
            except UnreachableError as error:
                others = [file.url for file in wanted[number + 1 :] if not _existing(target / file.name)]
                if not others:
                    raise
                raise UnreachableError(
                    f"{error} The other files of {name} belong in the same folder: {', '.join(map(str, others))}."
                ) from None
        path = existing or new[-1]
        fetched.append(Fetched(path, checked_by(file, path), existing is not None))
    if any(file.md5 is None for file in wanted):
        try:
            kind(**{**arguments, "path": str(target)})  # checks headers and shapes
        except InputError as error:
            if not new:
                raise
            for path in new:
                # They would count as present in the next call.
                path.unlink(missing_ok=True)
            raise PolariscopeError(
                f"The files downloaded for {name} are not the expected ones and were removed: {error}"
            ) from None
    return fetched


def _is_published(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, AbstractPublishedDataset)


def _existing(path: Path) -> Path | None:
    """Return the path of a file, or of its copy unpacked by hand, if one of them exists."""
    spellings = (path, path.with_name(path.name.removesuffix(".gz")))
    return next((each for each in spellings if each.is_file()), None)


def checked_by(file: OriginalFile, path: Path) -> str:
    """Check a file and describe the result.

    :param file: published facts about the file.
    :param path: path of the file.
    """
    if file.md5 is None:
        return "no checksum is published; its size, header and shapes are correct"
    if _md5(path) in (file.md5, file.md5_unpacked):
        return "its MD5 matches the published one"
    if file.md5_unpacked is not None and unpacked_md5(path) == file.md5_unpacked:
        return "the MD5 of its contents matches the published one"
    return "its MD5 differs from the published one, so it is another file or another edition"


def _md5(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "md5").hexdigest()


def download(file: OriginalFile, folder: Path) -> Path:
    """Download one file into a folder, resuming an interrupted download; the file appears once it is complete.

    :param file: the file.
    :param folder: destination folder.
    """
    if file.url is None or not file.url.startswith(("http://", "https://")):
        raise InputError("url", "begin with http:// or https://", got=f"{file.url!r}")
    target = folder / file.name
    part, note = target.with_name(f"{file.name}.part"), target.with_name(f"{file.name}.part.json")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (
            # A second download of the same file fails at once instead of waiting.
            filelock.FileLock(folder / f".{file.name}.lock", timeout=0),
            shown_progress(f"{file.name}: downloading", patience=0.5) as progress,
        ):
            _complete(file, part, note, progress)
            _verify(file, part, note)
            # On disk before it gets its name, so an incomplete file never has it.
            with part.open("rb+") as opened:
                os.fsync(opened.fileno())
            part.replace(target)
            note.unlink(missing_ok=True)
            files.fsync_folder(folder)
    except filelock.Timeout:
        raise PolariscopeError(f"{file.name} is being downloaded into {folder} by another process.") from None
    except OSError as error:
        if error.errno in files.NOT_WRITABLE:
            raise files.WriteError.of(part, error) from None
        raise
    return target


def _complete(file: OriginalFile, part: Path, note: Path, progress: Task) -> None:
    """Connect repeatedly until the whole file has been received; each connection resumes where the last one ended."""
    failures = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            if _receive(file, part, note, progress):
                return
            reason = "the connection ended early"
        except urllib.error.HTTPError as error:
            reason = f"the server returned {error.code} {error.reason}"
            # Other client errors are permanent: a missing file does not appear by waiting.
            if error.code < 500 and error.code not in (408, 429):
                raise _unreachable(file, part, reason) from None
        except BROKEN as error:
            if isinstance(error, OSError) and error.errno in files.NOT_WRITABLE:
                raise
            cause = getattr(error, "reason", error)
            reason = str(cause) or type(error).__name__
            # Without a network, or with an unknown host, waiting a few seconds does not help.
            if isinstance(cause, socket.gaierror):
                raise _unreachable(file, part, reason) from None
        after = part.stat().st_size if part.exists() else 0
        # Connections that brought data do not count as failures, however many are needed.
        failures = 0 if after > before else failures + 1
        if failures == TRIES:
            raise _unreachable(file, part, reason)
        time.sleep(PAUSE * 2.0 ** (failures - 1) if failures else 0)


def _receive(file: OriginalFile, part: Path, note: Path, progress: Task) -> bool:
    """Receive the data of one connection and return whether the file is complete."""
    assert file.url is not None
    have = part.stat().st_size if part.exists() else 0
    edition = read_json(note) if have and note.exists() else None
    # Compressed by the server, lengths and ranges would not be those of the file.
    headers = {"User-Agent": f"polariscope/{__version__}", "Accept-Encoding": "identity"}
    if edition is not None:
        # With If-Range the server sends the whole file if its edition has changed.
        headers |= {"Range": f"bytes={have}-", "If-Range": edition}
    try:
        response = urllib.request.urlopen(urllib.request.Request(file.url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # either nothing is left to send, or the part belongs to another file
            raise
        with error:
            # The range is beyond the end because the part is already complete.
            whole = error.headers.get("Content-Range", "") == f"bytes */{have}"
        if not whole:
            part.unlink()
        return whole
    with response:
        # A server that ignores the range answers 200 and sends the whole file.
        resumed = response.status == 206 and response.headers.get("Content-Range", "").startswith(
            f"bytes {have}-"
        )
        if not resumed:
            have = 0
            mark = response.headers.get("ETag") or response.headers.get("Last-Modified")
            # A weak mark does not promise equal bytes, so a part cannot be continued with it.
            if mark and not mark.startswith("W/"):
                files.write_json(note, mark)
            else:
                note.unlink(missing_ok=True)  # without a known edition, nothing can be appended later
        length = response.headers.get("Content-Length")
        total = have + int(length) if length is not None else None
        _check_room(part, (total or 0) - have)
        with part.open("ab" if resumed else "wb") as out:
            while block := response.read(BLOCK):
                out.write(block)
                have += len(block)
                # Without a known length, progress stays below 100 %.
                progress(have, total or have + 1)
    return total is None or have == total


def _check_room(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed > free:
        raise InputError(
            problem=f"{part.parent} needs {file_size(needed)} more, and its disk has {file_size(free)} free",
            remedy="free some space, or choose another folder",
        )


def _verify(file: OriginalFile, part: Path, note: Path) -> None:
    """Compare a file with its published checksum, if there is one; remove a file that does not match."""
    if file.md5 is None:
        return
    md5 = _md5(part)
    if md5 != file.md5 and md5 != file.md5_unpacked:
        part.unlink()
        note.unlink(missing_ok=True)
        raise PolariscopeError(
            f"{file.name} from {file.url} is not the published file: its MD5 is {md5}, not {file.md5}. It was "
            "removed; run the same command again, or get the file elsewhere."
        )


def _unreachable(file: OriginalFile, part: Path, reason: str) -> UnreachableError:
    have = part.stat().st_size if part.exists() else 0
    resume = f" {file_size(have)} of it were received; run the same command again to resume." if have else ""
    return UnreachableError(
        f"{file.url} could not be downloaded ({reason.rstrip('.')}).{resume} Without a network, download it elsewhere "
        f"and put it at {part.with_name(file.name)}."
    )


def unpacked_md5(path: Path) -> str:
    """Return the MD5 of a file's contents, unpacked if it is gzipped.

    :param path: the file.
    """
    md5 = hashlib.md5(usedforsecurity=False)
    with archives.open_stream(path) as stream:
        while block := stream.read(BLOCK):
            md5.update(block)
    return md5.hexdigest()
