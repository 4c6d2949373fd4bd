from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from polariscope.numerics import neighbour_search as _search
from polariscope.numerics.neighbours import at_most, neighbours, table_of
from polariscope.numerics.points import points_of


def clusters(width, n_clusters=8, n_features=30):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_clusters, n_features))[rng.integers(n_clusters, size=400)]
    return centres + width * rng.normal(size=(400, n_features))


CLOUDS = {
    "few features": lambda: np.random.default_rng(0).normal(size=(400, 3)),
    "many features": lambda: np.random.default_rng(0).normal(size=(400, 900)),
    "float32": lambda: np.random.default_rng(0).random((400, 50), dtype=np.float32),
    "bytes": lambda: np.random.default_rng(0).integers(256, size=(400, 64)).astype(np.uint8),
    "far from 0": lambda: 1e7 + np.random.default_rng(0).random((400, 10)),
    "clusters": lambda: clusters(1e-4),
    "tiny clusters": lambda: clusters(1e-9),
    "tiny clusters of few features": lambda: clusters(1e-5, n_clusters=4, n_features=3),
    "ties": lambda: (np.random.default_rng(0).random((400, 30)) < 0.3).astype(np.uint8),
    "an outlier": lambda: np.vstack([np.random.default_rng(0).normal(size=(399, 5)), np.full((1, 5), 1e8)]),
    "barely enough points": lambda: np.random.default_rng(0).normal(size=(26, 4)),
}


def assert_exact(x):
    """The table is that of all differences."""
    table = neighbours(x, k=25)
    assert table.k == 25
    kept = x[table.rows].astype(np.float64)
    every = cdist(kept, kept)
    np.fill_diagonal(every, np.inf)
    np.testing.assert_allclose(table.distances, np.sort(every, axis=1)[:, :25], rtol=1e-12)
    # Their places, too: each distance is that of the point named, and no point is named twice.
    np.testing.assert_allclose(np.take_along_axis(every, table.indices, 1), table.distances, rtol=1e-12)
    assert all(len(set(row)) == 25 for row in table.indices.tolist())


@pytest.mark.parametrize("cloud", CLOUDS)
def test_neighbours_are_those_of_the_full_matrix_of_differences(cloud):
    assert_exact(CLOUDS[cloud]())


@pytest.mark.parametrize("width", 10.0 ** -np.arange(1, 6, 0.5))
def test_spare_candidates_and_large_steps_only_save_time(monkeypatch, width):
    """Without them every error of float32 in the order of two neighbours has to be noticed."""
    monkeypatch.setattr(_search, "N_EXTRA", 0)
    monkeypatch.setattr(_search, "SMALL", 2)  # less than the features of one point
    assert_exact(clusters(width, n_clusters=4, n_features=3))


def test_more_dimensions_than_twice_the_logarithm_of_the_points_are_remarked():
    table = neighbours(np.random.default_rng(0).normal(size=(100, 2)), k=1)
    assert table.too_few_for(4.0) == ()
    (note,) = table.too_few_for(4.01)
    assert note.startswith("At most about 2 log₁₀ n = 4.0 dimensions can be detected with 100 points")


@pytest.mark.parametrize(("width", "n_searches"), [(1.0, 1), (1e-4, 2), (1e-9, 2)])
def test_rows_that_float32_cannot_decide_are_searched_again(monkeypatch, width, n_searches):
    done = []
    whole = _search._by_product

    def spy(points, centred, rows, *rest):
        done.append((centred.dtype, len(rows)))
        return whole(points, centred, rows, *rest)

    monkeypatch.setattr(_search, "_by_product", spy)
    neighbours(clusters(width), k=25)
    assert [dtype for dtype, _ in done] == [np.float32, np.float64][:n_searches]
    assert done[0][1] == 400


def test_rounding_stays_below_the_bound_that_certifies_a_row():
    # Worst for float32: all products of one sign, many features, norms far above the distances.
    x = 1 + 1e-3 * np.random.default_rng(0).random((200, 2000))
    x[0] = -1.0  # keeps the centre away from the others
    points = points_of(x).values
    centred = (points - points.mean(axis=0)).astype(np.float32)
    squares = np.einsum("ij,ij->i", centred, centred, dtype=np.float64)
    approximate = squares[:, None] + squares - 2 * (centred @ centred.T).astype(np.float64)
    error = np.abs(approximate - cdist(points, points) ** 2)
    norms = np.sqrt(squares)
    bound = (2000 + 16) * np.finfo(np.float32).eps / 2 * (norms[:, None] + norms) ** 2
    assert (error <= bound).all()
    assert error.max() > 0


