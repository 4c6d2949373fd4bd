from __future__ import annotations

import numpy as np
import pytest

from polariscope.analysis.dimension.lpca import count, local_spectra, lpca
from polariscope.core.errors import InputError
from polariscope.numerics.neighbours import neighbours
from polariscope.testing.manifolds import cube, gaussian, swiss_roll


@pytest.mark.parametrize(
    ("criterion", "threshold", "expected"),
    [
        ("fo", 0.05, 3),  # above 0.4
        ("fo", 0.4, 2),  # above 3.2
        ("participation", None, 16.0**2 / (64 + 25 + 6.25 + 0.16 + 0.01)),
        ("kaiser", None, 2),  # above 3.2
        ("broken-stick", None, 2),  # shares 0.5, 0.3125, 0.156 against 0.457, 0.257, 0.157
        ("variance", 0.95, 3),  # 0.5, 0.8125, 0.969
        ("variance", 0.5, 1),
        ("variance", 0.51, 2),
    ],
)
def test_each_criterion_counts_what_it_says(criterion, threshold, expected):
    spectrum = np.array([[8.0, 5.0, 2.5, 0.4, 0.1]])
    assert count(spectrum, criterion, threshold)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("d", [1, 4, 9])
def test_equal_eigenvalues_are_counted_by_threshold_and_participation(d):
    spectrum = np.zeros((1, 12))
    spectrum[:, :d] = 3.0
    assert count(spectrum, "fo", 0.05)[0] == d
    assert count(spectrum, "participation", None)[0] == pytest.approx(d)
    assert count(spectrum, "variance", 0.999)[0] == d


def test_the_broken_stick_is_what_breaking_sticks_gives():
    # Uniform breaks of a stick into 5 pieces, sorted: their means are the limits of the criterion.
    breaks = np.sort(np.random.default_rng(0).random((40_000, 4)), axis=1)
    pieces = np.sort(np.diff(breaks, axis=1, prepend=0, append=1), axis=1)[:, ::-1]
    means, errors = pieces.mean(axis=0), 5 * pieces.std(axis=0) / 200
    # One piece longer by five standard errors than its mean stands out, one shorter does not.
    rest = np.array([0.0, 1, 1, 1, 1]) / 4
    for sign, expected in ((1, 1), (-1, 0)):
        first = means[0] + sign * errors[0]
        spectrum = np.where(np.arange(5) == 0, first, (1 - first) * rest)[None]
        assert count(spectrum, "broken-stick", None)[0] == expected


@pytest.mark.parametrize("n_features", [3, 40])
def test_local_spectra_are_those_of_the_covariance_of_the_neighbours(n_features):
    x = gaussian(120, 3, n_features)
    table = neighbours(x, k=15)
    spectra = local_spectra(table, 15)
    assert spectra.shape == (120, min(14, n_features))
    for point in (0, 57, 119):
        expected = np.linalg.eigvalsh(np.cov(x[table.indices[point]].T))[::-1][: spectra.shape[1]]
        found = spectra[point] * expected[0] / spectra[point, 0]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * expected[0])


def test_spectra_do_not_depend_on_how_many_neighbourhoods_fit_into_memory(monkeypatch):
    table = neighbours(cube(100, 3, 6), k=20)
    whole = local_spectra(table, 20)
    monkeypatch.setattr("polariscope.analysis.dimension.lpca.BLOCK", 20 * 6 * 7)
    np.testing.assert_allclose(local_spectra(table, 20), whole, rtol=1e-12)


def test_float32_samples_far_from_the_origin_keep_their_flatness():
    flat = (
        np.pad(cube(300, 2, 2), ((0, 0), (0, 3)))
        @ np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    )
    assert lpca((flat + 100).astype(np.float32), k=20).value == 2.0


def test_a_flat_piece_has_exactly_its_dimension_around_every_point():
    found = lpca(cube(400, 3, 10), k=60)
    assert found.pointwise == (3.0,) * 400
    assert found.interval == (3.0, 3.0)


def test_wide_neighbourhoods_see_that_the_roll_is_bent():
    narrow, wide = (lpca(swiss_roll(1000), k=k).value for k in (15, 200))
    assert narrow < 2.2 < wide


def test_too_few_neighbours_for_the_dimension_are_noted():
    assert any("at most 9 directions" in note for note in lpca(gaussian(200, 15, 15), k=10).notes)


def test_the_threshold_belongs_to_the_criterion():
    x = cube(100, 2, 4)
    assert lpca(x, k=10).variant == "fo 0.05"
    assert lpca(x, k=10, criterion="variance").variant == "variance 0.95"
    assert lpca(x, k=10, criterion="kaiser").variant == "kaiser"
    with pytest.raises(InputError, match=r"criterion 'kaiser' has no threshold, got 0\.1"):
        lpca(x, k=10, criterion="kaiser", threshold=0.1)
    with pytest.raises(InputError, match="threshold must lie between 0 and 1, got 2"):
        lpca(x, k=10, threshold=2.0)
