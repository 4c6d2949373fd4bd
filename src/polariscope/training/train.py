"""Train a model, or resume a run: the public face of training."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from polariscope.core.errors import Argument, DivergedError, InputError, PolariscopeError, not_installed
from polariscope.data.chain import Given, changes_of_units
from polariscope.data.dataset import AbstractDataset
from polariscope.data.missing import Missing
from polariscope.data.variants import AbstractVariant
from polariscope.models.model import Model, read_model
from polariscope.models.narrowing import take_latents
from polariscope.models.nets import AbstractNet
from polariscope.objectives import AbstractObjective
from polariscope.storage.folder import RunFolder
from polariscope.training.feed import ALONE
from polariscope.training.loop import Listener, first_state, fit
from polariscope.training.memory import keep_freed_memory
from polariscope.training.order import DataOrder
from polariscope.training.plan import RunPlan, plan, recorded_settings
from polariscope.training.threads import (
    available_cores,
    check_threads,
    threads_for,
    using_threads,
    work_of_step,
)

logger = logging.getLogger("polariscope")


def train(
    data: object,
    objective: str | Mapping[str, object] | AbstractObjective = "vae",
    net: str | Mapping[str, object] | AbstractNet = "auto",
    n_latents: object = 10,
    *,
    variants: Given = (),
    standardise: bool = False,
    scale: bool = False,
    keep_units: bool = False,
    missing: Missing = "refuse",
    out: str | Path | RunFolder | None = None,
    device: object = "auto",
    threads: int | None = None,
    progress: bool | Listener = False,
    tensorboard: bool = False,
    **options: Any,
) -> Model:
    """Train a model on ``data``; with ``out``, as a run on disk that resumes where it was stopped.

    ``data`` is a dataset, or an array of observations as :func:`polariscope.from_arrays` takes it.
    ``objective`` and ``net`` (and ``posterior``, ``prior``, ``likelihood``) are names, mappings
    ``{"name": …, option: …}`` or objects. Their options and those of :class:`TrainSettings` are given by name:
    ``train(data, objective="beta", beta=4.0, steps=20_000, seed=0)``; where two parts have an option of the
    same name, put the part in front: ``prior_scale=2.0``. ``net="auto"`` is ``conv`` for images from 16 × 16 pixels,
    else ``mlp`` with two layers of up to 128 units (:func:`polariscope.models.nets.mlp.for_table`);
    ``likelihood="auto"`` is ``bernoulli`` for values in [0, 1] and tables of 0 and 1, ``poisson`` or
    ``negative-binomial`` for tables of counts (:func:`polariscope.training.likelihood.choose_likelihood` has the rule),
    else ``gaussian``, whose variance γ is then learned unless ``variance`` fixes it
    (:class:`~polariscope.models.likelihoods.gaussian.GaussianLikelihood`). A run that is resumed keeps its likelihood.
    ``threads`` is how many threads PyTorch computes with; None: by the work in a step and the cores
    (:func:`polariscope.training.threads.threads_for`), and those of before when a run is resumed, since another number
    changes the last bits. ``progress`` shows a live line, or is a function called after every step.

    Called again with the same ``out``: a finished run is loaded, an unfinished one resumed bit for bit, a
    longer one (more ``steps``) continued, and one with other settings refused.

    :param data: a dataset, or an array of observations.
    :param objective: (default "vae") what is minimised, a member of ``polariscope.objectives``.
    :param net: (default "auto") encoder and decoder, a member of ``polariscope.nets``.
    :param n_latents: (default 10) number of latent variables.
    :param variants: (default none) variants of the data, the first one innermost: ``["colour", {"name": "subset",
        "n": 50_000}]``; members of ``polariscope.variants``. They are recorded with the run.
    :param standardise: (default False) bring every feature of a table to mean 0 and standard deviation 1 first; the
        statistics are those of all the data given. Data that the model is shown later are put into the same units.
    :param scale: (default False) bring every feature of a table to [0, 1] first.
    :param keep_units: (default False) train on a table in the units it has. Otherwise one that is not in [0, 1] is
        centred and divided by one number, the root of its features' mean variance, unless units are changed by
        ``standardise``, ``scale`` or a variant, or the likelihood is one of counts or of values in [0, 1].
    :param missing: (default "refuse") what is done about missing values, if ``data`` is an array: "drop" leaves out
        rows that lack one, "median" fills in the median of the column over all rows, held-out ones included.
    :param out: (default None: nothing is written) folder of the run; a :class:`RunFolder` brings its own guard.
    :param device: (default "auto") "cpu", "cuda" or "mps"; "auto" takes a GPU if there is one.
    :param threads: (default: by the work in a step and the cores; a resumed run keeps its own) threads to compute with.
    :param progress: (default False) True for a live line, or a function called after every step.
    :param tensorboard: (default False) also write TensorBoard events into the run.
    :param options: ``posterior``, ``prior``, ``likelihood``, ``initialisation``, and the options of all parts and of
        the training by name.
    """
    with ALONE:
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
    place = choose_device(device)
    threads = check_threads(threads)
    listeners: list[Listener] = [progress] if callable(progress) else []
    writer = _summary_writer() if tensorboard else None
    if out is None:
        if tensorboard:
            raise InputError(
                problem=(Argument("tensorboard"), " needs a place to write to"),
                remedy=("give ", Argument("out"), " as well"),
            )
        model = build(job, place)
        with using_threads(threads or choose_threads(job, model)):
            return _train(job, model, None, listeners, show=progress is True)
    record = job.describe(str(place))  # before anything is written
    with out if isinstance(out, RunFolder) else RunFolder(out) as run:
        run.check(record)
        if (finished := _finished(run, job.settings.steps, place)) is not None:
            return finished
        model = build(job, place)
        used = _threads(run, threads, job, model)
        run.begin(job.describe(str(place), used))
        if writer is not None:
            from polariscope.training.listeners import tensorboard_listener

            listeners.append(tensorboard_listener(writer(str(run.tensorboard))))
        try:
            with using_threads(used["threads"]):
                return _train(job, model, run, listeners, show=progress is True)
        except DivergedError as error:
            if not run.forget():
                run.keep_failure("diverged", str(error), error.step)
            raise
        except Exception:
            run.forget()
            raise


def _finished(run: RunFolder, steps: int, device: torch.device) -> Model | None:
    """The model of a run that has all its steps; a damaged one is made again from its checkpoint."""
    try:
        run.model_header()  # refuses a damaged model
        if not run.is_finished_for(steps):
            return None
        model = read_model(run.model_file, str(device))
    except PolariscopeError as error:
        logger.warning("%s It is made again from the last checkpoint.", error)
        run.set_model_aside()
        return None
    model.folder = run.path
    return model


def build(job: RunPlan, device: torch.device) -> Model:
    """The model before its first step. Always with one thread: how many it trains with is known only afterwards.

    :param job: What is trained.
    :param device: Where it goes.
    """
    if device.type == "cpu":
        keep_freed_memory()
    with ALONE, using_threads(1):
        model = job.blueprint.build(job.settings.seed, job.data).to_device(device)
    if isinstance(job.data, AbstractVariant):
        model.units = tuple(changes_of_units(job.data.variants()))
    return model


def begin_narrow(
    data: AbstractDataset,
    out: Path,
    wide: Model,
    kept: Sequence[int],
    *,
    device: object = "auto",
    threads: int | None = None,
    **options: Any,
) -> None:
    """Begin a run with some latents of a wider model instead of fresh weights; ``train`` goes on from there.

    :param data: what is trained on.
    :param out: folder of the run, where nothing was trained yet.
    :param wide: of the same kind.
    :param kept: which of its latents, as many as the run has.
    :param device: (default "auto") as in :func:`train`.
    :param threads: (default: by the work in a step and the cores) as in :func:`train`.
    :param options: further arguments of :func:`train`.
    """
    job = plan(data, **options)
    place = choose_device(device)
    model = build(job, place)
    take_latents(model, wide, torch.as_tensor(list(kept)))
    state, _ = first_state(model, job.objective, job.data, job.settings)
    with RunFolder(out) as run:
        run.begin(job.describe(str(place), {"threads": check_threads(threads) or choose_threads(job, model)}))
        run.save_checkpoint(0, model, state.tensors(), state.words(), keep_all=False)


def choose_threads(job: RunPlan, model: Model, indices: Int[np.ndarray, " sample"] | None = None) -> int:
    """How many threads the fixed rule gives a training on this machine.

    :param job: What is trained.
    :param model: Its model.
    :param indices: (default None) The observations it is trained on; None: the training split.
    """
    cores = available_cores()
    return 1 if cores == 1 else threads_for(work_of(job, model, indices), cores)


def work_of(job: RunPlan, model: Model, indices: Int[np.ndarray, " sample"] | None = None) -> int:
    """Multiply-adds in the forward pass of a step of a training.

    :param job: What is trained.
    :param model: Its model.
    :param indices: (default None) The observations it is trained on; None: the training split.
    """
    order = DataOrder(
        job.split.train if indices is None else indices, job.settings.batch_size, job.settings.seed
    )
    with using_threads(1):
        return work_of_step(model, job.objective, job.data, order.batch(0))


def _threads(run: RunFolder, asked: int | None, job: RunPlan, model: Model) -> dict[str, Any]:
    """The number of threads to use and to record: as asked for, else as the run had, else by the rule."""
    if not run.checkpoints.steps:
        return {"threads": asked or choose_threads(job, model)}
    environment = run.settings["environment"]
    before, earlier = environment["threads"], environment.get("threads_before", [])
    if asked is None or asked == before:
        if asked is None and before > (cores := available_cores()):
            logger.warning(
                "%s was begun with %d threads and is resumed with as many, so the result stays the same bit for bit; "
                "%d would be faster here.",
                run.path, before, cores,
            )  # fmt: skip
        return {"threads": before, **({"threads_before": earlier} if earlier else {})}
    logger.warning(
        "%s had %d thread%s before and has %d now; the last bits of its numbers can differ from those of a run with "
        "one number throughout.",
        run.path, before, "" if before == 1 else "s", asked,
    )  # fmt: skip
    return {"threads": asked, "threads_before": [*earlier, before]}


def _train(job: RunPlan, model: Model, run: RunFolder | None, listeners: list[Listener], show: bool) -> Model:
    if show:
        from polariscope.training.listeners import ProgressLine

        with ProgressLine(job.settings.steps) as line:
            state = fit(model, job.objective, job.data, job.split, job.settings, run, (*listeners, line))
    else:
        state = fit(model, job.objective, job.data, job.split, job.settings, run, tuple(listeners))
    model.step = state.model_step
    if run is not None:
        stopped_at = state.step if state.patience.is_exhausted else None
        run.save_model(model, state.model_step, job.settings.steps, stopped_at)
        model.folder = run.path
    return model


def choose_device(device: object) -> torch.device:
    """``auto``: a GPU if there is one, else the CPU; anything else as PyTorch names it."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        if not isinstance(device, str | torch.device):
            raise TypeError(device)
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError, TypeError):
        raise InputError(
            "device", "be auto, or one of cpu, cuda, mps that this machine has", got=f"{device!r}"
        ) from None
    return place


def _summary_writer() -> Any:
    """TensorBoard's writer, asked for before anything is written."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise not_installed("writing events", "tensorboard", "tensorboard", "leave the option out") from None
    return SummaryWriter
