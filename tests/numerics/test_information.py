import itertools
import math

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from polariscope.numerics.information import (
    averaged_mutual_information,
    discretise,
    entropy,
    information,
    mutual_information_table,
)


def codes(n=1000, k=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k)) @ rng.normal(size=(k, k))


def test_bins_are_those_of_a_histogram_digitised_on_its_left_edges():
    x = np.concatenate(
        [codes(), np.tile(np.arange(41.0), 25)[:1000, None]], axis=1
    )  # the last is on the edges
    for column, bins in zip(x.T, discretise(x).T, strict=True):
        edges = np.histogram(column, 20)[1]
        np.testing.assert_array_equal(bins, np.digitize(column, edges[:-1]) - 1)
        assert (bins.min(), bins.max()) == (0, 19)


def test_a_column_that_never_varies_is_all_in_the_first_bin():
    x = np.column_stack([np.full(50, 3.0), np.arange(50.0)])
    assert not discretise(x)[:, 0].any()
    assert discretise(x)[:, 1].max() == 19


def test_bins_do_not_depend_on_scale_and_shift():
    x = np.random.default_rng(0).integers(-500, 500, size=(200, 3)).astype(float)
    np.testing.assert_array_equal(discretise(x), discretise(x * 4 - 1024))  # exact in binary


def test_values_of_a_grid_fall_into_the_same_bins_whatever_their_unit_and_precision():
    grid = np.random.default_rng(0).integers([41, 11, 3, 21], size=(2000, 4)).astype(float)
    for other in (grid / 3, 0.1 * grid - 7, (0.1 * grid).astype(np.float32).astype(float), grid * 1e9 / 7):
        np.testing.assert_array_equal(discretise(other), discretise(grid))


def test_a_constant_latent_is_in_one_bin_and_informs_about_nothing():
    x = np.concatenate([codes(k=2), np.full((1000, 1), 0.3)], axis=1)
    table = mutual_information_table(discretise(x))
    assert table[2].tolist() == [0, 0, 0]
    assert table[0, 1] > 0


def test_the_entropy_of_counts_and_of_their_shares_is_that_of_the_distribution():
    counts = np.array([[1, 2, 5, 0], [3, 3, 3, 3], [0, 0, 9, 0]])
    exact = [math.log(8) - (2 * math.log(2) + 5 * math.log(5)) / 8, math.log(4), 0]
    np.testing.assert_allclose(entropy(counts), exact, atol=1e-15)
    np.testing.assert_allclose(entropy(counts / counts.sum(axis=1, keepdims=True)), exact, atol=1e-15)


def test_weights_count_samples_as_often_as_they_say():
    rng = np.random.default_rng(0)
    bins, classes = rng.integers(5, size=(60, 3)), rng.integers(4, size=(60, 2))
    weights = rng.integers(4, size=(7, 60)).astype(np.uint8)
    tables, entropies = information(bins, classes, weights)
    assert (tables.shape, entropies.shape) == ((7, 3, 2), (7, 2))
    for times, table, of_classes in zip(weights, tables, entropies, strict=True):
        rows = np.repeat(np.arange(60), times)
        expected, expected_entropies = information(bins[rows], classes[rows])
        np.testing.assert_allclose(table, expected, atol=1e-14)
        np.testing.assert_allclose(of_classes, expected_entropies, atol=1e-14)


def test_information_with_other_columns_is_the_block_of_the_table_of_all():
    both = discretise(codes(k=5))
    found, entropies = information(both[:, :2], both[:, 2:])
    table = mutual_information_table(both)
    np.testing.assert_allclose(found, table[:2, 2:], atol=1e-14)
    np.testing.assert_allclose(entropies, np.diag(table)[2:], atol=1e-14)


def test_the_table_agrees_with_an_independent_implementation():
    bins = discretise(codes())
    table = mutual_information_table(bins)
    for i, j in itertools.product(range(4), repeat=2):
        assert table[i, j] == pytest.approx(mutual_info_score(bins[:, i], bins[:, j]), abs=1e-12)


def test_a_column_tells_its_whole_entropy_about_itself():
    bins = np.repeat(np.arange(8), [1, 2, 3, 4, 5, 6, 7, 8])[:, None]
    p = np.arange(1, 9) / 36
    table = mutual_information_table(np.concatenate([bins, bins], axis=1))
    np.testing.assert_allclose(table, -(p * np.log(p)).sum(), rtol=1e-13)


def test_permuting_latents_permutes_the_table_and_permuting_samples_changes_nothing():
    bins = discretise(codes())
    rng = np.random.default_rng(0)
    order = [2, 0, 3, 1]
    shuffled = mutual_information_table(bins[rng.permutation(len(bins))][:, order])
    expected = mutual_information_table(bins)[np.ix_(order, order)]
    np.testing.assert_allclose(shuffled, expected, atol=1e-14)


@pytest.mark.parametrize("n_added", [1, 2])
def test_independent_latents_dilute_the_average_by_the_ratio_of_pairs(n_added):
    # A full grid: columns of different axes are exactly independent. Two latents share the first axis.
    grid = np.array(list(itertools.product(range(5), range(4), range(3))), dtype=float)
    dependent = grid[:, [0, 0]] * [1.0, -2.0]
    k = 2
    alone = averaged_mutual_information(mutual_information_table(discretise(dependent)))
    assert alone == pytest.approx(math.log(5), abs=1e-12)
    both = np.concatenate([dependent, grid[:, 1 : 1 + n_added]], axis=1)
    diluted = averaged_mutual_information(mutual_information_table(discretise(both)))
    factor = (k**2 - k) / ((k + n_added) ** 2 - (k + n_added))
    assert diluted == pytest.approx(alone * factor, abs=1e-12)


def test_the_average_runs_over_ordered_pairs_of_the_chosen_latents():
    table = np.array([[9.0, 1.0, 2.0], [1.0, 9.0, 3.0], [2.0, 3.0, 9.0]])
    assert averaged_mutual_information(table) == 2
    assert averaged_mutual_information(table, [0, 2]) == 2
    assert averaged_mutual_information(table, [1, 2]) == 3
    assert averaged_mutual_information(table, [1]) == 0


def test_the_plug_in_estimate_of_independent_columns_has_the_bias_of_its_bins():
    n, n_bins = 20_000, 20
    bins = np.random.default_rng(0).integers(n_bins, size=(n, 8))
    average = averaged_mutual_information(mutual_information_table(bins))
    # 2n · MI is χ² with (K − 1)² degrees of freedom: mean (K−1)²/2n, and 28 nearly independent pairs.
    degrees = (n_bins - 1) ** 2
    error = math.sqrt(2 * degrees) / (2 * n) / math.sqrt(28)
    assert average == pytest.approx(degrees / (2 * n), abs=5 * error + 0.02 * degrees / (2 * n))


def test_entropies_are_along_the_last_axis_whatever_the_number_of_axes():
    counts = np.random.default_rng(0).integers(0, 5, size=(2, 3, 4)) + np.array([1, 0, 0, 0])
    shares = counts / counts.sum(axis=-1, keepdims=True)
    expected = -np.sum(shares * np.log(shares, where=shares > 0, out=np.zeros_like(shares)), axis=-1)
    np.testing.assert_allclose(entropy(counts), expected, atol=1e-12)
    assert entropy(counts[1, 2]) == pytest.approx(expected[1, 2], abs=1e-12)
