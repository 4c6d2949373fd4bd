"""One call in a process of its own, and the verdict about it.

A call is a command line or a few lines of Python. It runs in a fork of this process, which has finished its imports
(milliseconds), or in a new interpreter (seconds). Time, memory and processes left behind are limited and measured.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
import hashlib
import importlib
import os
import pkgutil
import re
import resource
import select
import shlex
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from hostile.victims import environment

SECONDS = 40.0
"""Time limit of a call; those of the harness take less than 10 seconds on a quiet machine."""
MEMORY = 3 * 2**30
"""Bytes of address space that a call can take, besides those of the imported libraries."""

FREE_MEMORY = 600 * 10**6
"""Bytes that a call can use in any case, the imported libraries included."""

OK, NOTED, REFUSED = "ok", "noted", "refused"
SILENT, TRACEBACK, UNEXPECTED, HANG, LOST, CRASH = (
    "SILENT",
    "TRACEBACK",
    "UNEXPECTED",
    "HANG",
    "LOST",
    "CRASH",
)
LOCKED, LEFTOVER, ESCAPED, GREEDY = "LOCKED", "LEFTOVER", "ESCAPED", "GREEDY"
FAILURES = {
    ESCAPED: "code of a file ran, or a file was written outside the folder",
    SILENT: "exit code 0, no note, and another result than that of the undamaged input",
    LOST: "a file of a finished run or an input has gone or was overwritten",
    LOCKED: "the same command fails although the damage was repaired or can be repaired by it",
    TRACEBACK: "a traceback was printed",
    UNEXPECTED: "an error that the program did not expect",
    CRASH: "the process was ended by a signal or has an unknown exit code",
    HANG: "the time limit was reached",
    GREEDY: "the peak memory exceeds 600 MB plus four times the input",
    LEFTOVER: "processes or temporary files are left",
}
"""Verdicts that are defects, worst first."""

VOLATILE = (
    *("*.lock", ".asked.json", ".lease-*", ".claim-*", ".clock", "timing.json", "failure.json"),
    *("report*.html", "size.html", "size.png", "*.polariscope.part"),
)
"""Names of files that any command can write again; nothing that was computed is in them alone."""


@dataclasses.dataclass(frozen=True)
class Call:
    """A command line, or Python code, with the folders that it reads."""

    name: str
    words: tuple[str, ...]
    needs: tuple[str, ...] = ()
    """Files and folders that are copied into the folder of the call."""
    results: tuple[str, ...] = ()
    """Files that contain the result, besides the standard output."""
    rewrites: tuple[str, ...] = ()
    """Files that a successful call can change."""
    is_python: bool = False
    """Whether the first word is code, instead of the words being a command line."""
    repairs: bool = False
    """Whether the call is expected to compute a damaged result again."""
    checks: bool = False
    """Whether the only purpose of the call is to notice damage."""
    varies: bool = False
    """Whether the standard output differs from call to call: it contains estimates of time."""

    @classmethod
    def command(cls, line: str, *needs: str, **options: Any) -> Call:
        words = tuple(shlex.split(line))
        return cls(options.pop("name", line), words, needs, **options)

    @classmethod
    def python(cls, name: str, code: str, *needs: str, **options: Any) -> Call:
        return cls(name, (code,), needs, is_python=True, **options)

    def __str__(self) -> str:
        return f"python: {self.name}" if self.is_python else f"polariscope {self.name}"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Observations of one call."""

    code: int
    """Exit code; that of a process ended by a signal is negative."""
    out: str
    err: str
    seconds: float
    peak: int
    """Largest resident memory in bytes."""
    hung: bool = False
    orphans: int = 0
    """Processes that were left."""
    leader: int = 0
    """The process; if it was killed, its workers can still run until :func:`end_session`."""
    struck: bool = False
    """Whether it was killed before it ended."""


