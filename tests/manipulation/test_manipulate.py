"""The attack from runs to a folder: chosen by score, refused before it begins, resumed bit for bit."""

from __future__ import annotations

import math
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import polariscope as ps
from polariscope.core import files
from polariscope.core.errors import DivergedError, InputError
from polariscope.data.dataset import AbstractDataset
from polariscope.manipulation.attack import AttackTask
from polariscope.manipulation.manipulation import Manipulation, open_manipulation
from polariscope.manipulation.run_selection import choose_runs, scores_of
from polariscope.runs.run import Run
from polariscope.storage.documents import write_settings
from polariscope.storage.folder import RunFolder
from polariscope.storage.inspection import inspect_folder
from polariscope.training import threads as rule
from polariscope.training.loop import Listener

NET = {"name": "mlp", "encoder_widths": [32], "decoder_widths": [32], "activation": "relu"}
SMALL = {"steps": 6, "batch_size": 8, "draws": 2, "log_every": 2, "checkpoint_every": 2, "threads": 1}


def small(n: int = 200, **options: object) -> AbstractDataset:
    return ps.load_dataset("sprites", image_size=16, variants=[f"subset:n={n}"], **options)


def trained(out: Path, data: AbstractDataset, **options: object) -> Path:
    settings: dict[str, object] = {"n_latents": 2, "steps": 60, "learning_rate": 1e-2, "threads": 1}
    settings |= {"objective": {"name": "beta", "beta": 0.1}, "net": NET}
    ps.train(data, out=out, **{**settings, **options})  # type: ignore[arg-type]
    return out


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, data = tmp_path_factory.mktemp("runs"), small()
    return [trained(folder / f"seed-{seed}", data, seed=seed) for seed in range(4)]


def scores(runs: list[Path], metric: str = "mig") -> list[float]:
    return scores_of([Run(run) for run in runs], metric, 200, 0)


