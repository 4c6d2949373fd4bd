"""Memory of a training: a check before the model is built, and reuse of freed memory by the next step."""

from __future__ import annotations

import ctypes
import math
import os
import sys
from typing import TYPE_CHECKING

import torch

from polariscope.core.errors import Argument, InputError
from polariscope.core.text import file_size
from polariscope.data.footprint import batch_bytes
from polariscope.models.model import Model

if TYPE_CHECKING:
    from polariscope.training.plan import RunPlan

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # glibc's names for mallopt's parameters


def keep_freed_memory() -> bool:
    """Configure the C library not to return freed memory to the system; return True if this is supported (glibc).

    A convolutional step on the CPU allocates and frees some 100 MB of activations. By default glibc returns the top of
    its heap as soon as it is free, and the next step has to request every page again; benchmarks/train_step.py measures
    the cost. The process keeps at most the memory that training has used, until it ends.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    # 32 MB is the largest MMAP_THRESHOLD that glibc accepts on 64-bit systems.
    settings = {TRIM_THRESHOLD: 2**31 - 1, TOP_PAD: 64 * 2**20, MMAP_THRESHOLD: 32 * 2**20}
    return all(mallopt(ctypes.c_int(name), ctypes.c_int(value)) == 1 for name, value in settings.items())


COPIES = 4
"""Numbers stored for each weight: the weight, its gradient and two running means of Adam."""


def machine_memory() -> int:
    """Return the memory of the machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_memory(job: RunPlan) -> None:
    """Refuse a training whose weights and batch need more memory than allowed, before they are allocated.

    The weights are counted on PyTorch's meta device, which has no storage. Activations are not counted.

    :param job: the planned run.
    """
    with torch.device("meta"):
        model = Model(job.blueprint, None, torch.Generator())
    n_weights = sum(weight.numel() for weight in model.parameters())
    # Weights are float32, 4 bytes each.
    needed = 4 * COPIES * n_weights + batch_bytes(
        math.prod(job.blueprint.shape), min(job.settings.batch_size, len(job.data))
    )
    limit = machine_memory() if job.settings.max_memory is None else int(job.settings.max_memory * 1e9)
    if needed > limit:
        raise InputError(
            problem=(
                f"training {n_weights:,} weights on observations of shape {job.blueprint.shape} needs at least "
                f"{file_size(needed)}, more than the limit of {file_size(limit)}"
            ),
            remedy=(
                "use fewer latents, a smaller net, smaller images or smaller batches, or raise the limit with ",
                Argument("max_memory"),
            ),
        )