def test_the_distance_matrix_is_never_held_as_a_whole():
    x = np.random.default_rng(0).normal(size=(2500, 5))
    tracemalloc.start()
    neighbours(x, k=5)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2500 * 2500 * 4 / 5  # a fifth of one matrix in float32


def test_neighbouring_float32_numbers_have_their_true_distance():
    one = np.float32(1)
    x = np.array([[one, 0], [np.nextafter(one, np.float32(2)), 0], [3, 0], [5, 1]], dtype=np.float32)
    assert neighbours(x, k=1).distances[0, 0] == 2.0**-23


def test_duplicates_are_found_exactly_and_the_first_is_kept():
    x = np.array([[0.0, 1.0], [2.0, 3.0], [-0.0, 1.0], [2.0, 3.0 + 1e-15], [2.0, 3.0], [9.0, 9.0]])
    table = neighbours(x, k=1)
    assert table.rows.tolist() == [0, 1, 3, 5]
    assert table.n_duplicates == 2
    assert (table.distances > 0).all()
    assert table.notes == ("2 of 6 samples were duplicates and were left out.",)


def test_features_that_never_vary_are_dropped_and_counted():
    x = np.random.default_rng(0).normal(size=(30, 3))
    padded = np.column_stack([np.full(30, 0.1), x, np.zeros(30)])
    table = neighbours(padded, k=4)
    np.testing.assert_array_equal(table.distances, neighbours(x, k=4).distances)
    assert (table.n_constant, table.n_features) == (2, 5)
    assert "2 of 5 features are constant" in table.notes[0]


@pytest.mark.parametrize("exponent", [-480, 480])
def test_the_unit_of_the_samples_does_not_matter(exponent):
    x = np.random.default_rng(0).normal(size=(30, 3))
    np.testing.assert_array_equal(
        neighbours(np.ldexp(x, exponent), k=4).distances, np.ldexp(neighbours(x, k=4).distances, exponent)
    )


def test_no_distance_is_zero_even_when_its_square_would_underflow():
    x = np.array([[1e-200, 0.0], [0.0, 0.0], [1.0, 0.0], [0.5, 1e-120]])
    table = neighbours(x, k=1)
    assert table.n_duplicates == 1  # 1e-200 beside 1 is 0
    assert (table.distances > 0).all()


def test_a_table_holds_all_other_points_at_most():
    x = np.array([[0.0], [1.0], [3.0], [3.0], [7.0]])
    assert neighbours(x, k=3).k == 3
    with pytest.raises(
        ValueError, match=r"k = 4 neighbours require at least 5 different samples, got 4 \(1 dup"
    ):
        neighbours(x, k=4)
    assert at_most(x, 9).distances.tolist() == [[1, 3, 7], [1, 2, 6], [2, 3, 4], [4, 6, 7]]
    assert at_most(x, 2).k == 2
    table = neighbours(x, k=2)
    assert at_most(table, 9) is table


def test_an_estimator_is_given_the_neighbours_that_it_needs():
    x = np.random.default_rng(0).normal(size=(10, 2))
    assert table_of(x, k=3, min_k=3).k == 3
    with pytest.raises(ValueError, match="k must be at least 3 neighbours for this estimator, got 2"):
        table_of(x, k=2, min_k=3)
    table = neighbours(x, k=4)
    assert table_of(table, k=4, min_k=1) is table
    with pytest.raises(ValueError, match="the table has 4 neighbours, but k = 5"):
        table_of(table, k=5, min_k=1)


@pytest.mark.parametrize("k", [True, 2.0, "2"])
@pytest.mark.usefixtures("unannotated")
def test_a_number_of_neighbours_is_whole(k):
    with pytest.raises(ValueError, match="k must be an integer number of neighbours"):
        neighbours(np.eye(4), k=k)
    assert neighbours(np.eye(4), k=np.int64(2)).k == 2


def test_a_table_for_no_neighbours_is_refused():
    with pytest.raises(ValueError, match="k must be at least 1 neighbour, got 0"):
        neighbours(np.eye(4), k=0)
