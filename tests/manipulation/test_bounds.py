"""No value moves by more than ε, whatever the manipulation says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polariscope.manipulation.bounds import moved, moved_bytes, moved_values


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0])
def test_values_in_the_unit_interval_stay_there_and_move_by_at_most_epsilon(epsilon: float) -> None:
    draw = np.random.default_rng(0)
    x, m = draw.uniform(size=5000), draw.uniform(-1, 1, size=5000)
    x[:100], x[100:200] = 0, 1
    x_new = moved_values(x, m, epsilon, reflects=True)
    assert x_new.min() >= 0
    assert x_new.max() <= 1
    assert np.abs(x_new - x).max() <= epsilon + 1e-15
    inside = (x + epsilon * m >= 0) & (x + epsilon * m <= 1)
    np.testing.assert_allclose(x_new[inside], (x + epsilon * m)[inside])
    # black is reflected at 0: down is up
    np.testing.assert_allclose(x_new[:100], epsilon * np.abs(m[:100]), atol=1e-15)


def test_values_without_bounds_are_moved_and_nothing_else() -> None:
    x, m = np.array([-3.0, 0.0, 7.0]), np.array([-1.0, 1.0, 0.5])
    np.testing.assert_array_equal(moved_values(x, m, 2.0, reflects=False), [-5.0, 2.0, 8.0])


@pytest.mark.parametrize("reflects", [True, False])
def test_tensors_move_as_arrays_do_and_have_gradients(reflects: bool) -> None:
    draw = np.random.default_rng(1)
    x, m = draw.uniform(size=400), draw.uniform(-1, 1, size=400)
    tensor = torch.from_numpy(m).requires_grad_()
    found = moved(torch.from_numpy(x), tensor, 0.7, reflects=reflects)
    np.testing.assert_allclose(found.detach().numpy(), moved_values(x, m, 0.7, reflects=reflects), atol=1e-15)
    found.sum().backward()
    assert tensor.grad is not None
    np.testing.assert_allclose(tensor.grad.abs().numpy(), 0.7)  # r has slope 1 or −1


@pytest.mark.parametrize("epsilon", [1 / 255, 0.1, 0.175, 0.2, 25.99 / 255])
def test_bytes_are_the_nearest_that_are_not_further_away_than_epsilon(epsilon: float) -> None:
    draw = np.random.default_rng(2)
    before = draw.integers(256, size=20_000).astype(np.uint8)
    m = np.concatenate([draw.uniform(-1, 1, size=10_000), np.sign(draw.normal(size=10_000))])
    x = before.astype(np.float32) / np.float32(255)
    after = moved_bytes(x, m, epsilon)
    change = after.astype(int) - before.astype(int)
    assert np.abs(change).max() == int(255 * epsilon + 1e-9)
    wanted = 255 * moved_values(x.astype(np.float64), m, epsilon, reflects=True)
    allowed = np.abs(np.rint(wanted) - before) <= 255 * epsilon + 1e-4
    np.testing.assert_array_equal(after[allowed], np.rint(wanted)[allowed])
    assert (np.abs(after - wanted) < 1).all()


def test_images_of_floats_are_rounded_without_leaving_the_bound() -> None:
    draw = np.random.default_rng(3)
    x, m = draw.uniform(size=20_000).astype(np.float32), draw.uniform(-1, 1, size=20_000)
    after = moved_bytes(x, m, 0.02).astype(np.float64) / 255
    assert np.abs(after - x).max() <= 0.02 + 1e-7
