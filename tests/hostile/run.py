"""Attack polariscope for minutes to hours: ``make hostile [SECONDS=…] [SEED=…]``.

Prints the calls tried and failed by area, and writes a script for each kind of failure that makes the call again.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import multiprocessing
import os
import random
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile import attacks, calls, kills, scarce, strategies, trials, victims, zoo

CALLS, WHOLE, KILLS = 10_000, 1_000, 400
"""Calls, whole commands among them, and kills of a run without a time limit."""
REPRODUCERS = Path("hostile-failures")


@dataclasses.dataclass(frozen=True)
class Record:
    """One attack: its description, the verdict, and what it took."""

    area: str
    case: dict[str, Any]
    title: str
    kind: str
    evidence: str
    seconds: float
    peak: int
    kills: int = 0

    @property
    def failed(self) -> bool:
        return self.kind in calls.FAILURES

    @property
    def whole(self) -> bool:
        return bool(self.case.get("whole"))

    @property
    def signature(self) -> tuple[str, ...]:
        """What makes two failures the same for a reader: the kind, the message or the command, and the file."""
        file = re.sub(
            r"-[0-9a-f]{12}|[0-9a-f]{16}|\d+", "#", str(self.case.get("file", self.case.get("animal", "")))
        )
        lines = [line for line in self.evidence.splitlines() if line.strip() and "This is a bug" not in line]
        said = re.sub(r"'[^']*'|\S*/\S*|[0-9a-f]{6,}|\d+", "#", lines[-1] if lines else "")[:60]
        call = str(self.case.get("call", ""))
        if self.kind in (calls.TRACEBACK, calls.UNEXPECTED, calls.CRASH):
            return self.area, self.kind, said
        return self.area, self.kind, call, Path(file).name, said if self.kind == calls.LOCKED else ""


def make_case(record: dict[str, Any]) -> Any:
    """Return the case that a record describes."""
    kinds: dict[str, Callable[[dict[str, Any]], Any]] = {
        "mutation": attacks.Case.from_dict,
        "kill": kills.KillCase.from_dict,
        "trial": trials.Trial.from_dict,
        "condition": scarce.Condition.from_dict,
    }
    return kinds[record["kind"]](record)


class Attacker:
    """Makes cases in an arena of its own.

    :param root: folder for the arenas of all processes.
    :param commands: (default all) commands that make the attacked folders.
    """

    def __init__(self, root: Path, commands: Sequence[str] = victims.MAKE) -> None:
        calls.warm()
        self.arena = attacks.Arena(root / str(os.getpid()))
        self.arena.build(commands)
        self.executioner = kills.Executioner(self.arena)

    def make(self, record: dict[str, Any]) -> Record | None:
        """Make a case; None if its damage changes nothing."""
        case, hits = make_case(record), 0
        if isinstance(case, attacks.Case):
            judged = self.arena.attack(case)
            if judged is None:
                return None
            verdict, outcome = judged
        elif isinstance(case, kills.KillCase):
            verdict, outcome, hits = self.executioner.kill(case)
        elif isinstance(case, scarce.Condition):
            verdict, outcome = scarce.endure(self.arena, case)
        else:
            verdict, outcome = trials.attempt(self.arena, case)
        return Record(
            case.area, record, str(case), verdict.kind, verdict.evidence, outcome.seconds, outcome.peak, hits
        )


_ATTACKER: Attacker | None = None


def _start(root: str) -> None:
    global _ATTACKER
    _ATTACKER = Attacker(Path(root))


def _make(record: dict[str, Any]) -> Record | None:
    assert _ATTACKER is not None
    return _ATTACKER.make(record)


def stream(clean: Path, seed: int) -> Iterator[dict[str, Any]]:
    """Yield cases of all kinds in turn, for ever; every tenth is a whole command, every twentieth a kill."""
    dice = random.Random(seed)
    sources = {
        **{
            area: _repeated(lambda turn, area=area: attacks.cases(clean, turn, area), seed)
            for area in attacks.AREAS
        },
        **{
            f"strategy {kind}": _repeated(
                lambda turn, kind=kind: iter(strategies.generate(kind, turn, 200)), seed
            )
            for kind in strategies.KINDS
        },
        "zoo": _repeated(lambda turn: _shuffled(list(zoo.trials()), turn), seed),
        "conditions": _repeated(scarce.conditions, seed),
    }
    weights = {
        **{"run": 8, "study": 4, "sizing search": 2, "zoo": 3, "conditions": 2},
        **{"strategy api": 6, "strategy commands": 3, "strategy tables": 2, "strategy toml": 2},
    }
    names = [name for name in sources for _ in range(weights.get(name, 1))]
    dice.shuffle(names)
    index = 0
    while True:
        for name in names:
            index += 1
            record = next(sources[name]).to_dict()
            if index % 9 == 0 and record["kind"] in ("mutation", "trial"):
                record["whole"] = True
            yield record
            if index % 20 == 0:
                yield kills.kill_case(dice, index // 20).to_dict()


def _shuffled(items: list[Any], seed: int) -> Iterator[Any]:
    random.Random(seed).shuffle(items)
    yield from items


def _repeated(make: Callable[[int], Iterator[Any]], seed: int) -> Iterator[Any]:
    """Yield the items of an iterator, then those of one with another seed, and so on."""
    turn = seed
    while True:
        yield from make(turn)
        turn += 1_000_003


class Tally:
    """Counts of what was tried and what failed, and one reproducer for each kind of failure."""

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.verdicts: dict[str, Counter[str]] = defaultdict(Counter)
        self.failures: dict[tuple[str, ...], list[Record]] = {}
        self.calls = self.whole = self.kills = 0
        self.longest: Record | None = None
        self.largest: Record | None = None
        self.broken: list[str] = []

    def add(self, record: Record) -> bool:
        """Count an attack; return True if it is the first failure of its kind."""
        is_new = record.failed and record.signature not in self.failures
        self.tried[record.area] += 1
        self.verdicts[record.area][record.kind] += 1
        self.calls += 1
        self.whole += record.whole
        self.kills += record.kills
        if self.longest is None or record.seconds > self.longest.seconds:
            self.longest = record
        if self.largest is None or record.peak > self.largest.peak:
            self.largest = record
        if record.failed:
            same = self.failures.setdefault(record.signature, [])
            same.append(record)
            # The shortest description is the smallest reproducer.
            same.sort(key=lambda each: len(json.dumps(each.case)))
            del same[20:]
        return is_new

    @property
    def is_enough(self) -> bool:
        return self.calls >= CALLS and self.whole >= WHOLE and self.kills >= KILLS

    @property
    def failed(self) -> int:
        return sum(counts[kind] for counts in self.verdicts.values() for kind in calls.FAILURES)

    def table(self) -> str:
        """Return the counts by area as a Markdown table."""
        kinds = (calls.OK, calls.NOTED, calls.REFUSED)
        lines = [
            "| area | tried | ok | noted | refused | failed |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
        ]
        for area in sorted(self.tried):
            counts = self.verdicts[area]
            failed = sum(counts[kind] for kind in calls.FAILURES)
            cells = [area, self.tried[area], *(counts[kind] for kind in kinds), failed]
            lines.append(f"| {' | '.join(map(str, cells))} |")
        total = [sum(counts[kind] for counts in self.verdicts.values()) for kind in kinds]
        lines.append(f"| **all** | {' | '.join(map(str, [self.calls, *total, self.failed]))} |")
        return "\n".join(lines)

    def failures_by_kind(self) -> str:
        """Return the number of failures of each kind as a Markdown table."""
        counts = Counter(
            {kind: sum(each[kind] for each in self.verdicts.values()) for kind in calls.FAILURES}
        )
        rows = [
            f"| {kind.lower()} | {meaning} | {counts[kind]} |" for kind, meaning in calls.FAILURES.items()
        ]
        return "\n".join(["| failure | meaning | calls |", "| --- | --- | ---: |", *rows])

    def summary(self) -> str:
        assert self.longest is not None
        assert self.largest is not None
        return (
            f"{self.calls:,} calls, of which {self.whole:,} were whole commands; {self.kills:,} kills; "
            f"{self.failed:,} failed in {len(self.failures)} ways. Longest call: {self.longest.seconds:.1f} s "
            f"({self.longest.title[:100]}). Peak memory: {self.largest.peak / 1e6:.0f} MB "
            f"({self.largest.title[:100]})."
        )


def write_reproducers(tally: Tally, folder: Path) -> list[Path]:
    """Write a script for each kind of failure, worst first, and return their paths."""
    shutil.rmtree(folder, ignore_errors=True)
    if not tally.failures:
        return []
    folder.mkdir(parents=True)
    order = list(calls.FAILURES)
    ranked = sorted(tally.failures.values(), key=lambda same: (order.index(same[0].kind), -len(same)))
    written = []
    for number, same in enumerate(ranked, 1):
        first = same[0]
        about = f"{first.area}: {first.title.strip()}\n{first.kind}, {len(same)} times:\n{first.evidence}"
        comments = "".join(f"# {line}\n" for line in about.splitlines())
        script = os.path.relpath(Path(__file__).resolve())
        path = folder / f"{number:03}-{first.kind.lower()}.sh"
        command = f"python {shlex.quote(script)} --again {shlex.quote(json.dumps(first.case))}"
        path.write_text(f"#!/bin/sh\n{comments}{command}\n")
        written.append(path)
    return written


def page(tally: Tally, seed: int, processes: int, took: float) -> str:
    """Return the page of docs/ with the table of a run."""
    return PAGE.format(
        summary=tally.summary(),
        table=tally.table(),
        failures=tally.failures_by_kind(),
        seed=seed,
        processes=processes,
        minutes=took / 60,
        disk=""
        if scarce.can_mount()
        else "Small and read-only disks were left out, because they cannot be mounted.\n",
    )


PAGE = """# Hostile calls

