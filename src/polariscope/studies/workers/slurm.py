"""Workers as SLURM jobs, submitted through submitit. Each job is one worker on the study's folder.

submitit usually runs pickled functions, in a process between SLURM and the work. On a signal of SLURM that process
ends, and SLURM then kills its children before a run can be saved. So a job here is a command: submitit writes the
script, submits it and queries the job's state, and the job runs the worker itself. Nothing is pickled.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from polariscope.core.errors import InputError, PolariscopeError, not_installed, unknown
from polariscope.storage.lease import SECONDS
from polariscope.studies.ledger import Ledger, State
from polariscope.studies.workers import AbstractJobs, AbstractWorkers, Outcome, workers
from polariscope.studies.workers.support.crew import check_workers, drain_command, worker_variables
from polariscope.studies.workers.support.study_line import LOOK_EVERY, StudyLine

CLUSTERS = ("slurm", "local")
"""Kinds of clusters: SLURM, or processes of this machine that outlive the one that submits them."""
FOLDER = "jobs"
"""Folder of the scripts and logs of a study's jobs."""
ASK_EVERY = 30.0
"""Seconds between two queries to SLURM about the jobs."""
MAX_MINUTES = 60 * 24 * 365
"""Maximum minutes of a job on this machine."""


@dataclasses.dataclass(frozen=True)
class Jobs(AbstractJobs):
    """Submitted jobs."""

    cluster: str
    """Cluster of the jobs: "slurm" or "local"."""
    ids: tuple[str, ...]
    """Job numbers of SLURM, or process identifiers."""
    folder: Path
    """Folder of their scripts and logs: ``NUMBER_0_log.out`` and ``NUMBER_0_log.err``."""
    ledger: Ledger
    handles: tuple[Any, ...]
    """Job objects of submitit."""

    @property
    def are_done(self) -> bool:
        """True if all jobs have ended; queries SLURM."""
        first, *others = self.handles
        # One forced query updates the states of all jobs.
        return bool(first.done(force_check=True)) and all(job.done() for job in others)

    def wait(self, *, progress: bool = False) -> dict[State, int]:
        """Wait until all jobs have ended, and count the runs in each state. Ctrl-C stops waiting, not the jobs.

        :param progress: (default False) show the progress of the study.
        """
        asked, every = -math.inf, ASK_EVERY if self.cluster == "slurm" else LOOK_EVERY
        with StudyLine(self.ledger, progress) as line:
            while True:
                if time.monotonic() - asked >= every:
                    asked = time.monotonic()
                    if self.are_done:
                        break
                line.look()
                time.sleep(LOOK_EVERY)
        counts = self.ledger.counts()
        line.say(counts)
        return counts


@workers("slurm")
@dataclasses.dataclass(frozen=True)
class SlurmWorkers(AbstractWorkers):
    """Jobs submitted to SLURM; one by default."""

    cluster: Literal["slurm", "local"] = "slurm"
    """Cluster of the jobs; "local" starts them as processes of this machine, to try them out."""
    sbatch: tuple[str, ...] = ()
    """Options of sbatch: NAME=VALUE, or NAME if the option has no value."""
    wait: bool = False
    """If True, wait until the jobs have ended."""

    def work(self, ledger: Ledger, workers: int | None = None, *, progress: bool = False) -> Outcome:
        options = sbatch_options(self.sbatch)
        jobs = submit(ledger, 1 if workers is None else workers, self.cluster, options)
        return Outcome(jobs.wait(progress=progress)) if self.wait else Outcome(ledger.counts(), jobs)


def sbatch_options(tokens: Sequence[str]) -> dict[str, str | bool]:
    """Read options of sbatch from NAME=VALUE, and from NAME if the option has no value.

    >>> sbatch_options(["partition=long", "requeue"])
    {'partition': 'long', 'requeue': True}

    :param tokens: the options.
    """
    options: dict[str, str | bool] = {}
    for token in tokens:
        name, sign, value = token.partition("=")
        if not name or (sign and not value):
            raise InputError(
                "sbatch", "be NAME=VALUE, or NAME for an option without a value", got=f"{token!r}"
            )
        options[name] = value if sign else True
    return options


def submit(
    ledger: Ledger,
    workers: int = 1,
    cluster: str = "slurm",
    options: Mapping[str, object] | None = None,
    *,
    lease: float = SECONDS,
) -> Jobs:
    """Submit jobs that train and analyse the runs of a study, and return at once.

    A job that is stopped (its time is over, or another job preempts it) saves a checkpoint. Run the same call again to
    resume the missing runs.

    :param ledger: ledger of the study.
    :param workers: (default 1) number of jobs.
    :param cluster: (default "slurm") "slurm", or "local" for processes of this machine.
    :param options: (default: those of the cluster) options of sbatch: partition, time, mem, cpus_per_task …
    :param lease: (default 60) seconds without a sign of life after which other workers can claim a run.
    """
    check_workers(workers)
    if cluster not in CLUSTERS:
        raise unknown("cluster", cluster, CLUSTERS)
    sbatch_options = _checked(options or {}, cluster)
    try:
        submitit = importlib.import_module("submitit")
    except ImportError:
        raise not_installed("a study on SLURM", "submitit", "slurm") from None
    threads = _threads(sbatch_options, ledger.study.threads)
    ledger.prepare()
    folder = ledger.folder.absolute() / FOLDER
    folder.mkdir(exist_ok=True)
    try:
        if cluster == "slurm":
            executor = submitit.SlurmExecutor(folder)
            # Without these submitit uses its own defaults, such as five minutes.
            executor.update_parameters(
                time=None,
                wckey=None,
                job_name="polariscope",
                additional_parameters={"cpus_per_task": threads, **sbatch_options},
            )
        else:
            executor = submitit.LocalExecutor(folder)
            executor.update_parameters(timeout_min=MAX_MINUTES)
        variables = (f"{name}={value}" for name, value in worker_variables(threads).items())
        drain = drain_command(
            ledger.folder.absolute(), deadline=None, lease=lease, allow_import=ledger.allow_import
        )
        if (hours := ledger.study.limits.max_hours) is not None:
            drain += [
                "--seconds",
                str(hours * 3600),
            ]  # counted from the start of the job, which can be queued for long
        command = shlex.join(["env", *variables, *drain])
        # A private method, because the public ones of submitit run pickled functions.
        jobs = tuple(executor._submit_command(command) for _ in range(workers))
    except (RuntimeError, submitit.core.utils.FailedJobError) as error:
        raise PolariscopeError(f"the jobs could not be submitted: {_last_line(error)}") from None
    return Jobs(cluster, tuple(str(job.job_id) for job in jobs), folder, ledger, jobs)


def _checked(options: Mapping[str, object], cluster: str) -> dict[str, object]:
    """Return the options of sbatch under submitit's names."""
    by_name = {name.removeprefix("--").replace("-", "_"): value for name, value in options.items()}
    for name in by_name:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise InputError(
                "the name of a SLURM option", "be a word such as partition or time", got=f"{name!r}"
            )
    if by_name and cluster == "local":
        raise InputError(
            problem=f"jobs on this machine have no SLURM options, got {min(by_name)!r}",
            remedy="leave it out",
        )
    return by_name


def _threads(options: Mapping[str, object], of_study: int | None) -> int:
    """Return the number of threads of each worker: the cores of the job."""
    asked = options.get("cpus_per_task")
    if asked is None:
        return of_study or 1
    if not str(asked).isdecimal() or int(str(asked)) < 1:
        raise InputError("cpus_per_task", "be an integer, at least 1", got=f"{asked!r}")
    return int(str(asked))


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
