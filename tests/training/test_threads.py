"""The number of threads: a rule with limits, recorded beside the settings, kept on resume and put back afterwards."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.models.nets.conv import ConvNet
from polariscope.models.nets.mlp import MlpNet
from polariscope.storage.documents import read_settings
from polariscope.training.plan import plan
from polariscope.training.threads import (
    WORK_PER_THREAD,
    available_cores,
    threads_for,
    using_threads,
    work_of_step,
)
from polariscope.training.train import choose_threads, train

SETTINGS = {
    "net": "linear",
    "log_every": 5,
    "validate_every": 5,
    "probe_samples": 8,
    "checkpoint_every": 1000,
}


@pytest.fixture
def three_threads() -> Iterator[None]:
    """PyTorch has another number than any rule gives here."""
    with using_threads(3):
        yield
        assert torch.get_num_threads() == 3


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine with eight cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    with using_threads(8):
        yield


def data() -> Any:
    return ps.load_dataset("gaussian", n_samples=300)


def stop_at(number: int) -> Any:
    def listen(step: int, line: Any) -> None:
        if step == number:
            signal.raise_signal(signal.SIGINT)

    return listen


def recorded(run: Path) -> dict[str, Any]:
    return read_settings(run)["environment"]


def work(job: Any) -> int:
    model = job.blueprint.build(0, job.data).to_device("cpu")
    return work_of_step(model, job.objective, job.data, np.arange(job.settings.batch_size))


def test_threads_grow_with_the_work_and_with_the_cores_and_never_exceed_them() -> None:
    works = [0, 1, *(round(WORK_PER_THREAD * share) for share in (0.5, 1, 1.99, 2, 2.5, 3, 100))]
    for cores in (1, 2, 3, 64):
        chosen = [threads_for(each, cores) for each in works]
        assert chosen == sorted(chosen)
        assert min(chosen) == 1
        assert max(chosen) == cores
    assert threads_for(2 * WORK_PER_THREAD - 1, 64) == 1
    assert threads_for(2 * WORK_PER_THREAD, 64) == 2


def test_the_work_of_dense_layers_is_samples_times_weights() -> None:
    job = plan(data(), net=MlpNet((7,), (5,)), n_latents=3, batch_size=11)
    n_features = job.data.shape[0]
    # encoder, two heads (mean and log-variance), decoder
    assert work(job) == 11 * (n_features * 7 + 2 * 7 * 3 + 3 * 5 + 5 * n_features)


def test_the_work_of_convolutions_is_kernels_times_positions() -> None:
    job = plan(ps.load_dataset("sprites", image_size=16), net=ConvNet(kernel34=2), n_latents=3, batch_size=4)
    down = 8 * 8 * (1 * 32 * 16) + 4 * 4 * (32 * 32 * 16) + 2 * 2 * (32 * 64 * 4) + 64 * 64 * 4
    dense = 64 * 256 + 2 * 256 * 3 + 3 * 256 + 256 * 64
    # A transposed convolution spreads each input, so its positions are those it starts from: 1, 2, 4 and 8 wide.
    up = 64 * 64 * 16 + 2 * 2 * (64 * 32 * 16) + 4 * 4 * (32 * 32 * 16) + 8 * 8 * (32 * 1 * 16)
    assert work(job) == 4 * (down + dense + up)


def test_what_is_trained_beside_the_model_counts() -> None:
    alone, beside = (work(plan(data(), objective, "mlp", 3)) for objective in ("vae", "factor"))
    # the discriminator has four hidden layers of 1000 units or more, for 64 samples
    assert beside > alone + 64 * 3 * 1000**2


@pytest.mark.usefixtures("eight_cores")
def test_tables_have_one_thread_and_images_several() -> None:
    table = plan(ps.load_dataset("gaussian", n_samples=100_000), batch_size=128)
    assert choose_threads(table, table.blueprint.build(0, table.data)) == 1
    images = plan(ps.load_dataset("sprites", image_size=64), net="conv", batch_size=64)
    chosen = choose_threads(images, images.blueprint.build(0).to_device("cpu"))
    assert 1 < chosen <= 8
    assert torch.get_num_threads() == 8


@pytest.mark.usefixtures("eight_cores")
def test_cores_are_those_of_the_process_and_what_pytorch_was_allowed() -> None:
    assert available_cores() == 8
    with using_threads(2):
        assert available_cores() == 2
    with using_threads(16):
        assert available_cores() == 8


@pytest.mark.usefixtures("three_threads")
def test_the_number_is_in_force_while_training_and_put_back_after_success_and_failure(tmp_path: Path) -> None:
    seen = []

    def listen(step: int, line: Any) -> None:
        seen.append(torch.get_num_threads())
        if step == 3:
            raise RuntimeError("the disk is on fire")

    train(data(), steps=2, threads=2, progress=listen, **SETTINGS)
    train(data(), steps=2, progress=listen, out=tmp_path / "run", **SETTINGS)
    assert seen == [2, 2, 1, 1]
    assert torch.get_num_threads() == 3
    for out in (None, tmp_path / "failed"):
        with pytest.raises(RuntimeError, match="on fire"):
            train(data(), steps=5, threads=2, progress=listen, out=out, **SETTINGS)
        assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
def test_the_number_is_recorded_outside_the_hash_and_kept_on_resume(tmp_path: Path, caplog: Any) -> None:
    train(data(), steps=6, out=tmp_path / "one", **SETTINGS)
    train(data(), steps=6, threads=2, out=tmp_path / "two", **SETTINGS)
    assert recorded(tmp_path / "one")["threads"] == 1
    assert recorded(tmp_path / "two")["threads"] == 2
    assert read_settings(tmp_path / "one")["hash"] == read_settings(tmp_path / "two")["hash"]

    seen = []
    with pytest.raises(KeyboardInterrupt):
        train(data(), steps=6, threads=2, out=tmp_path / "run", progress=stop_at(3), **SETTINGS)
    train(
        data(), steps=6, out=tmp_path / "run", progress=lambda *_: seen.append(torch.get_num_threads()), **SETTINGS
    )  # fmt: skip
    assert seen == [2] * 3
    assert "threads_before" not in recorded(tmp_path / "run")
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (
        tmp_path / "two" / "model.safetensors"
    ).read_bytes()
    assert "thread" not in caplog.text


@pytest.mark.usefixtures("three_threads")
def test_another_number_on_resume_is_used_recorded_and_said(tmp_path: Path, caplog: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(data(), steps=6, out=tmp_path / "run", progress=stop_at(3), **SETTINGS)
    seen: list[int] = []
    listen = lambda *_: seen.append(torch.get_num_threads())  # noqa: E731
    train(data(), steps=6, threads=2, out=tmp_path / "run", progress=listen, **SETTINGS)
    assert seen == [2] * 3
    assert "had 1 thread before and has 2 now; the last bits" in caplog.text
    assert recorded(tmp_path / "run") | {"threads": 2, "threads_before": [1]} == recorded(tmp_path / "run")
    train(data(), steps=7, out=tmp_path / "run", **SETTINGS)
    assert recorded(tmp_path / "run")["threads_before"] == [1]
    train(data(), steps=8, threads=1, out=tmp_path / "run", **SETTINGS)
    assert recorded(tmp_path / "run")["threads_before"] == [1, 2]


def test_more_threads_than_cores_are_kept_and_said(tmp_path: Path, caplog: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(data(), steps=6, threads=4, out=tmp_path / "run", progress=stop_at(1), **SETTINGS)
    with using_threads(2):
        train(data(), steps=2, out=tmp_path / "run", **SETTINGS)
    assert recorded(tmp_path / "run")["threads"] == 4
    assert "started with 4 threads and resumes with the same number" in caplog.text


def test_a_finished_run_is_left_as_it_is(tmp_path: Path) -> None:
    train(data(), steps=5, out=tmp_path / "run", **SETTINGS)
    before = (tmp_path / "run" / "settings.json").read_bytes()
    train(data(), steps=5, threads=2, out=tmp_path / "run", **SETTINGS)
    assert (tmp_path / "run" / "settings.json").read_bytes() == before


@pytest.mark.usefixtures("unannotated")
@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "two"])
def test_a_number_that_is_none_is_refused(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(InputError, match="threads must be an integer, at least 1"):
        train(data(), steps=5, threads=wrong, out=tmp_path / "run")
    with pytest.raises(InputError, match="threads must be an integer, at least 1"):
        ps.size(np.random.default_rng(0).normal(size=(50, 3)), threads=wrong)
    assert not list(tmp_path.iterdir())
