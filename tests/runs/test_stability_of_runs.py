"""Stability over runs: the codes are those of the runs, on the same observations."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polariscope as ps
from polariscope.analysis.stability import stability as stability_of_codes
from polariscope.core.errors import InputError


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three seeds of a linear model, whose latents are the principal components up to order and sign."""
    folder = tmp_path_factory.mktemp("runs")
    data = ps.load_dataset("gaussian", eigenvalues=(9.0, 3.0), width=4, n_samples=800)
    for seed in range(3):
        settings: dict[str, Any] = {"steps": 400, "log_every": 200, "validate_every": 400, "seed": seed}
        ps.train(
            data,
            net="linear",
            n_latents=3,
            likelihood_variance=0.2,
            learning_rate=0.03,
            out=folder / f"seed{seed}",
            **settings,
        )
    return [folder / f"seed{seed}" for seed in range(3)]


def test_runs_are_encoded_on_the_same_observations_and_kept(runs: list[Path]) -> None:
    found = ps.stability(runs, n_samples=300, n_permutations=19)
    assert found.names == ("seed0", "seed1", "seed2")
    codes = {path.name: ps.open_run(path).representation(300) for path in runs}
    assert stability_of_codes(codes, n_permutations=19).to_dict() == found.to_dict()
    assert all(list(path.glob("representation-*")) for path in runs)
    mixed = ps.stability([ps.open_run(runs[0]), str(runs[1]), runs[2]], n_samples=300, n_permutations=19)
    assert mixed.to_dict() == found.to_dict()


def test_principal_components_return_in_every_seed(runs: list[Path]) -> None:
    """Both directions in use have eigenvalues of their own, so every seed finds them, up to order and sign."""
    found = ps.stability(runs, n_samples=None, n_permutations=19)
    assert found.space > 0.98  # training has not ended, so noise of the passive latent may be in use in some
    matched = [one for one in found.of(found.shown) if one.lowest > 0.9]
    assert len(matched) == 2
    assert found.p_value == pytest.approx(1 / 20)


def test_models_and_a_checkpoint_are_taken_too(runs: list[Path]) -> None:
    data = ps.open_run(runs[0]).data()
    models = {path.name: ps.load_model(path) for path in runs}
    for model in models.values():
        model.folder = None
    found = ps.stability(models, data, n_samples=300, n_permutations=19)
    # Found by the same seed among the same observations.
    assert found.to_dict() == ps.stability(runs, n_samples=300, n_permutations=19).to_dict()
    with pytest.raises(InputError, match="no model of step 123"):
        ps.stability(runs, step=123)


def test_equal_names_are_told_apart(runs: list[Path], tmp_path: Path) -> None:
    twin = shutil.copytree(runs[0], tmp_path / "seed0")
    found = ps.stability([runs[0], twin], n_samples=200, n_permutations=19)
    assert found.names == ("seed0", "seed0 (2)")
    assert found.value == pytest.approx(1, abs=1e-12)


def test_what_cannot_be_compared_is_refused(runs: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    data = ps.load_dataset("gaussian", eigenvalues=(9.0, 3.0), width=4, n_samples=500)
    ps.train(data, net="linear", n_latents=3, steps=2, log_every=2, validate_every=2, out=other)
    with pytest.raises(InputError, match="be trained on the same data"):
        ps.stability([runs[0], other])
    with pytest.raises(InputError, match="models must be several"):
        ps.stability(runs[0])
    with pytest.raises(InputError, match="data must be left out with codes"):
        ps.stability([np.eye(3), np.eye(3)], data)


def test_models_with_other_numbers_of_latents_were_not_trained_alike(
    runs: list[Path], tmp_path: Path
) -> None:
    other = tmp_path / "wide"
    data = ps.load_dataset("gaussian", eigenvalues=(9.0, 3.0), width=4, n_samples=800)
    ps.train(data, net="linear", n_latents=4, steps=2, log_every=2, validate_every=2, out=other)
    with pytest.raises(InputError, match=r"the same number of latents.*got 3 in seed0 and 4 in wide"):
        ps.stability([runs[0], other], n_samples=100)
    means = [ps.open_run(path).representation(100).mean for path in (runs[0], other)]
    assert ps.stability(means, n_permutations=19).n_used == (3, 4)


def test_what_runs_differ_in_beside_their_seed_is_said(runs: list[Path], tmp_path: Path) -> None:
    assert not any("more than their seed" in note for note in ps.stability(runs, n_samples=100).notes)
    data = ps.load_dataset("gaussian", eigenvalues=(9.0, 3.0), width=4, n_samples=800)
    ps.train(
        data,
        objective="beta",
        beta=2.0,
        net="linear",
        n_latents=3,
        likelihood_variance=0.2,
        learning_rate=0.03,
        steps=2,
        log_every=200,
        validate_every=400,
        out=tmp_path / "other",
    )
    (note,) = [
        note
        for note in ps.stability([*runs, tmp_path / "other"], n_samples=100).notes
        if "more than their seed" in note
    ]
    assert "objective beta" in note
    assert "training steps" in note
    assert "learning_rate" not in note


def test_files_of_codes_and_arrays_with_variances_are_the_same_codes(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    codes = draw.normal(size=(60, 3)) * [1, 1, 1e-4]
    variance = np.tile([0.01, 0.02, 1.0], (60, 1))
    means = {"a": codes, "b": codes[:, ::-1] + 0.1 * draw.normal(size=(60, 3)) * [1e-4, 1, 1]}
    variances = [variance, variance[:, ::-1]]
    for (name, mean), own in zip(means.items(), variances, strict=True):
        np.savez(tmp_path / f"{name}.npz", mean=mean, variance=own)
    found = ps.stability(means, variance=variances, n_permutations=19)
    assert found.n_used == (2, 2)
    files = ps.stability([tmp_path / "a.npz", str(tmp_path / "b.npz")], n_permutations=19)
    assert files.names == ("a.npz", "b.npz")
    assert files.value == found.value
    assert files.agreement.tolist() == found.agreement.tolist()


def test_a_message_names_the_model_it_is_about(runs: list[Path]) -> None:
    codes = np.random.default_rng(0).normal(size=(50, 2))
    spoiled = codes.copy()
    spoiled[3, 1] = np.nan
    with pytest.raises(InputError, match="codes of model bad must be"):
        ps.stability({"good": codes, "bad": spoiled})
    with pytest.raises(
        InputError, match="all representations or all arrays, got some of each; make a polaris"
    ):
        ps.stability([runs[0], codes], n_samples=50)
