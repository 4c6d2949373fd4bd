"""Digests of functions: with source code, without it, and with enclosed values."""

from __future__ import annotations

import functools

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