def warm() -> None:
    """Import everything that a call could need, so that its fork need not."""
    import matplotlib

    matplotlib.use("agg")
    import torch

    torch.set_num_threads(1)
    import polariscope

    for module in pkgutil.walk_packages(polariscope.__path__, "polariscope."):
        if not module.name.startswith(("polariscope.testing", "polariscope.__main__")):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def learn_imports(file: Path) -> None:
    """Import what a fork has imported, so that the next forks need not.

    :param file: file with the names of the modules of the fork, one per line.
    """
    for name in file.read_text().splitlines():
        # DuckDB complains at the end of a process that imported it without use.
        if name not in sys.modules and not name.startswith(("duckdb", "_duckdb")):
            with contextlib.suppress(Exception):  # private modules that only another one can import
                importlib.import_module(name)
    gc.freeze()


def run_main(words: tuple[str, ...]) -> int:
    """Run a command line in this process."""
    from polariscope.cli import main

    sys.argv = ["polariscope", *words]
    return main(list(words))


def run_python(code: str) -> int:
    """Run code that calls the Python interface; errors meant for users end it with 1."""
    from polariscope.core.errors import PolariscopeError

    sys.argv = ["-c"]
    try:
        exec(compile(code, "<hostile>", "exec"), {"__name__": "__main__"})
    except (PolariscopeError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def run_forked(
    function: Callable[[], int],
    folder: Path,
    *,
    seconds: float | None = None,
    memory: int = MEMORY,
    before: Callable[[], None] = lambda: None,
    extra: Mapping[str, str] = {},
    kill: Kill | None = None,
    imports: Path | None = None,
) -> Outcome:
    """Run a function in a fork of this process.

    :param function: function that returns an exit code.
    :param folder: its working folder.
    :param seconds: (default 40) time limit.
    :param memory: (default 3 GB) limit of the address space, besides what this process has.
    :param before: (default nothing) function that is called in the fork first, for limits and patches.
    :param extra: (default none) variables of the environment.
    :param kill: (default None) a kill at some moment.
    :param imports: (default None) file to which the fork writes the names of its modules.
    """
    pipes, begun = [os.pipe(), os.pipe()], time.monotonic()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            _detach(folder, pipes)
            sys.stdout, sys.stderr = (
                os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2)
            )
            os.environ.clear()
            os.environ.update({**environment(folder), **extra})
            limit = _address_space() + memory
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            signal.signal(signal.SIGINT, signal.default_int_handler)
            # Nothing here can observe that data reached the disk, and each wait takes milliseconds.
            os.fsync = lambda handle: os.fstat(handle) and None
            before()
            try:
                code = function()
            finally:
                if imports is not None:
                    imports.write_text("\n".join(sys.modules))
        except SystemExit as leave:
            code = leave.code if isinstance(leave.code, int) else 0 if leave.code is None else 1
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    return _wait(child, pipes, begun, seconds or SECONDS, kill)


def _detach(folder: Path, pipes: list[tuple[int, int]]) -> None:
    """In a fork: begin a session, enter the folder, write to the pipes, and end when the harness ends."""
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, (reading, writing) in enumerate(pipes, 1):
        os.dup2(writing, number)
        os.close(reading)
        os.close(writing)


def run_process(
    words: tuple[str, ...],
    folder: Path,
    *,
    is_python: bool = False,
    seconds: float | None = None,
    before: Callable[[], None] = lambda: None,
    extra: Mapping[str, str] = {},
    kill: Kill | None = None,
) -> Outcome:
    """Run a whole command in a new interpreter; arguments as those of :func:`run_forked`."""
    arguments = ["-c", *words] if is_python else ["-m", "polariscope", *words]
    pipes, begun = [os.pipe(), os.pipe()], time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            _detach(folder, pipes)
            before()
            os.execve(sys.executable, [sys.executable, *arguments], {**environment(folder), **extra})
        finally:
            os._exit(71)
    return _wait(child, pipes, begun, seconds or SECONDS, kill)


