"""Print the default of each policy at every entry point as JSON; test_one_owner runs this in copies of the package."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import polariscope as ps
from polariscope.analysis import score as scoring
from polariscope.analysis.regime import latent_types
from polariscope.cli import main
from polariscope.manipulation.run_selection import choose_runs
from polariscope.pages.record import record_of_codes
from polariscope.runs.run import Run
from polariscope.sizing import curve_point
from polariscope.training import monitor


class Recorder:
    """A replacement for ``types_of`` that records the α of each call."""

    def __init__(self) -> None:
        self.alphas: set[float] = set()

    def __call__(self, moments: latent_types.Moments, alpha: float) -> Any:
        self.alphas.add(alpha)
        return latent_types.types_of(moments, alpha)


def newest(run: Path, kind: str) -> dict[str, Any]:
    """Return the settings of the newest result of a kind, with the part of the data; then delete the result."""
    artefacts = [each for each in Run(run).artefacts() if each.kind == kind]
    assert artefacts
    found = [{**each.key.settings, "part": each.key.part} for each in artefacts]
    for artefact, settings in zip(artefacts, found, strict=True):
        artefact.path.unlink()
        settings.pop("latents", None)  # scores of all latents and of those in use are two results
        assert settings == found[0]
    return found[0]


def entry_points(folder: Path, with_models: bool) -> dict[str, dict[str, Any]]:
    """Return the settings that each entry point uses if the caller leaves every argument at its default.

    :param folder: folder of the runs.
    :param with_models: If True, include entry points that take models and codes without a run.
    """
    data, run = ps.load_dataset("gaussian", n_samples=400), folder / "run"
    found: dict[str, dict[str, Any]] = {}
    recorder = Recorder()
    with patch.object(monitor, "types_of", recorder):
        model = ps.train(data, net="mlp", n_latents=2, steps=4, log_every=2, checkpoint_every=2,
                         keep_checkpoints="all", out=run)  # fmt: skip
    (alpha,) = recorder.alphas
    found["log of the training"] = {"alpha": alpha}

    opened = Run(run)
    for kind, compute in {
        "regime": opened.regime,
        "decomposition": opened.decomposition,
        "geometry": lambda: opened.geometry(n_points=5, n_observations=5),
        "course": opened.course,
        "scores": lambda: opened.scores("hoyer"),
    }.items():
        compute()
        if kind == "geometry":
            newest(run, "regime")
        found[f"Run.{kind}"] = newest(run, kind)
    rep = opened.representation()
    found["Run.representation"] = {"n_samples": rep.n_samples}
    for command, kind in {
        "diagnose": "regime",
        "course": "course",
        "score": "scores",
        "report": "regime",
    }.items():
        for artefact in Run(run).artefacts():
            artefact.path.unlink()
        more = ["--metrics", "hoyer"] if command == "score" else []
        assert main([command, str(run), *more]) == 0
        found[f"polariscope {command}"] = newest(run, kind)

    for name in ("diagnose", "score", "decompose", "encode", "geometry"):
        analysis = ps.analyses[name]()
        found[f"study, {name}"] = {
            field: getattr(analysis, field)
            for field in ("alpha", "n_bootstrap", "n_samples", "seed", "part")
            if hasattr(analysis, field)
        }
    if with_models:
        found |= without_a_run(model, data, rep) | of_positions(folder)
    recorder = Recorder()
    with patch.object(curve_point, "types_of", recorder):
        points = ps.size_curve(data, (2,), steps=400, methods=(), seeds=1)
    (alpha,) = recorder.alphas
    found["ps.size_curve"] = {"alpha": alpha, "n_samples": points.n_samples, "part": points.part}
    return found


def without_a_run(model: Any, data: Any, rep: Any) -> dict[str, dict[str, Any]]:
    """Return the settings of entry points that take models, arrays or codes, which have no split."""
    found: dict[str, dict[str, Any]] = {}
    found["ps.encode"] = {"n_samples": ps.encode(model, data).n_samples}
    found["ps.diagnose"] = of_regime(ps.diagnose(rep))
    found["ps.score"] = {"alpha": alpha_of_score(rep)}
    for name, function in {"ps.stability": ps.stability, "Run.comparison": Run.comparison}.items():
        parameters = inspect.signature(function).parameters
        found[name] = {key: parameters[key].default for key in ("seed",)}
    found["ps.stability"]["n_samples"] = inspect.signature(ps.stability).parameters["n_samples"].default
    for name, function in {"ps.manipulate": ps.manipulate, "choose_runs": choose_runs}.items():
        found[name] = {"n_samples": inspect.signature(function).parameters["n_samples"].default}
    found["page of codes"] = of_regime(record_of_codes(rep, "codes").regime)
    estimator = ps.VAE(n_latents=2, steps=4).fit(np.random.default_rng(0).normal(size=(40, 3)))
    found["ps.VAE"] = of_regime(estimator.regime_, "alpha", "n_bootstrap")

    return found


def of_positions(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the unit in which each entry point diagnoses codes with positions."""
    mean = np.random.default_rng(0).normal(size=(60, 2, 2, 2)).astype(np.float32)
    arrays = {"mean": mean, "variance": np.full_like(mean, 0.1)}
    file, results = folder / "positions.npz", folder / "positions.json"
    np.savez(file, **arrays)
    encoded = ps.encode(lambda x: (x.reshape(-1, 2, 2, 2), 0 * x.reshape(-1, 2, 2, 2)), mean.reshape(60, 8))
    assert main(["diagnose", str(file), "--json", str(results)]) == 0
    assert main(["report", str(file)]) == 0
    page = file.with_suffix(".html").read_text(encoding="utf-8")
    is_channel = {
        "ps.encode, positions": encoded.unit == "channel",
        "ps.diagnose, positions": ps.diagnose(**arrays).positions is not None,
        "polariscope diagnose, positions": json.loads(results.read_text())["positions"] is not None,
        "polariscope report, positions": "Channels, by KL" in page,
    }
    return {name: {"per": "channel" if channel else "value"} for name, channel in is_channel.items()}


def of_regime(regime: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(regime, name) for name in names or ("alpha", "n_bootstrap", "seed")}


def alpha_of_score(rep: Any) -> float:
    recorder = Recorder()
    with patch.object(scoring, "types_of", recorder):
        scoring._about_posterior(rep, uses_types=True)
    (alpha,) = recorder.alphas
    return alpha


if __name__ == "__main__":
    print(json.dumps(entry_points(Path(sys.argv[1]), "--with-models" in sys.argv)), file=sys.stderr)
