"""The checks against models and pictures of others pass where these are on the machine, and can fail."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "originals"


def load(name: str) -> ModuleType:
    """A script as a module; it is not part of the package."""
    spec = importlib.util.spec_from_file_location(f"originals_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_tells_of_every_check() -> None:
    told = (FOLDER / "README.md").read_text(encoding="utf-8")
    for script in FOLDER.glob("*.py"):
        assert f"`{script.name} " in told, f"{script.name} is not in benchmarks/originals/README.md"


PUBLIC = Path(__file__).parents[3] / "shared" / "public_models"


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public models are not on this machine")
def test_models_of_another_group_have_the_same_codes_types_and_a_page(tmp_path):
    names = ["btcvae_dsprites", "VAE_mnist"]
    check = load("public_models")
    found = check.main([str(PUBLIC), "--samples", "300", "--out", str(tmp_path), "--only", *names])
    for name in names:
        assert found[name]["same_codes"]
        assert (tmp_path / f"{name}.html").stat().st_size > 50_000
    assert found["btcvae_dsprites"]["counts"] == check.README["btcvae_dsprites"]


ORIGINALS = PUBLIC.with_name("originals")


@pytest.mark.skipif(
    not (PUBLIC.is_dir() and ORIGINALS.is_dir()),
    reason="the public models or pictures are not on this machine",
)
def test_sprites_are_drawn_as_the_original(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    check = load("sprites")
    # the standard error of 600 reconstructions is 1.5 nats of 79 for the noisiest model, so 15 % are 8 of them
    results = check.main([str(PUBLIC), str(ORIGINALS), "--samples", "600", "--out", str(tmp_path)])
    assert results == json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert [row["what"] for row in results["rows"] if not row["holds"]] == []
    assert len(results["rows"]) == 6 + 2 * 5 + 1
    # the log has seven digits, and so many agree: the first squares are the original's, pixel for pixel
    logs = json.loads((PUBLIC / "models.json").read_text(encoding="utf-8"))
    for row in results["rows"]:
        name, _, what = row["what"].partition(": ")
        if what == f"KL of the first {500 if name.startswith('factor') else 1000} squares":
            logged = check.LOG_BATCHES * logs[name]["their_test_log"]["kl_loss"]
            assert row["found"] == pytest.approx(logged, rel=1e-5)


@pytest.mark.skipif(not ORIGINALS.is_dir(), reason="the pictures are not on this machine")
def test_a_drawing_with_other_measures_fails(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    check, module = load("sprites"), importlib.import_module("polariscope.data.rendered.sprites")
    frames = check.read_frames(ORIGINALS / "dsprites.gif")
    monkeypatch.setattr(module, "_HALF_SIDE", 10.6)
    monkeypatch.setattr(module, "_SEMI_AXES", (12.0, 7.2))
    held = [row["holds"] for row in check.against_frames(module.SpritesDataset(), frames)]
    assert held == [False, False, True, False, False, True]
