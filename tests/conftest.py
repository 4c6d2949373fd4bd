"""Fixtures of all tests."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Generator, Iterator
from typing import TextIO

import jaxtyping
import pytest

from forked import Forks
from long_training import checked_at_first

# What takes long to import is imported by the fixtures: the process that only hands out tests needs none of it.


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable garbage collection during test collection, which creates almost no garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def unannotated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the check of annotations, as outside the tests: the function itself must refuse bad arguments."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the charts of a page empty, for tests of its text; drawing takes most of the time of a page."""
    from matplotlib.figure import Figure

    def save(self: Figure, file: TextIO, *, format: str, **options: object) -> None:
        assert format == "svg"
        file.write('<svg viewBox="0 0 1 1"><g id="empty"></g></svg>')

    monkeypatch.setattr("polariscope.core.figures._arrange", lambda figure: None)
    monkeypatch.setattr(Figure, "savefig", save)


@pytest.fixture
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Yield a starter of separate processes, and end those that are left."""
    made = Forks(tmp_path_factory.mktemp("outputs"))
    yield made
    made.end()


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use a temporary cache folder; the user's is neither read nor written."""
    from polariscope.data.cache import VARIABLE

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Use one thread, since more threads slow down networks this small."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", autouse=True)
def short_checks() -> Iterator[None]:
    """In long trainings, check shapes only in the first steps and in those that log, validate or save."""
    from polariscope.training.loop import train_task

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polariscope.training.session.train_task", checked_at_first(train_task))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_the_disk() -> Iterator[None]:
    """Do not wait for data to reach the disk: tests cannot observe it, and each wait takes milliseconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: os.fstat(handle) and None)  # which refuses what is not open
        yield


class _EveryFlag(frozenset):  # type: ignore[type-arg]
    """Flags of a command that has every flag."""

    def __contains__(self, flag: object) -> bool:
        return True


@pytest.fixture(scope="session", autouse=True)
def errors_in_both_spellings() -> Iterator[None]:
    """Render every error that occurs in a test both for Python and for the command line."""
    from polariscope.cli.flags import Flags
    from polariscope.core.errors import PYTHON, InputError

    typed = Flags(())
    typed.flags = _EveryFlag()
    init = InputError.__init__

    def checked(self: InputError, *args: object, **parts: object) -> None:
        init(self, *args, **parts)  # type: ignore[arg-type, misc]
        for message in (self.worded(PYTHON), self.worded(typed)):
            assert message.endswith((".", "?", "!")), message
            assert not any(
                piece in message for piece in ("Argument(", "Either(", "Call object", "; ;", "..")
            ), message

    InputError.__init__ = checked  # type: ignore[method-assign, assignment]
    yield
    InputError.__init__ = init  # type: ignore[method-assign]


def part_of(report: pytest.TestReport) -> str:
    """Return the part of the suite with its own time budget: browser, studies, or all others."""
    if "browser" in report.keywords:
        return "browser"
    return "studies and Ray" if report.nodeid.startswith("tests/studies/") else "tests"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the time of each part and the slowest files, in seconds summed over all workers."""
    parts: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                parts[part_of(report)] += report.duration  # type: ignore[assignment]
                files[report.nodeid.partition("::")[0]] += report.duration  # type: ignore[assignment]
    if parts.total() > 60:
        terminalreporter.section("seconds, all workers together")
        for name, seconds in parts.most_common() + files.most_common(20):
            terminalreporter.write_line(f"{seconds:7.1f} {name}")
