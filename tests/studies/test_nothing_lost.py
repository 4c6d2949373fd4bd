"""Whatever happens to workers and files: in the end every run is there once, equal to that of an undisturbed study."""

from __future__ import annotations

import logging
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import polariscope
from forked import Forks
from polariscope.core.files import WriteError
from polariscope.storage.folder import RunFolder
from polariscope.storage.lease import Lease, LostLeaseError
from polariscope.studies.ledger import Ledger
from polariscope.studies.planned_runs import StudyRun
from polariscope.studies.study import Study
from polariscope.studies.worker import Worker
from tiny_studies import is_logging, snapshot, tiny, wait_for

HOSTILE = Path(__file__).parents[1] / "hostile" / "workers.py"
KILLS = 10


def finish(study: Study) -> Ledger:
    """Do what is missing, and check that nothing is."""
    ledger = Ledger(study)
    Worker(ledger).drain()
    assert Ledger(study).counts() == {"waiting": 0, "running": 0, "done": len(ledger.runs), "failed": 0}
    return ledger


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of a study that nothing happened to."""
    study = tiny(tmp_path_factory.mktemp("undisturbed"))
    finish(study)
    return snapshot(study)


def test_workers_that_are_killed_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    # Long enough that a worker trains for most of its life: checking what is done takes a tenth of a second.
    settings = {**tiny(tmp_path).settings, "steps": 60 * KILLS}
    design: dict[str, Any] = {"settings": settings, "seeds": 2}
    quiet = tiny(tmp_path / "quiet", **design)
    Ledger(quiet).prepare()
    begun = time.monotonic()
    finish(quiet)
    # Together the killed workers live for a third of the time that the study took here, where shapes are checked, so
    # there is work left for each of them.
    longest = 2 / 3 * (time.monotonic() - begun) / KILLS
    study = tiny(tmp_path / "hostile", **design)
    Ledger(study).prepare()
    package = str(Path(polariscope.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HOSTILE), study.out, str(KILLS), f"{longest:.3f}", "0"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= KILLS / 2  # the others died between two runs, or before the first
    assert Ledger(study).counts()["done"] == 4
    assert snapshot(study) == snapshot(quiet)


def test_two_workers_on_one_folder_share_the_runs(tmp_path: Path, undisturbed: dict[str, str]) -> None:
    """The second comes while the first trains: it makes the other run, and then nothing is left for the first."""
    study = tiny(tmp_path)
    made: dict[str, list[str]] = {"first": [], "second": []}

    def listen(name: str) -> Callable[[StudyRun, int], None]:
        def hear(run: StudyRun, step: int) -> None:
            if run.name not in made[name]:
                made[name].append(run.name)
            if name == "first" and not made["second"]:
                second = Worker(Ledger(study), listen=listen("second"))
                second._repeat = lambda tasks, do: [do(task) for task in tasks]  # type: ignore[method-assign]
                second.drain()  # once over all, without waiting for the first

        return hear

    Worker(Ledger(study), listen=listen("first")).drain()
    assert made == {"first": ["beta=1,seed=0"], "second": ["beta=4,seed=0"]}
    assert snapshot(study) == undisturbed


def test_a_worker_that_lost_its_lease_stops_before_its_next_write(
    tmp_path: Path, undisturbed: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    study = tiny(tmp_path)
    taken: list[Lease] = []

    def steal(run: StudyRun, step: int) -> None:
        if step == 5 and not taken:
            last = run.folder / ".lease-000001"
            os.utime(last, (0, 0))  # as if the worker had been paused for long
            lease = Lease.take(run.folder)
            assert lease is not None
            assert lease.number == 2
            taken.append(lease)
            before = RunFolder(run.folder).checkpoints.steps
            assert before == [4]
        elif taken and step == 9 and run.name == "beta=1,seed=0":
            raise AssertionError("it has trained past the next checkpoint")

    worker = Worker(Ledger(study), listen=steal)
    worker._repeat = lambda tasks, do: [do(task) for task in tasks]  # type: ignore[method-assign]
    with caplog.at_level(logging.WARNING):
        worker.drain()
    assert "was taken over by another process" in caplog.text
    first = Ledger(study).runs[0]
    assert RunFolder(first.folder).checkpoints.steps == [4]
    assert len(RunFolder(first.folder).read_log()) == 1
    taken[0].release()
    finish(study)
    assert snapshot(study) == undisturbed


def test_a_paused_process_loses_its_run_and_notices_before_its_next_write(
    tmp_path: Path, forks: Forks
) -> None:
    """SIGSTOP for longer than its lease, another worker finishes, SIGCONT: it writes nothing and ends."""
    settings = {**tiny(tmp_path).settings, "steps": 300, "log_every": 10, "checkpoint_every": 100}
    design: dict[str, Any] = {"settings": settings, "grid": {"beta": [1.0]}, "each": {}, "threads": 1}
    quiet, study = tiny(tmp_path / "quiet", **design), tiny(tmp_path / "paused", **design)
    ledger, lease = Ledger(study), 1.0
    ledger.prepare()
    finish(quiet)
    code = "import sys; from polariscope.studies.worker import main; sys.exit(main())"
    process = forks.start(code, study.out, "--lease", str(lease))
    wait_for(lambda: is_logging(ledger.runs[0]))
    process.send_signal(signal.SIGSTOP)
    assert not Ledger(study).is_done(ledger.runs[0])
    assert Ledger(study).counts()["running"] == 1
    finish(study)  # waits until the lease is over
    assert snapshot(study) == snapshot(quiet)
    process.send_signal(signal.SIGCONT)
    _, said = process.communicate()
    assert "was taken over by another process; this one stops writing" in said
    assert process.returncode == 0
    assert snapshot(study) == snapshot(quiet)


def test_a_line_that_a_paused_worker_writes_too_late_is_in_no_log(
    tmp_path: Path, undisturbed: dict[str, str]
) -> None:
    """It is stopped between the check and the write; the run is taken over; then it writes."""
    study = tiny(tmp_path, grid={"beta": [1.0]})
    ledger = Ledger(study)
    run = ledger.runs[0]
    finish(study)
    late = RunFolder(run.folder).log.path.open("ab")  # opened before the run was taken over
    folder = RunFolder(run.folder)
    before = folder.log.path.read_bytes()
    folder.resume(lambda checkpoint: None)
    late.write(b"too late\n")
    late.close()
    assert folder.log.path.read_bytes() == before
    assert set(snapshot(study).items()) <= set(undisturbed.items())


def cut(file: Path) -> None:
    """A torn write: the end is missing."""
    os.truncate(file, file.stat().st_size * 2 // 3)


def flip(file: Path) -> None:
    """A bit that changed on the disk."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(bytes(content))


