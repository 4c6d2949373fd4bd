"""One verdict: every surface of a run prints the same state of the training and the same latents in use."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import polariscope as ps
from polariscope.analysis.convergence import StateCode, TrainingState
from polariscope.analysis.verdict import Verdict, state_text
from polariscope.cli import main

STEPS = {"converged": 10_000, "still-learning": 300, "unknown": 40}
"""Length of a training that ends in each state."""


def call(capsys: pytest.CaptureFixture[str], words: Sequence[object]) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.fixture(scope="module", params=sorted(STEPS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[StateCode, Path]:
    path = tmp_path_factory.mktemp(request.param) / "run"
    data = ps.load_dataset("gaussian", n_samples=600)
    steps = STEPS[request.param]
    log_every = {"converged": 50, "still-learning": 10, "unknown": 20}[request.param]
    ps.train(
        data,
        net="linear",
        n_latents=7,
        steps=steps,
        learning_rate=3e-3,
        log_every=log_every,
        checkpoint_every=steps // 2,
        keep_checkpoints="all",
        out=path,
    )
    return request.param, path


def test_every_surface_prints_the_verdict(
    run: tuple[StateCode, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, original = run
    path = shutil.copytree(original, tmp_path / "run")
    verdict = ps.open_run(path).verdict()
    assert verdict.training.code == code
    assert verdict == ps.open_run(path).regime().verdict
    assert (
        verdict == ps.diagnose(ps.encode(path)).verdict == ps.diagnose(ps.encode(ps.load_model(path))).verdict
    )
    assert verdict.n_in_use == len(ps.open_run(path).regime().select("in-use"))
    text = " ".join(verdict.lines)
    printed = {
        "diagnose": call(capsys, ["diagnose", path]),
        "course": call(capsys, ["course", path]),
        "encode": call(capsys, ["encode", path, "--all", "--csv", tmp_path / "codes.csv"]),
        "str": " ".join(str(ps.open_run(path).regime()).split()),
    }
    assert {name: text in words for name, words in printed.items()} == dict.fromkeys(printed, True)
    table = call(capsys, ["table", path, "--columns", "in_use,training"])
    assert re.search(rf"\b{verdict.n_in_use}\b.*\b{code}\b", table)
    main(["report", str(path)])
    page = (path / "report.html").read_text(encoding="utf-8")
    assert f"<h1>{verdict.short}</h1>" in page
    assert text in re.sub("<[^>]+>", "", page)  # words of the glossary are marked up


def test_train_ends_with_the_verdict_and_the_same_command_prints_it_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = [
        "train",
        "gaussian",
        "--net",
        "linear",
        "--steps",
        "300",
        "--log-every",
        "10",
        "--out",
        tmp_path / "run",
    ]
    first = call(capsys, line)
    text = " ".join(ps.open_run(tmp_path / "run").verdict().lines)
    assert text in first
    assert text in call(capsys, line)


def test_an_estimator_has_the_verdict_and_keeps_the_latents_in_use() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(500, 6))
    vae = ps.VAE(n_latents=4, random_state=0).fit(X)
    assert vae.verdict_ == vae.regime_.verdict
    assert vae.verdict_.training.code != "unknown"
    assert vae.transform(X).shape[1] == vae.verdict_.n_in_use


def test_a_model_that_is_still_learning_gets_no_advice_about_its_size() -> None:
    state = TrainingState("still-learning", 300, gain=2.0, gain_limit=2.5, tolerance=0.5)
    verdict = Verdict(5, (0, 1), (2, 3), state)
    assert not verdict.allows_advice
    assert str(verdict) == (
        "The model is still learning: the loss would fall by about 2 nats over as many steps again. Train for 300 more "
        "steps. So far, 2 of 5 latents are in use (2–3)."
    )


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (TrainingState(), "unknown: there is no log"),
        (TrainingState("unknown", 40), "unknown: the log has too few lines"),
        (TrainingState("converged", 100), "Training has converged."),
        (TrainingState("converged", 100, judged_until=50), "by step 50, before the learning rate decayed"),
        (TrainingState("overfitting", 9000, since=2000), "overfitted since step 2,000"),
        (TrainingState("diverged", 10), "diverged"),
        (TrainingState("stopped-early", 900, since=600), "stopped early; the model is that of step 600"),
        (
            TrainingState("still-learning", 500, ramp_until=1000),
            "ends at step 1,000. Train for 1,500 more steps.",
        ),
        (
            TrainingState("still-learning", 500, moves=(3,)),
            "latent 3 is about to change between used and unused",
        ),
    ],
)
def test_each_state_has_a_sentence(state: TrainingState, words: str) -> None:
    assert words in state_text(state)


def test_collapse_and_a_nearly_deterministic_encoder_are_named_with_remedies() -> None:
    rng = np.random.default_rng(0)
    collapsed = ps.diagnose(mean=0.001 * rng.normal(size=(500, 3)), variance=np.ones((500, 3)))
    assert collapsed.verdict.findings == ("posterior-collapse",)
    assert "Posterior collapse" in str(collapsed.verdict)
    point = ps.diagnose(mean=5 * rng.normal(size=(500, 4)), variance=np.full((500, 4), 1e-6))
    assert point.verdict.findings == ("nearly-deterministic",)
    assert "samples from the prior will not look like data" in str(point.verdict)
    usual = ps.diagnose(mean=rng.normal(size=(500, 4)), variance=np.full((500, 4), 0.01))
    assert usual.verdict.findings == ()


def test_the_codes_of_the_latents_in_use_are_written_with_names(
    run: tuple[StateCode, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import pandas

    _, path = run
    regime = ps.open_run(path).regime()
    file = tmp_path / "codes.csv"
    if not regime.in_use:
        assert main(["encode", str(path), "--csv", str(file)]) == 2
        return
    call(capsys, ["encode", path, "--csv", file, "--samples", "none"])
    frame = pandas.read_csv(file, index_col="observation")
    assert list(frame) == [f"latent_{j}" for j in regime.select("in-use")]
    assert len(frame) == 600
    np.testing.assert_allclose(
        frame, ps.open_run(path).representation(None).mean[:, regime.select("in-use")], rtol=1e-6
    )
