"""What a wide model predicts, against the linear theory and against curves whose future is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polariscope.analysis.theory import linear_vae
from polariscope.core.seeds import generator
from polariscope.sizing.methods.support.forecast import activations, forecast, trace_by_width

STEPS = np.arange(25, 4001, 25)


def still(variances: np.ndarray) -> np.ndarray:
    """Curves that do not move."""
    return np.tile(variances, (len(STEPS), 1))


@given(
    eigenvalues=st.lists(st.floats(0.01, 300), min_size=3, max_size=30),
    width=st.integers(2, 28),
)
def test_narrow_models_of_the_linear_theory_follow_from_a_wide_one(
    eigenvalues: list[float], width: int
) -> None:
    values = np.array(eigenvalues)
    width = min(width, len(values) - 1)
    for gamma in (None, 1.0):
        wide = linear_vae(values, width, gamma=gamma)
        found = trace_by_width(
            generator(0, "shuffled").permutation(wide.variances), None if gamma else len(values)
        )
        exact = [linear_vae(values, n, gamma=gamma).trace for n in range(1, width + 1)]
        np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_curves_that_stand_still_have_settled_on_the_answer_of_the_theory() -> None:
    eigenvalues = np.array([90.0, 60.0, 40.0, 30.0, 20.0, 12.0, 0.6, 0.3])
    for threshold in (0.02, 0.5, 1.0, 2.0):
        traces = np.cumsum(np.minimum(1, 1 / eigenvalues))
        found = forecast(STEPS, still(np.minimum(1, 1 / eigenvalues)), threshold)
        expected = int((traces <= threshold).sum())
        assert (found.value, found.low, found.high) == (expected, expected, expected)
        assert found.has_settled
        assert found.n_active == 6


@pytest.mark.parametrize(("slope", "side"), [(0.25, "low"), (-0.25, "high")])
def test_a_latent_on_its_way_across_widens_the_range_on_its_side(slope: float, side: str) -> None:
    # Two quiet latents at 0.05, a third at 0.75 that moves by a quarter per doubling; the threshold is 1.
    curves = still(np.array([0.05, 0.05, 0.75, 1.0]))
    curves[:, 2] = (
        0.75 + slope * np.log2(STEPS / STEPS[-1])
        if slope > 0
        else 1.05 + slope * np.log2(STEPS / STEPS[-1]).clip(-1)
    )
    found = forecast(STEPS, curves, 1.0)
    assert found.low == (2 if side == "low" else found.value)
    assert found.high >= (found.value if side == "low" else 3)


@pytest.mark.parametrize(("woke", "expected"), [(400, 0), (999, 0), (1500, 2), (2500, 2), (3900, 2)])
def test_as_many_may_wake_as_woke_in_the_last_two_doublings(woke: int, expected: int) -> None:
    curves = still(np.array([0.05, 0.05, 1.0, 1.0, 1.0, 1.0]))
    curves[woke > STEPS, 1] = 1.0
    curves[woke > STEPS, 0] = 1.0
    assert sum(activations(STEPS, curves)) == pytest.approx(0.95 * expected)
    found = forecast(STEPS, curves, 1.0)
    assert found.high >= 2 + expected
    assert found.n_activating == expected


def test_more_may_wake_than_a_model_has_left() -> None:
    # Three of four wake in the last doubling: a wider model may have three more.
    curves = still(np.array([0.05, 0.05, 0.05, 1.0]))
    curves[STEPS <= 2000] = 1.0
    found = forecast(STEPS, curves, 0.5)
    assert (found.value, found.n_activating, found.high) == (3, 3, 6)


def test_it_has_not_settled_while_noise_becomes_structure() -> None:
    curves = still(np.array([0.05, 0.3, 0.5, 1.0]))
    steady, falling = np.full(len(STEPS), 0.1), 0.1 * 2.0 ** -np.log2(STEPS / 1000)
    assert forecast(STEPS, curves, 1.0, gammas=steady).has_settled
    found = forecast(STEPS, curves, 1.0, gammas=falling)
    assert found.noise_fell == pytest.approx(0.5)
    assert not found.has_settled
    assert (found.value, found.high) == (3, 4)  # half of 1.85 passes


def test_a_wave_is_waited_for_twice_as_long_as_a_straggler() -> None:
    curves = still(np.array([0.01] * 6 + [1.0] * 4))
    curves[STEPS < 1500, 5] = 1.0
    assert forecast(STEPS, curves, 1.0).has_settled  # one of six
    curves[STEPS < 1500, 2:6] = 1.0
    assert not forecast(STEPS, curves, 1.0).has_settled  # four of six


def test_latents_that_hover_about_one_half_have_hardly_woken() -> None:
    # The twelfth of MNIST did so: whether it was just below one half, at the last look, was a matter of rounding.
    curves = still(np.array([0.01] * 6 + [0.51, 1.0]))
    sure = forecast(STEPS, curves, 1.0)
    curves[STEPS > 3000, 6] = 0.49
    found = forecast(STEPS, curves, 1.0)
    assert found.n_activated == pytest.approx((0.02, 0))
    assert (sure.has_settled, found.has_settled) == (True, True)
    assert (sure.n_activating, found.n_activating) == (0, 0)


def test_the_noise_of_training_widens_the_range_and_does_not_keep_it_from_standing() -> None:
    # 0.95 and 1.05: a tenth of the threshold off, the answer would be another; but nothing moves.
    found = forecast(STEPS, still(np.array([0.5, 0.45, 0.1, 0.9])), 0.55)
    assert (found.low, found.value, found.high) == (1, 2, 2)
    assert found.moves == 0
    assert found.has_settled


def test_what_half_awake_latents_share_may_be_kept_by_fewer() -> None:
    # Beyond the two that fit, four hold one half each: as much as two that are awake. Those that are nearly awake or
    # nearly asleep share nothing, and a learned γ takes up what is lost.
    curves = still(np.array([0.05, 0.2, 0.5, 0.5, 0.5, 0.5, 0.9, 1.0]))
    found = forecast(STEPS, curves, 0.6)
    assert (found.value, found.n_shared, found.high) == (2, 2, 2)
    assert forecast(STEPS, still(np.array([0.05, 0.2, 0.2, 0.2, 0.9, 1.0])), 0.3).n_shared == 0
    assert forecast(STEPS, curves, 0.6, n_features=30).n_shared == 0


def test_a_wave_that_falls_into_two_doublings_is_still_a_wave() -> None:
    # Two latents, of two that are awake, wake around 2,000 of 4,000 steps: in either doubling they half wake.
    curves = still(np.array([0.02, 0.02, 1.0, 1.0, 1.0]))
    curves[:, :2] = (0.02 + 0.98 / (1 + np.exp((STEPS - 2000) / 100)))[:, None]
    found = forecast(STEPS, curves, 1.0)
    assert found.n_activated == pytest.approx((0.98, 0.98), abs=0.01)
    assert found.n_activating == 2
    assert not found.has_settled


def test_the_noise_of_many_passive_latents_is_no_awakening() -> None:
    noise = generator(0, "noise").normal(scale=0.02, size=(len(STEPS), 244))
    curves = np.concatenate([still(np.full(12, 0.01)), 0.97 + noise], axis=1)
    found = forecast(STEPS, curves, 1.0)
    assert found.n_activated == (0, 0)
    assert (found.n_activating, found.has_settled) == (0, True)


def test_what_narrow_models_will_measure_follows_the_trend_until_it_stands() -> None:
    # Six latents fall by a tenth of a doubling each: one that stands is taken as it is.
    falling = np.tile((0.3 - 0.1 * np.log2(STEPS / STEPS[-1]))[:, None], (1, 6))
    found = forecast(STEPS, np.minimum(falling, 1), 1.0)
    assert not found.has_settled
    np.testing.assert_allclose(found.after(0), found.traces)
    np.testing.assert_allclose(found.after(4000), np.arange(1, 7) * 0.2)  # a doubling
    np.testing.assert_allclose(found.after(1657), np.arange(1, 7) * 0.25, rtol=1e-4)  # half of one
    np.testing.assert_allclose(found.after(400_000), found.after(4000))  # and no farther
    stands = forecast(STEPS, still(np.array([0.1, 0.2, 1.0, 1.0])), 1.0)
    assert stands.has_settled
    np.testing.assert_allclose(stands.after(4000), stands.traces)
