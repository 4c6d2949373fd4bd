"""Blocks of columns give the numbers of the whole array, bit for bit, with smaller temporaries."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from polariscope.numerics import column_blocks
from polariscope.numerics.column_blocks import by_columns

REDUCTIONS = {
    "std": lambda x: x.std(axis=0),
    "var": lambda x: x.var(axis=0),
    "mean square": lambda x: (x**2).mean(axis=0),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("n_columns", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("order", ["C", "F"])
def test_blocks_give_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, name: str, n_columns: int, order: str
) -> None:
    x = np.random.default_rng(0).standard_normal((5001, n_columns)) * np.arange(1, n_columns + 1) + 1
    x = np.asarray(x, order=order)  # type: ignore[call-overload]
    monkeypatch.setattr(column_blocks, "LARGE", 1000)
    np.testing.assert_array_equal(by_columns(REDUCTIONS[name], x), REDUCTIONS[name](x))


def test_temporaries_are_as_large_as_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones((20_000, 40))
    monkeypatch.setattr(column_blocks, "LARGE", x.nbytes // 10)
    tracemalloc.start()
    by_columns(REDUCTIONS["std"], x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # std makes one copy of its block; a second one is allowed for NumPy's own buffers.
    assert peak < 2 * x.nbytes // 10
