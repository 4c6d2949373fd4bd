"""Number of threads for training, by a fixed rule from the work per step and the number of cores."""

from __future__ import annotations

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
from polariscope.numerics.parallel import count_cores
from polariscope.objectives import AbstractObjective, Step
from polariscope.training.feed import DATA_LOCK, Feed

WORK_PER_THREAD = 2**27
"""Minimum number of multiply-adds in a forward pass per thread; with less work, threads mostly wait for each other.

benchmarks/threads.py shows why it is high. On two cores shared with ten busy processes, a second thread made a step of
14 million multiply-adds 12 to 50 times slower, one of 220 million 8 to 12 times, one of 890 million 5 times and one
of 4,500 million 2 times. On idle cores it gains a factor of 2 at most.
"""


def threads_for(work: int, cores: int) -> int:
    """Return the number of threads with enough work, at least 1 and at most one per core.

    More threads do not always train faster: each of the many small operations of a step ends with its slowest thread. A
    small net gains nothing from a second thread, and next to another busy process it becomes several times slower.

    >>> threads_for(10**6, cores=8), threads_for(3 * WORK_PER_THREAD, cores=8), threads_for(10**12, cores=8)
    (1, 3, 8)

    :param work: multiply-adds in the forward pass of a step, from :func:`multiply_adds`.
    :param cores: available cores, from :func:`available_cores`.
    """
    return max(1, min(cores, work // WORK_PER_THREAD))


def available_cores() -> int:
    """Return the number of cores for this process, at most the number of PyTorch threads (``OMP_NUM_THREADS``)."""
    return max(1, min(count_cores(), torch.get_num_threads()))


def work_of_step(
    model: Model,
    objective: AbstractObjective,
    data: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
) -> int:
    """Count the multiply-adds of the layers in the forward pass of one step, with :func:`multiply_adds`.

    The pass is computed once, including networks that the objective trains besides the model. It changes nothing.

    :param model: the model.
    :param objective: the objective.
    :param data: the training data.
    :param indices: indices of one batch.
    """
    with DATA_LOCK:
        companion = objective.companion(model, data, torch.Generator().manual_seed(derive(0, "companion")))
    batch = Feed(data, objective, model, len(data), seed=0).batch(indices, step=0)
    return multiply_adds(
        [model, *([] if companion is None else [companion])],
        lambda: objective.terms(Step(model, batch, torch.Generator(model.device).manual_seed(0), companion)),
    )


def multiply_adds(networks: Iterable[nn.Module], forward: Callable[[], object]) -> int:
    """Count the multiply-adds of layers in a pass: their weights times the positions at which they are applied.

    >>> layer = nn.Linear(3, 2)
    >>> multiply_adds([layer], lambda: layer(torch.zeros(5, 3)))
    30

    :param networks: networks whose layers are counted; a layer counts every time it is applied.
    :param forward: function that computes the pass.
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
        layer: None  # a dictionary, because a layer shared by two networks needs one hook
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
    """Return the requested number of threads, or None for the rule.

    :param threads: the argument to check.
    """
    if threads is None:
        return None
    # bool is a subclass of int.
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InputError("threads", "be an integer, at least 1", got=f"{threads!r}")
    return int(threads)


@contextmanager
def using_threads(threads: int) -> Iterator[None]:
    """Set the number of PyTorch threads, and restore the previous number afterwards.

    :param threads: number of threads.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