@pytest.fixture(scope="module")
def whole(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Manipulation:
    return ps.manipulate(runs, tmp_path_factory.mktemp("attack") / "whole", **SMALL)  # type: ignore[arg-type]


def same(one: Manipulation, other: Manipulation) -> None:
    assert one.key == other.key
    assert one.log == other.log
    tensors = [files.read_tensors(RunFolder(each.folder).model_file)[0] for each in (one, other)]
    assert files.digest_tensors(tensors[0]) == files.digest_tensors(tensors[1])
    states = [RunFolder(each.folder).checkpoints.read(6).state for each in (one, other)]
    assert files.digest_tensors(states[0]) == files.digest_tensors(states[1])


def test_the_lowest_and_the_highest_score_are_set_against_each_other(
    runs: list[Path], whole: Manipulation
) -> None:
    found = scores(runs)
    choice = whole.settings["choice"]
    assert choice["metric"] == "mig"
    assert [one["run"] for one in choice["entangled"]] == [runs[int(np.argmin(found))].name]
    assert [one["run"] for one in choice["disentangled"]] == [runs[int(np.argmax(found))].name]
    assert choice["entangled"][0]["score"] == min(found)
    for side in ("entangled", "disentangled"):
        one = choice[side][0]
        variance = np.array(one["variance"])[one["order"]]
        assert (np.diff(variance) >= 0).all()
        rep = Run(next(run for run in runs if run.name == one["run"])).representation(200)
        np.testing.assert_allclose(one["variance"], rep.variance.astype(np.float64).mean(0))


def test_losses_and_their_gap_are_logged(whole: Manipulation) -> None:
    assert [line["step"] for line in whole.log] == [0, 2, 4, 6]
    assert whole.log[0]["change"] == 0
    assert all(0 < line["change"] < 0.1 for line in whole.log[1:])
    for line in whole.log:
        assert line["gap"] == pytest.approx(line["entangled"] - line["disentangled"], abs=1e-4)
    np.testing.assert_array_equal(whole.gap[:, 0], [0, 2, 4, 6])
    assert "nats on the original data" in str(whole)
    assert "The gap between their losses" in str(whole)
    assert {finding.state for finding in inspect_folder(whole.folder)} == {"whole"}


def test_the_models_of_the_runs_stay_as_they_are(runs: list[Path], tmp_path: Path) -> None:
    before = [RunFolder(run).model_file.read_bytes() for run in runs]
    ps.manipulate(runs, tmp_path / "m", **{**SMALL, "steps": 2})  # type: ignore[arg-type]
    assert [RunFolder(run).model_file.read_bytes() for run in runs] == before


def test_its_folder_is_a_dataset_that_trains_and_scores(whole: Manipulation, tmp_path: Path) -> None:
    base = small()
    data = ps.apply_variants(base, whole.variant)
    change = data.values(np.arange(200)) - base.values(np.arange(200))
    assert 0 < np.abs(change).max() <= 0.1 + 1e-7
    ps.train(data, out=tmp_path / "run", n_latents=2, steps=3, threads=1)
    run = ps.open_run(tmp_path / "run")
    assert run.settings["data"]["variants"][-1]["key"] == whole.key
    assert run.scores(["mig"], n_samples=100)["mig"].value >= 0
    with pytest.raises(InputError, match="contains a manipulation of data, not a model"):
        ps.open_run(whole.folder)


@pytest.mark.parametrize("at", [1, 3])
def test_ctrl_c_saves_and_the_same_call_goes_on_bit_for_bit(
    runs: list[Path], whole: Manipulation, tmp_path: Path, at: int
) -> None:
    def stop(step: int, line: object) -> None:
        if step == at:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        ps.manipulate(runs, tmp_path / "m", progress=stop, **SMALL)  # type: ignore[arg-type]
    assert RunFolder(tmp_path / "m").checkpoints.steps[-1] == at
    with pytest.raises(InputError, match="is not finished"):
        open_manipulation(tmp_path / "m")
    same(ps.manipulate(runs, tmp_path / "m", **SMALL), whole)  # type: ignore[arg-type]


def test_a_killed_attack_loses_at_most_the_steps_since_its_checkpoint(
    runs: list[Path], whole: Manipulation, tmp_path: Path
) -> None:
    def die(step: int, line: object) -> None:
        if step == 5:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        ps.manipulate(runs, tmp_path / "m", progress=die, **SMALL)  # type: ignore[arg-type]
    assert RunFolder(tmp_path / "m").checkpoints.steps[-1] == 4
    seen: list[int] = []
    again = ps.manipulate(runs, tmp_path / "m", progress=lambda step, _: seen.append(step), **SMALL)  # type: ignore[arg-type]
    assert seen == [5, 6]
    same(again, whole)


def test_a_finished_one_is_opened_a_longer_one_continued_and_another_refused(
    runs: list[Path], whole: Manipulation, tmp_path: Path
) -> None:
    ps.manipulate(runs, tmp_path / "m", **{**SMALL, "steps": 4})  # type: ignore[arg-type]
    seen: list[int] = []
    longer = ps.manipulate(runs, tmp_path / "m", progress=lambda step, _: seen.append(step), **SMALL)  # type: ignore[arg-type]
    assert seen == [5, 6]
    same(longer, whole)
    seen.clear()
    ps.manipulate(runs, tmp_path / "m", progress=lambda step, _: seen.append(step), **SMALL)  # type: ignore[arg-type]
    assert not seen
    with pytest.raises(InputError, match=r"was trained with other settings \(.*epsilon: 0.1 then, 0.2 now"):
        ps.manipulate(runs, tmp_path / "m", epsilon=0.2, **SMALL)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="out must be a new folder or an earlier manipulation"):
        ps.manipulate(runs, runs[0], **SMALL)  # type: ignore[arg-type]


def test_ensembles_other_metrics_and_given_runs(runs: list[Path], tmp_path: Path) -> None:
    opened = [Run(run) for run in runs]
    order = list(np.argsort(scores(runs)))
    both = choose_runs(opened, ensemble=2)
    assert {one.run.name for one in both.entangled} == {runs[i].name for i in order[:2]}
    assert {one.run.name for one in both.disentangled} == {runs[i].name for i in order[2:]}
    by_udr = choose_runs(opened, metric="udr")
    agreement = scores(runs, "udr")
    assert by_udr.disentangled[0].run.name == runs[int(np.argmax(agreement))].name
    given = choose_runs([], entangled=opened[1:2], disentangled=opened[:1])
    assert given.metric is None
    assert given.entangled[0].run.name == "seed-1"
    made = ps.manipulate(runs, tmp_path / "m", ensemble=2, **{**SMALL, "steps": 1})  # type: ignore[arg-type]
    assert len(made.settings["choice"]["entangled"]) == 2


