"""FONDUE in few steps against FONDUE as published, in one run: answers, gradient steps, and first guesses.

    python benchmarks/fondue.py                          reduced: sprites of 32×32 pixels, 2 seeds, under 40 minutes
    python benchmarks/fondue.py --seeds 10               as many seeds as the published tables have (hours)
    python benchmarks/fondue.py --image-size 64          the published images (hours)

The published procedure is ours: Algorithms 1 and 2 of bonheme2023 with Adam 1e-4 and batch 64, every model trained
for an epoch of the 737,280 sprites (10,368 steps), from the paper's first guess for dSprites, 11. Where g rises with
n, two of its models decide: the largest n that fits, and the next. Those are trained, from our answer outwards; what
a wider one that fits or a narrower one that does not already says of the others on the path is taken from them, and
the steps of the whole search are those of all models on its path. --whole trains every one of them instead. The paper
trains for 1 and for 2 epochs until the answer stays; its second epoch is not counted here.

Models are kept in --out: an interrupted benchmark goes on where it stopped, and steps are counted as if nothing had
been kept. Cost is counted in gradient steps, which do not depend on how busy the machine is.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import multiprocessing
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import polariscope as ps
from polariscope.sizing import Size
from polariscope.sizing.support.candidates import TrainedCandidates
from polariscope.sizing.support.published import trace_of
from polariscope.sizing.support.search import grow_and_bisect, search_outward

THRESHOLD, CAP = 1.0, 512
PUBLISHED = {"log_every": 100, "probe_samples": 1024}


@dataclasses.dataclass(frozen=True)
class Job:
    """One seed, sized in both ways."""

    seed: int
    image_size: int
    n_init: int
    guesses: tuple[int, ...]
    whole: bool
    threads: int
    out: Path


@dataclasses.dataclass(frozen=True)
class Published:
    """What the published search answers."""

    answer: int
    traces: dict[int, float]
    """Σ E[σ²] of the models that were trained."""
    path: list[int]
    steps: int


def published(job: Job, candidates: TrainedCandidates, near: int) -> Published:
    steps = candidates.steps_per_epoch
    traces: dict[int, float] = {}

    def measured(n: int) -> bool:
        traces[n] = candidates.remember("trace_of", n, steps, lambda: trace_of(candidates, n, steps))
        return traces[n] <= THRESHOLD

    def inferred(n: int) -> bool:
        """As a wider model that fits, or else a narrower one that does not, says; measured where neither does."""
        wider_fits = any(k > n and trace <= THRESHOLD for k, trace in traces.items())
        narrower_does_not = any(k < n and trace > THRESHOLD for k, trace in traces.items())
        return measured(n) if n in traces or wider_fits == narrower_does_not else wider_fits

    path: list[int] = []

    def fits(n: int) -> bool:
        path.append(n)
        return measured(n) if job.whole else inferred(n)

    if not job.whole:
        for run in candidates.folder.models():  # of an earlier benchmark
            if run.finished_steps is not None:
                measured(int(run.path.name.removeprefix("n-")))
        search_outward(inferred, near, CAP)
    answer = grow_and_bisect(fits, job.n_init, CAP)
    return Published(answer, traces, path, steps * len(path))


def is_monotone(traces: dict[int, float]) -> bool:
    """Whether no model that fits is wider than one that does not."""
    fitting = [n for n, trace in traces.items() if trace <= THRESHOLD]
    return all(trace <= THRESHOLD or n > max(fitting, default=0) for n, trace in traces.items())


def both(job: Job) -> tuple[Job, Size, list[Size], Published]:
    torch.set_num_threads(job.threads)
    data = ps.load_dataset("sprites", image_size=job.image_size)
    place = job.out / f"fast-{job.image_size}"
    ours = ps.size(data, seed=job.seed, out=place)
    # In one place: what a model of some width did is a function of the seed, not of the guess.
    others = [ps.size(data, seed=job.seed, n_init=guess, out=place) for guess in job.guesses]
    folder = job.out / f"published-{job.image_size}" / f"seed-{job.seed}"
    candidates = TrainedCandidates(data, folder, job.seed, PUBLISHED)
    return job, ours, others, published(job, candidates, max(1, ours.n_latents))


def models(size: Size) -> str:
    return ", ".join(f"{trial.n_latents}" for trial in size.trials)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--n-init", type=int, default=11, help="first guess of the published search")
    parser.add_argument("--guesses", default="2,22,200", help="first guesses of ours, for seed 0")
    parser.add_argument("--whole", action="store_true", help="train every model of the published path")
    parser.add_argument("--workers", type=int, default=2, help="seeds side by side")
    parser.add_argument("--out", type=Path, default=Path("runs/fondue"))
    options = parser.parse_args()
    guesses = tuple(int(word) for word in options.guesses.split(",") if word)
    threads = max(1, torch.get_num_threads() // options.workers)
    common = (options.whole, threads, options.out)
    jobs = [
        Job(seed, options.image_size, options.n_init, () if seed else guesses, *common)
        for seed in range(options.seeds)
    ]

    console = Console()
    size = options.image_size
    table = Table(title=f"sprites {size}×{size}, conv, β = 1, threshold {THRESHOLD:g}")
    headings = ("seed", "published", "Σ E[σ²]", "its models", "steps", "ours", "its models", "steps", "fewer")
    for heading in headings:
        table.add_column(heading, justify="right")
    rows, guessed = [], []
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        for job, ours, others, theirs in pool.map(both, jobs):
            console.print(f"seed {job.seed}: published {theirs.answer}, ours {ours.answer}")
            if not is_monotone(theirs.traces):
                console.print(
                    "  its Σ E[σ²] crosses the threshold twice: the published answer depends on the path"
                )
            rows.append((theirs, ours))
            guessed += list(zip(job.guesses, others, strict=True))
            table.add_row(
                str(job.seed),
                str(theirs.answer),
                ", ".join(f"{n}: {value:.2f}" for n, value in sorted(theirs.traces.items())),
                ", ".join(map(str, theirs.path)),
                f"{theirs.steps:,}",
                ours.answer.removesuffix(" latents"),
                models(ours),
                f"{ours.n_steps:,}",
                f"{theirs.steps / ours.n_steps:.1f}x",
            )
    console.print(table)
    close = sum(abs(ours.n_latents - theirs.answer) <= 1 for theirs, ours in rows)
    same = sum(ours.n_latents == theirs.answer for theirs, ours in rows)
    fewer = sum(theirs.steps for theirs, _ in rows) / sum(ours.n_steps for _, ours in rows)
    console.print(
        f"{close} of {len(rows)} seeds within ±1 (target 9 of 10), {same} equal; {fewer:.1f}x fewer steps in all "
        "(target 10x)"
    )
    for guess, other in guessed:
        console.print(
            f"first guess {guess}: {other.answer}, models {models(other)}, {other.n_steps:,} steps; without one: "
            f"{rows[0][1].answer}"
        )


if __name__ == "__main__":
    main()
