"""Each state of a training, from small logs whose truth is known, and the error rates that theory predicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from polariscope.analysis.convergence import (
    crossing,
    held_out_loss,
    information,
    overfitting_since,
    training_state,
)

N_LINES = 80
STEPS = np.arange(1, N_LINES + 1) * 100
START = 20.0
"""Loss gained in the first line: with it the tolerance is 0.5 nats (5 % of 20 is 1, and 1 % is 0.2)."""


def log(
    losses: Sequence[float] | np.ndarray, steps: Sequence[int] | np.ndarray = STEPS, **fields: Any
) -> list[dict[str, Any]]:
    """Lines of a log; ``fields`` are sequences, one entry per line."""
    columns = {"step": steps, "loss": losses, **fields}
    return [
        {name: int(values[i]) if name == "step" else values[i] for name, values in columns.items()}
        for i in range(len(steps))
    ]


def state_of(
    losses: Sequence[float] | np.ndarray, steps: Sequence[int] | np.ndarray = STEPS, **fields: Any
) -> str:
    return training_state(log(losses, steps, **fields), threshold=0.05).code


def settled(rng: np.random.Generator, noise: float, slope: float = 0.0, memory: float = 0.0) -> np.ndarray:
    """A curve that fell by 20 nats in its first line and then has a slope in log₂(step), with noise around it."""
    shocks = rng.normal(scale=noise * math.sqrt(1 - memory**2), size=N_LINES)
    values = np.empty(N_LINES)
    values[0] = rng.normal(scale=noise)
    for i in range(1, N_LINES):
        values[i] = memory * values[i - 1] + shocks[i]
    curve = slope * np.log2(STEPS / STEPS[-1]) + values
    curve[0] += START
    return curve


def share_of(code: str, make: Callable[[np.random.Generator], np.ndarray], n: int = 500) -> float:
    rng = np.random.default_rng(0)
    return float(np.mean([state_of(make(rng)) == code for _ in range(n)]))


# Error rates.


def test_a_gain_of_exactly_the_tolerance_is_missed_in_5_percent_of_trainings() -> None:
    """The batch means of white noise are normal, so the one-sided limit holds exactly; 4 standard errors of a rate."""
    rate = share_of("converged", lambda rng: settled(rng, 0.2, slope=-0.5))
    assert abs(rate - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 500)


def test_noise_around_a_constant_is_a_false_alarm_only_if_the_noise_hides_the_tolerance() -> None:
    """With 10 batches of 4 lines the slope has a standard error of 0.55 noise: 0.5 nats are 9 of them at noise 0.1.

    At noise 0.5 the limit, about 1.86 standard errors, exceeds 0.5 nats for most curves: nothing can be concluded.
    """
    assert share_of("still-learning", lambda rng: settled(rng, 0.1)) == 0
    assert share_of("still-learning", lambda rng: settled(rng, 0.5)) > 0.5


def test_autocorrelated_noise_hardly_changes_the_rate_of_misses() -> None:
    """With a correlation of 0.5 between lines, means of 4 lines still correlate by about 0.2."""
    rate = share_of("converged", lambda rng: settled(rng, 0.2, slope=-0.5, memory=0.5))
    assert rate < 0.1


def test_noise_of_the_held_out_loss_is_seldom_overfitting() -> None:
    """A one-sided 95 % limit with 8 validations or more, and 1 of 24 orders with fewer."""
    rng = np.random.default_rng(0)
    for n_validations in (4, 5, 7, 8, 9, 12, 20, 40):
        steps = np.arange(1, n_validations + 1) * 1000
        found = [
            overfitting_since(
                log(
                    rng.normal(scale=0.1, size=n_validations),
                    steps,
                    validation=[{"loss": value} for value in rng.normal(size=n_validations)],
                    weights=[{"loss": 1.0}] * n_validations,
                )
            )
            is not None
            for _ in range(300)
        ]
        assert np.mean(found) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 300), n_validations


def test_a_held_out_loss_that_rose_early_and_stays_high_is_overfitting() -> None:
    """As wine with 5 latents: lowest at step 1,600, then constant; the training loss falls to the end."""
    rng = np.random.default_rng(0)
    steps = np.arange(1, 31) * 200
    held_out = np.where(
        steps < 1600, 18 + (1600 - steps) / 400, np.minimum(19.6, 17.9 + (steps - 1600) / 1000)
    )
    training = 15.2 - 1.9 * np.log2(steps / 200) / np.log2(30)
    for noise, since in ((0.05, {1400, 1600, 1800}), (2.0, {None})):
        losses = [{"loss": value} for value in held_out + rng.normal(scale=noise, size=30)]
        found = overfitting_since(
            log(training, steps, validation=losses, weights=[{"loss": 1.0}] * 30), 0, 0.5
        )
        assert found in since
    # If the training loss rose alike, the objective would have changed.
    lines = log(held_out, steps, validation=[{"loss": v} for v in held_out], weights=[{"loss": 1.0}] * 30)
    assert overfitting_since(lines, 0, 0.5) is None


# Each state.


def test_without_a_log_the_state_is_unknown() -> None:
    assert training_state([], threshold=0.05).code == "unknown"


def test_a_loss_that_falls_in_log_steps_is_still_learning_and_says_how_much_is_gained() -> None:
    state = training_state(log(100 - 5 * np.log2(STEPS)), threshold=0.05)
    assert state.code == "still-learning"
    assert state.gain == pytest.approx(5)
    assert state.gain_limit == pytest.approx(5)
    assert state.more_steps == STEPS[-1]
    assert not state.allows_advice


def test_a_loss_at_its_limit_has_converged() -> None:
    rng = np.random.default_rng(0)
    state = training_state(
        log(100 * np.exp(-STEPS / 300) + rng.normal(scale=0.05, size=N_LINES)), threshold=0.05
    )
    assert state.code == "converged"
    assert state.allows_advice
    assert state.tolerance == pytest.approx(0.01 * 100 * math.exp(-1 / 3), abs=0.01)


def test_few_lines_are_unknown_unless_they_clearly_fall() -> None:
    few = STEPS[:10]
    rng = np.random.default_rng(0)
    assert state_of(100 - 5 * np.log2(few), few) == "still-learning"
    assert state_of(np.where(few > 100, 50.0, 100.0) + rng.normal(scale=0.1, size=10), few) == "unknown"
    assert state_of([3.0, 2.0, 1.0], STEPS[:3]) == "unknown"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_has_diverged(bad: float) -> None:
    assert state_of([*np.linspace(9, 1, N_LINES - 1), bad]) == "diverged"


def test_a_loss_that_rises_above_its_first_value_has_diverged() -> None:
    """A training loss that exploded without becoming infinite; one that falls again has not diverged."""
    exploded = np.where(STEPS < 4000, 10.0, 10.0 * 1.1 ** ((STEPS - 4000) / 100))
    assert state_of(exploded) == "diverged"
    spike = 50 * np.exp(-STEPS / 500)
    spike[60] = 1000.0
    assert state_of(spike) != "diverged"
    rng = np.random.default_rng(0)
    assert state_of(rng.normal(scale=0.02, size=N_LINES)) != "diverged"  # nothing to learn


def test_a_rate_that_decays_to_0_is_judged_before_the_decay() -> None:
    """The loss stops because the rate is 0: at full rate it fell by 5 nats per doubling."""
    rate = 0.5 * (1 + np.cos(np.pi * STEPS / STEPS[-1]))
    losses = 100 - 5 * np.log2(np.minimum(STEPS, 4000))
    assert state_of(losses) == "converged"
    state = training_state(log(losses, learning_rate=rate), threshold=0.05)
    assert state.code == "still-learning"
    assert state.judged_until == 4000
    flat = training_state(log(100 * np.exp(-STEPS / 200), learning_rate=rate), threshold=0.05)
    assert (flat.code, flat.judged_until) == ("converged", 4000)


def test_a_training_that_ends_before_its_ramp_is_still_learning_and_later_only_the_rest_counts() -> None:
    flat = log(np.where(STEPS <= 4000, 100.0 - STEPS / 100, 50.0))
    state = training_state(flat, threshold=0.05, ramp_until=10_000)
    assert (state.code, state.ramp_until, state.more_steps) == ("still-learning", 10_000, 12_000)
    assert training_state(flat, threshold=0.05, ramp_until=4000).code == "converged"


def test_early_stopping_is_its_own_state() -> None:
    state = training_state(log(100 - 5 * np.log2(STEPS)), threshold=0.05, stopped_at=6000)
    assert (state.code, state.since, state.allows_advice) == ("stopped-early", 6000, True)


def overfitted(rise: float, training: float) -> list[dict[str, Any]]:
    """Sixteen validations: the held-out loss is lowest at step 4,000 and then changes by ``rise`` per doubling."""
    steps = np.arange(1, 161) * 100
    fall = 50 * np.exp(-steps / 500)
    lines = log(fall + training * np.log2(steps / 4000), steps, weights=[{"loss": 1.0}] * 160)
    for line in lines:
        if line["step"] % 1000 == 0:
            after = max(0.0, math.log2(line["step"] / 4000))
            line["validation"] = {"loss": 50 * math.exp(-line["step"] / 500) + 1 + rise * after}
    return lines


def test_a_held_out_loss_that_rises_while_the_training_loss_does_not_is_overfitting() -> None:
    state = training_state(overfitted(rise=3.0, training=-2.0), threshold=0.05)
    assert (state.code, state.since) == ("overfitting", 4000)
    assert state.allows_advice


def test_overfitting_shows_from_four_validations_on() -> None:
    lines = overfitted(rise=3.0, training=-2.0)
    early = [
        line for line in lines if line["step"] <= 7000
    ]  # validations at 4,000, 5,000, 6,000 and 7,000 rise
    assert overfitting_since(early) == 4000
    assert overfitting_since(early, tolerance=10.0) is None
    assert overfitting_since([line for line in lines if line["step"] <= 6000]) is None


def test_if_both_losses_rise_alike_the_objective_has_changed_and_nothing_overfits() -> None:
    assert overfitting_since(overfitted(rise=3.0, training=3.0)) is None


def test_a_rise_of_the_held_out_loss_below_the_tolerance_is_not_overfitting() -> None:
    """The validation has the same noise every time, so a rise of a thousandth of the gain is significant."""
    assert training_state(overfitted(rise=0.02, training=-0.02), threshold=0.05).code == "converged"


# Latents.


def moments(values: np.ndarray) -> dict[str, list[list[float]]]:
    """Moments of latents with some information, (line, latent): posterior variance 0.5."""
    return {
        "variance": np.full_like(values, 0.5).tolist(),
        "std": np.sqrt(0.5 * np.expm1(2 * values)).tolist(),
    }


def test_information_is_recovered_from_the_moments_of_a_line() -> None:
    line = {"variance": [0.5, 0.0, 1.0], "std": [math.sqrt(0.5 * math.expm1(2 * 0.3)), 1.0, None]}
    assert information(line)[0] == pytest.approx(0.3)
    assert all(math.isnan(value) for value in information(line)[1:])
    assert information({"step": 1}) == []


def test_a_latent_that_will_cross_the_threshold_is_named_though_the_loss_is_flat() -> None:
    rng = np.random.default_rng(0)
    last_half = np.maximum(-1, np.log2(STEPS / STEPS[-1]))[:, None]
    trends = last_half * [0.02, -0.02, 0.0, 0.02] + [0.04, 0.06, 0.04, 0.2]
    values = trends + rng.normal(scale=0.001, size=trends.shape)
    flat = settled(rng, 0.01)
    assert crossing(log(flat, **moments(values)), 0.05) == (0, 1)
    state = training_state(log(flat, **moments(values)), threshold=0.05)
    assert (state.code, state.moves) == ("still-learning", (0, 1))


def test_a_latent_that_only_fluctuates_near_the_threshold_seldom_moves() -> None:
    """Both sides of the 95 % limits, and a crossing needs the right side: at most 10 %, 4 standard errors of a rate."""
    rng = np.random.default_rng(0)
    moved = [
        bool(
            crossing(
                log(np.zeros(N_LINES), **moments(0.05 + rng.normal(scale=0.003, size=(N_LINES, 1)))), 0.05
            )
        )
        for _ in range(300)
    ]
    assert np.mean(moved) < 0.1 + 4 * math.sqrt(0.1 * 0.9 / 300)


def test_the_held_out_loss_has_the_weights_of_the_objective() -> None:
    line = {
        "validation": {"reconstruction": 10.0, "rate": 2.0, "watched": 99.0},
        "weights": {"rate": 4.0, "watched": 0.0},
    }
    assert held_out_loss(line) == 18.0
