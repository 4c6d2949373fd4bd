"""The cost of a study: runs, steps, disk and hours, from earlier runs or from a short trial of each kind."""

from __future__ import annotations

import dataclasses
import time

from polariscope.core import files
from polariscope.core.errors import DivergedError
from polariscope.core.progress import AnyProgress, ProgressEvent, listener
from polariscope.storage.folder import RunFolder
from polariscope.studies.design import StudyDesign
from polariscope.studies.ledger import Ledger
from polariscope.studies.planned_runs import Datasets, StudyRun
from polariscope.training.plan import plan
from polariscope.training.train import build, choose_device, train

TRIAL_STEPS = 20
WARM_UP = 4
"""Steps of a trial that are not counted because the first steps are slower."""
FLOAT = 4
"""Bytes of a single-precision number."""
ONLY_LENGTH = (
    *("seed", "steps", "epochs", "learning_rate", "adam_beta1", "schedule", "warmup_steps", "clip_gradient"),
    "patience",
)
"""Settings that do not affect the time of a step."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """Runs whose steps take equally long: they share data, net and objective."""

    name: str
    """Name of the first of these runs."""
    runs: int
    steps: int
    """Gradient steps that remain."""
    seconds_per_step: float
    source: str
    """Origin of the time per step: "earlier runs" or "a trial"."""
    n_bytes: int
    """Bytes on disk when all of these runs are done."""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Remaining work of a study, and its cost."""

    n_runs: int
    """Number of runs in the design."""
    n_left: int
    """Number of runs that are within the budget and not done."""
    n_beyond: int
    """Number of runs beyond ``max_runs``."""
    kinds: tuple[Kind, ...]
    analyses: float | None
    """Seconds of the analyses of one run, if earlier runs have measured it."""

    @property
    def steps(self) -> int:
        """Gradient steps that remain."""
        return sum(kind.steps for kind in self.kinds)

    @property
    def n_bytes(self) -> int:
        """Bytes on disk when the study is done."""
        return sum(kind.n_bytes for kind in self.kinds)

    def hours(self, workers: int = 1) -> float:
        """Return the hours that remain.

        :param workers: (default 1) number of workers at the same time, each on its own core.
        """
        training = sum(kind.steps * kind.seconds_per_step for kind in self.kinds)
        return (training + (self.analyses or 0.0) * self.n_left) / 3600 / workers


def estimate(ledger: Ledger, progress: AnyProgress | None = None) -> Estimate:
    """Estimate the remaining work of a study and its cost.

    :param ledger: ledger of the study.
    :param progress: (default None) called with the name of the run that is timed, or with an event if it accepts one.
    """
    events = listener(progress, lambda event: (event.task,))
    study, datasets = ledger.study, Datasets()
    groups: dict[str, list[StudyRun]] = {}
    given = [run for run in ledger.runs if run.given is not None]
    for run in ledger.runs:
        # Models that were trained elsewhere have no steps; their analyses count below.
        if run in given:
            continue
        settings = {name: value for name, value in run.point.settings.items() if name not in ONLY_LENGTH}
        groups.setdefault(files.digest([run.point.data, settings]), []).append(run)
    missing_given = [run for run in given if not ledger.looks_done(run)]
    times_given = [sum(RunFolder(run.folder).seconds().values()) for run in given if run not in missing_given]
    kinds, left, measured = [], len(missing_given), [seconds for seconds in times_given if seconds]
    for runs in groups.values():
        missing = [run for run in runs if not ledger.looks_done(run)]
        left += len(missing)
        times = [
            (seconds, run)
            for run in runs
            if run not in missing and (seconds := RunFolder(run.folder).seconds())
        ]
        # Everything but the training is analyses.
        measured += [sum(seconds.values()) - seconds.get("train", 0.0) for seconds, _ in times]
        per_step, source = 0.0, "earlier runs"
        if times:
            per_step = sum(s.get("train", 0.0) for s, _ in times) / sum(run.steps for _, run in times)
        elif missing:
            if events is not None:
                events(ProgressEvent(runs[0].name, message=f"A trial of {runs[0].name} …"))
            try:
                per_step, source = trial(study, runs[0], datasets), "a trial"
            except DivergedError:
                source = "no trial: it diverged"
        size = disk_of(study, runs[0], datasets) * len(runs)
        steps = sum(run.steps - min(run.steps, _saved(run)) for run in missing)
        kinds.append(Kind(runs[0].name, len(runs), steps, per_step, source, size))
    return Estimate(
        n_runs=len(ledger.every),
        n_left=left,
        n_beyond=len(ledger.every) - len(ledger.runs),
        kinds=tuple(kinds),
        analyses=sum(measured) / len(measured) if measured else None,
    )


def _saved(run: StudyRun) -> int:
    return max(RunFolder(run.folder).checkpoints.steps, default=0)


def trial(study: StudyDesign, run: StudyRun, datasets: Datasets) -> float:
    """Return the seconds per step, measured on the last steps of a short training.

    :param study: the design.
    :param run: the run to train.
    :param datasets: open datasets.
    """
    moments: list[float] = []

    def listen(step: int, line: object) -> None:  # noqa: ARG001
        moments.append(time.perf_counter())

    # Both would conflict with the short length of a trial.
    settings = {
        name: value for name, value in run.point.arguments.items() if name not in ("epochs", "warmup_steps")
    }
    # The last step evaluates the validation samples, so it is not counted.
    settings |= {"steps": TRIAL_STEPS + 1}
    data = datasets[run.point.data]
    train(data, device=study.device, threads=study.threads, progress=listen, **settings)
    return (moments[TRIAL_STEPS - 1] - moments[WARM_UP - 1]) / (TRIAL_STEPS - WARM_UP)


def disk_of(study: StudyDesign, run: StudyRun, datasets: Datasets) -> int:
    """Return the bytes of a run's models, checkpoints and codes; other results are small in comparison.

    A checkpoint contains the weights and, with Adam, two more numbers for each weight.

    :param study: the design.
    :param run: a run of the design.
    :param datasets: open datasets.
    """
    job = plan(datasets[run.point.data], **run.point.arguments)
    weights = FLOAT * sum(value.numel() for value in build(job, choose_device("cpu")).state_dict().values())
    states = {"adam": 2, "amsgrad": 3, "adagrad": 1, "sgd": 0}[job.settings.optimiser]
    checkpoints = -(-run.steps // job.settings.checkpoint_every)
    n_checkpoints = checkpoints if job.settings.keep_checkpoints == "all" else min(2, checkpoints)
    sample_sizes = [
        getattr(analysis, "n_samples", None) or len(job.data) for analysis in study.analyses("each").values()
    ]
    n_samples = min(len(job.data), max(sample_sizes, default=0))
    models = n_checkpoints if study.checkpoints else 1
    # Three numbers for each code: mean, variance and sample.
    codes = FLOAT * 3 * n_samples * job.blueprint.n_latents * models if study.analyses("each") else 0
    return weights + n_checkpoints * (1 + states) * weights + codes