@pytest.mark.parametrize("harm", [cut, flip])
@pytest.mark.parametrize(
    "pattern",
    [
        "model.safetensors",
        "log.jsonl",
        "settings.json",
        "regime-*",
        "representation-*",
        "checkpoints/step-12/*",
        "**/*.safetensors",
    ],
)
def test_what_is_damaged_is_noticed_and_made_again(
    tmp_path: Path,
    undisturbed: dict[str, str],
    pattern: str,
    harm: Callable[[Path], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = tiny(tmp_path)
    first = finish(study).runs[0]
    harmed = [file for file in first.folder.glob(pattern) if file.is_file()]
    assert harmed
    for file in harmed:
        harm(file)
    if not pattern.startswith("checkpoints"):  # which a finished run does not need
        assert Ledger(study).counts() == {"waiting": 1, "running": 0, "done": 1, "failed": 0}
    with caplog.at_level(logging.WARNING):
        finish(study)
    kept = {name: digest for name, digest in undisturbed.items() if not pattern.startswith("checkpoints")}
    assert {name: snapshot(study).get(name) for name in kept} == kept


def test_a_full_disk_stops_the_worker_and_blames_no_run(tmp_path: Path, undisturbed: dict[str, str]) -> None:
    study = tiny(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for most in (400, 2_000, 5_000):  # not the lease, not the model, not the codes
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
        try:
            with pytest.raises(OSError, match=r"could not be written|File too large") as error:
                Worker(Ledger(study)).drain()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert isinstance(error.value, WriteError) or error.value.errno is not None
        assert Ledger(study).counts()["failed"] == 0
    finish(study)
    assert snapshot(study) == undisturbed


def test_a_lost_lease_is_never_taken_for_a_result_that_could_not_be_kept(tmp_path: Path) -> None:
    study = tiny(tmp_path, grid={"beta": [1.0]}, each={})
    run = finish(study).runs[0]

    def lost() -> None:
        raise LostLeaseError("taken over")

    from polariscope.runs.run import Run

    with pytest.raises(LostLeaseError):
        Run(run.folder, guard=lost).regime(n_samples=40, n_bootstrap=5)
    assert not list(run.folder.glob("regime-*"))
