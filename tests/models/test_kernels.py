"""The maximum mean discrepancy is the distance of two mean embeddings, whatever the kernel."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest
import torch

from oracles import assert_mean_is, random_rotation
from polariscope.core.errors import InputError
from polariscope.models.kernels import (
    SCALES,
    Estimator,
    Kernel,
    kernel_sum,
    median_square,
    mmd,
    pair_weights,
    squared_distances,
)

KERNELS = get_args(Kernel)
ESTIMATORS = get_args(Estimator)


def by_hand(kernel: str, width: float, scales: tuple[float, ...] = SCALES) -> Callable:
    """k(x, y) of two vectors, spelled out from the reference."""

    def imq(distance: float, c: float) -> float:
        return sum(s * c / (s * c + distance) for s in scales)

    def k(x: np.ndarray, y: np.ndarray) -> float:
        square = ((x - y) ** 2).sum()
        n = len(x)
        if kernel == "imq":
            return imq(square, 2 * n * width**2)
        if kernel == "imq-per-latent":
            return sum(imq(d, 2 * width**2) for d in (x - y) ** 2)
        if kernel == "imq-unsquared":
            return imq(np.sqrt(square), np.sqrt(2 * n) * width)
        return float(np.exp(-square / (2 * width**2)))

    return k


def expected_mmd(k: Callable, first: np.ndarray, second: np.ndarray) -> float:
    """E[k(X, X') − 2k(X, Y) + k(Y, Y')] for draws with replacement from two finite populations."""

    def mean(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.mean([k(x, y) for x in a for y in b]))

    return mean(first, first) - 2 * mean(first, second) + mean(second, second)


def draws(n: int, n_latents: int, seed: int) -> torch.Tensor:
    return torch.randn(n, n_latents, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_distances_do_not_suffer_from_an_offset_and_are_0_from_a_point_to_itself() -> None:
    x = draws(20, 3, 0)
    expected = ((x[:, None] - x[None, :]) ** 2).sum(2)
    # Squares of the offset are 1e20 and have an error of 1e4; the offset itself costs each point 1e-6.
    found = squared_distances(x + 1e10)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
    many = squared_distances(draws(200, 50, 1))  # sums of so many squares are rounded in several ways
    assert torch.equal(many.diagonal(), torch.zeros(200).double())
    assert (many >= 0).all()


def test_the_kernel_of_each_latent_is_added_for_any_number_of_points() -> None:
    x = draws(257, 2, 0)  # beyond 256, one latent at a time is more than is held at once
    weights = torch.ones(257, 257).double()
    expected = sum(kernel_sum(column, weights, "imq") for column in x.split(1, dim=1))
    torch.testing.assert_close(kernel_sum(x, weights, "imq-per-latent"), expected)


def test_the_median_is_that_of_points_that_are_apart_beyond_rounding() -> None:
    squares = torch.zeros(4, 4).double()
    rows, columns = torch.triu_indices(4, 4, 1)
    squares[rows, columns] = torch.tensor([1e-17, 400.0, 1e-17, 900.0, 100.0, 1e-17]).double()
    assert float(median_square(squares + squares.T)) == 400


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_it_is_the_mean_over_pairs_spelled_out(kernel: Kernel, estimator: Estimator) -> None:
    x, y = draws(5, 3, 0), draws(4, 3, 1) * 2 + 1
    k = by_hand(kernel, 0.7)

    def within(z: np.ndarray) -> float:
        pairs = [(i, j) for i in range(len(z)) for j in range(len(z)) if estimator == "biased" or i != j]
        return float(np.mean([k(z[i], z[j]) for i, j in pairs]))

    across = np.mean([k(a, b) for a in x.numpy() for b in y.numpy()])
    expected = within(x.numpy()) + within(y.numpy()) - 2 * across
    found = mmd(x, y, kernel, width=0.7, estimator=estimator)
    assert float(found) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_unbiased_estimator_is_right_on_average_over_every_sample(kernel: Kernel) -> None:
    # All 4² · 3² ordered samples of two from two small populations, each as likely as any other.
    first, second = draws(4, 2, 0).numpy(), draws(3, 2, 1).numpy() + 0.5
    k = by_hand(kernel, 1.3)
    found = {estimator: [] for estimator in ESTIMATORS}
    for a in itertools.product(range(4), repeat=2):
        for b in itertools.product(range(3), repeat=2):
            for estimator in ESTIMATORS:
                x, y = torch.from_numpy(first[list(a)]), torch.from_numpy(second[list(b)])
                found[estimator].append(float(mmd(x, y, kernel, width=1.3, estimator=estimator)))
    exact = expected_mmd(k, first, second)
    assert np.mean(found["unbiased"]) == pytest.approx(exact, rel=1e-10)
    assert min(found["unbiased"]) < 0
    # The V-statistic exceeds it by (k(x,x) − E k(X,X'))/n for each of the two samples.
    point = k(first[0], first[0])
    pairs = [np.mean([k(a, b) for a in z for b in z]) for z in (first, second)]
    assert np.mean(found["biased"]) == pytest.approx(exact + sum(point - p for p in pairs) / 2, rel=1e-10)


def gaussian_kernel_mean(mean: np.ndarray, variance: float, width: float) -> float:
    """E exp(−‖D‖²/2h²) for D ~ N(mean, variance · I): a Gaussian integral."""
    spread = 1 + variance / width**2
    return float(spread ** (-len(mean) / 2) * np.exp(-(mean @ mean) / (2 * width**2 * spread)))


def test_two_normals_with_a_gaussian_kernel_have_the_closed_form() -> None:
    width, shift, v1, v2 = 1.2, np.array([0.8, -0.3, 0.0]), 1.0, 0.4
    exact = (
        gaussian_kernel_mean(0 * shift, 2 * v1, width)
        + gaussian_kernel_mean(0 * shift, 2 * v2, width)
        - 2 * gaussian_kernel_mean(shift, v1 + v2, width)
    )
    found = [
        float(
            mmd(
                draws(40, 3, 2 * seed),
                draws(30, 3, 2 * seed + 1) * v2**0.5 + torch.from_numpy(shift),
                "rbf",
                width,
            )
        )
        for seed in range(300)
    ]
    assert_mean_is(np.array(found), exact)


def test_two_normals_with_the_per_latent_kernel_agree_with_quadrature() -> None:
    shift, v = np.array([0.5, 0.0]), np.array([0.25, 2.0])

    def expected_kernel(mean: float, variance: float) -> float:
        d = np.linspace(mean - 12 * variance**0.5, mean + 12 * variance**0.5, 20_001)
        density = np.exp(-((d - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
        return float(np.trapezoid(density * sum(2 * s / (2 * s + d**2) for s in SCALES), d))

    exact = sum(
        expected_kernel(0, 2) + expected_kernel(0, 2 * b) - 2 * expected_kernel(a, 1 + b)
        for a, b in zip(shift, v, strict=True)
    )
    found = [
        float(
            mmd(
                draws(40, 2, 2 * seed),
                draws(40, 2, 2 * seed + 1) * torch.from_numpy(v**0.5) + torch.from_numpy(shift),
                "imq-per-latent",
            )
        )
        for seed in range(300)
    ]
    assert_mean_is(np.array(found), exact)


@pytest.mark.parametrize("kernel", KERNELS)
def test_equal_distributions_are_at_distance_zero_and_a_sample_is_at_its_own(kernel: Kernel) -> None:
    found = [
        float(mmd(draws(20, 2, 2 * seed), draws(20, 2, 2 * seed + 1), kernel, 1.0)) for seed in range(200)
    ]
    assert_mean_is(np.array(found), 0)
    x = draws(20, 2, 0)
    rounding = 1e-7 if kernel == "imq-unsquared" else 1e-13  # a distance of 0 is the root of some 1e-16
    assert float(mmd(x, x.flip(0), kernel, estimator="biased")) == pytest.approx(0, abs=rounding)
    assert float(mmd(x, x + 2, kernel, estimator="biased")) > 0.1


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_gradient_is_that_of_the_value(kernel: Kernel, estimator: Estimator) -> None:
    x, y = draws(4, 3, 0).requires_grad_(), draws(5, 3, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: mmd(a, b, kernel, 1.1, estimator=estimator), (x, y))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_coinciding_points_have_a_finite_gradient(kernel: Kernel, dtype: torch.dtype) -> None:
    x = torch.ones(4, 3, dtype=dtype).requires_grad_()
    value = mmd(x, torch.cat([torch.ones(2, 3), torch.zeros(3, 3)]).to(dtype), kernel, estimator="biased")
    (gradient,) = torch.autograd.grad(value, x)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_leaves_it_unchanged(kernel: Kernel) -> None:
    x, y = draws(6, 3, 0), draws(7, 3, 1) + 0.5
    value = mmd(x, y, kernel, 1.0)
    rotation = torch.from_numpy(random_rotation(3, seed=0))
    torch.testing.assert_close(mmd(x + 5, y + 5, kernel, 1.0), value)
    torch.testing.assert_close(mmd(x.flip(0), y.roll(2, 0), kernel, 1.0), value)
    torch.testing.assert_close(mmd(y, x, kernel, 1.0), value)
    torch.testing.assert_close(mmd(3 * x, 3 * y, kernel, 3.0), value)
    torch.testing.assert_close(mmd(x.flip(1), y.flip(1), kernel, 1.0), value)
    turned = mmd(x @ rotation, y @ rotation, kernel, 1.0)
    if kernel == "imq-per-latent":
        assert abs(float(turned - value)) > 1e-3  # it looks at the axes
    else:
        torch.testing.assert_close(turned, value)


def test_the_per_latent_kernel_does_not_see_dependence() -> None:
    u = draws(50, 1, 0)
    u = torch.cat([u, -u])
    same, opposite = torch.cat([u, u], 1), torch.cat([u, -u], 1)  # equal marginals, correlations 1 and −1
    assert float(mmd(same, opposite, "imq-per-latent", estimator="biased")) == pytest.approx(0, abs=1e-12)
    assert float(mmd(same, opposite, "imq", estimator="biased")) > 0.1


def test_with_one_latent_the_kernel_and_its_per_latent_form_are_one() -> None:
    x, y = draws(6, 1, 0), draws(7, 1, 1)
    torch.testing.assert_close(mmd(x, y, "imq-per-latent", 0.8), mmd(x, y, "imq", 0.8))


def test_without_a_width_the_gaussian_kernel_takes_the_median_distance() -> None:
    x, y = draws(5, 2, 0), draws(4, 2, 1)
    pooled = torch.cat([x, y]).numpy()
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(pooled, 2)]
    width = sorted(distances)[(len(distances) - 1) // 2]  # 36 pairs: the lower of the two middle ones
    torch.testing.assert_close(mmd(x, y, "rbf"), mmd(x, y, "rbf", float(width)))
    assert float(mmd(torch.ones(5, 2), torch.ones(4, 2), "rbf")) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_single_precision_keeps_its_digits_far_from_the_origin(kernel: Kernel) -> None:
    x, y = draws(64, 10, 0).float() + 100, draws(64, 10, 1).float() + 100
    exact = float(mmd(x.double(), y.double(), kernel, 1.0))
    # Weights add up to 4 in size over kernels of at most 6 (60 with ten latents), each good to some 1e-6.
    assert float(mmd(x, y, kernel, 1.0)) == pytest.approx(exact, abs=4 * 60 * 1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pair_weights_cancel(estimator: Estimator) -> None:
    weights = pair_weights(5, 3, estimator)
    torch.testing.assert_close(weights, weights.T)
    blocks = [weights[:5, :5].sum(), weights[5:, 5:].sum(), weights[:5, 5:].sum()]
    assert [float(block) for block in blocks] == pytest.approx([1, 1, -1])


def test_one_point_has_no_unbiased_estimate() -> None:
    with pytest.raises(InputError, match="each requires at least 2, got 1 and 3; use estimator='biased'"):
        mmd(draws(1, 2, 0), draws(3, 2, 1))
    assert float(mmd(draws(1, 2, 0), draws(3, 2, 1), estimator="biased")) > 0