def _wait(
    child: int, pipes: list[tuple[int, int]], begun: float, seconds: float, kill: Kill | None
) -> Outcome:
    """Collect the output of a process until it ends, or until it is killed."""
    for _, writing in pipes:
        os.close(writing)
    handle, reading = os.pidfd_open(child), [reading for reading, _ in pipes]
    texts, waiting = dict.fromkeys(reading, b""), [handle, *reading]
    limit, hung, struck = begun + (seconds if kill is None else kill.after), False, False
    while handle in waiting:
        ready = select.select(waiting, [], [], max(0.0, limit - time.monotonic()))[0]
        if not ready and kill is not None:
            kill.strike(child)
            limit, kill, struck = begun + seconds, None, True
        elif not ready:
            hung = True
            end_session(child)
        for each in ready:
            block = b"" if each == handle else os.read(each, 65536)
            if block:
                texts[each] += block
            else:
                waiting.remove(each)
    os.close(handle)
    _, status, usage = os.wait4(child, 0)
    orphans = 0 if struck else end_session(child, GRACE)
    for pipe in reading:
        while pipe in waiting and not struck and (block := os.read(pipe, 65536)):
            texts[pipe] += block
        os.close(pipe)
    out, err = (text.decode("utf-8", errors="replace") for text in texts.values())
    code, took, peak = os.waitstatus_to_exitcode(status), time.monotonic() - begun, usage.ru_maxrss * 1024
    return Outcome(code, out, err, took, peak, hung, orphans, child, struck)


@dataclasses.dataclass(frozen=True)
class Kill:
    """A SIGKILL at a moment, of one process of a call or of all of them."""

    after: float
    """Seconds after the start."""
    victim: int | None = None
    """Number of the process in its session: 0 for the command, 1 for its first worker; None for all."""

    def strike(self, leader: int) -> None:
        members = sorted(session(leader), key=lambda member: member != leader)
        hit = members if self.victim is None else members[self.victim % len(members) :][:1] if members else []
        for member in hit:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)


def session(leader: int) -> list[int]:
    """Return the living processes of the session of a call."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader and fields[0] != "Z":
                    members.append(int(entry.name))
    return members


PR_SET_PDEATHSIG = 1
GRACE = 2.0
"""Seconds that helpers of a process, such as Python's resource tracker, have to end after it."""


def end_session(leader: int, grace: float = 0.0) -> int:
    """Kill the processes of a call that are left, and return how many there were.

    :param leader: process of the call.
    :param grace: (default 0) seconds in which processes can end by themselves.
    """
    limit = time.monotonic() + grace
    while (members := session(leader)) and time.monotonic() < limit:
        time.sleep(0.02)
    for member in members:
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)
    return len(members)


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


PROGRESS = re.compile(r"… +\d+ ?%|: done in |^\d+/\d+ |\d+ of \d+ runs|steps? a second|^\s*$|^step |left$")
"""Lines of progress, which are not notes."""
PATHS = re.compile(r"(?<!\S)\S*/(python3?[\d.]*|polariscope)(?= )")


def digests(folder: Path) -> dict[str, str]:
    """Return the hash of each file in a folder by its path; folders and pipes are left out."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Return whether the last parts of a path match a pattern, or it is in the folder of a pattern ``FOLDER/**``."""
    return any(
        path.startswith(pattern[:-2]) if pattern.endswith("/**") else PurePosixPath(path).match(pattern)
        for pattern in patterns
    )


@dataclasses.dataclass(frozen=True)
class Result:
    """Everything of an outcome that must be equal if the input is."""

    code: int
    out: str
    files: dict[str, str]

    @classmethod
    def of(cls, call: Call, outcome: Outcome, after: Mapping[str, str]) -> Result:
        kept = {path: digest for path, digest in after.items() if matches(path, call.results)}
        out = "" if call.varies else PATHS.sub(r"\1", outcome.out)
        return cls(outcome.code, out, kept)


