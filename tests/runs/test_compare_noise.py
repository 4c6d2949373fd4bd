"""Sampled codes of files: noise that all of them share would make collapsed models similar."""

from __future__ import annotations

import numpy as np

import polariscope as ps
from polariscope.data.codes import open_codes

RNG = np.random.default_rng(0)


def sampled_score(*models) -> float:
    result = ps.compare(list(models))
    labels = [(model, layer) for model, layers in enumerate(result.layers_of) for layer in layers]
    return result.matrix[labels.index((0, "sampled")), labels.index((1, "sampled"))]


def test_collapsed_models_in_files_are_not_similar_by_their_noise(tmp_path):
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for path in paths:
        np.savez(path, mean=0.01 * RNG.normal(size=(500, 3)), variance=np.ones((500, 3)))
    first, second = map(open_codes, paths)
    # The CKA of independent codes is about the number of latents divided by that of the samples.
    assert sampled_score(first, second) < 0.05
    assert sampled_score(first, first) > 0.999999