`make hostile` damages files, kills commands, fills disks and passes odd input, and judges every call. This page is
written by `python tests/hostile/run.py --table docs/hostile.md`.

{summary} Seed {seed}, {processes} processes, {minutes:.0f} minutes.
{disk}
{table}

A call is *ok* if its result is that of the undamaged input, *noted* if the result differs and a note says why, and
*refused* if the exit code is 1 or 2 and a message explains the reason. Input without a hash, such as a table, is
another input if it was changed, so another result is ok. All other outcomes are failures:

{failures}

The areas are files of runs, unfinished runs, studies, sizing searches, manipulations, caches and estimators, each
damaged in each region (one bit flipped, cut, zeroed, swapped with the file of another run, deleted, JSON values
replaced, with and without a new hash); input files damaged in the same way; generated tables, TOML files, command lines
and calls of the Python interface; a zoo of archives, pictures, models, pipes, links and names; a file-size limit, small
and read-only disks, wrong clocks and files from the future; and commands killed with SIGKILL at random moments, which
must end with the same bytes and without leftovers when they are repeated.
"""


def attack(seed: int, seconds: float | None, processes: int, keep: Path | None) -> Tally:
    """Make cases with several processes until the time is over, or until there were enough."""
    tally, begun = Tally(), time.monotonic()
    context = multiprocessing.get_context("fork")
    with contextlib.ExitStack() as stack:
        root = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hostile-")))
        calls.warm()
        arena = attacks.Arena(root / "cases")
        arena.build()
        cases = stream(arena.clean, seed)
        pool = stack.enter_context(
            concurrent.futures.ProcessPoolExecutor(
                processes, context, initializer=_start, initargs=(str(root),)
            )
        )
        waiting = {pool.submit(_make, next(cases)) for _ in range(2 * processes)}
        shown = begun
        is_interrupted = False
        while waiting:
            try:
                done, waiting = concurrent.futures.wait(
                    waiting, return_when=concurrent.futures.FIRST_COMPLETED
                )
            except KeyboardInterrupt:  # what was tried so far is reported
                is_interrupted = True
                waiting = {future for future in waiting if not future.cancel()}
                continue
            over = (
                is_interrupted or tally.is_enough if seconds is None else time.monotonic() - begun > seconds
            )
            for future in done:
                try:
                    record = future.result()
                except KeyboardInterrupt:  # the signal reached the worker as well
                    over = is_interrupted = True
                except RuntimeError as error:  # the harness itself: an undisturbed command fails
                    tally.broken.append(str(error))
                else:
                    if record is not None and tally.add(record):
                        evidence = record.evidence.strip().splitlines()
                        print(
                            f"{record.kind}: {record.title}: {evidence[-1] if evidence else ''}", flush=True
                        )
                if not over:
                    waiting.add(pool.submit(_make, next(cases)))
            if time.monotonic() - shown > 60:
                shown = time.monotonic()
                line = f"{tally.calls:,} calls, {tally.whole:,} whole, {tally.kills:,} kills, {tally.failed:,} failed"
                print(f"{(shown - begun) / 60:.0f} min: {line}", flush=True)
    return tally


def again(record: dict[str, Any]) -> int:
    """Make one case again and print its verdict and output."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as root:
        made = Attacker(Path(root)).make(record)
    if made is None:
        print("The damage changes nothing.")
        return 0
    print(f"{made.title}\n{made.kind}\n{made.evidence}")
    return int(made.failed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, help="time limit; by default until 10,000 calls and 400 kills"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--patience", type=float, default=1.0, help="factor of all time limits, if other work uses the cores"
    )
    parser.add_argument("--table", type=Path, help="page to write the table to")
    parser.add_argument("--folder", type=Path, help="folder for the attacked files, kept for the next run")
    parser.add_argument("--failures", type=Path, default=REPRODUCERS, help="folder for the reproducers")
    parser.add_argument("--again", metavar="CASE", help="make one case of a reproducer again")
    arguments = parser.parse_args()
    # Forks inherit the limits.
    calls.SECONDS *= arguments.patience
    calls.GRACE *= arguments.patience
    if arguments.again:
        return again(json.loads(arguments.again))
    begun = time.monotonic()
    tally = attack(arguments.seed, arguments.seconds, arguments.processes, arguments.folder)
    print(f"\n{tally.table()}\n\n{tally.failures_by_kind()}\n\n{tally.summary()}")
    for message in sorted(set(tally.broken)):
        print(f"\nThe harness cannot judge a command: {message}")
    written = write_reproducers(tally, arguments.failures)
    if written:
        print(f"\n{len(written)} scripts in {arguments.failures} repeat the failures, worst first.")
    if arguments.table:
        arguments.table.write_text(page(tally, arguments.seed, arguments.processes, time.monotonic() - begun))
    return int(bool(tally.failed or tally.broken))


if __name__ == "__main__":
    sys.exit(main())
