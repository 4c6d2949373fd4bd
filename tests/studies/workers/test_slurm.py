"""Jobs of SLURM are commands that drain a study; those that are stopped save where they are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from polariscope.core.errors import InputError, PolariscopeError
from polariscope.studies import worker as drain
from polariscope.studies.ledger import Ledger
from polariscope.studies.study import Study
from polariscope.studies.worker import Worker
from polariscope.studies.workers.slurm import submit
from tiny_studies import is_logging, owner_of, snapshot, tiny, wait_for

DONE = {"waiting": 0, "running": 0, "done": 2, "failed": 0}


def quiet(study: Study) -> dict[str, str]:
    """The files that a study has when it is made by one worker here."""
    Worker(Ledger(study)).drain()
    return snapshot(study)


def test_a_job_that_is_stopped_saves_and_the_next_ones_finish(tmp_path: Path) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed")
    often = {"log_every": 10, "checkpoint_every": 100}
    settings: dict[str, Any] = {**tiny(tmp_path).settings, **often, "steps": 300}
    alone, study = (tiny(tmp_path / name, settings=settings, threads=1) for name in ("alone", "slurm"))
    ledger = Ledger(study)
    jobs = submit(ledger, cluster="local")
    wait_for(lambda: is_logging(ledger.runs[0]))
    owner = wait_for(lambda: owner_of(ledger.runs[0]))
    assert owner is not None
    os.kill(owner, signal.SIGUSR2)
    counts = jobs.wait()
    first = ledger.entries()[0]
    assert counts == {"waiting": 2, "running": 0, "done": 0, "failed": 0}
    assert 0 < first.step < first.run.steps
    jobs = submit(ledger, 2, "local")
    expected = quiet(alone)
    assert jobs.wait() == DONE
    assert {name: digest for name, digest in snapshot(study).items() if name in expected} == expected
    assert len(set(jobs.ids)) == 2
    assert {file.name for number in jobs.ids for file in jobs.folder.glob(f"{number}_*")} == {
        f"{number}_0_log.{end}" for number in jobs.ids for end in ("out", "err")
    }
    assert not [*tmp_path.rglob("*.pkl"), *tmp_path.rglob("*pickle*")]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands by the names of SLURM's: sbatch keeps the script, srun runs what it is given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    commands = {
        "sbatch": f'cp "$1" {tmp_path}/script.sh\necho Submitted batch job 4242',
        "srun": 'while [ "$1" != env ]; do shift; done\nexec "$@"',
    }
    for name, text in commands.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "script.sh"


def test_the_script_of_a_job_has_the_options_and_drains_the_study(tmp_path: Path, cluster: Path) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed")
    study = tiny(tmp_path / "a study", each={}, budget={"max_hours": 0.5})
    options = {"partition": "long", "time": "02:00:00", "cpus-per-task": "3", "requeue": True}
    jobs = submit(Ledger(study), options=options)
    assert jobs.ids == ("4242",)
    script = cluster.read_text(encoding="utf-8")
    for line in ("partition=long", "time=02:00:00", "cpus-per-task=3", "requeue", "job-name=polariscope"):
        assert script.count(f"#SBATCH --{line}\n") == 1
    assert "#SBATCH --signal=USR2@90" in script
    assert "OMP_NUM_THREADS=3" in script
    assert script.rstrip().endswith("--seconds 1800.0")  # from the start of the job
    assert "submitit.core" not in script  # which would read a pickle
    assert script.count("--time") == 1
    subprocess.run(["bash", str(cluster)], check=True, timeout=120)
    assert Ledger(study).counts() == DONE


def test_the_hours_of_a_worker_count_from_its_start(tmp_path: Path) -> None:
    study = tiny(tmp_path)
    Ledger(study).prepare()
    numbers = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        assert drain.main([study.out, "--seconds", "0"]) == 0
        assert Ledger(study).counts()["waiting"] == 2
        assert drain.main([study.out, "--seconds", "600"]) == 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert Ledger(study).counts() == DONE


def test_what_sbatch_refuses_is_told(tmp_path: Path, cluster: Path) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed")
    (tmp_path / "bin" / "sbatch").write_text("#!/bin/sh\necho invalid partition >&2\nexit 1\n")
    with pytest.raises(PolariscopeError, match=r"could not be submitted: .*invalid partition"):
        submit(Ledger(tiny(tmp_path / "study")))


def test_without_slurm_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PolariscopeError, match=r"could not be submitted: .*srun"):
        submit(Ledger(tiny(tmp_path)))


def test_wrong_calls_are_refused(tmp_path: Path) -> None:
    ledger = Ledger(tiny(tmp_path))
    with pytest.raises(InputError, match=r"no cluster named 'pbs'; there are local, slurm"):
        submit(ledger, cluster="pbs")
    with pytest.raises(InputError, match="jobs on this machine have no SLURM options, got 'time'"):
        submit(ledger, cluster="local", options={"time": 5})
    with pytest.raises(InputError, match="cpus_per_task must be an integer, at least 1, got 'two'"):
        submit(ledger, options={"cpus-per-task": "two"})
    with pytest.raises(InputError, match="the name of a SLURM option must be a word"):
        submit(ledger, options={"a b": "c"})
    assert not (tmp_path / "jobs").exists()


def test_without_submitit_the_message_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(InputError, match=r"requires submitit, .*pip install 'polariscope\[slurm\]'"):
        submit(Ledger(tiny(tmp_path)))
