"""How fast a training step is: three ratios, measured side by side in one run.

1. the loop (data, logging, checks) over the bare forward/backward/optimiser step of the same model: < 1.05;
2. the naive step (eager, NCHW, DataLoader over stored images, plain Adam) over our whole loop: ≥ 1.3;
3. the speed of our step, in multiplications and additions, over this machine's matrix products.

Also what rendering the sprites costs of a step. The contenders take turns in short rounds; ratios are medians
over the rounds, since the machine is shared and noisy.

    python benchmarks/train_step.py [--image-size 64] [--rounds 15] [--steps 8]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode

import polariscope as ps
from polariscope.models.model import Model
from polariscope.objectives import Batch, Step, total
from polariscope.training.loop import fit
from polariscope.training.memory import keep_freed_memory
from polariscope.training.plan import RunPlan, plan


def bare_step(job: RunPlan, keep_memory: bool = True) -> Callable[[int], None]:
    """Forward, backward and optimiser on a fixed batch, as fast as we know."""
    if keep_memory:
        keep_freed_memory()
    model = job.blueprint.build(0).to_device("cpu")
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    x = model.place(torch.from_numpy(job.data.values(np.arange(0, 64 * 1000, 1000))))
    noise = torch.Generator().manual_seed(0)

    def run(steps: int) -> None:
        for _ in range(steps):
            loss = total(job.objective.terms(Step(model, Batch(x, 0), noise)))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()

    return run


def our_loop(job: RunPlan) -> Callable[[int], float]:
    """The real loop; returns its seconds per step once it is running (setting up a run is paid once)."""
    keep_freed_memory()
    model = job.blueprint.build(0).to_device("cpu")
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
    decoder = model.decoder
    assert decoder is not None
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
            logits = decoder.trunk(z)
            reconstruction = torch.nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="none")
            loss = (reconstruction.sum(dim=(1, 2, 3)) + 4.0 * rate).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            loss.item()

    return run


def seconds_per_step(run: Callable[[int], object], steps: int) -> float:
    """The seconds that ``run`` says, or else how long it took."""
    start = time.perf_counter()
    measured = run(steps)
    return measured if isinstance(measured, float) else (time.perf_counter() - start) / steps


def flops_of_step(job: RunPlan) -> int:
    """Multiplications and additions of one forward and backward pass."""
    model: Model = job.blueprint.build(0)
    x = torch.from_numpy(job.data.values(np.arange(64)))
    with FlopCounterMode(display=False) as counter:
        total(job.objective.terms(Step(model, Batch(x, 0), torch.Generator().manual_seed(0)))).backward()
    return counter.get_total_flops()


def matmul_speed() -> float:
    """Best multiplications and additions per second of a 1024³ matrix product."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    best = min(seconds_per_step(lambda n: [a @ b for _ in range(n)], 5) for _ in range(8))
    return 2 * 1024**3 / best


CONTENDERS: dict[str, Callable[[RunPlan], Callable[[int], object]]] = {
    "bare step": bare_step,
    "bare step, memory handed back": functools.partial(bare_step, keep_memory=False),
    "our loop": our_loop,
    "naive loop": naive_loop,
}


def compete(name: str, image_size: int, log_every: int, orders: Connection) -> None:
    """One contender in a process of its own, since how memory is kept is a matter of the whole process."""
    data = ps.load_dataset("sprites", image_size=image_size)
    job = plan(data, "beta", "conv", 10, beta=4.0, steps=10**9, log_every=log_every, validate_every=1000)
    run = CONTENDERS[name](job)
    while (steps := orders.recv()) is not None:
        orders.send(seconds_per_step(run, steps))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=8)
    arguments = parser.parse_args()

    spawn = multiprocessing.get_context("spawn")
    orders: dict[str, Connection] = {}
    for name, contender, log_every in [
        *((name, name, 100) for name in CONTENDERS),
        ("our loop, a line every step", "our loop", 1),
    ]:
        orders[name], theirs = spawn.Pipe()
        spawn.Process(
            target=compete, args=(contender, arguments.image_size, log_every, theirs), daemon=True
        ).start()
    seconds: dict[str, list[float]] = {name: [] for name in orders}
    for round_number in range(arguments.rounds + 1):
        for name, order in orders.items():
            order.send(arguments.steps)
            measured = order.recv()
            if round_number:  # the first round warms up
                seconds[name].append(measured)
    for order in orders.values():
        order.send(None)
    best = {name: min(times) for name, times in seconds.items()}

    def ratio(one: str, other: str) -> float:
        """Median over the rounds, in which the two ran next to each other."""
        return float(np.median(np.array(seconds[one]) / np.array(seconds[other])))

    data = ps.load_dataset("sprites", image_size=arguments.image_size)
    job = plan(data, "beta", "conv", 10)
    batches = iter(np.random.default_rng(0).permutation(len(data)).reshape(-1, 64))
    render = min(
        seconds_per_step(lambda n: [data.values(next(batches)) for _ in range(n)], 50) for _ in range(5)
    )
    per_line = best.pop("our loop, a line every step") - best["our loop"]
    flops, speed = flops_of_step(job), matmul_speed()
    size, threads = arguments.image_size, torch.get_num_threads()
    table = Table(
        title=f"One step: conv, batch 64, {size}×{size}, {threads} threads, best of {arguments.rounds}"
    )
    for column in ("what", "measured", "target"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for name, time_taken in best.items():
        table.add_row(name, f"{time_taken * 1e3:.1f} ms", "")
    table.add_row("one line of the log", f"{per_line * 1e3:.0f} ms", "")
    overhead = ratio("our loop", "bare step") - 1 + per_line / 100 / best["bare step"]
    table.add_row("loop over bare step, a line every 100 steps", f"{100 * overhead:+.1f} %", "< 5 %")
    handed_back = ratio("bare step, memory handed back", "bare step")
    table.add_row("bare step, memory handed back over kept", f"{handed_back:.2f}x", "")
    table.add_row("naive loop over our loop", f"{ratio('naive loop', 'our loop'):.2f}x", "≥ 1.3x")
    table.add_row(
        "rendering of the batch over the step", f"{100 * render / best['bare step']:.2f} %", "< 10 %"
    )
    table.add_row("step over matrix-product speed", f"{100 * flops / best['bare step'] / speed:.0f} %", "")
    table.add_row("", f"{flops / best['bare step'] / 1e9:.0f} of {speed / 1e9:.0f} GFLOP/s", "")
    Console().print(table)


if __name__ == "__main__":
    main()
