"""Kill it at any moment: finished work stays finished, unfinished work resumes, and the bytes are the same."""

from __future__ import annotations

import random
import resource
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import polariscope as ps
from forked import Forks
from long_training import unchecked
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.storage.checkpoints import Checkpoints
from polariscope.storage.folder import RunFolder, read_log
from polariscope.training.train import train

SCRIPT = """
import sys
import polariscope as ps
ps.train(
    ps.load_dataset("sprites", image_size=16), "beta", "conv", 4, beta=2.0, steps=120, batch_size=16,
    log_every=7, validate_every=14, checkpoint_every=10, seed=3, probe_samples=64, out=sys.argv[1],
)
"""


def results(run: Path) -> dict[str, bytes]:
    step = "checkpoints/step-120"
    names = ["model.safetensors", "log.jsonl", f"{step}/model.safetensors", f"{step}/state.safetensors"]
    return {name: (run / name).read_bytes() for name in names}


def all_files(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def steps_done(run: Path) -> int:
    return max(RunFolder(run).checkpoints.steps, default=0)


def test_a_run_killed_at_random_steps_and_resumed_ends_with_the_same_bytes(tmp_path: Path, forks: Forks):
    assert forks.run(SCRIPT, str(tmp_path / "whole")).returncode == 0

    moments = random.Random(0)
    run = tmp_path / "killed"
    kills = 0
    for attempt in range(40):
        process = forks.start(SCRIPT, str(run))
        before = steps_done(run)
        # Let it get some way past where it was, then kill it at a random moment of a step, a log or a checkpoint.
        target = before + moments.choice([1, 10, 20, 30])
        deadline = time.monotonic() + 60
        while process.poll() is None and steps_done(run) < min(target, 120) and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.05))
        if attempt < 4 and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        if process.wait(timeout=120) == 0:
            break
    assert kills >= 3
    assert results(run) == results(tmp_path / "whole")


def test_ctrl_c_saves_where_it_is_and_the_run_resumes_to_the_same_bytes(tmp_path):
    settings = {"net": "mlp", "steps": 60, "log_every": 7, "validate_every": 14, "checkpoint_every": 1000}
    data = ps.load_dataset("gaussian", n_samples=300)
    train(data, out=tmp_path / "whole", **settings)

    def interrupt(step, line):
        if step == 33:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(data, out=tmp_path / "stopped", progress=interrupt, **settings)
    assert RunFolder(tmp_path / "stopped").checkpoints.steps == [33]
    train(data, out=tmp_path / "stopped", **settings)
    for name in ("model.safetensors", "log.jsonl"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_run_stopped_between_its_checkpoints_ends_with_the_same_checkpoints(tmp_path):
    settings = {"net": "linear", "steps": 24, "log_every": 6, "checkpoint_every": 4}
    data = ps.load_dataset("gaussian", n_samples=60)
    train(data, out=tmp_path / "whole", **settings)
    assert RunFolder(tmp_path / "whole").checkpoints.steps == [20, 24]

    for stop, saved in ((2, [2]), (3, [2, 3]), (18, [16, 18]), (21, [20, 21]), (22, [20, 22])):

        def interrupt(step, line, stop=stop):
            if step == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train(data, out=tmp_path / "stopped", progress=interrupt, **settings)
        assert RunFolder(tmp_path / "stopped").checkpoints.steps == saved
    train(data, out=tmp_path / "stopped", **settings)
    assert all_files(tmp_path / "stopped") == all_files(tmp_path / "whole")


def test_old_checkpoints_of_a_process_killed_before_it_deleted_them_are_deleted(tmp_path, monkeypatch):
    settings = {"net": "linear", "steps": 12, "log_every": 6, "checkpoint_every": 4}
    data = ps.load_dataset("gaussian", n_samples=60)
    train(data, out=tmp_path / "whole", **settings)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "prune", lambda *_: None)
        train(data, out=tmp_path / "killed", **settings)
    (tmp_path / "killed" / "model.safetensors").unlink()
    assert RunFolder(tmp_path / "killed").checkpoints.steps == [4, 8, 12]
    train(data, out=tmp_path / "killed", **settings)
    assert all_files(tmp_path / "killed") == all_files(tmp_path / "whole")


