"""FONDUE in few steps against FONDUE as published, in one run: answers, gradient steps, and first guesses.

    python benchmarks/fondue.py                        reduced: sprites of 16×16 pixels, 2 seeds, 1 epoch
    python benchmarks/fondue.py --seeds 10             as many seeds as the published tables have
    python benchmarks/fondue.py --image-size 64 --n-init 11 --epochs 0     the published setting (hours)

The published procedure is ours: Algorithms 1 and 2 of bonheme2023 with Adam 1e-4 and batch 64, every model trained for
whole epochs of the 737,280 sprites (10,368 steps each); --epochs 0 raises the epochs until the answer stays. Models
are kept in --out: an interrupted benchmark goes on where it stopped, and steps are counted as if nothing had been
kept. Cost is counted in gradient steps, which do not depend on how busy the machine is.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import multiprocessing
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import polariscope as ps
from polariscope.dimension.answer import Size

PUBLISHED = {"log_every": 100, "probe_samples": 1024}


def sized(job: dict[str, Any]) -> Size:
    torch.set_num_threads(job.pop("threads"))
    data = ps.load_dataset("sprites", image_size=job.pop("image_size"))
    return ps.size(data, **job)


def run(jobs: list[dict[str, Any]], workers: int) -> list[Size]:
    threads = max(1, torch.get_num_threads() // workers)
    jobs = [{**job, "threads": threads} for job in jobs]
    if workers == 1:
        return [sized(job) for job in jobs]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
        return list(pool.map(sized, jobs))


def models(size: Size) -> str:
    return ", ".join(f"{trial.n_latents}" for trial in size.trials)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--image-size", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=1, help="0: until the answer stays")
    parser.add_argument("--n-init", type=int, default=4, help="first guess of the published search")
    parser.add_argument("--guesses", default="2,22,200", help="first guesses of ours, for seed 0")
    parser.add_argument("--workers", type=int, default=2, help="searches side by side")
    parser.add_argument("--out", type=Path, default=Path("runs/fondue"))
    options = parser.parse_args()

    seeds = range(options.seeds)
    common = {"image_size": options.image_size, "net": "conv"}
    fast_place = options.out / f"fast-{options.image_size}"
    fast = run([{**common, "seed": seed, "out": fast_place} for seed in seeds], options.workers)
    guesses = [int(word) for word in options.guesses.split(",") if word]
    # One after the other and in one place: what a model of some width did is a function of the seed, not of the guess.
    others = run([{**common, "seed": 0, "n_init": guess, "out": fast_place} for guess in guesses], 1)
    published = run(
        [
            {
                **common,
                **PUBLISHED,
                "method": "fondue-published",
                "seed": seed,
                "n_init": options.n_init,
                "epochs": options.epochs or None,
                "out": options.out / f"published-{options.image_size}",
            }
            for seed in seeds
        ],
        options.workers,
    )

    console = Console()
    table = Table(title=f"sprites {options.image_size}×{options.image_size}, conv, β = 1, threshold 1")
    for heading in (
        "seed",
        "published",
        "models",
        "steps",
        "ours",
        "interval",
        "models",
        "steps",
        "fewer",
        "difference",
    ):
        table.add_column(heading, justify="right")
    for seed, theirs, ours in zip(seeds, published, fast, strict=True):
        table.add_row(
            *(str(seed), str(theirs.n_latents), models(theirs), f"{theirs.n_steps:,}"),
            *(
                str(ours.n_latents),
                f"{ours.interval[0]}–{ours.interval[1]}",
                models(ours),
                f"{ours.n_steps:,}",
            ),
            *(f"{theirs.n_steps / ours.n_steps:.1f}x", f"{ours.n_latents - theirs.n_latents:+d}"),
        )
    console.print(table)
    close = sum(abs(a.n_latents - b.n_latents) <= 1 for a, b in zip(fast, published, strict=True))
    theirs_spent, ours_spent = (sum(size.n_steps for size in sizes) for sizes in (published, fast))
    console.print(
        f"within ±1 for {close} of {len(fast)} seeds (target 9 of 10); {theirs_spent / ours_spent:.1f}x fewer steps "
        "in all (target 10x)"
    )
    for guess, size in zip(guesses, others, strict=True):
        console.print(
            f"first guess {guess}: {size.answer}, models {models(size)}, {size.n_steps:,} steps; without one: "
            f"{fast[0].answer}"
        )


if __name__ == "__main__":
    main()
