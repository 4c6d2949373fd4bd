from __future__ import annotations

import numpy as np
import pytest

from polariscope.analysis.dimension.support.plateau import plateau
from polariscope.analysis.intrinsic_dimension import intrinsic_dimension
from polariscope.core.errors import InputError
from polariscope.numerics.neighbours import neighbours
from polariscope.testing.manifolds import cube, nonlinear, sphere, swiss_roll, torus

K = list(range(3, 41))


def test_a_flat_curve_is_stable_from_end_to_end():
    found = plateau(K, [5.0] * len(K))
    assert (found.low, found.high, found.spread, found.is_stable, found.note) == (3, 40, 0.0, True, None)


def test_the_stable_range_starts_where_the_curve_stops_moving():
    values = [5.0 + max(0, 10 - k) for k in K]  # falls by 1 a step until k = 10
    found = plateau(K, values)
    assert (found.low, found.high, found.is_stable) == (10, 40, True)


def test_the_smallest_of_two_plateaus_wins_and_ends_where_it_ends():
    values = [3.0 if k <= 12 else 5.0 for k in K]
    found = plateau(K, values)
    assert (found.low, found.high) == (3, 12)


def test_a_range_must_reach_an_octave():
    values = [3.0 if k <= 5 else 4.0 if k <= 11 else 6.0 for k in K]  # 3–5 and 6–11 are flat but short
    assert plateau(K, values).low == 12


def test_the_tolerance_is_relative_to_the_median():
    values = [10.0 if k % 2 else 10.4 for k in K]
    assert plateau(K, values, tolerance=0.05).is_stable
    assert not plateau(K, values, tolerance=0.03).is_stable


def test_without_a_stable_range_the_flattest_octave_is_taken_and_noted():
    values = [float(k) for k in K]
    found = plateau(K, values)
    assert not found.is_stable
    assert found.high == 2 * found.low
    # (2k − k)/1.5k is 2/3 in every octave.
    assert found.spread == pytest.approx(2 / 3, rel=0.01)
    assert "the estimates differ by 67%" in found.note


KNOWN = {
    # Stated errors: edges and curvature cost up to 10 % at 1,500 points, more in high dimensions.
    "sphere": (sphere(1500, 4), 4, 0.05),
    "torus": (torus(1500, 2), 2, 0.05),
    "roll": (swiss_roll(1500), 2, 0.05),
    "cube": (cube(1500, 3, 10), 3, 0.1),
    "curved": (nonlinear(1500, 4), 4, 0.12),
    "many": (sphere(1500, 10), 10, 0.12),
    "noisy": (
        np.pad(sphere(1500, 4), ((0, 0), (0, 25))) + 0.01 * np.random.default_rng(0).normal(size=(1500, 30)),
        4,
        0.1,
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_manifolds_have_their_dimension_within_the_stated_error(name):
    x, dimension, error = KNOWN[name]
    found = intrinsic_dimension(x)
    assert found.value == pytest.approx(dimension, rel=error)
    assert found.estimator == "mle"
    assert found.variant == "k-1, harmonic mean"
    assert found.checks[0].estimator == "twonn"


def test_noise_that_two_neighbours_take_for_dimensions_is_noted_and_the_likelihood_trusted():
    rng = np.random.default_rng(0)
    x = np.pad(torus(1500, 2), ((0, 0), (0, 26))) + 0.02 * rng.normal(size=(1500, 30))
    found = intrinsic_dimension(x)
    assert found.checks[0].value > 1.25 * found.value
    assert any(
        note.startswith(f"TwoNN gives {found.checks[0].value:.1f}") and "the likelihood is preferred" in note
        for note in found.notes
    )
    assert f"check: {found.checks[0].headline}" in str(found)


def test_agreement_is_not_noted():
    assert intrinsic_dimension(torus(800, 2)).notes == ()


def test_twonn_that_cannot_answer_does_not_stop_the_likelihood():
    # On a grid the first neighbours are all at distance 1.
    corners = np.stack(np.meshgrid(*[np.arange(4)] * 3), axis=-1).reshape(-1, 3)
    found = intrinsic_dimension(corners)
    assert found.checks == ()
    assert any(note.startswith("TwoNN, the check, failed: ") for note in found.notes)
    assert 2 < found.value < 4


def test_more_samples_than_wanted_are_drawn_with_the_seed():
    x = torus(400, 2)
    few = intrinsic_dimension(x, n_samples=200, seed=1)
    assert few.n_points == 200
    assert few.notes[0] == "200 of 400 samples were drawn at random."
    assert intrinsic_dimension(x, n_samples=200, seed=1) == few
    assert intrinsic_dimension(x, n_samples=200, seed=2).value != few.value
    assert intrinsic_dimension(x, n_samples=None).n_points == 400
    with pytest.raises(InputError, match="n_samples must be at least 10"):
        intrinsic_dimension(x, n_samples=3)


def test_a_table_can_be_given():
    x = torus(300, 2)
    assert intrinsic_dimension(neighbours(x, k=40)) == intrinsic_dimension(x)


def test_bad_samples_are_refused():
    with pytest.raises(InputError, match="two axes"):
        intrinsic_dimension(np.arange(100.0))
    with pytest.raises(InputError, match="x must vary"):
        intrinsic_dimension(np.ones((50, 4)))
