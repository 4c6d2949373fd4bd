"""A folder has one owner at a time: the dead lose it at once, the silent after a while, and all notice."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import filelock
import pytest

from polariscope.storage import LEASE, LOCK
from polariscope.storage.folder import RunFolder
from polariscope.storage.lease import Lease, LostLeaseError, Owner, is_taken, newest

OTHER_PROCESS = """
import sys, time
from polariscope.storage.lease import Lease
lease = Lease.take(sys.argv[1], seconds=1000.0)
print(lease.number, flush=True)
time.sleep(1000)
"""


def test_a_second_claim_is_refused_until_the_first_is_given_back(tmp_path: Path) -> None:
    first = Lease.take(tmp_path)
    assert first is not None
    assert is_taken(tmp_path)
    assert Lease.take(tmp_path) is None
    first.release()
    assert not is_taken(tmp_path)
    second = Lease.take(tmp_path)
    assert second is not None
    assert (first.number, second.number) == (1, 2)
    with pytest.raises(LostLeaseError, match="taken over"):
        first.check()
    second.check()
    second.release()


def test_a_killed_owner_loses_the_folder_at_once(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", OTHER_PROCESS, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == b"1\n"
        assert Lease.take(tmp_path) is None
    finally:
        other.kill()
        other.communicate()
    lease = Lease.take(tmp_path)
    assert lease is not None
    assert lease.number == 2
    lease.release()


def test_a_silent_owner_loses_the_folder_and_notices_before_it_writes(tmp_path: Path) -> None:
    first = Lease.take(tmp_path, seconds=0.1)
    assert first is not None
    folder = RunFolder(tmp_path, first.check)
    folder.keep_failure("error", "of the first")
    time.sleep(0.3)
    second = Lease.take(tmp_path, seconds=100.0)
    assert second is not None
    assert second.number == 2
    with pytest.raises(LostLeaseError):
        folder.keep_failure("error", "too late")
    assert folder.failure() == {"kind": "error", "message": "of the first"}
    assert Lease.take(tmp_path) is None  # the new owner has a lock of its own
    first.release()  # which gives nothing back that is not the first's
    assert Lease.take(tmp_path) is None
    second.check()
    second.release()


def test_an_owner_that_gives_signs_of_life_keeps_the_folder(tmp_path: Path) -> None:
    lease = Lease.take(tmp_path, seconds=0.3)
    assert lease is not None
    with lease:
        for _ in range(4):
            time.sleep(0.2)
            assert Lease.take(tmp_path) is None


def test_an_owner_on_another_host_is_waited_for_although_its_lock_is_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Owner.here(0.3)
    monkeypatch.setattr(Owner, "here", lambda seconds: Owner("elsewhere", "b", 1, here.token, 0.3))
    lease = Lease.take(tmp_path)
    assert lease is not None
    monkeypatch.undo()
    lease._lock.release()  # as a disk that keeps locks to each host
    assert is_taken(tmp_path)
    assert Lease.take(tmp_path) is None
    time.sleep(0.5)
    assert Lease.take(tmp_path) is not None
    with pytest.raises(LostLeaseError):
        lease.check()


def test_a_training_by_hand_is_never_taken_over(tmp_path: Path) -> None:
    """Its lock is not that of the lease before it, however old that is."""
    lease = Lease.take(tmp_path, seconds=0.01)
    assert lease is not None
    lease.release()
    os.utime(lease.file, (0, 0))
    with filelock.FileLock(tmp_path / LOCK):
        assert Lease.take(tmp_path) is None
        assert is_taken(tmp_path)


def test_of_two_that_start_at_once_one_gets_the_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks that reach nobody, as on some shared disks: the file of the number decides."""
    from polariscope.storage import lease as module

    monkeypatch.setattr(module, "_try_lock", lambda path: filelock.FileLock(path.with_name("own")))
    make = module._make
    claims: list[object] = []

    def overtaken(folder: Path, number: int, owner: Owner) -> bool:
        monkeypatch.setattr(module, "_make", make)
        claims.append(Lease.take(folder))  # another claimant is faster
        return make(folder, number, owner)

    monkeypatch.setattr(module, "_make", overtaken)
    assert Lease.take(tmp_path) is None
    assert claims[0] is not None
    last = newest(tmp_path)
    assert last is not None
    assert last.name == f"{LEASE}000001"
