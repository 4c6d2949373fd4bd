"""Who may write into a folder: a lock that dies with its owner, and a lease for hosts that share a disk.

Every start takes the next *fencing number*: it makes the file of that number, which only one process can. The owner
holds the folder's lock as long as it lives, and touches its file as a sign of life. Another process may start

* at once when the owner gave the folder back, or the lock is free and the owner was on this host: it is dead;
* after the lease's time without a sign of life otherwise: locks need not reach other hosts, and a paused owner holds
  its lock for ever.

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
"""Without a sign of life for so long an owner may lose its lease."""


class LostLeaseError(Exception):
    """Another process owns the folder now; this one must not write any more.

    It is no :class:`PolariscopeError`: nobody may take it for a result that could not be stored.
    """


@dataclasses.dataclass(frozen=True)
class Owner:
    """A process that has, or had, a lease."""

    host: str
    boot: str
    """Which start of that host; the locks of before a restart count for nothing."""
    process: int
    token: str
    """Different for every claim."""
    seconds: float
    """How long it may be without a sign of life."""
    released: bool = False
    """Whether it gave the folder back."""

    @classmethod
    def here(cls, seconds: float) -> Owner:
        """This process."""
        return cls(platform.node(), _boot(), os.getpid(), uuid.uuid4().hex, seconds)


class Lease:
    """The right to write into a folder, until it is released or lost.

    :meth:`take` makes one; as a context manager it gives signs of life and is released in the end.
    """

    def __init__(self, folder: Path, number: int, owner: Owner, lock: filelock.BaseFileLock) -> None:
        self.folder = folder
        self.number = number
        """Its fencing number."""
        self.owner = owner
        self._lock = lock
        self._stop = threading.Event()
        self._alive: threading.Thread | None = None

    @classmethod
    def take(cls, folder: str | Path, seconds: float = SECONDS) -> Lease | None:
        """Claim a folder; None when another process has it.

        :param folder: made if it is not there.
        :param seconds: (default 60) time without a sign of life after which the lease may be lost.
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Read before the lock is tried: if another process claims the folder meanwhile, the number after this one
            # is taken, and the claim below fails.
            before = newest(folder)
            lock = _try_lock(folder / layout.LOCK)
            if lock is None and (before is None or not _is_paused(before)):
                return None
            if lock is not None and before is not None and not _may_follow(before):
                lock.release()
                return None
            number = 1 + (0 if before is None else _number(before))
            owner = Owner.here(seconds)
            try:
                made = _make(folder, number, owner)
            except FileNotFoundError:  # whoever got the number removed our draft
                made = False
            if not made:
                if lock is not None:
                    lock.release()
                return None
        except OSError as error:
            if error.errno not in files.NOT_WRITABLE:
                raise
            raise files.WriteError.of(folder, error) from error
        if lock is None:
            # A paused owner holds the lock of this file for ever. A new file has a new lock; the owner will notice that
            # it lost its lease before its next write.
            for name in (layout.LOCK, layout.ARTEFACT_LOCK):
                (folder / name).unlink(missing_ok=True)
            lock = _try_lock(folder / layout.LOCK)
            if lock is None:
                return None
        for old in leases(folder):
            if _number(old) < number:
                old.unlink(missing_ok=True)
        return cls(folder, number, owner, lock)

    @property
    def file(self) -> Path:
        """The file of its number."""
        return _file(self.folder, self.number)

    def check(self) -> None:
        """Raise :class:`LostLeaseError` unless this lease is the newest."""
        last = newest(self.folder)
        if last is None or _number(last) != self.number:
            raise LostLeaseError(f"{self.folder} was taken over by another process; nothing more is written.")

    def touch(self) -> None:
        """Give a sign of life."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.file)

    def release(self) -> None:
        """Give the folder back."""
        with contextlib.suppress(LostLeaseError, OSError, PolariscopeError):
            owner = dataclasses.replace(self.owner, released=True)
            documents.write_document(self.file, "lease", to_plain(owner), guard=self.check)
        self._lock.release()

    def __enter__(self) -> Lease:
        self._alive = threading.Thread(target=self._give_signs, daemon=True)
        self._alive.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._alive is not None:
            self._alive.join()
        self.release()

    def _give_signs(self) -> None:
        # Several signs within the time of the lease, so one that is late on a slow disk costs nothing.
        while not self._stop.wait(self.owner.seconds / 6):
            self.touch()


def is_taken(folder: str | Path) -> bool:
    """Whether a process has a folder now, as far as its lock and its lease tell.

    :param folder: that of a run.
    """
    folder = Path(folder)
    if not folder.is_dir():
        return False
    last = newest(folder)
    lock = _try_lock(folder / layout.LOCK) if (folder / layout.LOCK).exists() else None
    if lock is not None:
        lock.release()
        return last is not None and not _may_follow(last)
    is_locked = (folder / layout.LOCK).exists()
    return is_locked and not (last is not None and _is_paused(last))


def leases(folder: Path) -> Iterator[Path]:
    """The files of leases, in no order."""
    return (
        path for path in folder.glob(f"{layout.LEASE}*") if re.fullmatch(rf"{layout.LEASE}\d{{6}}", path.name)
    )


def newest(folder: Path) -> Path | None:
    """The lease with the highest number; None without any."""
    return max(leases(folder), key=_number, default=None)


def is_expired(lease: Path) -> bool:
    """Whether its owner gave no sign of life for longer than it said, by the clock of the disk."""
    owner = _owner(lease)
    try:
        silent = _disk_time(lease.parent) - lease.stat().st_mtime
    except FileNotFoundError:  # somebody is faster
        return False
    return silent > (SECONDS if owner is None else owner.seconds)


def _is_paused(lease: Path) -> bool:
    """Whether the owner of this lease has the folder's lock and gave no sign of life for too long.

    Where it gave the folder back or is dead, somebody without a lease has the lock: a training by hand.
    """
    owner = _owner(lease)
    if owner is None or owner.released or not is_expired(lease):
        return False
    if (owner.host, owner.boot) != (platform.node(), _boot()):
        return True
    try:
        os.kill(owner.process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _may_follow(lease: Path) -> bool:
    """Whether another process may start after this lease, whose lock is free here."""
    owner = _owner(lease)
    if owner is not None and owner.released:
        return True
    if owner is not None and (owner.host, owner.boot) == (platform.node(), _boot()):
        return True  # it would have the lock if it lived
    return is_expired(lease)


def _owner(lease: Path) -> Owner | None:
    """Who made a lease; None if that cannot be read."""
    try:
        return from_plain(Owner, documents.read_document(lease, "lease").content)
    except (PolariscopeError, OSError):
        return None


def _make(folder: Path, number: int, owner: Owner) -> bool:
    """Make the file of a number; whether this process was the one that did."""
    draft = folder / f"{layout.CLAIM}{owner.token}"
    try:
        documents.write_document(draft, "lease", to_plain(owner))
        # A link fails if its name exists, on network disks too: only one process gets the number, with its content.
        os.link(draft, _file(folder, number))
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    for left in folder.glob(
        f"{layout.CLAIM}*"
    ):  # by claimants that were killed; one that is not loses its claim
        left.unlink(missing_ok=True)
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
    """Now, by the clock that the files of a folder have their times from."""
    clock = folder / layout.CLOCK
    try:
        clock.touch()
        return clock.stat().st_mtime
    except OSError:  # a full or read-only disk
        return time.time()


@functools.cache
def _boot() -> str:
    """What tells one start of this machine from the next."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
