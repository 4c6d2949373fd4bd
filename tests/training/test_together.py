"""Trainings side by side: what each computes alone, stopped together, and nothing of the process changed."""

from __future__ import annotations

import functools
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import polariscope as ps
from polariscope.core.errors import DivergedError
from polariscope.storage.folder import RunFolder
from polariscope.training.together import together

DATA = ps.load_dataset("gaussian", n_samples=200)
SETTINGS = {"net": "linear", "log_every": 10, "probe_samples": 8, "checkpoint_every": 1000}


def test_models_are_those_that_are_trained_one_after_the_other() -> None:
    alone = [ps.train(DATA, n_latents=n, steps=40, seed=n, **SETTINGS) for n in (2, 3)]
    state = torch.random.get_rng_state()
    beside = together([lambda n=n: ps.train(DATA, n_latents=n, steps=40, seed=n, **SETTINGS) for n in (2, 3)])
    assert torch.equal(torch.random.get_rng_state(), state)
    for one, other in zip(alone, beside, strict=True):
        assert one.state_dict().keys() == other.state_dict().keys()
        assert all(torch.equal(one.state_dict()[name], other.state_dict()[name]) for name in one.state_dict())


def test_they_really_run_at_the_same_time() -> None:
    both_are_here = threading.Barrier(2, timeout=60)

    def hear(step: int, line: object) -> None:
        if step == 5:
            both_are_here.wait()  # one after the other, the first would wait for ever

    together([lambda: ps.train(DATA, steps=10, progress=hear, **SETTINGS)] * 2)


def test_ctrl_c_stops_all_and_each_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    both_have_begun = threading.Barrier(2, timeout=60)

    def train(n: int, progress: object = False) -> torch.Tensor:
        made = ps.train(DATA, n_latents=n, steps=200, out=tmp_path / str(n), progress=progress, **SETTINGS)
        return torch.cat([weight.flatten() for weight in made.state_dict().values()])

    def hear(step: int, line: object) -> None:
        if step == 5 and both_have_begun.wait() == 0:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        together([lambda n=n: train(n, hear) for n in (2, 3)])
    for n in (2, 3):
        (reached,) = RunFolder(tmp_path / str(n)).checkpoints.steps
        assert 5 <= reached < 200
        fresh = ps.train(DATA, n_latents=n, steps=200, **SETTINGS)
        assert torch.equal(train(n), torch.cat([weight.flatten() for weight in fresh.state_dict().values()]))


def test_when_one_fails_the_others_are_stopped_and_its_error_is_raised(tmp_path: Path) -> None:
    impossible = np.random.default_rng(0).normal(size=(200, 4)) * 1e30

    def fail() -> None:
        ps.train(impossible, steps=50, keep_units=True, likelihood="gaussian", variance=1.0, **SETTINGS)

    with pytest.raises(DivergedError):
        together([fail, lambda: ps.train(DATA, steps=10**6, out=tmp_path / "run", **SETTINGS)])
    assert RunFolder(tmp_path / "run").checkpoints.steps  # saved where it was


def test_threads_of_the_process_are_those_of_before() -> None:
    before = torch.get_num_threads()
    together([lambda: ps.train(DATA, steps=3, threads=1, **SETTINGS)] * 3)
    assert torch.get_num_threads() == before
    seen = []
    new = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    new.start()
    new.join()
    assert seen == [before]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("n_models", [1, 2])
def test_a_request_to_stop_in_the_last_step_is_not_lost(
    n_models: int, number: signal.Signals, tmp_path: Path
) -> None:
    all_in_their_last_step = threading.Barrier(n_models, timeout=60)

    def hear(step: int, line: object) -> None:
        if step == 10:
            all_in_their_last_step.wait()  # otherwise the faster model stops the other one earlier
            os.kill(os.getpid(), number)

    jobs = [
        functools.partial(ps.train, DATA, steps=10, out=tmp_path / str(name), progress=hear, **SETTINGS)
        for name in range(n_models)
    ]
    with pytest.raises(KeyboardInterrupt):
        jobs[0]() if n_models == 1 else together(jobs)
    assert RunFolder(tmp_path / "0").checkpoints.steps == [10]