def test_pruning_does_not_count_later_checkpoints_which_are_damaged(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in (10, 20, 25, 40):
        checkpoints.path(step).mkdir()
    checkpoints.prune(2, 25, every=10)
    assert checkpoints.steps == [20, 25, 40]


@pytest.mark.parametrize("optimiser", ["adam", "amsgrad", "adagrad", "sgd"])
def test_every_optimiser_resumes_exactly(tmp_path, optimiser):
    settings = {
        "net": "mlp",
        "log_every": 10,
        "validate_every": 10,
        "optimiser": optimiser,
        "checkpoint_every": 5,
    }
    data = ps.load_dataset("gaussian", n_samples=300)
    whole = train(data, steps=20, out=tmp_path / "whole", **settings)

    def interrupt(step, line):
        if step == 13:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(data, steps=20, out=tmp_path / "run", progress=interrupt, **settings)
    assert train(data, steps=20, out=tmp_path / "run", **settings).digest == whole.digest


def test_a_finished_run_is_loaded_not_repeated_and_a_longer_one_continued(tmp_path):
    data = ps.load_dataset("gaussian", n_samples=300)
    seen = []
    listen = lambda step, line: seen.append(step)  # noqa: E731
    first = train(data, net="mlp", steps=20, out=tmp_path / "run", progress=listen)
    assert train(data, net="mlp", steps=20, out=tmp_path / "run", progress=listen).digest == first.digest
    longer = train(data, net="mlp", steps=30, out=tmp_path / "run", progress=listen)
    assert seen == list(range(1, 31))
    assert longer.digest == train(data, net="mlp", steps=30).digest
    with pytest.raises(InputError, match="already has 30 steps, more than the 10 requested"):
        train(data, net="mlp", steps=10, out=tmp_path / "run")


def test_other_settings_are_refused_and_named(tmp_path):
    data = ps.load_dataset("gaussian", n_samples=300)
    train(data, "beta", "mlp", beta=2.0, steps=5, out=tmp_path / "run")
    with pytest.raises(
        InputError, match=r"trained with other settings \(objective.beta: 2.0 then, 4.0 now\)"
    ):
        train(data, "beta", "mlp", beta=4.0, steps=5, out=tmp_path / "run")
    with pytest.raises(InputError, match=r"training.adam_beta1: unset then, 0.5 now"):
        train(data, "beta", "mlp", beta=2.0, adam_beta1=0.5, steps=5, out=tmp_path / "run")
    with pytest.raises(InputError, match="data"):
        train(
            ps.load_dataset("gaussian", n_samples=301), "beta", "mlp", beta=2.0, steps=5, out=tmp_path / "run"
        )


def test_a_damaged_checkpoint_is_passed_over_for_an_earlier_one(tmp_path, caplog):
    settings = {"net": "mlp", "log_every": 5, "validate_every": 5, "checkpoint_every": 5}
    data = ps.load_dataset("gaussian", n_samples=300)
    train(data, steps=10, out=tmp_path / "run", **settings)
    file = tmp_path / "run" / "checkpoints" / "step-10" / "state.safetensors"
    broken = bytearray(file.read_bytes())
    broken[-1] ^= 1
    file.write_bytes(broken)
    continued = train(data, steps=15, out=tmp_path / "run", **settings)
    assert "is damaged" in caplog.text
    assert continued.digest == train(data, steps=15, **settings).digest
    assert [line["step"] for line in read_log(tmp_path / "run")] == [5, 10, 15]


def test_all_checkpoints_are_kept_when_asked_and_two_otherwise(tmp_path):
    data = ps.load_dataset("gaussian", n_samples=300)
    for keep, steps in (("all", [5, 10, 15, 20]), ("last", [15, 20])):
        train(data, net="mlp", steps=20, checkpoint_every=5, keep_checkpoints=keep, out=tmp_path / keep)
        assert RunFolder(tmp_path / keep).checkpoints.steps == steps


def test_a_run_is_held_by_one_process_at_a_time(tmp_path):
    data = ps.load_dataset("gaussian", n_samples=300)
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with RunFolder(tmp_path / "run"):
            entered.set()
            leave.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    entered.wait(10)
    with pytest.raises(PolariscopeError, match="is being trained by another process"):
        train(data, net="mlp", steps=5, out=tmp_path / "run")
    leave.set()
    holder.join()


def test_a_folder_of_other_things_is_not_written_into(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(
        InputError, match=r"contains 'thesis.tex' and no settings.json; choose another folder"
    ):
        train(ps.load_dataset("gaussian", n_samples=300), net="mlp", steps=5, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_lost_log_is_noticed_instead_of_filled_with_nothing(tmp_path):
    data = ps.load_dataset("gaussian", n_samples=300)
    train(data, net="mlp", steps=10, log_every=5, validate_every=5, out=tmp_path / "run")
    (tmp_path / "run" / "log.jsonl").unlink()
    with pytest.raises(PolariscopeError, match=r"it has 0 lines, but .* when it had 2.*Repeat the run"):
        train(data, net="mlp", steps=15, log_every=5, validate_every=5, out=tmp_path / "run")


def test_a_damaged_line_of_the_log_is_named(tmp_path):
    data = ps.load_dataset("gaussian", n_samples=300)
    train(data, net="mlp", steps=10, log_every=5, validate_every=5, out=tmp_path / "run")
    log = tmp_path / "run" / "log.jsonl"
    whole = log.read_bytes()
    for damaged in (
        b"\x00" + whole,
        whole.replace(b'"step"', b'"stop"'),
        b"\xff\xfe\n" + whole,
        whole + whole,
    ):
        log.write_bytes(damaged)
        with pytest.raises(PolariscopeError, match=r"log.jsonl is damaged: line \d does not match its hash"):
            read_log(tmp_path / "run")


def test_fewer_steps_than_an_unfinished_run_has_are_refused_and_leave_it_resumable(tmp_path):
    data = ps.load_dataset("gaussian", n_samples=300)

    def interrupt(step, line):
        if step == 15:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(data, net="mlp", steps=40, out=tmp_path / "run", progress=interrupt)
    with pytest.raises(InputError, match="already has 15 steps, more than the 10 requested"):
        train(data, net="mlp", steps=10, out=tmp_path / "run")
    assert (
        train(data, net="mlp", steps=40, out=tmp_path / "run").digest
        == train(data, net="mlp", steps=40).digest
    )


QUICK: dict[str, Any] = {"net": "mlp", "log_every": 5, "validate_every": 5, "checkpoint_every": 5}


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    train(ps.load_dataset("gaussian", n_samples=300), steps=10, out=tmp_path / "run", **QUICK)
    return tmp_path / "run"


def contents(run: Path) -> dict[str, bytes]:
    return {str(file.relative_to(run)): file.read_bytes() for file in run.rglob("*") if file.is_file()}


def test_a_run_without_its_checkpoints_cannot_be_extended_and_nothing_is_touched(finished: Path) -> None:
    data = ps.load_dataset("gaussian", n_samples=300)
    shutil.rmtree(finished / "checkpoints")
    before = contents(finished)
    with pytest.raises(
        InputError, match=r"has a model of 10 steps and no checkpoints, .*; train in another folder"
    ):
        train(data, steps=15, out=finished, **QUICK)
    assert contents(finished) == before
    assert train(data, steps=10, out=finished, **QUICK).step == 10


def test_an_extension_that_cannot_resume_leaves_a_finished_run(finished: Path) -> None:
    data = ps.load_dataset("gaussian", n_samples=300)
    for file in finished.rglob("state.safetensors"):
        file.write_bytes(bytes(100))
    before = contents(finished)
    with pytest.raises(
        PolariscopeError, match=r"All checkpoints in .* are damaged, so it cannot be continued"
    ):
        train(data, steps=15, out=finished, **QUICK)
    assert contents(finished) == before
    assert ps.open_run(finished).is_finished
    assert ps.load_model(finished).step == 10


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), ps.PolariscopeError("no memory")])
def test_an_extension_that_fails_before_its_first_checkpoint_leaves_a_finished_run(
    finished: Path, error: Exception
) -> None:
    data = ps.load_dataset("gaussian", n_samples=300)
    before = contents(finished)

    def fail(step: int, line: object) -> None:
        if step == 15:  # its line is in the log, and its checkpoint is not written yet
            raise error

    with pytest.raises(type(error), match=str(error)):
        train(data, steps=30, out=finished, progress=fail, **QUICK)
    assert contents(finished) == before
    train(data, steps=15, out=finished, **QUICK)
    assert [line["step"] for line in read_log(finished)] == [5, 10, 15]


