"""The studies run, resume and write what they promise; their measures are right."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from oracles import assert_mean_is
from polariscope.core.errors import InputError
from polariscope.models.posteriors.diagonal import DiagonalGaussian

FOLDER = Path(__file__).parents[2] / "studies"


def load(name: str) -> ModuleType:
    """A study as a module; it is a script, not part of the package."""
    spec = importlib.util.spec_from_file_location(f"study_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pinwheel, sparsity = load("pinwheel"), load("sparsity")


def test_the_readme_tells_of_every_study() -> None:
    told = (FOLDER / "README.md").read_text(encoding="utf-8")
    for script in FOLDER.glob("*.py"):
        assert f"studies/{script.name}" in told, f"{script.name} is not in studies/README.md"


def test_the_pinwheel_study_runs_resumes_and_writes_its_files(tmp_path: Path) -> None:
    tiny = ["--alphas", "0", "2", "--betas", "1", "--seeds", "3", "--points", "30", "--draws", "200"]
    arguments = ["--out", str(tmp_path), *tiny, "--steps", "3"]
    results = pinwheel.main(arguments)
    written = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert written == results
    assert [(r["alpha"], r["beta"]) for r in written["records"]] == [(0, 1), (2, 1)]
    assert set(written["claims"]) == set(pinwheel.CLAIMS)
    assert (tmp_path / "density.png").read_bytes().startswith(b"\x89PNG")
    models = sorted((tmp_path / "models").glob("*/model.safetensors"))
    before = [model.stat().st_mtime_ns for model in models]
    assert len(models) == 2
    assert pinwheel.main(arguments) == results
    assert [model.stat().st_mtime_ns for model in models] == before


def test_the_sparsity_study_runs_and_writes_its_files(tmp_path: Path) -> None:
    tiny = ["--gammas", "0", "0.8", "--alphas", "0", "5", "--images", "60", "--latents", "4", "--batch", "16"]
    results = sparsity.main(["--out", str(tmp_path), *tiny, "--steps", "3"])
    written = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert written == results
    assert [(r["gamma"], r["alpha"]) for r in written["records"]] == [(0, 0), (0, 5), (0.8, 0), (0.8, 5)]
    assert set(written["claims"]) == set(sparsity.CLAIMS)
    assert written["prior_hoyer"]["0.8"] > written["prior_hoyer"]["0"]
    assert (tmp_path / "sparsity.png").read_bytes().startswith(b"\x89PNG")


def test_claims_are_judged_by_the_numbers() -> None:
    falling, rising = (
        np.array([[3.0, 2.0, 4.0], [1.0, 0.2, 0.5]]),
        np.array([[0.1, 0.2, 0.3], [0.2, 0.3, 0.4]]),
    )
    assert list(pinwheel.judge(falling, rising).values()) == [True, True, True]
    assert list(pinwheel.judge(falling[::-1], rising).values()) == [False, True, True]
    ordered = np.sort(falling)[:, ::-1]  # the largest β fits best
    assert list(pinwheel.judge(ordered, rising).values()) == [True, True, False]
    assert list(pinwheel.judge(falling, rising[:, [0, 2, 1]]).values()) == [True, False, True]
    assert list(sparsity.judge(np.array([[0.2, 0.3], [0.3, 0.6]])).values()) == [True, True, True]
    assert list(sparsity.judge(np.array([[0.2, 0.6], [0.3, 0.4]])).values()) == [False, True, False]
    assert list(sparsity.judge(np.array([[0.2, 0.1], [0.4, 0.3]])).values()) == [True, False, False]


def test_the_overlap_is_the_bhattacharyya_coefficient() -> None:
    def gaussians(mean: list, variance: list) -> DiagonalGaussian:
        return DiagonalGaussian(
            torch.tensor(mean, dtype=torch.float64), torch.tensor(variance, dtype=torch.float64).log()
        )

    same = gaussians([[1.0, 2.0]] * 3, [[0.3, 0.1]] * 3)
    assert pinwheel.bhattacharyya(same) == pytest.approx(1, abs=1e-12)
    pair = gaussians([[0.0, 0.5], [1.0, -0.2]], [[0.4, 1.5], [0.9, 0.2]])
    expected = 1.0
    for latent in range(2):  # independent latents: the integrals multiply
        z = np.linspace(-15, 15, 40_001)
        mean, variance = pair.mean[:, latent].numpy(), pair.variance[:, latent].numpy()
        densities = np.exp(-((z[:, None] - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
        expected *= np.trapezoid(np.sqrt(densities.prod(1)), z)
    assert pinwheel.bhattacharyya(pair) == pytest.approx(expected, rel=1e-9)


def test_points_far_apart_do_not_overlap_and_their_mixture_is_a_nth_of_each() -> None:
    mean = torch.arange(5, dtype=torch.float64)[:, None] * 100
    apart = DiagonalGaussian(mean, torch.zeros_like(mean))
    assert pinwheel.bhattacharyya(apart) == pytest.approx(0, abs=1e-12)
    expected = -0.5 * math.log(2 * math.pi) - math.log(5)
    assert pinwheel.log_aggregate(apart, mean).numpy() == pytest.approx(np.full(5, expected))


def test_hoyer_runs_from_all_alike_to_a_single_latent() -> None:
    assert sparsity.hoyer(np.eye(5), normalise=False) == 1
    assert sparsity.hoyer(np.ones((3, 5)), normalise=False) == pytest.approx(0, abs=1e-15)
    # k of d latents, all of one size: (√d − √k)/(√d − 1).
    code = np.array([[1.0, -1.0, 0, 0, 0, 0, 0, 0, 0]])
    assert sparsity.hoyer(code, normalise=False) == pytest.approx((3 - math.sqrt(2)) / 2)


def test_hoyer_is_blind_to_signs_order_and_size_and_normalised_also_to_each_latents_scale() -> None:
    rng = np.random.default_rng(0)
    codes = rng.laplace(size=(40, 6)) + 0.3
    value = sparsity.hoyer(codes)
    flipped = codes * rng.choice([-1, 1], size=6)
    for same in (flipped, codes[:, ::-1], codes[::-1], 7 * codes, codes * np.arange(1, 7)):
        assert sparsity.hoyer(same) == pytest.approx(value, rel=1e-12)
    scaled = sparsity.hoyer(codes * np.arange(1, 7), normalise=False)
    assert scaled != pytest.approx(sparsity.hoyer(codes, normalise=False), abs=0.01)


def test_latents_that_hardly_vary_do_not_count_as_sparse() -> None:
    codes = np.random.default_rng(0).normal(size=(4000, 10))
    few = codes * np.array([1.0] * 2 + [1e-6] * 8)
    assert sparsity.hoyer(few, normalise=False) > 0.7
    assert sparsity.hoyer(few) == pytest.approx(sparsity.hoyer(codes), rel=1e-9)
    # ‖z‖₁/‖z‖₂ of normal draws: direction and length are independent, so the mean is a ratio of two means.
    chi = math.sqrt(2) * math.gamma(11 / 2) / math.gamma(10 / 2)
    expected = (math.sqrt(10) - 10 * math.sqrt(2 / math.pi) / chi) / (math.sqrt(10) - 1)
    norms = np.abs(codes).sum(1) / np.sqrt((codes**2).sum(1))
    assert_mean_is((math.sqrt(10) - norms) / (math.sqrt(10) - 1), expected)
    assert sparsity.hoyer(codes, normalise=False) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        (np.ones((3, 1)), "have at least 2 latents.* got 1"),
        (np.array([[1.0, 2.0], [1.0, 3.0]]), r"latents \[0\] never vary"),
    ],
)
def test_codes_without_a_sparsity_are_refused(codes: np.ndarray, words: str) -> None:
    with pytest.raises(InputError, match=words):
        sparsity.hoyer(codes)
    with pytest.raises(InputError, match="1 codes are all 0"):
        sparsity.hoyer(np.array([[0.0, 0.0], [1.0, 2.0]]), normalise=False)
