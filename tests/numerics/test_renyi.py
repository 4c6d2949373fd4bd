"""Rényi entropies against closed forms, eigenvalues, limits and invariances."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from oracles import random_rotation
from polariscope.core.errors import InputError
from polariscope.numerics.renyi import (
    Information,
    information,
    information_gap,
    joint_entropy,
    mutual_information,
    normalised_gram,
    renyi_entropy,
    spi,
)

ALPHAS = (0.5, 1, 1.01, 2, 3)


def groups(*sizes: int) -> np.ndarray:
    """Samples of which those of one group are the same and those of others have nothing in common."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return (labels[:, None] == labels) / len(labels)


def random_gram(n: int = 30, seed: int = 0) -> np.ndarray:
    return normalised_gram(np.random.default_rng(seed).normal(size=(n, 2)))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_identical_samples_have_no_entropy_and_distant_ones_log_n(alpha):
    assert renyi_entropy(normalised_gram(np.ones((16, 3)), width=1.0), alpha) == pytest.approx(0, abs=1e-12)
    far = normalised_gram(1e3 * np.arange(16.0)[:, None], width=1.0)
    assert renyi_entropy(far, alpha) == pytest.approx(4, abs=1e-12)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_groups_have_the_renyi_entropy_of_their_shares(alpha):
    """The eigenvalues of a block matrix of ones are the sizes of its blocks."""
    shares = np.array([8, 4, 2, 2]) / 16
    expected = (
        -(shares * np.log2(shares)).sum() if alpha == 1 else np.log2((shares**alpha).sum()) / (1 - alpha)
    )
    assert renyi_entropy(groups(8, 4, 2, 2), alpha) == pytest.approx(expected, abs=1e-12)


def test_order_two_without_eigenvalues_equals_that_with_them():
    for seed in range(5):
        A, B = random_gram(seed=seed), random_gram(seed=seed + 100)
        by_eigenvalues = -math.log2((np.linalg.eigvalsh(A) ** 2).sum())
        assert renyi_entropy(A) == pytest.approx(by_eigenvalues, abs=1e-12)
        product = A * B / np.trace(A * B)
        by_eigenvalues = -math.log2((np.linalg.eigvalsh(product) ** 2).sum())
        assert joint_entropy(A, B) == pytest.approx(by_eigenvalues, abs=1e-12)


def test_entropy_is_continuous_at_orders_one_and_two():
    A = random_gram()
    for alpha in (1, 2):
        below, above = renyi_entropy(A, alpha - 1e-6), renyi_entropy(A, alpha + 1e-6)
        assert below > renyi_entropy(A, alpha) > above  # entropies fall with the order
        assert below - above < 1e-4


@pytest.mark.parametrize("alpha", ALPHAS)
def test_joint_entropy_lies_between_the_larger_entropy_and_the_sum(alpha):
    """Giraldo et al., 2015, Propositions 4.1 and 4.2."""
    for seed in range(5):
        A, B = random_gram(seed=seed), random_gram(seed=seed + 100)
        alone = renyi_entropy(A, alpha), renyi_entropy(B, alpha)
        assert max(alone) - 1e-12 <= joint_entropy(A, B, alpha) <= sum(alone) + 1e-12


@pytest.mark.parametrize("alpha", ALPHAS)
def test_information_of_a_matrix_with_itself_with_everything_and_with_nothing(alpha):
    A, same = random_gram(), groups(4, 3, 2, 21)
    n = len(A)
    everything, nothing = np.eye(n) / n, np.full((n, n), 1 / n)
    assert mutual_information(same, same, alpha) == pytest.approx(renyi_entropy(same, alpha), abs=1e-12)
    assert mutual_information(A, everything, alpha) == pytest.approx(renyi_entropy(A, alpha), abs=1e-12)
    assert mutual_information(A, nothing, alpha) == pytest.approx(0, abs=1e-12)
    # The square of a kernel is a narrower kernel, so that a joint view of twice the same holds more than one.
    assert mutual_information(A, A, alpha) < renyi_entropy(A, alpha)


