"""Optimiser of models, adversaries and manipulations."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

_raw_step: Any = inspect.unwrap(torch.optim.Adam.step)


class FusedAdam(torch.optim.Adam):
    """PyTorch's fused Adam, bit for bit, without its support of ``torch.compile``.

    PyTorch wraps the methods of its optimisers for compiled programs, and imports its compiler to do so. This takes
    over a second in every process that trains, and a tenth of every step of a small net. Here the same methods are
    called unwrapped. Step hooks are not called.

    :param parameters: parameters to train.
    :param lr: the learning rate.
    :param betas: (default 0.9 and 0.999) decay rates of the running means of gradients and their squares.
    :param eps: (default 1e-8) constant added to the root of the running mean of squares.
    :param amsgrad: (default False) if True, the largest mean of squares so far is used.
    """

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(parameters, lr=lr, betas=betas, eps=eps, amsgrad=amsgrad, fused=True)

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Update the weights once, with the current gradients."""
        _raw_step(self)

    # PyTorch wraps the step of every class of optimisers that does not have this mark.
    step.hooked = True  # type: ignore[attr-defined]
