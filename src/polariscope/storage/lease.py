"""The right to write to a folder: a lock that ends with its owner, and a lease for hosts that share a disk.

Every claim takes the next *fencing number* by creating the file of that number, which only one process can do. The
owner holds the folder's lock while it runs, and touches its file regularly (a heartbeat). Another process can claim the
folder

* at once if the owner released it, or if the lock is free and the owner was on this host, so it has ended;
* otherwise after the lease time without a heartbeat, because locks might not be visible on other hosts, and a paused
  owner would hold its lock forever.

The highest number owns the folder. :meth:`Lease.check`, called before every write, raises for all others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import platform
import re
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import filelock

from polariscope import storage as layout
from polariscope.core import files
from polariscope.core.errors import PolariscopeError
from polariscope.core.records import from_plain, to_plain
from polariscope.storage import documents

SECONDS = 60.0
"""Seconds without a heartbeat after which an owner can lose its lease."""


class LostLeaseError(Exception):
    """Error raised if another process owns the folder now; this one must not write any more.

    It is not a :class:`PolariscopeError`, so it is not mistaken for a result that could not be stored.
    """


@dataclasses.dataclass(frozen=True)
class Owner:
    """A process that has, or had, a lease."""

    host: str
    boot: str
    """Identifier of the host's boot; locks from before a reboot are void."""
    process: int
    token: str
    """Unique identifier of the claim."""
    seconds: float
    """Lease time: maximum time between heartbeats."""
    released: bool = False
    """If True, the owner released the folder."""

    @classmethod
    def here(cls, seconds: float) -> Owner:
        """Return this process as an owner."""
        return cls(platform.node(), _boot(), os.getpid(), uuid.uuid4().hex, seconds)


class Lease:
    """The right to write to a folder, until it is released or lost.

    :meth:`take` claims a folder; as a context manager the lease sends heartbeats and is released at the end.
    """

    def __init__(self, folder: Path, number: int, owner: Owner, lock: filelock.BaseFileLock) -> None:
        self.folder = folder
        self.number = number
        """Fencing number."""
        self.owner = owner
        self._lock = lock
        self._stop = threading.Event()
        self._alive: threading.Thread | None = None

    @classmethod
    def take(cls, folder: str | Path, seconds: float = SECONDS) -> Lease | None:
        """Claim a folder; return None if another process has it.

        :param folder: the folder; it is created if it does not exist.
        :param seconds: (default 60) time without a heartbeat after which the lease can be lost.
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # This is read before the lock is tried: if another process claims the folder in between, the next number
            # is taken, and the claim below fails.
            before = newest(folder)
            lock = _try_lock(folder / layout.LOCK)
            # The lock is held by a living owner, or by a process without a lease.
            if lock is None and (before is None or not _is_paused(before)):
                return None
            if lock is not None and before is not None and not _may_follow(before):
                lock.release()
                return None
            number = 1 + (0 if before is None else _number(before))
            owner = Owner.here(seconds)
            try:
                is_claimed = _make(folder, number, owner)
            except FileNotFoundError:  # the process that got the number removed this draft
                is_claimed = False
            if not is_claimed:
                if lock is not None:
                    lock.release()
                return None
        except OSError as error:
            if error.errno not in files.NOT_WRITABLE:
                raise
            raise files.WriteError.of(folder, error) from error
        if lock is None:
            # A paused owner would hold the lock of this file forever. A new file has a new lock; the owner detects the
            # loss of its lease before its next write.
            for name in (layout.LOCK, layout.ARTEFACT_LOCK):
                (folder / name).unlink(missing_ok=True)
            lock = _try_lock(folder / layout.LOCK)
            if lock is None:
                return None
        # Deleted after the claim, because numbers would start again from 1 if no lease existed in between.
        for old in leases(folder):
            if _number(old) < number:
                old.unlink(missing_ok=True)
        return cls(folder, number, owner, lock)

    @property
    def file(self) -> Path:
        """File of the lease."""
        return _file(self.folder, self.number)

    def check(self) -> None:
        """Raise :class:`LostLeaseError` unless this lease is the newest."""
        last = newest(self.folder)
        if last is None or _number(last) != self.number:
            raise LostLeaseError(f"{self.folder} was taken over by another process; this one stops writing.")

    def touch(self) -> None:
        """Send a heartbeat."""
        # Another process took over and removed the file; check() raises before the next write.
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.file)

    def release(self) -> None:
        """Release the folder."""
        with contextlib.suppress(LostLeaseError, OSError, PolariscopeError):
            owner = dataclasses.replace(self.owner, released=True)
            documents.write_document(self.file, "lease", to_plain(owner), guard=self.check)
        self._lock.release()

    def __enter__(self) -> Lease:
        self._alive = threading.Thread(target=self._send_heartbeats, daemon=True)
        self._alive.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._alive is not None:
            self._alive.join()
        self.release()

    def _send_heartbeats(self) -> None:
        # Several heartbeats within the lease time, so one that a slow disk delays does not matter.
        while not self._stop.wait(self.owner.seconds / 6):
            self.touch()


def is_taken(folder: str | Path) -> bool:
    """Return True if a process has a folder now, according to its lock and its lease.

    :param folder: a run folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        return False
    last = newest(folder)
    # Tested first, because acquiring a lock creates its file.
    lock = _try_lock(folder / layout.LOCK) if (folder / layout.LOCK).exists() else None
    if lock is not None:
        lock.release()
        return last is not None and not _may_follow(last)
    is_locked = (folder / layout.LOCK).exists()
    return is_locked and not (last is not None and _is_paused(last))