MARKS = (
    "Note",
    "Warning",
    "damaged",
    "not match",
    "could not",
    "cannot",
    "not done",
    "waiting",
    "failed",
    "missing",
    "left to train",
)
"""Words of notes among other output. A study calls runs with damaged files waiting, and leaves them out of means."""
TEXTS = (".csv", ".json", ".html")


def notes(outcome: Outcome, clean: Outcome, texts: str = "", clean_texts: str = "") -> list[str]:
    """Return the notes of a call that the undisturbed call did not print.

    :param texts: (default none) text of the files that the call wrote.
    :param clean_texts: (default none) text of the files that the undisturbed call wrote.
    """
    usual = {*clean.err.splitlines(), *clean.out.splitlines(), *clean_texts.splitlines()}
    said = [line for line in outcome.err.splitlines() if line not in usual and not PROGRESS.search(line)]
    shown = [line for line in (outcome.out + texts).splitlines() if line not in usual]
    return said + [line[:200] for line in shown if any(mark in line for mark in MARKS)]


def texts_of(call: Call, folder: Path) -> str:
    """Return the text of the results that a call wrote."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in TEXTS and path.is_file())
    return "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in paths
        if matches(str(path.relative_to(folder)), call.results)
    )


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The kind of an outcome, and the evidence if it is a defect."""

    kind: str
    evidence: str = ""

    @property
    def failed(self) -> bool:
        return self.kind in FAILURES


FOREIGN = re.compile(r"^\S*\.py:\d+: (?!DeprecationWarning|FutureWarning)(\w*Warning: .*)", re.MULTILINE)


def obvious(outcome: Outcome) -> Verdict | None:
    """Return the verdict about a call that fails whatever its input is: crash, hang, traceback, or words of a bug."""
    text = outcome.out + outcome.err
    last = "\n".join(text.strip().splitlines()[-6:])
    if outcome.hung:
        return Verdict(HANG, f"{outcome.seconds:.0f} s; {last}")
    if "Traceback (most recent call last)" in text:
        return Verdict(TRACEBACK, last)
    if "This is a bug" in text or re.search(r"^Error: unexpected ", text, re.MULTILINE):
        return Verdict(UNEXPECTED, last)
    if outcome.code not in (0, 1, 2):
        return Verdict(CRASH, f"exit code {outcome.code}; {last}")
    if outcome.code and not outcome.err.strip() and not outcome.out.strip():
        return Verdict(UNEXPECTED, f"exit code {outcome.code} without a message")
    if foreign := FOREIGN.search(outcome.err):
        return Verdict(UNEXPECTED, foreign[1])
    if outcome.orphans:
        return Verdict(LEFTOVER, f"{outcome.orphans} processes were left; {last}")
    return None


def lost(call: Call, before: Mapping[str, str], after: Mapping[str, str], code: int, harmed: str = "") -> str:
    """Return the undamaged files that a call deleted or changed without being asked to, or ''.

    :param before: hashes of all files before the call.
    :param after: hashes of all files after it.
    :param code: exit code of the call; only a successful call can change files that it writes.
    :param harmed: (default none) the damaged file.
    """
    gone = []
    for path, digest in before.items():
        allowed = matches(path, VOLATILE) or (code == 0 and matches(path, (*call.rewrites, *call.results)))
        if path != harmed and not allowed and after.get(path) != digest:
            if after.get(f"{path}.damaged") == digest:
                continue
            gone.append(f"{path} {'was changed' if path in after else 'is gone'}")
    return ", ".join(gone)


def copy(clean: Path, folder: Path, needs: Iterable[str]) -> None:
    """Copy what a call needs into its folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    fill(clean, folder, needs)


def fill(clean: Path, folder: Path, needs: Iterable[str]) -> None:
    """Copy what a call needs into an empty folder."""
    for name in needs:
        if (clean / name).is_dir():
            shutil.copytree(clean / name, folder / name, symlinks=True)
        else:
            shutil.copy2(clean / name, folder / name)
