"""What a second thread brings to a training step: time with two threads over time with one, for growing nets.

Where the rule of ``polariscope.training.threads`` has its threshold is read off this table. One and two threads take
turns in short blocks, since the machine is shared and noisy; ``ratio`` is the median over pairs of neighbouring blocks,
``best`` the ratio of the fastest blocks, close to what an idle machine gives. Below 1 a second thread helps.

    python benchmarks/threads.py [--blocks 9] [--seconds 0.3] [--beside 0]

``--beside N`` keeps N other processes busy meanwhile.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import polariscope as ps
from polariscope.objectives import Batch, Step, total
from polariscope.training.memory import keep_freed_memory
from polariscope.training.plan import RunPlan, plan
from polariscope.training.threads import threads_for, using_threads, work_of_step


def jobs() -> dict[str, RunPlan]:
    """Nets of growing work: tables, then images."""
    found = {}
    table = ps.load_dataset("gaussian", n_samples=4096, eigenvalues=tuple(float(64 - k) for k in range(64)))
    for width, batch in ((16, 64), (128, 64), (128, 256), (512, 128), (512, 512), (1024, 512), (2048, 512)):
        options: dict[str, Any] = {
            "encoder_widths": (width, width),
            "decoder_widths": (width, width),
            "batch_size": batch,
        }
        found[f"mlp {width}, batch {batch}"] = plan(table, net="mlp", **options)
    for side, batch in ((16, 16), (16, 64), (32, 16), (32, 64), (64, 16), (64, 64)):
        images = ps.load_dataset("sprites", image_size=side)
        found[f"conv {side}×{side}, batch {batch}"] = plan(images, net="conv", batch_size=batch)
    return found


def stepper(job: RunPlan) -> tuple[int, Callable[[], None]]:
    """The work of a step, and a function that makes one."""
    keep_freed_memory()
    indices = np.arange(job.settings.batch_size)
    model = job.blueprint.build(0).to_device("cpu")
    work = work_of_step(model, job.objective, job.data, indices)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    x = model.place(torch.from_numpy(job.data.values(indices)))
    noise = torch.Generator().manual_seed(0)

    def step() -> None:
        loss = total(job.objective.terms(Step(model, Batch(x, 0), noise)))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    return work, step


def seconds_per_step(step: Callable[[], None], threads: int, seconds: float) -> float:
    """Mean time of the steps that fit into a block."""
    with using_threads(threads):
        step()  # threads are woken
        start, count = time.perf_counter(), 0
        while (now := time.perf_counter()) - start < seconds or count < 2:
            step()
            count += 1
        return (now - start) / max(count, 1)


def spin() -> None:
    """Keep a core busy."""
    while True:
        sum(range(10_000))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--beside", type=int, default=0)
    asked = parser.parse_args()
    others = [multiprocessing.Process(target=spin, daemon=True) for _ in range(asked.beside)]
    for other in others:
        other.start()
    table = Table(title="Two threads over one")
    for column in ("net", "million multiply-adds", "ms with 1", "ratio", "best", "rule, 2 cores"):
        table.add_column(column, justify="left" if column == "net" else "right")
    rows = []
    for name, job in jobs().items():
        work, step = stepper(job)
        pairs = [[seconds_per_step(step, n, asked.seconds) for n in (1, 2)] for _ in range(asked.blocks)]
        one, two = zip(*pairs, strict=True)
        ratio = statistics.median(b / a for a, b in pairs)
        rows.append((work, name, 1000 * min(one), ratio, min(two) / min(one), threads_for(work, 2)))
        print(f"{name}: {work / 1e6:,.1f} million, {ratio:.2f}", flush=True)
    for work, name, best, ratio, fastest, threads in sorted(rows):
        table.add_row(
            name, f"{work / 1e6:,.1f}", f"{best:.2f}", f"{ratio:.2f}", f"{fastest:.2f}", f"{threads}"
        )
    for other in others:
        other.terminate()
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
