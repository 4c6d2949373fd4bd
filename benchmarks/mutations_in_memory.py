"""Mutants tried in memory: the tests are collected once for each module, and each mutant is a fork of that process.

In the fork the code of the functions that the change is in is exchanged, wherever they are held (registered, wrapped,
imported by others), and the tests run until one fails, quickest first. A mutant then costs its tests and nothing else.
Changes outside functions (constants, defaults, fields) have been at work already when tests are collected: such
mutants are left to the way over files, in :mod:`mutations`. So have functions that are called while modules are opened
(``take_arrays`` of the metrics): their mutants may survive here and be killed over files, never the other way round.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType

import pytest

IS_FUNCTION = 1
"""The flag of code that is not that of a class or a module (CO_OPTIMIZED)."""
LEAST_SECONDS = 20.0
"""A mutant has so long, or several times as long as all tests take."""
PATIENCE = 6


def functions(code: CodeType) -> dict[str, list[CodeType]]:
    """Code of functions and methods by their full name; what is inside of a function belongs to it.

    >>> sorted(functions(compile("def f(): return [1 for _ in x]\\nclass C:\\n  def g(self): pass", "", "exec")))
    ['C.g', 'f']
    """
    found: dict[str, list[CodeType]] = {}
    for part in code.co_consts:
        if not isinstance(part, CodeType):
            continue
        if part.co_flags & IS_FUNCTION:
            found.setdefault(part.co_qualname, []).append(part)
        else:
            for name, codes in functions(part).items():
                found.setdefault(name, []).extend(codes)
    return found


def changed(before: str, after: str) -> list[CodeType] | None:
    """The functions of the second text that differ from the first; None where something else does.

    >>> [code.co_qualname for code in changed("def f(): return a + b", "def f(): return a - b")]
    ['f']
    >>> changed("def f(a=0): return a", "def f(a=1): return a") is None
    True
    """
    old, new = (functions(compile(text, "mutant", "exec")) for text in (before, after))
    found = [
        codes[0] for name, codes in new.items() if len(codes) == 1 and name in old and codes != old[name]
    ]
    return found or None


def live_functions(file: str) -> list[FunctionType]:
    """The functions of a file that exist now, wherever they are held."""
    return [
        held
        for held in gc.get_objects()
        if type(held) is FunctionType and held.__code__.co_filename == file  # isinstance wakes lazy objects
    ]


def exchange(codes: Sequence[CodeType], live: Sequence[FunctionType]) -> bool:
    """Give live functions the new code; whether each was found."""
    for code in codes:
        same = [
            function
            for function in live
            if function.__code__.co_qualname == code.co_qualname
            and function.__code__.co_freevars == code.co_freevars
        ]
        for function in same:
            function.__code__ = code
        if not same:
            return False
    return True


class Trial:
    """A pytest plugin that, instead of running the tests once, runs them for each mutant.

    :param file: of the module.
    :param mutants: number and new functions of each.
    :param wanted: which of the collected tests, by their name.
    :param tell: told of each verdict: killed, survived, timeout, or elsewhere where it cannot be tried in memory.
    """

    def __init__(
        self,
        file: Path,
        mutants: Sequence[tuple[int, list[CodeType]]],
        wanted: Callable[[str], bool],
        tell: Callable[[int, str], None],
    ) -> None:
        self.file = str(file)
        self.mutants = mutants
        self.wanted = wanted
        self.tell = tell
        self.failed = False
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = [item for item in session.items if self.wanted(item.nodeid)]
        bad, seconds = self._as_it_is(items)
        if bad:
            print(f"left out, since they fail anyway: {', '.join(bad)}", file=sys.__stderr__, flush=True)
        items = sorted(
            (item for item in items if item.nodeid not in bad), key=lambda item: seconds[item.nodeid]
        )
        limit = max(LEAST_SECONDS, PATIENCE * sum(seconds.values()))
        live = live_functions(
            self.file
        )  # once, since looking at every object takes longer than most mutants live
        gc.freeze()  # collections in the forks would copy all memory that they look at
        for number, codes in self.mutants:
            self.tell(number, self._verdict(items, codes, live, limit) if items else "untested")
        return True

    def _as_it_is(self, items: list[pytest.Item]) -> tuple[list[str], dict[str, float]]:
        """The tests that fail with the module as it is, and how long each takes; found by a fork."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            bad = [item.nodeid for item in items if self._fails([item])]
            with os.fdopen(writing, "w") as pipe:
                json.dump([bad, self.seconds], pipe)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            bad, seconds = json.load(pipe)
        os.waitpid(child, 0)
        return bad, seconds

    def _fails(self, items: list[pytest.Item]) -> bool:
        """Whether one of the tests fails; those after it are not run."""
        self.failed = False
        for item, after in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if self.failed:
                return True
        return False

    def _verdict(
        self, items: list[pytest.Item], codes: list[CodeType], live: list[FunctionType], limit: float
    ) -> str:
        child = os.fork()
        if not child:
            os.setsid()
            try:
                os._exit(int(self._fails(items)) if exchange(codes, live) else 2)
            except BaseException as error:
                print(f"could not be tried: {error!r}", file=sys.__stderr__, flush=True)
                os._exit(2)
        end = time.monotonic() + limit
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return {0: "survived", 2: "elsewhere"}.get(os.waitstatus_to_exitcode(status), "killed")
            time.sleep(0.01)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "timeout"


def try_module(
    root: Path,
    file: Path,
    tests: Sequence[str],
    mutants: Sequence[tuple[int, list[CodeType]]],
    wanted: Callable[[str], bool],
) -> Iterator[tuple[int, str]]:
    """The verdicts of mutants of one module, as they come, from a child process that collects its tests."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with os.fdopen(writing, "w", buffering=1) as pipe:
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1):
                os.dup2(nothing, stream)
            os.chdir(root)
            sys.path.insert(0, str(root / "src"))
            trial = Trial(file, mutants, wanted, lambda number, word: print(number, word, file=pipe))
            words = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
            words += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
            code = pytest.main([*words, *tests], plugins=[trial])
            if code not in (0, 5):
                print(f"pytest ended with {code} for {file}", file=sys.__stderr__, flush=True)
        os._exit(0)
    os.close(writing)
    try:
        with os.fdopen(reading) as pipe:
            for line in pipe:
                number, word = line.split()
                yield int(number), word
    finally:
        os.waitpid(child, 0)
