import numpy as np
import pytest

from polariscope.analysis.regime.criteria import mixture


@pytest.mark.parametrize(
    ("n_known", "n_unknown", "expected"),
    [
        (10, 0, "active"),
        (9, 1, "active"),
        (8, 2, "mixed"),
        (1, 8, "mixed"),
        (1, 9, "passive"),
        (0, 0, "noisy"),
        (5, 0, "noisy"),
    ],
)
def test_labels_follow_the_shares_of_samples(n_known, n_unknown, expected):
    column = np.array([0.01] * n_known + [1.0] * n_unknown + [0.5] * (10 - n_known - n_unknown))
    found = mixture(column[:, None])
    assert (found.known[0], found.unknown[0]) == (n_known / 10, n_unknown / 10)
    assert found.labels == (expected,)


def test_the_bounds_themselves_are_neither_known_nor_unknown():
    found = mixture(np.array([[0.1], [0.9]]))
    assert (found.known[0], found.unknown[0]) == (0, 0)