def test_information_of_independent_groups_is_exactly_zero():
    """Every combination of 3 and 4 values once: the joint shares are the products."""
    first, second = np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)
    A, B = ((labels[:, None] == labels) / 12 for labels in (first, second))
    assert mutual_information(A, B) == pytest.approx(0, abs=1e-12)
    assert joint_entropy(A, B) == pytest.approx(math.log2(12), abs=1e-12)


def test_kernel_is_gaussian_with_silvermans_width():
    x = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 4.0]])
    width = x.std() * 3 ** (-1 / 6)
    expected = [[math.exp(-((a - b) ** 2).sum() / (2 * width**2)) / 3 for b in x] for a in x]
    np.testing.assert_allclose(normalised_gram(x), expected, rtol=1e-12)
    assert np.trace(normalised_gram(x)) == pytest.approx(1, abs=1e-15)


def test_a_kernel_ignores_shift_scale_and_rotation_and_follows_permutation():
    x = np.random.default_rng(0).normal(size=(40, 3))
    x -= x.mean()  # the width is the spread over all entries, which a rotation keeps only about 0
    A = normalised_gram(x)
    for unit in (-7, 1e-6, 1e6):
        np.testing.assert_allclose(normalised_gram(unit * x), A, rtol=1e-9)
    rotated = x @ random_rotation(3, 1)
    np.testing.assert_allclose(normalised_gram(rotated, width=0.5), normalised_gram(x, width=0.5), rtol=1e-9)
    np.testing.assert_allclose(normalised_gram(x + 1e4), A, rtol=1e-6)
    order = np.random.default_rng(1).permutation(40)
    assert renyi_entropy(normalised_gram(x[order])) == pytest.approx(renyi_entropy(A), abs=1e-12)
    assert abs(renyi_entropy(normalised_gram(x * [1, 1, 0])) - renyi_entropy(A)) > 0.1


def test_many_dimensions_make_every_sample_a_world_of_its_own():
    x = np.random.default_rng(0).normal(size=(64, 4096))
    assert renyi_entropy(normalised_gram(x)) == pytest.approx(6, abs=1e-9)


def test_information_is_averaged_over_whole_batches():
    rng = np.random.default_rng(0)
    z, x = rng.normal(size=(25, 2)), rng.normal(size=(25, 1, 3, 3))
    y = x + 0.1 * rng.normal(size=x.shape)
    found = information(z, x, y, batch=10)
    first, second = (information(z[s], x[s], y[s], batch=10) for s in (slice(10), slice(10, 20)))
    assert found.n_batches == 2
    for name in ("gap", "entropy", "reconstruction", "inputs", "outputs"):
        middle = (getattr(first, name) + getattr(second, name)) / 2
        assert getattr(found, name) == pytest.approx(middle, abs=1e-12)
    A, B = normalised_gram(x[:10]), normalised_gram(y[:10])
    expected = renyi_entropy(normalised_gram(z[:10])) - mutual_information(A, B)
    assert first.gap == pytest.approx(expected, abs=1e-12)
    C = normalised_gram(z[:10])
    plane = mutual_information(A, C), mutual_information(B, C)
    assert (first.inputs, first.outputs) == pytest.approx(plane, abs=1e-12)
    assert information(z, x, y, batch=2).n_batches == 12  # the least that have a spread


def test_entropy_and_information_are_cut_each_before_they_are_subtracted():
    rng = np.random.default_rng(1)
    for _ in range(20):
        z, x = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
        found = information(z, x, x, batch=50)
        cut = information_gap(z, x, x, batch=50, decimals=2)
        expected = math.trunc(found.entropy * 100) - math.trunc(found.reconstruction * 100)
        assert cut == expected / 100


@pytest.mark.parametrize(("entropy", "shared", "expected"), [(3.129, 3.131, -0.01), (3.139, 3.131, 0.0)])
def test_the_published_example_of_the_cut(monkeypatch, entropy, shared, expected):
    """H = 3.129 and I = 3.131 fit the published threshold exactly; their difference, cut, would be 0 and not fit."""
    told = Information(entropy - shared, entropy, shared, 0.0, 0.0, 1)
    monkeypatch.setattr("polariscope.numerics.renyi.information", lambda *_, **__: told)
    x = np.zeros((2, 1))
    cut = information_gap(x, x, x, decimals=2)
    assert cut == expected
    assert (cut <= -0.01) is (expected < 0)


