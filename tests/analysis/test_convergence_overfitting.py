"""Since when a model learns by heart, against losses whose course is known."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.analysis.convergence import best_step
from polariscope.core.seeds import generator

STEPS = np.arange(500, 8001, 500)


def losses(course: np.ndarray, slope: float = -1.0) -> list[tuple[int, float, float]]:
    """A course of the loss on held-out observations, where that in training changes by so much with each doubling."""
    training = 20 + slope * np.log2(STEPS)
    return [
        (int(step), float(out), float(own)) for step, out, own in zip(STEPS, course, training, strict=True)
    ]


@pytest.mark.parametrize("best", [500, 2000, 3000])
def test_the_step_is_that_of_the_lowest_loss_where_it_rises(best: int) -> None:
    assert best_step(losses(20 + np.log2(STEPS / best) ** 2)) == best


def test_a_loss_that_falls_or_stays_is_no_learning_by_heart() -> None:
    assert best_step(losses(20 - np.log2(STEPS))) is None
    assert best_step(losses(np.full(len(STEPS), 20.0))) is None
    assert best_step(losses(np.where(STEPS == 2000, 19.0, 20.0))) is None  # once lower, and no rise since


def test_noise_alone_is_rarely_taken_for_a_rise() -> None:
    draw = generator(0, "losses")
    found = [best_step(losses(20 + 0.1 * draw.standard_normal(len(STEPS)))) for _ in range(400)]
    assert sum(step is not None for step in found) <= 0.04 * 400


@pytest.mark.parametrize("n", [0, 3, 4])
def test_few_losses_say_nothing(n: int) -> None:
    assert best_step([(step, float(step), 1.0) for step in (1000, 2000, 3000, 4000)[:n]]) is None


def test_an_objective_whose_loss_rises_in_training_too_is_none() -> None:
    rising = np.log2(STEPS)
    assert best_step(losses(rising)) == 500
    assert best_step(losses(rising, slope=0.0)) == 500
    draw = generator(0, "training")
    flagged = 0
    for _ in range(200):  # losses in training are of few batches, so they are noisy
        both = [
            (s, out, own + 0.2 * draw.standard_normal()) for s, out, own in losses(0.3 * rising, slope=0.3)
        ]
        flagged += best_step(both) is not None
    assert flagged <= 0.05 * 200