def leases(folder: Path) -> Iterator[Path]:
    """Return the files of leases, in no particular order."""
    return (
        path for path in folder.glob(f"{layout.LEASE}*") if re.fullmatch(rf"{layout.LEASE}\d{{6}}", path.name)
    )


def newest(folder: Path) -> Path | None:
    """Return the lease with the highest number; None if there is no lease."""
    return max(leases(folder), key=_number, default=None)


def is_expired(lease: Path) -> bool:
    """Return True if the owner sent no heartbeat for longer than its lease time, by the clock of the disk."""
    owner = _owner(lease)
    try:
        silent = _disk_time(lease.parent) - lease.stat().st_mtime
    except FileNotFoundError:  # another process has removed it
        return False
    return silent > (SECONDS if owner is None else owner.seconds)


def _is_paused(lease: Path) -> bool:
    """Return True if the owner of this lease has the folder's lock and its lease has expired.

    If the owner released the folder or has ended, a process without a lease has the lock: it trains outside a study.
    """
    owner = _owner(lease)
    if owner is None or owner.released or not is_expired(lease):
        return False
    if (owner.host, owner.boot) != (platform.node(), _boot()):
        return True
    try:
        # Signal 0 only tests if the process exists.
        os.kill(owner.process, 0)
    except ProcessLookupError:
        return False
    # The process exists and belongs to another user.
    except PermissionError:
        pass
    return True


def _may_follow(lease: Path) -> bool:
    """Return True if another process can claim the folder after this lease, whose lock is free on this host."""
    owner = _owner(lease)
    if owner is not None and owner.released:
        return True
    if owner is not None and (owner.host, owner.boot) == (platform.node(), _boot()):
        return True  # it would hold the lock if it were running
    return is_expired(lease)


def _owner(lease: Path) -> Owner | None:
    """Return the owner of a lease; None if the file cannot be read."""
    try:
        return from_plain(Owner, documents.read_document(lease, "lease").content)
    except (PolariscopeError, OSError):
        return None


def _make(folder: Path, number: int, owner: Owner) -> bool:
    """Create the file of a number; return True if this process created it."""
    draft = folder / f"{layout.CLAIM}{owner.token}"
    try:
        documents.write_document(draft, "lease", to_plain(owner))
        # Creating a link fails if the name exists, also on network disks, so only one process gets the number.
        os.link(draft, _file(folder, number))
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    # Drafts of killed processes; a running process whose draft is removed loses its claim.
    for draft in folder.glob(f"{layout.CLAIM}*"):
        draft.unlink(missing_ok=True)
    files.fsync_folder(folder)
    return True


def _file(folder: Path, number: int) -> Path:
    return folder / f"{layout.LEASE}{number:06d}"


def _number(lease: Path) -> int:
    return int(lease.name.removeprefix(layout.LEASE))


def _try_lock(path: Path) -> filelock.BaseFileLock | None:
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return None
    return lock


def _disk_time(folder: Path) -> float:
    """Return the time by the clock of the disk, which sets the times of files."""
    clock = folder / layout.CLOCK
    try:
        clock.touch()
        return clock.stat().st_mtime
    except OSError:  # a full or read-only disk
        return time.time()


@functools.cache
def _boot() -> str:
    """Return an identifier of the present boot of this machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
