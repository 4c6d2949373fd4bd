from __future__ import annotations

import numpy as np

from polariscope.data import streamed_statistics
from polariscope.data.own.arrays import from_arrays
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.variants.subset import SubsetVariant
from polariscope.data.variants.unique import UniqueVariant


def test_the_first_of_equal_rows_is_kept(monkeypatch):
    monkeypatch.setattr(streamed_statistics, "VALUES", 6)  # duplicates in other batches are found too
    rows = np.array([[1.0, 2], [0, 0], [1, 2], [3, 4], [-0.0, 0], [3, 5]])
    data = UniqueVariant(from_arrays(rows, np.arange(6)))
    assert data.factors(np.arange(len(data)))[:, 0].tolist() == [0, 1, 3, 5]


def test_the_last_orientation_of_sprites_is_the_first():
    sprites = SpritesDataset(image_size=64, antialias=True)
    turns = SubsetVariant(sprites, where=("shape=2", "scale=5", "x=16", "y=16"))
    assert len(turns) == 40
    data = UniqueVariant(turns)
    assert data.factors(np.arange(len(data)))[:, 2].tolist() == list(range(39))