def test_surplus_latents_raise_the_gap():
    """Noise latents add entropy that no reconstruction uses."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(500, 2))
    gaps = [information_gap(np.hstack([x, rng.normal(size=(500, k))]), x, x, batch=500) for k in (0, 2, 6)]
    assert gaps[0] < gaps[1] < gaps[2]


def test_spi_against_its_sum_and_its_scale():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(7, 4)), rng.normal(size=(7, 4))

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    expected = sum(abs(cosine(x[i], x[j]) - cosine(y[i], y[j])) for i in range(7) for j in range(7)) / 7
    assert spi(x, y) == pytest.approx(expected, abs=1e-12)
    assert spi(x, 3 * x @ random_rotation(4, 0)) == pytest.approx(0, abs=1e-12)
    opposite = np.where(np.arange(8)[:, None] < 4, 1.0, -1.0)
    assert spi(np.ones((8, 1)), opposite) == pytest.approx(8)  # half of the 64 pairs go from 1 to −1


def test_spi_of_more_samples_than_a_block_is_the_same_sum(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(25, 4)), rng.normal(size=(25, 4))
    whole = spi(x, y)
    monkeypatch.setattr("polariscope.numerics.renyi.BLOCK", 7)
    assert spi(x, y) == pytest.approx(whole, abs=1e-12)


def test_order_two_is_much_faster_than_eigenvalues():
    A = random_gram(500)

    def seconds(alpha):
        best = math.inf
        for _ in range(3):
            start = time.perf_counter()
            renyi_entropy(A, alpha)
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(2) * 5 < seconds(2.001)  # about 20 with the checks of the matrix; 200 for larger ones


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: normalised_gram(np.full((5, 2), 0.1)), "x must vary.*got a constant"),
        (lambda: normalised_gram(np.zeros((5, 2))), "x must vary.*got a constant"),
        (lambda: normalised_gram(1e6 + 1e-9 * np.eye(3)), "x must vary.*got a constant"),
        (lambda: normalised_gram(np.array([[1.0], [np.nan]])), "x must be finite"),
        (lambda: normalised_gram(np.ones((1, 2))), "at least 2 samples"),
        (lambda: normalised_gram(np.ones((3, 0))), "at least 2 samples of at least 1 value"),
        (lambda: normalised_gram(np.ones((3, 2)), width=0.0), "width must be positive, got 0"),
        (lambda: renyi_entropy(np.eye(3)), "trace 1, got trace 3"),
        (lambda: renyi_entropy(np.array([[0.5, 0.4], [0.0, 0.5]])), "symmetric"),
        (lambda: renyi_entropy(np.full((2, 2), np.nan)), "A must be finite"),
        (lambda: renyi_entropy(np.eye(2) / 2, -1.0), "alpha must be positive"),
        (lambda: renyi_entropy(np.eye(2) / 2, 0.0), "alpha must be positive"),
        (lambda: renyi_entropy(np.eye(2) / 2, math.nan), "alpha must be positive"),
        (lambda: joint_entropy(np.eye(2) / 2, np.eye(2)), "B must be a symmetric"),
        (lambda: information_gap(*np.ones((3, 5, 2)), batch=6), "batch must lie between 2 and .* 5, got 6"),
        (lambda: information_gap(np.ones((5, 2)), np.ones((4, 2)), np.ones((4, 2)), batch=2), "same samples"),
        (lambda: spi(np.ones((3, 2)), np.zeros((3, 2))), "outputs must not contain samples .* got 3"),
        (lambda: spi(np.ones((3, 2)), np.ones((4, 2))), "same samples"),
    ],
)
def test_what_has_no_entropy_is_refused_in_words(call, message):
    with pytest.raises(InputError, match=message):
        call()