@pytest.mark.parametrize("room", [0, 100, 1500])
def test_an_extension_on_a_full_disk_leaves_a_finished_run(finished: Path, room: int) -> None:
    """The disk is full from the first step on, so nothing that restores the run can be written."""
    data = ps.load_dataset("gaussian", n_samples=300)
    before, limits = contents(finished), resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(step: int, line: object) -> None:
        if step == 11:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))

    try:
        with pytest.raises(OSError, match="File too large"):
            train(data, steps=30, out=finished, progress=fill, **QUICK)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert contents(finished) == before
    train(data, steps=15, out=finished, **QUICK)
    assert [line["step"] for line in read_log(finished)] == [5, 10, 15]


def test_an_extension_that_was_killed_at_once_is_undone_by_the_command_of_the_finished_run(
    finished: Path, forks: Forks
) -> None:
    before = contents(finished)
    program = (
        "import os, signal, sys, polariscope as ps\n"
        "def kill(step, line):\n"
        "    step == 13 and os.kill(os.getpid(), signal.SIGKILL)\n"
        f"ps.train(ps.load_dataset('gaussian', n_samples=300), steps=30, out=sys.argv[1], progress=kill, **{QUICK!r})\n"
    )
    assert forks.run(program, str(finished)).returncode == -signal.SIGKILL
    assert not ps.open_run(finished).is_finished
    train(ps.load_dataset("gaussian", n_samples=300), steps=10, out=finished, **QUICK)
    assert ps.load_model(finished).step == 10
    assert contents(finished) == before