def test_a_lower_score_can_be_the_better_one(runs: list[Path]) -> None:
    assert scores(runs, "tc")[0] == -Run(runs[0]).scores(["tc"], n_samples=200)["tc"].value


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"epsilon": 0.003}, "epsilon must be at least 1/255"),
        ({"epsilon": 1.5}, r"epsilon must be at most 1 for values in \[0, 1\]"),
        ({"ensemble": 3}, "runs must be at least 6, 3 for each side, got 4"),
        ({"metric": "migg"}, "no metric named 'migg'"),
        ({"learning_rates": 1}, "learning_rate"),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_anything_is_written(
    runs: list[Path], tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        ps.manipulate(runs, tmp_path / "m", **settings)  # type: ignore[arg-type]
    assert not (tmp_path / "m").exists()


def test_runs_that_cannot_be_attacked_are_refused(runs: list[Path], tmp_path: Path) -> None:
    def refused(words: str, given: list[Path], **options: object) -> None:
        with pytest.raises(InputError, match=words):
            ps.manipulate(given, tmp_path / "m", **options)  # type: ignore[arg-type]
        assert not (tmp_path / "m").exists()

    other = trained(tmp_path / "other", small(201))
    refused("runs must be trained on the same data", [runs[0], other])
    copy = trained(tmp_path / "copy", small(), seed=0)
    refused("seed-0 and copy have equal models", [runs[0], copy])
    refused("runs must be at least 2", [runs[0]])
    refused("must be used together", [], entangled=[runs[0]])
    refused("runs to select from cannot be combined with", runs, entangled=[runs[0]], disentangled=[runs[1]])
    points = [trained(tmp_path / f"ae-{seed}", small(), objective="ae", seed=seed) for seed in range(2)]
    refused("no noise in its latents", points)
    rows = np.random.default_rng(0).normal(size=(60, 4))
    np.savez(tmp_path / "rows.npz", X=rows)
    bare = ps.load_dataset(tmp_path / "rows.npz")
    unlabelled = [
        trained(tmp_path / f"rows-{seed}", bare, objective="vae", seed=seed, steps=2) for seed in range(2)
    ]
    refused("has no known factors", unlabelled)


def test_runs_with_equal_scores_are_refused(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "polariscope.manipulation.run_selection.scores_of", lambda runs, *_: [0.2] * len(runs)
    )
    with pytest.raises(InputError, match="the runs cannot be ranked by mig"):
        choose_runs([Run(run) for run in runs])


def test_a_table_with_factors_can_be_manipulated(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    factors = draw.integers(5, size=(120, 2))
    rows = factors @ draw.normal(size=(2, 6)) * 10
    np.savez(tmp_path / "rows.npz", X=rows, factors=factors)
    data = ps.load_dataset(tmp_path / "rows.npz")
    made = [
        trained(tmp_path / f"run-{seed}", data, objective="vae", net="mlp", seed=seed) for seed in range(2)
    ]
    found = ps.manipulate(
        [],
        tmp_path / "m",
        entangled=made[:1],
        disentangled=made[1:],
        epsilon=3.0,
        **SMALL,  # type: ignore[arg-type]
    )
    base = ps.open_run(made[0]).data()  # in the units of the training
    changed = ps.apply_variants(base, found.variant)
    every = np.arange(120)
    change = changed.values(every) - base.values(every)
    assert 0 < np.abs(change).max() <= 3.0 + 1e-5
    assert not changed.is_unit_interval


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine with eight cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    with rule.using_threads(8):
        yield
        assert torch.get_num_threads() == 8


@pytest.mark.usefixtures("eight_cores")
def test_threads_follow_the_work_of_a_batch_and_are_kept(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = {name: value for name, value in SMALL.items() if name != "threads"}
    seen: list[int] = []

    def listen(step: int, line: object) -> None:
        seen.append(torch.get_num_threads())
        if step == 3:
            signal.raise_signal(signal.SIGINT)

    def recorded(name: str) -> object:
        return RunFolder(tmp_path / name).settings["environment"]["threads"]

    ps.manipulate(runs, tmp_path / "small", **{**free, "steps": 1})  # type: ignore[arg-type]
    assert recorded("small") == 1  # far too little work for two
    # Images of 16 × 16, batches of 8 with 2 draws; the manipulation squeezes 5 factors through 256 units into one.
    encoder, decoder = 256 * 32 + 2 * 32 * 2, 2 * 32 + 32 * 256
    work = 2 * (8 * encoder + 16 * decoder) + 8 * (5 * 256 + 256 + 32 + 32 * 256)
    monkeypatch.setattr(rule, "WORK_PER_THREAD", work // 3)
    with pytest.raises(KeyboardInterrupt):
        ps.manipulate(runs, tmp_path / "m", progress=listen, **free)  # type: ignore[arg-type]
    assert (seen, recorded("m")) == ([3, 3, 3], 3)
    monkeypatch.setattr(rule, "WORK_PER_THREAD", work + 1)  # a new one would have one thread
    ps.manipulate(runs, tmp_path / "m", progress=listen, **free)  # type: ignore[arg-type]
    assert (seen, recorded("m")) == ([3] * 6, 3)
    ps.manipulate(runs, tmp_path / "asked", **{**free, "steps": 1, "threads": 2})  # type: ignore[arg-type]
    assert recorded("asked") == 2


def as_if_of(version: str, folder: Path) -> None:
    """Record another version as the one that began a manipulation."""
    record = {**RunFolder(folder).settings, "polariscope": version}
    write_settings(folder, record)


def stop_at(at: int) -> Listener:
    def stop(step: int, line: object) -> None:
        if step == at:
            signal.raise_signal(signal.SIGINT)

    return stop


def test_an_unfinished_one_of_0_2_0_is_refused_and_stays_as_it_is(
    runs: list[Path], whole: Manipulation, tmp_path: Path
) -> None:
    folder = tmp_path / "m"
    with pytest.raises(KeyboardInterrupt):
        ps.manipulate(runs, folder, progress=stop_at(3), **SMALL)  # type: ignore[arg-type]
    as_if_of("0.2.0", folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    refusal = (
        "contains a manipulation that version 0.2.0 of polariscope started, with a checkpoint at step 3 of 6, which "
        "this version cannot resume; choose another folder, or delete this one"
    )
    with pytest.raises(InputError, match=refusal):
        ps.manipulate(runs, folder, **SMALL)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=refusal):
        ps.manipulate(runs, folder, epsilon=0.2, **SMALL)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=refusal):
        open_manipulation(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    as_if_of("0.3.0", folder)
    same(ps.manipulate(runs, folder, **SMALL), whole)  # type: ignore[arg-type]


def test_a_finished_one_of_0_2_0_is_opened_and_not_made_longer(runs: list[Path], tmp_path: Path) -> None:
    folder, shorter = tmp_path / "m", {**SMALL, "steps": 2}
    made = ps.manipulate(runs, folder, **shorter)  # type: ignore[arg-type]
    as_if_of("0.2.0", folder)
    again = ps.manipulate(runs, folder, **shorter)  # type: ignore[arg-type]
    assert (again.key, again.log) == (made.key, made.log)
    with pytest.raises(
        InputError, match=r"version 0\.2\.0 of polariscope started, with a checkpoint at step 2 of 2"
    ):
        ps.manipulate(runs, folder, **SMALL)  # type: ignore[arg-type]
    assert open_manipulation(folder).key == made.key


def test_an_attack_of_0_2_0_without_a_checkpoint_begins_again(
    runs: list[Path], whole: Manipulation, tmp_path: Path
) -> None:
    folder = tmp_path / "m"
    with pytest.raises(KeyboardInterrupt):
        ps.manipulate(runs, folder, progress=stop_at(1), **SMALL)  # type: ignore[arg-type]
    shutil.rmtree(folder / "checkpoints")
    as_if_of("0.2.0", folder)
    same(ps.manipulate(runs, folder, **SMALL), whole)  # type: ignore[arg-type]


def test_a_diverged_attack_keeps_its_last_good_checkpoint_and_a_record(
    runs: list[Path], whole: Manipulation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradients = AttackTask.gradients

    def broken(task: AttackTask) -> dict[str, torch.Tensor]:
        numbers = gradients(task)
        return numbers | ({"gradient": torch.tensor(math.inf)} if task.state.step == 4 else {})

    folder = tmp_path / "m"
    with monkeypatch.context() as patch:
        patch.setattr(AttackTask, "gradients", broken)
        with pytest.raises(
            DivergedError, match="the attack diverged at step 5: the gradient of the gap is not finite"
        ):
            ps.manipulate(runs, folder, **SMALL)  # type: ignore[arg-type]
    assert RunFolder(folder).checkpoints.steps[-1] == 4
    assert RunFolder(folder).diverged_at == 5
    same(ps.manipulate(runs, folder, **SMALL), whole)  # type: ignore[arg-type]
    assert RunFolder(folder).diverged_at is None


def test_another_number_of_threads_is_recorded_with_the_earlier_one(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        ps.manipulate(runs, tmp_path / "m", progress=stop_at(3), **SMALL)  # type: ignore[arg-type]
    ps.manipulate(runs, tmp_path / "m", **{**SMALL, "threads": 2})  # type: ignore[arg-type]
    environment = RunFolder(tmp_path / "m").settings["environment"]
    assert (environment["threads"], environment["threads_before"]) == (2, [1])
