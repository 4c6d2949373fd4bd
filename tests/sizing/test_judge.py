"""Decisions while training, on curves whose end is known."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.sizing.judge import judge

STEPS = np.arange(25, 4001, 25)


def curves(
    final: np.ndarray, steps: np.ndarray = STEPS, descent: float = 150.0, pruning: float = 1500.0
) -> np.ndarray:
    """All latents fall to 0.03 first; then each drifts to its own final variance, as surplus ones do."""
    fall = 0.03 + 0.97 * np.exp(-steps / descent)[:, None]
    drift = (1 - np.exp(-np.maximum(0, steps - 5 * descent) / pruning))[:, None]
    return np.maximum(fall, 0.03 + (final - 0.03) * drift)


def first_decision(
    variances: np.ndarray, threshold: float = 1.0, steps: np.ndarray = STEPS
) -> tuple[str, int]:
    for look in range(16, len(steps) + 1):
        verdict = judge(steps[:look], variances[:look], threshold)
        if verdict.decision != "undecided":
            return verdict.decision, int(steps[look - 1])
    return "undecided", int(steps[-1])


def test_the_first_crossing_of_the_threshold_is_not_the_decision() -> None:
    # 16 latents dip to a sum below 1, then 6 are pruned: the sum ends near 0.3 + 6.
    variances = curves(np.array([0.03] * 10 + [1.0] * 6))
    assert variances.sum(axis=1).min() < 1
    looks = int((variances.sum(axis=1) <= 1).argmax()) + 1
    assert judge(STEPS[:looks], variances[:looks], 1.0).decision == "undecided"
    assert first_decision(variances)[0] == "too many"


def test_a_model_without_surplus_is_decided_early() -> None:
    decision, step = first_decision(curves(np.full(6, 0.02)))
    assert decision == "fits"
    assert (
        step <= 1600
    )  # the descent, exp(−t/150), is over by a thousand steps; the window then has to leave it


def test_a_model_far_too_wide_is_decided_long_before_it_has_settled() -> None:
    decision, step = first_decision(curves(np.array([0.05] * 5 + [1.0] * 40)))
    assert decision == "too many"
    assert step <= 1500


def test_a_plateau_in_which_nothing_is_learned_is_not_a_decision() -> None:
    variances = np.ones((len(STEPS), 4)) * 0.99
    verdict = judge(STEPS, variances, 1.0)
    assert verdict.decision == "undecided"
    assert not verdict.has_begun


@pytest.mark.parametrize(
    ("threshold", "decision"), [(1.0, "too many"), (1.2, "undecided"), (1.6, "fits"), (3.0, "fits")]
)
def test_a_latent_that_rises_across_the_threshold_leaves_it_open(threshold: float, decision: str) -> None:
    drift = np.linspace(0, 1, len(STEPS))[:, None]
    rising = np.tile(np.array([0.05] * 4), (len(STEPS), 1))
    rising = np.concatenate([rising, 0.1 + 0.8 * drift], axis=1)  # 0.3 … 1.1, 1.0 at look 140
    verdict = judge(STEPS[:140], rising[:140], threshold)
    assert verdict.decision == decision
    low, high = verdict.projected
    assert low <= verdict.level <= high


def test_noise_alone_rarely_decides_wrongly() -> None:
    # Level 0.9 of a threshold of 1, noise 0.02 per look and latent: never "too many", in 200 repetitions.
    draw = generator(0, "noise")
    wrong = 0
    for _ in range(200):
        noisy = 0.15 + 0.02 * draw.standard_normal((80, 6))
        wrong += judge(STEPS[:80], noisy, 1.0).decision == "too many"
    assert wrong == 0


def test_a_trend_of_one_latent_is_seen_among_many_steady_ones() -> None:
    steady = np.full((len(STEPS), 30), 0.01)
    rising = np.concatenate([steady, 0.3 + 0.2 * np.log2(STEPS / 50)[:, None] / 6], axis=1)
    verdict = judge(STEPS, rising, 1.0)
    # 0.3 + 0.2 (log₂ 80)/6 = 0.5107 now and 0.5441 after a doubling: the line is exact in log₂(step).
    assert verdict.level == pytest.approx(0.3 + 0.3 + 0.2 * np.log2(80) / 6, abs=1e-9)
    assert verdict.projected[1] == pytest.approx(verdict.level + 0.2 / 6, abs=1e-9)
    assert verdict.projected[0] == pytest.approx(verdict.level, abs=1e-9)


def test_trends_are_followed_to_the_horizon() -> None:
    # Lines in log₂(step), at 1,000 of 4,000 steps: two doublings ahead. One rises by 0.05 a doubling, perhaps by 0.1;
    # one falls by 0.02.
    steps = STEPS[STEPS <= 1000]
    doublings = np.log2(steps / 1000)
    variances = np.column_stack([0.3 + 0.05 * doublings, 0.2 - 0.02 * doublings, np.full(len(steps), 0.1)])
    verdict = judge(steps, variances, 1.0, horizon=4000)
    assert verdict.level == pytest.approx(0.6)
    assert verdict.projected == pytest.approx((0.6 + 0.25 * 0.05 - 2 * 0.02, 0.6 + 2 * 2 * 0.05))
    nearer = judge(steps, variances, 1.0, horizon=1000)  # looks half a doubling ahead all the same
    assert nearer.projected == pytest.approx(
        (0.6 + 0.125 * 0.05 - 0.5 * 0.02, 0.6 + 2 * 0.5 * 0.05), abs=1e-9
    )


def test_pruning_that_starts_slowly_is_not_taken_for_a_fit() -> None:
    # As published models of sprites do: two latents turn at 500 steps and rise for the whole training, to 0.9.
    turned = np.maximum(0, STEPS - 500)
    pruned = 0.1 + 0.8 * (1 - np.exp(-((turned / 1500) ** 1.5)))
    descent = np.exp(-STEPS / 60)
    variances = np.column_stack([0.02 + descent, 0.02 + descent, pruned + descent, pruned + descent]).clip(
        max=1
    )
    looks = [
        judge(STEPS[:k], variances[:k], 1.0, horizon=4000) for k in (36, 44, 56, 70)
    ]  # 900 to 1,750 steps
    assert looks[0].level < 0.5
    assert [look.decision for look in looks] == ["undecided"] * 3 + ["too many"]


def test_a_trend_that_many_latents_share_is_seen_though_none_shows_it() -> None:
    # 20 latents fall by 0.008 a doubling each, with noise of 0.006 a look: 1.08 now, 0.80 after 3,000 steps.
    draw = generator(0, "shared")
    steps = STEPS[STEPS <= 900]
    decisions = []
    for _ in range(40):
        noise = 0.006 * draw.standard_normal((len(steps), 20))
        verdict = judge(steps, 0.054 - 0.008 * np.log2(steps / 900)[:, None] + noise, 1.0, horizon=3000)
        decisions.append(verdict.decision)
        assert verdict.projected[0] < 0.95
    assert "too many" not in decisions


def test_a_curve_that_has_turned_is_not_judged_by_the_half_that_has_not() -> None:
    # Falls to 0.5 until 1,500 steps, then rises by 0.4 in 500: the line through the second half is flat.
    turned = np.where(STEPS < 1500, 0.5 + 0.4 * (1500 - STEPS) / 500, 0.5 + 0.4 * (STEPS - 1500) / 500)
    variances = np.stack([np.full(len(STEPS), 0.05), turned], axis=1)[:80]
    assert STEPS[79] == 2000
    verdict = judge(STEPS[:80], variances, 1.0)
    assert verdict.decision == "undecided"
    assert verdict.level == pytest.approx(0.95, abs=0.02)
    # Alone, without the turn in it, the same end would be decided: it rises beyond 1 in the next doubling.
    assert judge(STEPS[60:80], variances[60:], 0.9).decision == "too many"


def test_latents_that_are_being_pruned_decide_before_the_sum_has_passed_the_threshold() -> None:
    # Two of five rise by 0.3 per doubling and stand at 0.45 and 0.4: 0.97 now, 1.57 after a doubling, and 1.12 if they
    # do no more than a quarter of it.
    rising = np.log2(STEPS / STEPS[-1])[:, None] * 0.3 + np.array([0.45, 0.4])
    variances = np.concatenate([np.full((len(STEPS), 3), 0.04), np.maximum(0.04, rising)], axis=1)
    verdict = judge(STEPS, variances, 1.0)
    assert verdict.decision == "too many"
    assert verdict.projected == pytest.approx((0.97, 1.57), abs=1e-9)


def test_projections_stay_between_nothing_and_one_per_latent() -> None:
    verdict = judge(STEPS, curves(np.ones(5)), 1.0)
    assert 0 <= verdict.projected[0] <= verdict.projected[1] <= 5.02


def test_too_few_looks_are_refused() -> None:
    with pytest.raises(InputError, match=r"at least 4 measurements in the last 50% of the training, got 2"):
        judge(np.array([50, 100, 150, 200]), np.ones((4, 2)), 1.0)


def test_a_latent_that_waits_is_not_taken_for_a_passive_one() -> None:
    # Four latents wake at 200, 500, 1,000 and 1,500 steps; none was ever lower and rose. In the end all fit.
    wakes = np.array([200, 500, 1000, 1500])
    variances = np.where(STEPS[:, None] < wakes, 0.98, 0.05 + 0.93 * np.exp(-(STEPS[:, None] - wakes) / 60))
    variances = np.minimum(variances, 0.98)
    assert first_decision(variances)[0] == "fits"
    early = STEPS < 1500
    verdict = judge(STEPS[early], variances[early], 0.5)
    assert verdict.decision == "undecided"
    assert verdict.projected[0] < 0.5 < verdict.projected[1]


def test_a_model_that_has_learned_nothing_does_not_fit() -> None:
    assert judge(STEPS, np.full((len(STEPS), 1), 0.99), 1.0).decision == "undecided"


def test_a_latent_that_hovers_at_one_half_is_awake() -> None:
    # Three in use, two that were never learned, and one that crosses one half again and again.
    hovering = 0.5 + 0.02 * np.where(np.arange(len(STEPS)) % 2, 1, -1)
    others = np.tile([0.05, 0.05, 0.05, 1.0, 1.0], (len(STEPS), 1))
    verdict = judge(STEPS, np.column_stack([others, hovering]), 1.0)
    assert verdict.decision == "too many"


def test_posteriors_wider_than_the_prior_have_not_settled() -> None:
    variances = np.column_stack([np.full(len(STEPS), 0.1), 40 - np.log2(STEPS)])
    verdict = judge(STEPS, variances, 1.0)
    assert verdict.decision == "undecided"
    assert not verdict.has_settled
    assert judge(STEPS, np.minimum(variances, 1.0), 0.5).has_settled


def test_latents_that_fluctuate_together_are_as_noisy_as_their_sum() -> None:
    # Sum 1.1, fluctuating by 0.3 from look to look as one: rarely within 1, though each latent moves by 0.01 only.
    draw = generator(0, "together")
    wrong = 0
    for _ in range(100):
        common = 0.01 * draw.standard_normal((64, 1))
        wrong += judge(STEPS[:64], 1.1 / 30 + common + np.zeros((1, 30)), 1.0).decision == "fits"
    assert wrong <= 5


def test_a_sum_that_still_falls_as_a_whole_is_not_too_many_yet() -> None:
    # MNIST, 12 latents: 2.7 after 1,500 steps, 2.2 after 1,750, and 0.8 after 8,000. Which latents fall changes.
    looks = np.arange(25, 1751, 25)
    total = 2.2 - 2.2 * np.log2(looks / 1750)
    share = np.abs(np.sin(np.arange(12)[None] + looks[:, None] / 150)) + 0.2
    variances = np.clip(share / share.sum(1, keepdims=True) * total[:, None], 0, 1)
    assert judge(looks, variances, 1.0).decision == "undecided"
    assert judge(looks, np.tile(variances[-1], (len(looks), 1)), 1.0).decision == "too many"


def test_a_sum_that_falls_fits_where_the_first_descent_was_made_by_another_model() -> None:
    # Digits, 14 latents of a model of 32: 0.92 after 1,200 steps, less by a quarter with each doubling, as γ falls.
    looks = np.arange(25, 1201, 25)
    variances = np.tile((0.92 - 0.25 * np.log2(looks / 1200))[:, None] / 14, (1, 14))
    assert judge(looks, variances, 1.0).decision == "undecided"
    assert judge(looks, variances, 1.0, has_descended=True).decision == "fits"
    assert judge(looks, variances + 0.2 / 14, 1.0, has_descended=True).decision == "undecided"
