"""Arrays of numbers, and what is refused in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import polariscope as ps
from long_training import unchecked
from polariscope.analysis.representation import Representation
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


MASKED = np.ma.masked_invalid([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0], [7.0, 9.0]])
REFUSED = (
    "must be an ordinary array, got a masked array, of which 1 of 8 values are masked.*np.ma.compress_rows"
)


@pytest.mark.parametrize(
    "enter",
    [
        lambda: real_numbers(MASKED, "x"),
        lambda: real_numbers(list(MASKED), "x"),
        lambda: ps.from_arrays(MASKED),
        lambda: ps.from_arrays(np.zeros((4, 3)), MASKED),
        lambda: ps.train(MASKED),
        lambda: ps.size(MASKED),
        lambda: ps.VAE().fit(MASKED),
        lambda: ps.diagnose(mean=MASKED, variance=np.ones((4, 2))),
        lambda: Representation(np.zeros((4, 2)), MASKED, np.zeros((4, 2))),
        lambda: ps.metrics.mig(MASKED, np.arange(8).reshape(4, 2)),
        lambda: ps.metrics.mig(np.zeros((4, 2)), MASKED),
        lambda: ps.similarity.cka(MASKED, np.zeros((4, 2))),
        lambda: ps.dimension.twonn(MASKED),
        lambda: ps.dimension.mle(MASKED),
    ],
)
def test_masked_arrays_are_refused_wherever_arrays_enter(enter: Any) -> None:
    with unchecked(), pytest.raises(InputError, match=REFUSED):
        enter()


def test_a_fitted_estimator_refuses_them_too() -> None:
    vae = ps.VAE(n_latents=2, steps=5, variables="all").fit(np.random.default_rng(0).normal(size=(20, 2)))
    width = len(vae.kept_)
    for call, array in (
        (vae.transform, MASKED),
        (vae.score_samples, MASKED),
        (vae.inverse_transform, np.ma.masked_array(np.zeros((4, width)))),
    ):
        with pytest.raises(InputError, match="must be an ordinary array, got a masked array"):
            call(array)
