"""The decoder's variance, in words."""

from __future__ import annotations

from polariscope.analysis.noise import Noise

SETTINGS = {
    "model": {"likelihood": {"name": "x", "variance": 0.1, "learned": "shared", "floor": 1e-4}},
    "feature_variance": 0.95,
}


def test_a_learned_variance_is_said_beside_that_of_the_features() -> None:
    noise = Noise.of_run(SETTINGS, {"step": 5, "gamma": 0.2134})
    assert noise == Noise(0.2134, True, 0.95, 1e-4)
    assert noise.in_words == (
        "γ = 0.213 (learned; the mean feature variance is 0.95): directions with variance below γ count as noise"
    )


def test_a_log_without_it_says_nothing() -> None:
    assert Noise.of_run(SETTINGS, {"step": 5}) is None


def test_runs_from_before_the_floor_and_the_mean_variance_were_recorded_are_read() -> None:
    settings = {"model": {"likelihood": {"name": "x", "variance": 1.0, "learned": "no"}}}
    assert Noise.of_run(settings, {"gamma": 1.0}) == Noise(1.0, False)


def test_one_that_has_come_down_to_its_floor_says_so() -> None:
    assert "is near its floor, 0.0001" in Noise(1.5e-4, True, 1.0, 1e-4).in_words
    assert "floor" not in Noise(2.5e-4, True, 1.0, 1e-4).in_words
    assert not Noise(1e-4, False).is_at_floor
