"""The non-linear toy is the network it says, and its Jacobian the derivative."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.rendered.square_nonlinear import SquareNonlinearDataset


@pytest.mark.parametrize("weights", ["uniform", "normal"])
def test_values_are_the_network_of_the_factors(weights):
    data = SquareNonlinearDataset(weights=weights, gain=1.5, n_samples=40)
    (first, first_bias), (second, second_bias) = data.layers
    assert first.shape == (10, 2)
    assert second.shape == (6, 10)
    expected = np.tanh(data.factors(range(40)) @ first.T + first_bias) @ second.T + second_bias
    np.testing.assert_allclose(data.values(range(40)), expected, atol=1e-5)


def test_jacobian_is_the_derivative():
    data = SquareNonlinearDataset(weights="normal", n_samples=8)
    (first, first_bias), (second, second_bias) = data.layers
    w, step = data.factors(range(8)), 1e-6
    columns = []
    for direction in np.eye(2) * step:
        ahead, behind = (
            np.tanh((w + sign * direction) @ first.T + first_bias) @ second.T + second_bias
            for sign in (1, -1)
        )
        columns.append((ahead - behind) / (2 * step))
    np.testing.assert_allclose(data.jacobian(range(8)), np.stack(columns, axis=2), atol=1e-8)


def test_singular_value_ratio_squared_is_the_condition_of_the_metric():
    data = SquareNonlinearDataset(n_samples=20)
    jacobian = data.jacobian(range(20))
    expected = np.sqrt(np.linalg.cond(jacobian.transpose(0, 2, 1) @ jacobian))
    np.testing.assert_allclose(data.singular_value_ratio(range(20)), expected, rtol=1e-8)


def test_uniform_weights_lie_within_torch_bounds_and_gain_scales_them_only():
    one, three = (SquareNonlinearDataset(gain=gain, n_samples=1).layers for gain in (1.0, 3.0))
    for (weight, bias), (scaled, same), fan_in in zip(one, three, (2, 10), strict=True):
        assert max(np.abs(weight).max(), np.abs(bias).max()) <= 1 / np.sqrt(fan_in)
        np.testing.assert_allclose(scaled, 3 * weight)
        assert (same == bias).all()


def test_gain_bends_the_map():
    def nonlinearity(gain: float) -> float:
        data = SquareNonlinearDataset(gain=gain, n_samples=500)
        design = np.column_stack([data.factors(range(500)), np.ones(500)])
        rows = data.values(range(500)).astype(np.float64)
        residual = rows - design @ np.linalg.lstsq(design, rows, rcond=None)[0]
        return residual.var() / rows.var(axis=0).mean()

    assert nonlinearity(1.0) < 0.02
    assert nonlinearity(6.0) > 5 * nonlinearity(1.0)


def test_the_seeds_of_points_and_network_are_separate():
    base, points, network = (
        SquareNonlinearDataset(n_samples=5, seed=seed, network_seed=other)
        for seed, other in ((0, 0), (1, 0), (0, 1))
    )
    assert (base.layers[0][0] == points.layers[0][0]).all()
    assert (base.factors(range(5)) == network.factors(range(5))).all()
    assert (base.factors(range(5)) != points.factors(range(5))).any()
    assert (base.layers[0][0] != network.layers[0][0]).any()


@pytest.mark.parametrize(
    ("options", "words"), [({"gain": -1.0}, "gain must be pos"), ({"n_samples": 0}, "n_sampl")]
)
def test_impossible_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        SquareNonlinearDataset(**options)
