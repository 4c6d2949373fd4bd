"""Since when a model learns by heart, against losses whose course is known."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.seeds import generator
from polariscope.sizing.support.by_heart import best_step

STEPS = np.arange(500, 8001, 500)


def losses(course: np.ndarray) -> list[tuple[int, float]]:
    return [(int(step), float(loss)) for step, loss in zip(STEPS, course, strict=True)]


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
    assert best_step([(step, float(step)) for step in (1000, 2000, 3000, 4000)[:n]]) is None