def test_an_interrupt_that_a_progress_function_raises_saves_a_checkpoint(tmp_path: Path) -> None:
    data = ps.load_dataset("gaussian", n_samples=300)

    def stop(step: int, line: object) -> None:
        if step == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(data, steps=10, out=tmp_path / "run", progress=stop, **QUICK)
    assert steps_done(tmp_path / "run") == 7
    train(data, steps=10, out=tmp_path / "run", **QUICK)
    train(data, steps=10, out=tmp_path / "whole", **QUICK)
    assert ps.load_model(tmp_path / "run").digest == ps.load_model(tmp_path / "whole").digest
    with pytest.raises(KeyboardInterrupt):
        train(data, steps=10, progress=stop, **QUICK)


def test_changed_settings_and_other_formats_are_noticed(tmp_path):
    data = ps.load_dataset("gaussian", n_samples=300)
    train(data, net="mlp", steps=5, out=tmp_path / "run")
    file = tmp_path / "run" / "settings.json"
    whole = file.read_text()
    for damaged in (
        whole.replace('"batch_size": 64', '"batch_size": 65'),
        whole.replace('"threads"', '"thread"'),
        "[]",
    ):
        assert damaged != whole
        file.write_text(damaged)
        with pytest.raises(PolariscopeError, match=r"settings.json does not match its hash"):
            train(data, net="mlp", steps=5, out=tmp_path / "run")


def test_looking_at_a_finished_run_changes_nothing_in_it(tmp_path):
    data = ps.load_dataset("gaussian", n_samples=300)
    train(data, net="mlp", steps=5, out=tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*.*") if path.is_file()}
    train(data, net="mlp", steps=5, out=tmp_path / "run")
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_run_that_fails_before_its_first_checkpoint_leaves_its_folder_free(tmp_path):
    data = ps.load_dataset("gaussian", n_samples=300)

    def fail(step, line):
        raise RuntimeError("the disk is on fire")

    with pytest.raises(RuntimeError, match="on fire"):
        train(data, net="mlp", steps=5, out=tmp_path / "run", progress=fail)
    train(data, net="mlp", steps=6, learning_rate=1e-2, out=tmp_path / "run")


def test_equal_values_in_another_spelling_resume_a_run(tmp_path: Path) -> None:
    """Version 0.2.0 recorded 4 if an objective was made with 4, and 4.0 if it was given by name."""
    data = ps.load_dataset("gaussian", n_samples=60)
    options: dict[str, Any] = {"net": "linear", "n_latents": 2, "log_every": 1}
    objective = ps.objectives.beta()
    object.__setattr__(objective, "beta", 4)
    with unchecked():  # the type checker of the tests would refuse 4 first
        ps.train(data, objective=objective, steps=2, out=tmp_path / "run", **options)
    model = ps.train(data, objective="beta", beta=4.0, steps=3, out=tmp_path / "run", **options)
    fresh = ps.train(data, objective="beta", beta=4.0, steps=3, **options)
    assert model.digest == fresh.digest
    assert [line["step"] for line in ps.open_run(tmp_path / "run").log()] == [1, 2, 3]
