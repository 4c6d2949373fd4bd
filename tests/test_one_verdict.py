"""One verdict: all outputs about a run show the same training state and the same latents in use."""

from __future__ import annotations

import contextlib
import math
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polariscope as ps
from polariscope.analysis.convergence import StateCode, TrainingState, training_state
from polariscope.analysis.verdict import Verdict, collapse_text, state_text
from polariscope.cli import main
from polariscope.core.errors import DivergedError, InputError
from polariscope.storage.folder import RunFolder

USUAL = {"net": "linear", "learning_rate": 3e-3, "log_every": 10}
FEW_ROWS = {
    **{"net": "mlp", "n_latents": 7, "likelihood": "gaussian", "variance": 0.01, "train_fraction": 0.5},
    **{"learning_rate": 3e-3, "steps": 2500, "log_every": 50, "validate_every": 100},
}
"""A network that overfits 60 observations, since its decoder has almost no noise."""
TRAININGS: dict[StateCode, tuple[int, dict[str, Any]]] = {
    "converged": (600, {**USUAL, "n_latents": 7, "steps": 10_000, "log_every": 50}),
    "still-learning": (600, {**USUAL, "n_latents": 7, "steps": 300}),
    "unknown": (600, {**USUAL, "n_latents": 7, "steps": 40, "log_every": 20}),
    "overfitting": (120, FEW_ROWS),
    "stopped-early": (120, {**FEW_ROWS, "patience": 5}),
    "diverged": (
        300,
        {**USUAL, "net": "mlp", "steps": 400, "optimiser": "sgd", "learning_rate": 2.0, "warmup_steps": 100}
        | {"log_every": 1, "checkpoint_every": 1, "n_latents": 3},
    ),
}
"""Number of observations and settings of a training that ends in each state."""


