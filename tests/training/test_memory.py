"""Memory of a training: too large models are refused before anything is allocated or written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.training.memory import COPIES, machine_memory

ROWS = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)


def test_a_model_larger_than_the_machine_is_refused_before_it_is_built(tmp_path: Path) -> None:
    width = int((machine_memory() / (4 * COPIES)) ** 0.5) + 1000  # one layer of width² weights is too large
    options = {"net": {"name": "mlp", "encoder_widths": (width, width)}, "steps": 1, "n_latents": 2}
    with pytest.raises(
        InputError, match=r"weights on observations of shape \(4,\) needs at least .* raise the limit"
    ):
        ps.train(ROWS, out=tmp_path / "run", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "run" / "settings.json").exists()


def test_the_limit_is_an_option() -> None:
    small = {"net": "linear", "steps": 1, "n_latents": 2}
    # 4 → 2 → 4 with biases, two heads and γ: fewer than 100 weights of 16 bytes, and a batch of 50 rows.
    with pytest.raises(InputError, match="more than the limit of"):
        ps.train(ROWS, max_memory=1e-5, **small)  # type: ignore[arg-type]
    ps.train(ROWS, max_memory=1e-3, **small)  # type: ignore[arg-type]


@pytest.mark.parametrize("n_latents", [10**7, 10**30])
def test_numbers_of_latents_that_no_model_has_are_refused(n_latents: int) -> None:
    with pytest.raises(InputError, match="n_latents must be at least 1 and at most 1,000,000"):
        ps.train(ROWS, n_latents=n_latents, steps=1)
