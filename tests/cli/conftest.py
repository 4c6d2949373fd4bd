"""The command line called as a user would, in this process or in its own."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forked import Forked, Forks
from polariscope.cli import main

TINY = "--net linear --latents 2 --eigenvalues 4,0.01 --variance 0.1 --keep-units --n-samples 1000 --validate-every 100"


COMMAND_LINE = "import sys; from polariscope.cli import main; sys.exit(main())"


@dataclasses.dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test starts in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run one command in this process: ``call("data info", "sprites")``; a list is not split."""

    def run(*words: str | list[str]) -> Result:
        capsys.readouterr()
        code = main([part for word in words for part in (word.split() if isinstance(word, str) else word)])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


def environment() -> dict[str, str]:
    """For a process of its own: one thread, no colour asked for or refused."""
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def command(*words: str) -> list[str]:
    """The same command in a process of its own."""
    return [sys.executable, "-c", COMMAND_LINE, *words]


@pytest.fixture
def spawn(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run one command in a process of its own, to the end."""

    def run(*words: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*words),
            cwd=tmp_path,
            env={**environment(), **extra},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start one command in a process of its own; none is left behind."""
    started = []

    def run(*words: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command(*words), cwd=tmp_path, env=environment(), stdout=pipe, stderr=pipe, text=True
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def fork(forks: Forks, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Forked]:
    """Start one command in a process that has no imports to make."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return lambda *words: forks.start(COMMAND_LINE, *words)


@pytest.fixture
def tiny() -> str:
    """A model that trains in no time."""
    return f"train gaussian {TINY} --log-every 10 --checkpoint-every 10"


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Path:
    """A finished run: a linear model of data with one large and one small direction. Do not change it."""
    run = tmp_path_factory.mktemp("cli") / "trained"
    words = f"train gaussian --learning-rate 0.2 --schedule cosine --steps 800 --out {run} --quiet".split()
    assert main([*words, *TINY.split()]) == 0
    return run
