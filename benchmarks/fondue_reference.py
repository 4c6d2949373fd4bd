"""What FONDUE answers when every model is trained until training longer changes nothing: the truth of the panel.

    python benchmarks/fondue_reference.py [NAME …] [--seeds 2] [--workers 2] [--mnist FOLDER] [--fashion FOLDER]

Each model is trained as published (Adam 1e-4, batch 64) for 1, 2, 4 … times a first length of an epoch or 1,000 steps,
whichever is longer, and Σ E[σ²] of 10,000 samples is taken after each. It has settled when two doublings in a row left
it on its side of the threshold, and neither moved it towards the threshold by a tenth or more; after ``--most`` steps
it is taken as it is and marked. Models are trained on both sides of the answer only: the largest n that fits, and the
next.

Every value goes into ``benchmarks/fondue_reference.csv`` (data, seed, latents, steps, Σ E[σ²], seconds, settled), which
is committed and grows with time; what it has is not trained again. Models are kept in --out as well, so that an
interrupted one goes on where it stopped.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import dataclasses
import fcntl
import itertools
import multiprocessing
import time
from pathlib import Path

import numpy as np
import torch
from panel import PANEL, add_options, asked_for

from polariscope.sizing.bisection import CapError, search_guided
from polariscope.sizing.surplus import trace
from polariscope.sizing.trained import TrainedCandidates

TABLE = Path(__file__).with_name("fondue_reference.csv")
THRESHOLD, CAP = 1.0, 64
FIRST = 1000
"""Steps of the shortest training, where an epoch is shorter."""
MOVED = 0.1
"""Change of Σ E[σ²] towards the threshold over a doubling below which a model has settled."""
RISE = 0.7
"""Rise of Σ E[σ²] with each latent that is expected near the answer; it changes the time only."""
PUBLISHED = {"learning_rate": 1e-4, "batch_size": 64, "log_every": 500, "probe_samples": 256}


@dataclasses.dataclass(frozen=True)
class Value:
    """Σ E[σ²] of one model after so many steps."""

    data: str
    seed: int
    n_latents: int
    steps: int
    trace: float
    seconds: float
    settled: str
    """"yes" where longer training changes nothing, "no" where it may, "cut" at the most steps that were allowed."""


def read() -> list[Value]:
    """The values there are."""
    if not TABLE.exists():
        return []
    with TABLE.open(newline="") as file:
        kinds = {field.name: field.type for field in dataclasses.fields(Value)}
        convert = {"int": int, "float": float, "str": str}
        return [
            Value(**{name: convert[str(kinds[name])](text) for name, text in row.items()})
            for row in csv.DictReader(file)
        ]


def add(value: Value) -> None:
    """Put a value into the table, which several processes may do at once; the table is whole at any time."""
    names = [field.name for field in dataclasses.fields(Value)]
    part = TABLE.with_suffix(".part")
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with part.open("w", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(names)
            for each in sorted(
                [*read(), value], key=lambda each: (each.data, each.seed, each.n_latents, each.steps)
            ):
                rows.writerow([getattr(each, name) for name in names])
        part.replace(TABLE)


def has_settled(traces: list[float]) -> bool:
    """Whether two doublings left the model on its side, and moved it little towards the other, or away from it.

    >>> has_settled([3.0, 0.9, 0.8]), has_settled([0.9, 0.6, 0.55]), has_settled([0.5, 0.7, 0.75])
    (False, True, False)
    >>> has_settled([2.2, 1.8, 1.9]), has_settled([1.8, 1.9, 2.5])
    (False, True)
    """
    last = traces[-3:]
    if len(last) < 3 or len({value <= THRESHOLD for value in last}) > 1:
        return False
    away = 1 if last[-1] > THRESHOLD else -1
    return all(away * (after - before) > -MOVED for before, after in itertools.pairwise(last))


def settle(
    candidates: TrainedCandidates, name: str, n_latents: int, most: int, known: list[Value]
) -> list[Value]:
    """Train a model until it has settled; its values, those that are known included."""
    found = sorted(
        (v for v in known if (v.data, v.seed, v.n_latents) == (name, candidates.seed, n_latents)),
        key=lambda value: value.steps,
    )
    first = max(FIRST, candidates.steps_per_epoch)
    while not found or (not has_settled([each.trace for each in found]) and 2 * found[-1].steps <= most):
        steps = 2 * found[-1].steps if found else first
        begin = time.perf_counter()
        value = round(trace(candidates.representation(n_latents, steps)), 4)
        seconds = round(time.perf_counter() - begin, 1)
        done = has_settled([*(each.trace for each in found), value])
        word = "yes" if done else "cut" if 2 * steps > most else "no"
        found.append(Value(name, candidates.seed, n_latents, steps, value, seconds, word))
        add(found[-1])
        print(
            f"{name}, seed {candidates.seed}: {n_latents} latents, {steps:,} steps: {value:.3f} {word}",
            flush=True,
        )
    return found


def reference(job: tuple[str, Path, int, int, Path, int]) -> None:
    """Both sides of the answer of one entry and seed."""
    name, folder, seed, most, out, threads = job
    (entry,) = [each for each in PANEL if each.name == name]
    torch.set_num_threads(threads)
    data = entry.load(folder)
    known = read()
    place = out / entry.name.replace(" ", "-").replace(",", "") / f"seed-{seed}"
    candidates = TrainedCandidates(data, place, seed, {**PUBLISHED, "net": entry.net, "threads": threads})

    def measured(n: int) -> tuple[bool, float]:
        last = settle(candidates, entry.name, n, most, known)[-1]
        return last.trace <= THRESHOLD, last.trace

    try:
        cap = min(CAP, candidates.max_latents or CAP)
        expected = THRESHOLD + RISE * (np.arange(1, cap + 1) - entry.around - 0.5)
        answer = search_guided(measured, expected, THRESHOLD, cap)
        print(f"{entry.name}, seed {seed}: {answer} latents", flush=True)
    except CapError as error:
        print(f"{entry.name}, seed {seed}: {error}", flush=True)


def answer_of(values: list[Value], data: str, seed: int, most: int | None = None) -> tuple[int, bool] | None:
    """The reference's answer, the largest n that fits, and whether both its models settled; None while it is open.

    Where no more than ``most`` latents can be asked for, and so many fit, they are the answer.
    """
    last = {
        value.n_latents: value
        for value in sorted(values, key=lambda each: each.steps)
        if (value.data, value.seed) == (data, seed)
    }
    fitting = [n for n, value in last.items() if value.trace <= THRESHOLD]
    surplus = [n for n, value in last.items() if value.trace > THRESHOLD]
    answers = [n for n in (0, *fitting) if n + 1 in surplus or n == most]
    if not answers:
        return None
    deciding = [last[n] for n in (min(answers), min(answers) + 1) if n in last]
    return min(answers), all(value.settled == "yes" for value in deciding)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--most", type=int, default=64_000, help="steps of a model at most")
    parser.add_argument("--workers", type=int, default=2, help="entries and seeds side by side")
    parser.add_argument("--out", type=Path, default=Path("runs/fondue-reference"))
    options = parser.parse_args()
    jobs = [
        (entry.name, folder, seed, options.most, options.out, 1)
        for seed in range(options.seeds)
        for entry, folder in asked_for(options)
    ]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        for future in concurrent.futures.as_completed([pool.submit(reference, job) for job in jobs]):
            future.result()
    values = read()
    print(f"{sum(value.seconds for value in values) / 3600:.1f} hours in all")
    for entry, _ in asked_for(options):
        for seed in range(options.seeds):
            print(entry.name, seed, answer_of(values, entry.name, seed))


if __name__ == "__main__":
    main()
