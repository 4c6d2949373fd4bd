from __future__ import annotations

import numpy as np

from polariscope.data import reading
from polariscope.data.own.arrays import from_arrays
from polariscope.data.streamed_statistics import statistics_of


def test_batches_of_any_size_give_the_statistics_of_the_whole(monkeypatch):
    rows = np.random.default_rng(0).normal([1e4, 0, 3], [0.5, 20, 0], size=(101, 3)).astype(np.float32)
    whole = rows.astype(np.float64)
    for size in (3, 21, 10**6):
        monkeypatch.setattr(reading, "VALUES", size)
        found = statistics_of(from_arrays(rows))
        np.testing.assert_allclose(found.mean, whole.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(found.deviation, whole.std(axis=0), rtol=1e-9)
        np.testing.assert_array_equal(found.low, whole.min(axis=0))
        np.testing.assert_array_equal(found.high, whole.max(axis=0))


def test_only_a_batch_is_read_at_a_time(monkeypatch):
    asked = []
    data = from_arrays(np.zeros((1000, 4)))
    values = type(data).values
    monkeypatch.setattr(
        type(data), "values", lambda self, rows: asked.append(len(rows)) or values(self, rows)
    )
    monkeypatch.setattr(reading, "VALUES", 400)
    statistics_of(data)
    assert max(asked) == 100
    assert sum(asked) == 1000
