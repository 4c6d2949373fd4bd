"""What each objective costs over the β-VAE: one training step with the conv net at batch 64, side by side.

Every registered objective is measured with its defaults: forward, backward and optimiser steps (its adversary's too)
on a fixed batch of sprites; making the batch is left out. What is measured is processor time, of all threads, since
the machine is shared; and each objective is timed right after the β-VAE, in short rounds. The median of these ratios
is what counts, beside the ratio of the best rounds. The β-VAE against itself shows the noise of the measurement.

Targets: estimators of q(z), moments and discrepancies add under 5 %; a discriminator of latents stays under 2x.
Objectives on pairs see twice the observations, and those without a decoder train another network: no target.

    python benchmarks/objectives.py [--image-size 64] [--rounds 9] [--steps 5]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import polariscope as ps
from polariscope.data.dataset import AbstractDataset
from polariscope.objectives import AbstractObjective, Step, family
from polariscope.training.feed import Feed
from polariscope.training.loop import gradient_norm, make_optimisers, step_gradients
from polariscope.training.memory import keep_freed_memory
from polariscope.training.plan import plan

BATCH = 64


def training_step(data: AbstractDataset, name: str) -> Callable[[], None]:
    """One step of the loop on a fixed batch: the same calls, without the data and the log."""
    job = plan(data, name, "conv", 10, batch_size=BATCH)
    model = job.blueprint.build(0, data).to_device("cpu")
    companion = job.objective.companion(model, data, torch.Generator().manual_seed(0))
    trained, optimisers = make_optimisers(model, companion, job.objective, job.settings)
    batch = Feed(data, job.objective, model, len(job.split.train), 0).batch(
        np.arange(0, BATCH * 1000, 1000), 0
    )
    noise = torch.Generator().manual_seed(0)

    def step() -> None:
        terms = job.objective.terms(Step(model, batch, noise, companion))
        means = {name: term.per_batch for name, term in terms.items()}
        loss = step_gradients(terms, trained)
        norm = gradient_norm(trained["model"], None)
        torch.stack([value.detach() for value in (*means.values(), loss, norm)]).tolist()
        for optimiser in optimisers.values():
            optimiser.step()

    return step


def seconds(step: Callable[[], None], steps: int) -> float:
    """Processor time of a step."""
    start = time.process_time()
    for _ in range(steps):
        step()
    return (time.process_time() - start) / steps


def target(recipe: type[AbstractObjective]) -> tuple[str, float | None]:
    """What the ratio to the β-VAE should stay under, in words and as a number."""
    if recipe.needs or not recipe.trains_decoder:
        return "", None
    has_adversary = recipe.companion is not AbstractObjective.companion and recipe.companion_is_adversary
    return ("< 2x", 2.0) if has_adversary else ("< 5 %", 1.05)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()

    keep_freed_memory()
    data = ps.load_dataset("sprites", image_size=arguments.image_size)
    steps = {name: training_step(data, name) for name in family}
    reference = training_step(data, "beta")
    base: dict[str, list[float]] = {name: [] for name in steps}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for round_number in range(arguments.rounds + 1):
        for name, step in steps.items():
            measured = seconds(reference, arguments.steps), seconds(step, arguments.steps)
            if round_number:  # the first round warms up
                base[name].append(measured[0])
                times[name].append(measured[1])

    size, threads = arguments.image_size, torch.get_num_threads()
    fastest = min(min(measured) for measured in base.values())
    table = Table(
        title=f"A step: conv, batch {BATCH}, {size}×{size}, {threads} threads; β-VAE {fastest * 1e3:.0f} ms"
    )
    for column in ("objective", "best step", "over β-VAE, median", "over β-VAE, best", "target", ""):
        table.add_column(column, justify="left" if column == "objective" else "right")
    for name in steps:
        ratios = [own / beta for own, beta in zip(times[name], base[name], strict=True)]
        median, best = statistics.median(ratios), min(times[name]) / min(base[name])
        words, limit = target(family[name])
        verdict = "" if limit is None else "met" if median < limit else "missed"
        table.add_row(name, f"{min(times[name]) * 1e3:.1f} ms", _over(median), _over(best), words, verdict)
    Console().print(table)


def _over(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio >= 1.5 else f"{100 * (ratio - 1):+.1f} %"


if __name__ == "__main__":
    main()
