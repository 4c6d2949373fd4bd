"""Analyses of a representation take a model and data just as well."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polariscope as ps
from polariscope.core.errors import InputError

WEIGHTS = torch.eye(3)[:, :2]


def encoder(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two active latents."""
    return x @ WEIGHTS, torch.full((len(x), 2), -4.0)


@pytest.fixture(scope="module")
def data() -> Any:
    rng = np.random.default_rng(0)
    factors = rng.integers(3, size=(400, 2))
    noise = rng.normal(size=(400, 3)).astype(np.float32)
    return ps.from_arrays(noise + np.pad(3 * factors, ((0, 0), (0, 1))), factors=factors)


def test_a_model_with_data_is_encoded_first(data: Any) -> None:
    for model in (ps.wrap(encoder), encoder):
        rep = ps.encode(model, data, seed=3)
        assert ps.diagnose(model, data, seed=3).to_dict() == ps.diagnose(rep, seed=3).to_dict()
        assert ps.score(model, data, "mig", seed=3)["mig"].value == ps.score(rep, "mig", seed=3)["mig"].value
        one, other = ps.decompose(model, data, 100, seed=3), ps.decompose(rep, 100, seed=3)
        assert one.to_dict() == other.to_dict()


def test_a_model_of_a_run_has_its_own_data(tmp_path: Path) -> None:
    source = ps.load_dataset("gaussian", n_samples=300)
    model = ps.train(source, net="linear", steps=5, out=tmp_path / "run")
    assert ps.diagnose(model).to_dict() == ps.diagnose(model, data=source).to_dict()


def test_data_beside_a_representation_and_a_model_without_are_refused(data: Any) -> None:
    with pytest.raises(InputError, match="data requires a model as the first argument, got Representation"):
        ps.diagnose(ps.encode(encoder, data), data=data)
    with pytest.raises(InputError, match="data must be given"):
        ps.score(ps.wrap(encoder))
    with pytest.raises(InputError, match="diagnose requires mean and variance"):
        ps.diagnose()


def test_data_are_an_argument_among_the_others() -> None:
    for function in (ps.diagnose, ps.score, ps.decompose):
        assert "data" in inspect.signature(function).parameters
        assert ":param data:" in (inspect.getdoc(function) or "")


def test_arrays_are_diagnosed_without_torch() -> None:
    code = (
        "import sys, numpy as np, polariscope as ps\n"
        "ps.diagnose(mean=np.eye(4), variance=np.ones((4, 4)))\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
