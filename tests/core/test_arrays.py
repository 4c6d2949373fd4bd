"""Arrays of numbers, and what is refused in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from polariscope.core.arrays import real_numbers
from polariscope.core.errors import InputError


@pytest.mark.parametrize(
    "value", [[1.5, 2.0], (True, False), np.arange(3, dtype=np.uint8), torch.ones(2, 3), np.float16([1, 2])]
)
def test_what_holds_real_numbers_is_taken_as_it_is(value: Any) -> None:
    found = real_numbers(value, "x")
    assert np.array_equal(found, np.asarray(value))
    assert found.dtype == np.asarray(value).dtype


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["a", "b"], "codes must be an array of real numbers, got an array of <U1"),
        ([1 + 2j], "codes must be an array of real numbers, got an array of complex128"),
        (object(), "codes must be an array of real numbers, got an array of object"),
        ([[1, 2], [3]], "codes must be an array of numbers, got list"),
        (torch.ones(2, requires_grad=True), r"for a tensor pass tensor.detach\(\).cpu\(\).numpy\(\)"),
    ],
)
def test_anything_else_is_refused_by_name(value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        real_numbers(value, "codes")
