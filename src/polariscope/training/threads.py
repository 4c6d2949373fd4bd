"""How many threads a training uses: a fixed rule of the work in a step and the cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from polariscope.core.errors import InputError
from polariscope.core.seeds import derive
from polariscope.data.dataset import AbstractDataset
from polariscope.models.model import Model
from polariscope.objectives import AbstractObjective, Step
from polariscope.training.feed import DATA_LOCK, Feed

WORK_PER_THREAD = 2**27
"""Multiply-adds of a forward pass that each thread must have; below, threads mostly wait for one another.

benchmarks/threads.py shows why it is high. On two cores shared with ten busy processes a second thread made a step of
14 million multiply-adds 12 to 50 times slower, one of 220 million 8 to 12 times, one of 890 million 5 times and one
of 4,500 million 2 times. Where nobody else computes it gains a factor of 2 at most.
"""


def threads_for(work: int, cores: int) -> int:
    """As many threads as have enough to do, at least 1 and at most one per core.

    More threads do not always train faster: each of the many small operations of a step ends when its slowest thread
    does. A small net gains nothing from a second thread, and beside another busy process it becomes several times
    slower.

    >>> threads_for(10**6, cores=8), threads_for(3 * WORK_PER_THREAD, cores=8), threads_for(10**12, cores=8)
    (1, 3, 8)

    :param work: Multiply-adds in the forward pass of a step, from :func:`multiply_adds`.
    :param cores: Cores that may be used, from :func:`available_cores`.
    """
    return max(1, min(cores, work // WORK_PER_THREAD))


def available_cores() -> int:
    """Cores that this process may use, and no more than the threads PyTorch was allowed (``OMP_NUM_THREADS``)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, torch.get_num_threads()))


def work_of_step(
    model: Model,
    objective: AbstractObjective,
    data: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
) -> int:
    """Multiply-adds of the layers in the forward pass of one step, by :func:`multiply_adds`.

    The pass is made once, with what the objective trains beside the model; nothing is changed by it.

    :param model: What is trained.
    :param objective: What is minimised.
    :param data: Where the observations come from.
    :param indices: The observations of one batch.
    """
    with DATA_LOCK:
        companion = objective.companion(model, data, torch.Generator().manual_seed(derive(0, "companion")))
    batch = Feed(data, objective, model, len(data), seed=0).batch(indices, step=0)
    return multiply_adds(
        [model, *([] if companion is None else [companion])],
        lambda: objective.terms(Step(model, batch, torch.Generator(model.device).manual_seed(0), companion)),
    )


def multiply_adds(networks: Iterable[nn.Module], forward: Callable[[], object]) -> int:
    """Multiply-adds of the layers of some networks in a pass: weights times the positions they are applied at.

    >>> layer = nn.Linear(3, 2)
    >>> multiply_adds([layer], lambda: layer(torch.zeros(5, 3)))
    30

    :param networks: Whose layers are counted, each layer once for every time it is applied.
    :param forward: The pass, which is made once.
    """
    work = 0

    def count(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal work
        if isinstance(layer, nn.Linear):
            positions = output.numel() // layer.out_features
        elif isinstance(layer, nn.ConvTranspose2d):  # each input is spread over the outputs
            positions = inputs[0].numel() // layer.in_channels
        else:
            positions = output.numel() // layer.out_channels
        work += layer.weight.numel() * positions

    layers = {
        layer: None  # a layer that two networks share has one hook
        for network in networks
        for layer in network.modules()
        if isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d)
    }
    hooks = [layer.register_forward_hook(count) for layer in layers]
    try:
        forward()
    finally:
        for hook in hooks:
            hook.remove()
    return work


def check_threads(threads: object) -> int | None:
    """The number asked for, or None for the rule.

    :param threads: What was given.
    """
    if threads is None:
        return None
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InputError("threads", "be an integer, at least 1", got=f"{threads!r}")
    return int(threads)


@contextmanager
def using_threads(threads: int) -> Iterator[None]:
    """Inside, PyTorch computes with so many threads; afterwards with as many as before, whatever happened.

    :param threads: Their number.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
