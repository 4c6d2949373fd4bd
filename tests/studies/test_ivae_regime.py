"""The study of the iVAE's regime runs, resumes and writes what it promises; its measures are right."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import polariscope as ps
from polariscope.analysis.representation import Representation
from polariscope.training.plan import plan


@pytest.fixture(scope="module")
def study() -> ModuleType:
    """The script as a module; it is not part of the package."""
    file = Path(__file__).parents[2] / "studies" / "ivae_regime.py"
    spec = importlib.util.spec_from_file_location("study_ivae_regime", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their names
    spec.loader.exec_module(module)
    return module


def test_the_use_of_a_linear_decoder_has_its_closed_form(study: ModuleType) -> None:
    # f(z) = W z + b and independent draws of z_j: E‖W_j (z_j − z̃_j)‖² / 2 = ‖W_j‖² Var z_j.
    rng = np.random.default_rng(0)
    data = ps.from_arrays(rng.normal(size=(1000, 4)).astype(np.float32), rng.integers(2, size=1000))
    model = plan(data, objective="ivae", net="linear", n_latents=3).blueprint.build(0)
    codes = (rng.normal(size=(1000, 3)) * [1.0, 2.0, 0.0]).astype(np.float32)
    representation = Representation(codes, np.ones_like(codes), codes, indices=np.arange(1000))
    weights = model.decoder.trunk.layers[0][0].weight.detach().numpy()
    expected = (weights**2).sum(axis=0) * [1, 4, 0] / data.values(np.arange(1000)).var(axis=0).sum()
    # The mean of 1000 squares (z − z̃)²/2 ~ χ²: a relative error of about √(3/1000), five of them.
    np.testing.assert_allclose(study.decoder_use(model, data, representation, seed=0), expected, rtol=0.28)


def test_it_trains_both_priors_and_writes_counts_claims_and_a_figure(
    study: ModuleType, tmp_path: Path
) -> None:
    words = f"--out {tmp_path} --steps 2 --image-size 16 --latents 3".split()
    study.main(words)
    results = json.loads((tmp_path / "results.json").read_text())
    assert set(results) == {"settings", "unused_below", "fixed", "learned"}
    for mean, claim in (("fixed", "B1"), ("learned", "B2")):
        found = results[mean]
        assert sum(found["counts"].values()) == 3
        assert found["claim"]["claim"] == claim
        assert found["claim"]["used"] + found["claim"]["unused"] == 3
        uses = [latent["use"] for latent in found["latents"]]
        assert uses == sorted(uses, reverse=True)
    assert all(latent["prior_mean"] == 0 for latent in results["fixed"]["latents"])
    assert any(latent["prior_mean"] != 0 for latent in results["learned"]["latents"])
    assert (tmp_path / "histograms.png").stat().st_size > 10_000
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("*/model.safetensors")}
    assert len(before) == 2
    study.main(words)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.glob("*/model.safetensors")} == before
    assert json.loads((tmp_path / "results.json").read_text()) == results
