"""How fast a training step is: three ratios, measured side by side in one run.

1. the loop (data, logging, checks) over the bare forward/backward/optimiser step of the same model: < 1.05;
2. the naive step (eager, NCHW, DataLoader over stored images, plain Adam) over our whole loop: ≥ 1.3;
3. the speed of our step, in multiplications and additions, over this machine's matrix products.

Also what rendering the sprites costs of a step. The contenders take turns in short rounds and the best round of
each counts, since the machine is shared and noisy.

    python benchmarks/train_step.py [--image-size 64] [--rounds 7] [--steps 15]
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode

import polariscope as ps
from polariscope.model import Model
from polariscope.objectives import Batch, total
from polariscope.training.loop import fit
from polariscope.training.run import RunPlan, plan


def bare_step(job: RunPlan) -> Callable[[int], None]:
    """Forward, backward and optimiser on a fixed batch, as fast as we know."""
    model = job.blueprint.build(0).settle("cpu")
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    x = model.place(torch.from_numpy(job.data.values(np.arange(0, 64 * 1000, 1000))))
    noise = torch.Generator().manual_seed(0)

    def run(steps: int) -> None:
        for _ in range(steps):
            loss = total(job.objective.terms(model, Batch(x, 0), noise))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()

    return run


def our_loop(job: RunPlan) -> Callable[[int], float]:
    """The real loop; returns its seconds per step once it is running (setting up a run is paid once)."""
    model = job.blueprint.build(0).settle("cpu")
    split = job.split

    class EnoughError(Exception):
        pass

    def run(steps: int) -> float:
        times: list[float] = []

        def listen(step: int, line: dict | None) -> None:
            times.append(time.perf_counter())
            if len(times) > steps:
                raise EnoughError

        with contextlib.suppress(EnoughError):
            fit(model, job.objective, job.data, split, job.settings, None, (listen,))
        return (times[-1] - times[0]) / steps

    return run


def naive_loop(job: RunPlan) -> Callable[[int], None]:
    """What one writes first: images stored as floats, DataLoader, NCHW, plain Adam, loss.item() every step."""
    model = job.blueprint.build(0)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=False, foreach=False)
    stored = torch.from_numpy(job.data.values(np.arange(0, 737_280, 180)))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(stored), batch_size=64, shuffle=True)
    noise = torch.Generator().manual_seed(0)

    def run(steps: int) -> None:
        batches = iter(loader)
        for _ in range(steps):
            (x,) = next(batches)
            q = model.encode(x)
            z = q.mean + torch.exp(0.5 * q.log_variance) * torch.randn(q.mean.shape, generator=noise)
            rate = -0.5 * torch.sum(1 + q.log_variance - q.mean**2 - torch.exp(q.log_variance), dim=1)
            logits = model.decoder.trunk(z)
            reconstruction = torch.nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="none")
            loss = (reconstruction.sum(dim=(1, 2, 3)) + 4.0 * rate).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            loss.item()

    return run


def seconds_per_step(run: Callable[[int], float | None], steps: int) -> float:
    """What ``run`` says, or else how long it took."""
    start = time.perf_counter()
    measured = run(steps)
    return measured or (time.perf_counter() - start) / steps


def flops_of_step(job: RunPlan) -> int:
    """Multiplications and additions of one forward and backward pass."""
    model: Model = job.blueprint.build(0)
    x = torch.from_numpy(job.data.values(np.arange(64)))
    with FlopCounterMode(display=False) as counter:
        total(job.objective.terms(model, Batch(x, 0), torch.Generator().manual_seed(0))).backward()
    return counter.get_total_flops()


def matmul_speed() -> float:
    """Best multiplications and additions per second of a 1024³ matrix product."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    best = min(seconds_per_step(lambda n: [a @ b for _ in range(n)] and None, 5) for _ in range(8))
    return 2 * 1024**3 / best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=15)
    arguments = parser.parse_args()

    data = ps.load_dataset("sprites", image_size=arguments.image_size)
    job = plan(data, "beta", "conv", 10, beta=4.0, steps=10**9)
    contenders = {"bare step": bare_step(job), "our loop": our_loop(job), "naive loop": naive_loop(job)}
    best = dict.fromkeys(contenders, float("inf"))
    for round_number in range(arguments.rounds + 1):
        for name, run in contenders.items():
            seconds = seconds_per_step(run, arguments.steps)
            if round_number:  # the first round warms up
                best[name] = min(best[name], seconds)
    order = np.random.default_rng(0).permutation(len(data))
    batches = iter(order.reshape(-1, 64))
    render = min(
        seconds_per_step(lambda n: [data.values(next(batches)) for _ in range(n)] and None, 50)
        for _ in range(5)
    )
    # A line of the log costs two passes of the encoder over its probe; it is paid once in log_every steps.
    probe_job = plan(data, "beta", "conv", 10, steps=10**9, log_every=1, validate_every=1000)
    per_line = seconds_per_step(our_loop(probe_job), 5) - best["our loop"]

    flops, speed = flops_of_step(job), matmul_speed()
    size, threads = arguments.image_size, torch.get_num_threads()
    table = Table(title=f"One step: conv, batch 64, {size}×{size}, {threads} threads")
    for column in ("what", "measured", "target"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for name, seconds in best.items():
        table.add_row(name, f"{seconds * 1e3:.1f} ms", "")
    overhead = (best["our loop"] + per_line / job.settings.log_every) / best["bare step"] - 1
    table.add_row("loop over bare step, logging every 100", f"{100 * overhead:+.1f} %", "< 5 %")
    table.add_row("naive loop over our loop", f"{best['naive loop'] / best['our loop']:.2f}x", "≥ 1.3x")
    table.add_row(
        "rendering of the batch over the step", f"{100 * render / best['bare step']:.2f} %", "< 10 %"
    )
    table.add_row("step over matrix-product speed", f"{100 * flops / best['bare step'] / speed:.0f} %", "")
    table.add_row("", f"{flops / best['bare step'] / 1e9:.0f} of {speed / 1e9:.0f} GFLOP/s", "")
    Console().print(table)


if __name__ == "__main__":
    main()
