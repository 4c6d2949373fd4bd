"""Training of a model, and resuming of a run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from polariscope.core.errors import Argument, InputError, not_installed
from polariscope.core.progress import Progress
from polariscope.core.types import OptionValue
from polariscope.data.chain import VariantsLike, changes_of_units
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.data.missing import Missing
from polariscope.data.variants import AbstractVariant
from polariscope.models.model import Model, read_model
from polariscope.models.narrowing import take_latents
from polariscope.models.nets import AbstractNet
from polariscope.models.protocol import DeviceLike
from polariscope.objectives import AbstractObjective
from polariscope.storage.folder import RunFolder
from polariscope.training.feed import DATA_LOCK
from polariscope.training.loop import Listener, ModelTask, first_state
from polariscope.training.memory import check_memory, keep_freed_memory
from polariscope.training.order import DataOrder
from polariscope.training.plan import RunPlan, plan, recorded_settings
from polariscope.training.session import (
    open_finished,
    recording_failure,
    threads_by_rule,
    threads_of,
    train_shown,
)
from polariscope.training.threads import check_threads, using_threads, work_of_step


def train(
    data: DataLike,
    objective: str | Mapping[str, object] | AbstractObjective = "vae",
    net: str | Mapping[str, object] | AbstractNet = "auto",
    n_latents: OptionValue = 10,
    *,
    variants: VariantsLike = (),
    standardise: bool = False,
    scale: bool = False,
    keep_units: bool = False,
    missing: Missing = "refuse",
    out: str | Path | RunFolder | None = None,
    device: DeviceLike = "auto",
    threads: int | None = None,
    progress: bool | Listener | Progress = False,
    tensorboard: bool = False,
    **options: Any,
) -> Model:
    """Train a model on ``data``. With ``out``, the run is stored on disk and can be resumed.

    ``data`` is a dataset, or an array of observations that :func:`polariscope.from_arrays` accepts. ``objective`` and
    ``net`` (and ``posterior``, ``prior``, ``likelihood``) are names, mappings ``{"name": …, option: …}`` or objects.
    Their options and those of :class:`TrainSettings` are keyword arguments:
    ``train(data, objective="beta", beta=4.0, steps=20_000, seed=0)``. If two parts have an option of the same name, use
    the part as prefix: ``prior_scale=2.0``.

    ``net="auto"`` selects ``conv`` for images from 16 × 16 pixels, otherwise ``mlp`` with two layers of up to 128 units
    (:func:`polariscope.models.nets.mlp.for_table`). ``likelihood="auto"`` selects ``bernoulli`` for values in [0, 1]
    and tables of 0 and 1, ``poisson`` or ``negative-binomial`` for tables of counts
    (:func:`polariscope.training.likelihood.choose_likelihood` describes the rule), and otherwise ``gaussian``, whose
    variance γ is then learned unless ``variance`` fixes it
    (:class:`~polariscope.models.likelihoods.gaussian.GaussianLikelihood`). A resumed run keeps its likelihood. The
    number of ``threads`` depends by default on the work per step and the number of cores
    (:func:`polariscope.training.threads.threads_for`). A resumed run keeps its number, since another one changes the
    last bits.

    If the function is called again with the same ``out``, a finished run is loaded, an unfinished one is resumed bit
    for bit, and one with more ``steps`` is continued. Other settings raise an error.

    :param data: a dataset, or an array of observations.
    :param objective: (default "vae") the objective, a member of ``polariscope.objectives``.
    :param net: (default "auto") encoder and decoder, a member of ``polariscope.nets``.
    :param n_latents: (default 10) number of latent variables.
    :param variants: (default none) variants of the data, which are applied in this order: ``["colour", {"name":
        "subset", "n": 50_000}]``; members of ``polariscope.variants``. They are recorded with the run.
    :param standardise: (default False) if True, rescale every feature of a table to mean 0 and standard deviation 1,
        from the statistics of all of ``data``. Later data are rescaled with the same numbers.
    :param scale: (default False) if True, rescale every feature of a table to [0, 1].
    :param keep_units: (default False) if True, train on a table in its own units. By default, a table that is not in
        [0, 1] is centred and divided by one number, the root of its features' mean variance, unless ``standardise``,
        ``scale`` or a variant changes the units, or the likelihood is for counts or for values in [0, 1].
    :param missing: (default "refuse") treatment of missing values if ``data`` is an array: "drop" leaves out rows with
        a missing value, "median" fills in the median of the column over all rows, including held-out ones.
    :param out: (default None: nothing is written) run folder.
    :param device: (default "auto") "cpu", "cuda" or "mps"; "auto" uses a GPU if there is one.
    :param threads: (default: chosen from the work per step and the number of cores; a resumed run keeps its number)
        number of threads.
    :param progress: (default False) True for a live display, or a function that is called with a ProgressEvent, or with
        every step and its line of the log.
    :param tensorboard: (default False) if True, also write TensorBoard events into the run folder.
    :param options: ``posterior``, ``prior``, ``likelihood``, ``initialisation``, and the options of all parts and of
        the training by name.
    """
    if out is not None and not isinstance(out, str | os.PathLike | RunFolder):
        raise InputError("out", "be the path of a run folder", got=out)
    with DATA_LOCK:
        job = plan(
            data,
            objective,
            net,
            n_latents,
            variants=variants,
            standardise=standardise,
            scale=scale,
            keep_units=keep_units,
            missing=missing,
            recorded=recorded_settings(out),
            **options,
        )
    torch_device = choose_device(device)
    threads = check_threads(threads)
    listeners: list[Listener] = []
    writer = _summary_writer() if tensorboard else None
    if out is None:
        if tensorboard:
            raise InputError(
                problem=(Argument("tensorboard"), " requires a run folder"),
                remedy=("pass ", Argument("out"), " as well"),
            )
        model = build(job, torch_device)
        with using_threads(threads or choose_threads(job, model)):
            return _train(job, model, None, progress, listeners)
    record = job.describe(str(torch_device))  # before anything is written
    with out if isinstance(out, RunFolder) else RunFolder(out) as run:
        run.check(record)
        finished = open_finished(run, job.settings.steps, lambda file: read_model(file, str(torch_device)))
        if finished is not None:
            # The stored settings can have more steps than the model, if a process that extended the run was killed
            # early.
            run.settle(record)
            finished.folder = run.path
            return finished
        model = build(job, torch_device)
        used = threads_of(run, threads, lambda: choose_threads(job, model))
        run.begin(job.describe(str(torch_device), used))
        if writer is not None:
            from polariscope.training.listeners import tensorboard_listener

            listeners.append(tensorboard_listener(writer(str(run.tensorboard))))
        with recording_failure(run), using_threads(used["threads"]):
            return _train(job, model, run, progress, listeners)


def build(job: RunPlan, device: torch.device) -> Model:
    """Build the model before its first step.

    :param job: the planned run.
    :param device: device of the model.
    """
    check_memory(job)
    if device.type == "cpu":
        keep_freed_memory()
    # One thread, because the number of threads is chosen after the model exists and must not change its weights.
    with DATA_LOCK, using_threads(1):
        model = job.blueprint.build(job.settings.seed, job.data).to_device(device)
    if isinstance(job.data, AbstractVariant):
        model.units = tuple(changes_of_units(job.data.variants()))
    return model


def begin_narrow(
    data: AbstractDataset,
    out: Path,
    wide: Model,
    latents: Sequence[int],
    *,
    device: DeviceLike = "auto",
    threads: int | None = None,
    **options: Any,
) -> None:
    """Begin a run with some latents of a wider model instead of random weights; ``train`` then resumes it.

    :param data: the training data.
    :param out: folder of the run, in which nothing was trained yet.
    :param wide: a wider model of the same kind.
    :param latents: indices of the selected latents, as many as the run has.
    :param device: (default "auto") as in :func:`train`.
    :param threads: (default: by the work in a step and the cores) as in :func:`train`.
    :param options: further arguments of :func:`train`.
    """
    job = plan(data, **options)
    torch_device = choose_device(device)
    model = build(job, torch_device)
    take_latents(model, wide, torch.as_tensor(list(latents)))
    state, _ = first_state(model, job.objective, job.data, job.settings)
    with RunFolder(out) as run:
        run.begin(
            job.describe(str(torch_device), {"threads": check_threads(threads) or choose_threads(job, model)})
        )
        run.save_checkpoint(0, model, state.tensors(), state.metadata())


def choose_threads(job: RunPlan, model: Model, indices: Int[np.ndarray, " sample"] | None = None) -> int:
    """Return the number of threads for training on this machine, by the fixed rule.

    :param job: the planned run.
    :param model: its model.
    :param indices: (default None: the training split) indices of the training observations.
    """
    return threads_by_rule(lambda: work_of(job, model, indices))


def work_of(job: RunPlan, model: Model, indices: Int[np.ndarray, " sample"] | None = None) -> int:
    """Count the multiply-adds in the forward pass of a training step.

    :param job: the planned run.
    :param model: its model.
    :param indices: (default None: the training split) indices of the training observations.
    """
    order = DataOrder(
        job.split.train if indices is None else indices, job.settings.batch_size, job.settings.seed
    )
    with using_threads(1):
        return work_of_step(model, job.objective, job.data, order.batch(0))


def _train(
    job: RunPlan,
    model: Model,
    run: RunFolder | None,
    progress: bool | Listener | Progress,
    listeners: list[Listener],
) -> Model:
    task = ModelTask(model, job.objective, job.data, job.split, job.settings)
    state = train_shown(task, run, progress, listeners)
    model.step = state.model_step
    if run is not None:
        stopped_at = state.step if state.patience.is_exhausted else None
        run.save_model(model, state.model_step, job.settings.steps, stopped_at)
        model.folder = run.path
    return model


def choose_device(device: DeviceLike) -> torch.device:
    """Return a device: for ``auto`` a GPU if there is one, otherwise the CPU; other names are those of PyTorch."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        if not isinstance(device, str | torch.device):
            raise TypeError(device)
        resolved = torch.device(device)
        torch.empty(0, device=resolved)  # fails if this machine lacks the device
    # PyTorch without CUDA raises AssertionError.
    except (RuntimeError, AssertionError, TypeError):
        raise InputError(
            "device", "be auto, or one of cpu, cuda, mps that this machine has", got=f"{device!r}"
        ) from None
    return resolved


def _summary_writer() -> Any:
    """Return TensorBoard's writer; called early, so a missing package is reported before anything is written."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise not_installed("writing events", "tensorboard", "tensorboard", "leave the option out") from None
    return SummaryWriter