def call(capsys: pytest.CaptureFixture[str], words: Sequence[object]) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.fixture(scope="module", params=sorted(TRAININGS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[StateCode, Path]:
    path = tmp_path_factory.mktemp(request.param) / "run"
    n_samples, settings = TRAININGS[request.param]
    half = settings["steps"] // 2
    settings = {"checkpoint_every": half, "keep_checkpoints": "all", **settings}
    data = ps.load_dataset("gaussian", n_samples=n_samples)
    with contextlib.suppress(DivergedError):
        ps.train(data, out=path, threads=1, **settings)
    return request.param, path


def last_step(path: Path) -> int | None:
    """Return the step of the last checkpoint of a run without a finished model; None for finished runs."""
    opened = ps.open_run(path)
    return None if opened.is_finished else opened.steps[-1]


def test_every_surface_prints_the_verdict(
    run: tuple[StateCode, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, original = run
    path = shutil.copytree(original, tmp_path / "run")
    step = last_step(path)
    at_step = [] if step is None else ["--step", step]
    verdict = ps.open_run(path).verdict(step=step)
    assert verdict.training.code == code
    assert verdict == ps.open_run(path).regime(step=step).verdict
    rep = ps.encode(path, step=step)
    assert verdict == ps.diagnose(rep).verdict == ps.diagnose(ps.encode(ps.load_model(path, step))).verdict
    assert verdict.n_in_use == len(ps.open_run(path).regime(step=step).select("in-use"))
    text = " ".join(verdict.lines)
    printed = {
        "diagnose": call(capsys, ["diagnose", path, *at_step]),
        "course": call(capsys, ["course", path]),
        "encode": call(capsys, ["encode", path, *at_step, "--all", "--csv", tmp_path / "codes.csv"]),
        "str": " ".join(str(ps.open_run(path).regime(step=step)).split()),
    }
    assert {name: text in words for name, words in printed.items()} == dict.fromkeys(printed, True)
    table = call(capsys, ["table", path, *at_step, "--columns", "in_use,training"])
    assert re.search(rf"\b{verdict.n_in_use}\b.*\b{code}\b", table)
    main(["report", str(path), *map(str, at_step)])
    page = next(path.glob("report*.html")).read_text(encoding="utf-8")
    assert f"<h1>{verdict.short}</h1>" in page
    assert text in re.sub("<[^>]+>", "", page)  # words of the glossary are marked up


def test_a_diverged_run_is_called_so_and_training_it_again_forgets_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    n_samples, settings = TRAININGS["diverged"]
    data, path = ps.load_dataset("gaussian", n_samples=n_samples), tmp_path / "run"
    with pytest.raises(DivergedError, match="diverged at step") as error:
        ps.train(data, out=path, threads=1, **settings)
    assert ps.open_run(path).training().since == error.value.step
    assert f"diverged at {error.value.step}" in call(capsys, ["show", path])
    assert "diverged" in call(capsys, ["table", path])
    with pytest.raises(InputError, match=f"no finished model: training diverged at step {error.value.step}"):
        ps.open_run(path).verdict()
    # A checkpoint before the last one is judged by the log up to it.
    earlier = ps.open_run(path).steps[0]
    assert ps.open_run(path).training(earlier).code == "unknown"
    interrupted = RunFolder(path)
    interrupted.forget_failure()
    assert ps.open_run(path).training().code == "unknown"
    with pytest.raises(DivergedError):
        ps.train(data, out=path, threads=1, **settings)  # resumed, it diverges again
    assert ps.open_run(path).training().code == "diverged"


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
        "The model is still learning: the loss would fall by about 2 nats if the number of steps were doubled. Train "
        "for 300 more steps. So far, 2 of 5 latents are in use (2–3)."
    )


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (TrainingState(), "unknown: there is no training log"),
        (TrainingState("unknown", 40), "unknown: the training log has too few lines"),
        (TrainingState("converged", 100), "Training has converged."),
        (TrainingState("converged", 100, judged_until=50), "by step 50, before the learning rate decayed"),
        (
            TrainingState("overfitting", 9000, since=2000),
            "overfits: its held-out loss has risen since step 2,000",
        ),
        (TrainingState("diverged", 10), "diverged: the loss is rising"),
        (TrainingState("diverged", 10, since=11), "diverged at step 11: the loss was not finite"),
        (TrainingState("stopped-early", 900, since=600), "stopped early; the model is from step 600"),
        (
            TrainingState("still-learning", 500, ramp_until=1000),
            "ends at step 1,000. Train for 1,500 more steps.",
        ),
        (
            TrainingState("still-learning", 500, moves=(3,)),
            "the information of latent 3 is about to cross the threshold of use",
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
    assert "Common causes are" in str(collapsed.verdict)
    point = ps.diagnose(mean=5 * rng.normal(size=(500, 4)), variance=np.full((500, 4), 1e-6))
    assert point.verdict.findings == ("nearly-deterministic",)
    assert "samples from the prior will not look like data" in str(point.verdict)
    usual = ps.diagnose(mean=rng.normal(size=(500, 4)), variance=np.full((500, 4), 0.01))
    assert usual.verdict.findings == ()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (TrainingState("converged", 900, rate_weight=8.0), "Suspected cause: the weight of the rate, 8."),
        (
            TrainingState("converged", 900, rate_weight=1.0, noise_share=1.0),
            "the variance of the decoder, 1 times",
        ),
        (TrainingState("converged", 900, rate_weight=1.0, in_use_until=300), "in use until step 300"),
        (TrainingState("converged", 900, rate_weight=1.0), "might not have left its first plateau"),
    ],
)
def test_a_collapse_names_its_suspected_cause(state: TrainingState, words: str) -> None:
    assert words in collapse_text(state)


def test_a_model_whose_held_out_loss_no_longer_falls_is_not_told_to_train_longer() -> None:
    """Held-out losses of wine, every 1,000 steps, next to a training loss that decreases slowly."""
    held_out = [18.2, 18.36, 18.47, 18.69, 18.28, 19.09, 21.79, 21.7]
    lines = [
        {"step": 100 * i, "loss": 12 + 60 / math.sqrt(i), "weights": {}, "variance": [0.1], "std": [1.0]}
        for i in range(1, 81)
    ]
    for number, loss in enumerate(held_out, start=1):
        lines[10 * number - 1]["validation"] = {"reconstruction": loss}
    state = training_state(lines, threshold=0.1)
    assert (state.code, state.lowest_at) == ("still-learning", 1000)
    assert "held-out loss has not fallen since step 1,000" in state_text(state)
    assert "more steps." not in state_text(state)
    assert "patience" in state_text(state)
    assert "patience" not in state_text(state, advises=False)  # a search refuses it
    falling = training_state(lines[:10], threshold=0.1)
    assert falling.lowest_at is None


def test_a_collapsed_model_at_rest_is_neither_called_converged_nor_told_to_train_longer() -> None:
    state = TrainingState("converged", 900, rate_weight=1.0)
    verdict = Verdict(3, (), (0, 0), state, findings=("posterior-collapse",))
    assert "converged" not in f"{verdict} {verdict.short}"
    assert "longer" not in str(verdict)
    assert "ramped up from 0" in str(verdict)
    assert verdict.short == "0 of 3 latents in use, posterior collapse"
    learning = Verdict(
        3,
        (),
        (0, 0),
        TrainingState("still-learning", 900, gain=3.0, tolerance=1.0),
        findings=verdict.findings,
    )
    assert "still learning" in str(learning)
    assert "Train longer" in str(learning)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"objective": "beta", "beta": 50.0}, "the weight of the rate, 50"),
        ({"likelihood": "gaussian", "variance": 20.0}, "the variance of the decoder, 20 times"),
    ],
)
def test_the_cause_of_a_collapse_is_read_from_the_run(
    settings: dict[str, object], words: str, tmp_path: Path
) -> None:
    data = ps.load_dataset("gaussian", n_samples=600)
    ps.train(
        data,
        net="linear",
        n_latents=3,
        steps=1500,
        log_every=20,
        learning_rate=1e-2,
        out=tmp_path,
        **settings,
    )
    verdict = ps.open_run(tmp_path).verdict()
    assert verdict.findings == ("posterior-collapse",)
    assert words in str(verdict)


def test_a_model_before_its_training_is_not_called_collapsed(tmp_path: Path) -> None:
    ps.train(ps.load_dataset("digits"), n_latents=14, steps=1, out=tmp_path)
    verdict = ps.open_run(tmp_path).verdict()
    assert verdict.n_in_use == 0
    assert "posterior-collapse" not in verdict.findings


def test_the_codes_of_the_latents_in_use_are_written_with_names(
    run: tuple[StateCode, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import pandas

    code, path = run
    file = tmp_path / "codes.csv"
    if last_step(path) is not None:
        assert main(["encode", str(path), "--csv", str(file)]) == 2  # there is no finished model
        return
    regime = ps.open_run(path).regime()
    if not regime.in_use:
        assert main(["encode", str(path), "--csv", str(file)]) == 2
        return
    call(capsys, ["encode", path, "--csv", file, "--samples", "none"])
    frame = pandas.read_csv(file, index_col="observation")
    assert list(frame) == [f"latent_{j}" for j in regime.select("in-use")]
    assert len(frame) == TRAININGS[code][0]
    np.testing.assert_allclose(
        frame, ps.open_run(path).representation(None).mean[:, regime.select("in-use")], rtol=1e-6
    )
