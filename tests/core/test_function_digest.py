"""Digests of functions: with source code, without it, and with enclosed values."""

from __future__ import annotations

import functools

import numpy as np
import torch

from polariscope.core.function_digest import function_digest


def compiled(text: str):
    """A function without source code, as in a notebook."""
    names: dict = {}
    exec(text, names)
    return names["f"]


def test_functions_without_source_differ_by_their_code_and_constants():
    first = function_digest(compiled("def f(n): return n + 1"))
    assert function_digest(compiled("def f(n): return n + 1")) == first
    assert function_digest(compiled("def f(n): return n + 2")) != first
    assert function_digest(compiled("def f(n): return n - 1")) != first
    assert function_digest(compiled("def f(n): return g(n)")) != function_digest(
        compiled("def f(n): return h(n)")
    )


def test_two_functions_on_one_line_and_with_other_arrays_differ():
    first, second = (lambda x: x[:3]), (lambda x: x[3:6])
    assert function_digest(first) != function_digest(second)

    def scaled(weights):
        return lambda x: x * weights

    zeros, ones = np.zeros(3), np.ones(3)
    assert function_digest(scaled(zeros)) == function_digest(scaled(np.zeros(3)))
    assert function_digest(scaled(zeros)) != function_digest(scaled(ones))
    torch.manual_seed(0)
    layers = [torch.nn.Linear(2, 2) for _ in range(2)]
    assert len({function_digest(scaled(layer)) for layer in layers}) == 2
    assert function_digest(scaled(torch.zeros(2))) != function_digest(scaled(torch.ones(2)))


def test_objects_that_are_called_and_partial_functions_differ_by_their_code():
    class Trainer:
        def __call__(self, n: int) -> int:
            return n

    class Other:
        def __call__(self, n: int) -> int:
            return 2 * n

    assert function_digest(Trainer()) == function_digest(Trainer()) != function_digest(Other())
    first, second = (functools.partial(Trainer.__call__, n=n) for n in (1, 2))
    assert function_digest(first) != function_digest(second)
