"""Examples of the README and the docs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import polariscope as ps
from forked import Forks

ROOT = Path(__file__).parents[1]


def python_blocks(file: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(), flags=re.DOTALL)


def smaller(code: str, **changes: str) -> str:
    """Return code with some texts replaced by faster ones; each text must occur."""
    for printed, quicker in changes.items():
        assert printed in code, printed
        code = code.replace(printed, quicker)
    return code


def test_the_jobs_of_the_readme_run_as_printed_but_smaller(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sizing, training, diagnosing, _ = python_blocks("README.md")
    names: dict = {}
    exec(smaller(sizing, **{"image_size=64": "image_size=16", "ps.size(data)": 'ps.size(data, "id")'}), names)
    assert names["size"].n_latents > 1
    exec(smaller(training, **{"steps=20_000": "steps=20"}), names)
    exec(smaller(diagnosing, **{"n_samples=10_000": "n_samples=300", '"mig,dci,sap"': '"mig"'}), names)
    assert names["reg"].counts.keys() == {"active", "mixed", "passive"}
    assert names["rep"].mean.shape == (300, 10)
    assert (tmp_path / "runs" / "first" / "report.html").stat().st_size > 10_000
    quicker = {
        "n_samples=5_000": "n_samples=200",
        "step=19_000": "step=20",
        '"mig,dci"': '"mig", n_samples=200',
    }
    quicker["decomposition()"] = "decomposition(n_samples=200)"
    exec(smaller(python_blocks("docs/python.md")[0], **quicker), names)
    assert names["early"].digest == names["model"].digest
    assert {"regime", "scores", "decomposition", "geometry"} <= {one.kind for one in names["run"].artefacts()}


def test_the_recipe_for_unusual_observations_runs_and_flags_most_of_them():
    (code,) = python_blocks("docs/anomalies.md")
    names: dict = {}
    exec(code, names)
    assert names["flagged"].mean() > 0.6  # 0.74 when the page was written
    assert (names["vae"].score_samples(names["train"]) < names["limit"]).mean() < 0.05


def test_the_examples_with_data_run(tmp_path):
    rows, factors = np.random.default_rng(0).normal(size=(200, 6)), np.arange(200)[:, None] % 3
    own, variants = python_blocks("docs/data.md")
    names = {"X": rows, "factors": factors}
    exec(smaller(own, **{"standardise=True": "standardise=True, steps=20"}), names)
    assert names["data"].factors([4]).tolist() == [[1]]
    exec(variants, names)


def test_the_example_for_models_of_ones_own_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 4)).astype(np.float32)
    mean, variance = rng.normal(size=(200, 3)), rng.uniform(0.01, 1, size=(200, 3))
    names = {
        "ps": ps,
        "X": rows,
        "my_encoder": lambda x: (x[:, :3], x[:, :3] * 0 - 3),
        "my_decoder": lambda z: z[:, [0, 1, 2, 0]],
        "mean": mean,
        "variance": variance,
    }
    exec(python_blocks("README.md")[3], names)
    assert names["keep"].shape[0] == 200
    assert (tmp_path / "theirs.html").stat().st_size > 10_000


def test_the_examples_for_sizing_and_scoring_run(capsys):
    rng = np.random.default_rng(0)
    factors = rng.integers(3, size=(300, 2))
    mean = factors + 0.1 * rng.normal(size=(300, 2))
    variance = np.full_like(mean, 0.01)
    rep = ps.Representation(mean, variance, mean + 0.1 * rng.normal(size=mean.shape), factors, ("a", "b"))
    rows = rng.normal(size=(200, 3)).astype(np.float32)
    names = {"ps": ps, "data": ps.from_arrays(rows), "X": rows, "rep": rep}
    sizing, scoring = python_blocks("docs/python.md")[1:3]
    # A search of minutes is replaced by its quickest form.
    exec(smaller(sizing, **{"ps.size(data)": 'ps.size(data, "id")', '"fondue")': "2, steps=400)"}), names)
    assert names["size"].n_latents == 3
    assert names["embedding"].shape[0] == 200
    assert "3 latents" in capsys.readouterr().out
    exec(scoring.replace("ps.score(rep)", 'ps.score(rep, "mig,sap")'), names)
    assert names["scores"]["mig"].value > 0.9


def test_the_examples_for_comparing_and_geometry_run_as_printed_but_smaller(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = ps.load_dataset("gaussian", eigenvalues=(4.0, 2.0, 1.0), n_samples=300)
    model = ps.train(data, net="linear", n_latents=3, steps=20, out="runs/first")
    rep = ps.encode(model, data)
    names = {
        "ps": ps,
        "data": data,
        "model": model,
        "rep": rep,
        "reg": SimpleNamespace(types=("active",) * 3),
    }
    comparing, geometry = python_blocks("docs/python.md")[3:5]
    quicker = {"steps=2_000": "steps=20", "500": "5", 'net="conv"': 'net="linear"'}
    exec(smaller(comparing, **quicker, **{"n_latents=10": "n_latents=3"}), names)
    assert names["comparison"].models == ("first", "second")
    assert names["course"].rows == ("step 5", "step 10", "step 15", "step 20")
    assert (tmp_path / "course.png").stat().st_size > 1000
    exec(geometry, names)
    split = names["split"]
    assert split.total == pytest.approx(split.deterministic + split.stochastic + split.interaction)
    assert names["orthogonality"].latents == (0, 1, 2)


def test_the_minimal_example_tells_the_whole_story(tmp_path, forks: Forks):
    code = (ROOT / "examples" / "minimal.py").read_text(encoding="utf-8")
    done = forks.run(code, str(tmp_path / "run"), "20")
    assert done.returncode == 0, done.stderr
    assert "737280 images of (1, 32, 32)" in done.stdout
    assert "10 latents:" in done.stdout
    assert (tmp_path / "run" / "report.html").exists()


def test_the_objective_of_the_contributing_guide_works_when_dropped_into_the_folder(tmp_path):
    """Follow the guide as a newcomer: one file in the family's folder, nothing else changed."""
    (code,) = (block for block in python_blocks("CONTRIBUTING.md") if "free-bits" in block)
    script = (
        "import polariscope as ps\n"
        "d = ps.load_dataset('gaussian', n_samples=200)\n"
        "a = ps.train(d, 'free-bits', 'mlp', 2, allowance=0.0, steps=3)\n"
        "b = ps.train(d, 'vae', 'mlp', 2, steps=3)\n"
        "assert a.digest == b.digest, 'an allowance of 0 is the VAE'\n"
        "assert a.digest != ps.train(d, 'free-bits', 'mlp', 2, allowance=9.0, steps=3).digest\n"
    )
    # A copy of the package, so that the real folder is never touched.
    package = Path(ps.__file__).parent
    shutil.copytree(package, tmp_path / "polariscope", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "polariscope" / "objectives" / "free_bits.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        [sys.executable, "-c", "from polariscope.cli import main; main(['list', 'objectives'])"],
        capture_output=True, text=True, env=environment, timeout=120,
    )  # fmt: skip
    assert "free-bits" in listed.stdout
    assert "allowance" in listed.stdout


def test_report_is_a_function_whatever_was_imported_before(tmp_path):
    import polariscope.pages.record  # noqa: F401 (sets the package as an attribute)

    with pytest.raises(ps.InputError, match="is not a run folder"):
        ps.report(tmp_path)


def test_every_public_name_loads_and_unknown_ones_do_not():
    for name in ps.__all__:
        assert getattr(ps, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        ps.trian  # noqa: B018
