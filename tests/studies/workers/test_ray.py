"""Workers on a Ray cluster make what workers of one machine make; they can be interrupted and killed."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import types
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import polariscope
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.studies.ledger import Ledger
from polariscope.studies.worker import Worker
from polariscope.studies.workers import ray as workers
from polariscope.studies.workers.ray import _RayProcess, divide, run_on_ray
from tiny_studies import snapshot, tiny

TWO_NODES = Path(__file__).parents[2] / "two_ray_nodes.py"


def test_two_nodes_make_what_one_machine_makes_whatever_happens_to_workers(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    often = {"log_every": 10, "checkpoint_every": 100}
    settings: dict[str, Any] = {**tiny(tmp_path).settings, **often, "steps": 300}
    local, study = (tiny(tmp_path / name, settings=settings, threads=1) for name in ("local", "ray"))
    for each in (local, study):
        Ledger(each).prepare()
    token = tmp_path / "token"
    token.write_text(secrets.token_hex(16), encoding="ascii")
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "PYTHONPATH": str(Path(polariscope.__file__).parents[1]),
        "OMP_NUM_THREADS": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # every address is 127.0.0.1, as on those systems
        "RAY_AUTH_TOKEN_PATH": str(token),
    }
    process = subprocess.Popen(
        [sys.executable, str(TWO_NODES), study.out],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        Worker(Ledger(local)).drain()
        out, error = process.communicate(timeout=240)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 0, error
    seen = json.loads(out.splitlines()[-1])
    assert seen["nodes"] == 2
    assert seen["interrupted"] == [["waiting", True], ["waiting", True]]
    assert seen["counts"] == {"waiting": 0, "running": 0, "done": 2, "failed": 0}
    assert seen["started"] == 3  # one for each CPU, and one instead of the one that was killed
    assert "the node 127.0.0.1 of the Ray cluster cannot access the folder" in seen["refused"]
    assert "put the study on a disk that all nodes share" in seen["refused"]
    # An interrupted run has saved a checkpoint more, where it was.
    expected = snapshot(local)
    assert {name: digest for name, digest in snapshot(study).items() if name in expected} == expected


@pytest.mark.parametrize(
    ("cpus", "workers", "threads", "expected"),
    [
        ([8, 8], None, None, (16, 1)),
        ([8, 8], 1, None, (1, 8)),  # not 16: a worker is on one node
        ([8, 8], 3, None, (3, 4)),
        ([8, 2], 3, None, (3, 2)),  # with 4 threads only two have a place
        ([8, 8], None, 3, (4, 3)),
        ([1, 1], 5, None, (5, 1)),
    ],
)
def test_workers_have_as_many_threads_as_their_nodes_have_places(
    cpus: list[int], workers: int | None, threads: int | None, expected: tuple[int, int]
) -> None:
    assert divide(cpus, workers, threads) == expected


def test_more_threads_than_a_node_has_cpus_are_refused() -> None:
    with pytest.raises(InputError, match=r"no node of the Ray cluster has 9 CPUs.* the largest has 8"):
        divide([8, 4], None, 9)


class Control:
    """Stands in for ray and for an actor on a node that answers, does not answer yet, or is lost."""

    class LostError(Exception):
        """The actor is gone with its node."""

    exceptions = types.SimpleNamespace(RayActorError=LostError)

    def __init__(self, answer: int | type[LostError] | None, is_ready: bool) -> None:
        self.answer = answer
        self.is_ready = is_ready
        self.told: list[object] = []
        method = types.SimpleNamespace(remote=lambda *given: self.told.append(given))
        self.handle = types.SimpleNamespace(poll=method, send_signal=method)

    def remote(self, command: list[str], **options: object) -> object:
        return self.handle

    def wait(self, answers: list[object], timeout: float) -> tuple[list[object], list[object]]:
        return (answers, []) if self.is_ready else ([], answers)

    def get(self, answer: object) -> int | None:
        if isinstance(self.answer, type):
            raise self.answer
        return self.answer

    def kill(self, handle: object) -> None:
        self.told.append("kill")


def test_a_worker_whose_node_is_lost_counts_as_killed() -> None:
    control = Control(Control.LostError, is_ready=True)
    process = _RayProcess(control, control, ["true"])
    assert process.poll() == -signal.SIGKILL


def test_a_worker_that_waits_for_a_place_is_taken_back_and_one_at_work_is_told_to_save() -> None:
    control = Control(None, is_ready=False)
    process = _RayProcess(control, control, ["true"])
    assert (process.poll(), process.is_waiting) == (None, True)
    process.stop()
    assert control.told[-1] == "kill"
    control.is_ready = True
    assert (process.poll(), process.is_waiting) == (None, False)
    process.stop()
    assert control.told[-1] == (signal.SIGTERM,)


def test_an_address_without_a_cluster_is_refused_at_once(tmp_path: Path) -> None:
    ledger = Ledger(tiny(tmp_path / "study"))
    for wrong in ("mine.toml", "ray://10.0.0.1:10001", "10.0.0.1:port", ":6379"):
        with pytest.raises(InputError, match="address must be local, auto or HOST:PORT, got"):
            run_on_ray(ledger, address=wrong)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(PolariscopeError, match=f"no Ray cluster responds at {address}"):
            run_on_ray(ledger, address=address)
    assert not (tmp_path / "study").exists()


def test_without_ray_the_message_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        InputError, match=r"requires ray, which is not installed.*pip install 'polariscope\[ray\]'"
    ):
        run_on_ray(Ledger(tiny(tmp_path)))


@pytest.mark.parametrize(("address", "alone"), [("local", True), ("auto", False)])
def test_a_cluster_of_our_own_listens_on_this_machine_alone(
    monkeypatch: pytest.MonkeyPatch, address: str, alone: bool
) -> None:
    """Ray reads the variable when it is imported: with it all of its servers bind to 127.0.0.1."""
    variable = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
    monkeypatch.delenv(variable, raising=False)
    seen: list[str | None] = []

    def imported(name: str) -> object:
        seen.append(os.environ.get(variable))
        return mock.MagicMock(is_initialized=lambda: True)

    monkeypatch.setattr(workers.importlib, "import_module", imported)
    with workers._connected(address):
        pass
    assert seen == ["0" if alone else None]
    os.environ.pop(variable, None)
