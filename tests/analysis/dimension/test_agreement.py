"""Agreement with scikit-dimension 0.5 on hypersphere, linear, curved and non-uniform manifolds.

Its values are frozen in skdim_values.json by make_skdim_values.py, so that the tests need not install numba.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import pytest

from analysis.dimension.make_skdim_values import CRITERIA, K
from polariscope.analysis.dimension.gride import gride
from polariscope.analysis.dimension.lpca import lpca
from polariscope.analysis.dimension.mle import mle
from polariscope.analysis.dimension.twonn import twonn
from polariscope.numerics.neighbours import neighbours
from polariscope.testing.manifolds import BENCHMARK

FROZEN = json.loads(Path(__file__).with_name("skdim_values.json").read_text(encoding="utf-8"))["values"]


@functools.cache
def table(name):
    return neighbours(BENCHMARK[name][0](), k=64)


@pytest.fixture(params=list(BENCHMARK))
def name(request):
    return request.param


def test_the_points_are_those_whose_values_were_frozen(name):
    assert np.abs(BENCHMARK[name][0]()).sum() == pytest.approx(FROZEN[name]["checksum"], rel=1e-12)


def test_every_variant_of_the_likelihood_agrees_at_every_k(name):
    for k in K:
        for normaliser in ("k-1", "k-2"):
            for average in ("arithmetic", "harmonic"):
                found = mle(table(name), k=k, normaliser=normaliser, average=average, n_bootstrap=20).value
                assert found == pytest.approx(FROZEN[name][f"mle {k} {normaliser} {average}"], rel=1e-9)


@pytest.mark.parametrize("fit", ["line", "likelihood"])
def test_two_neighbours_agree(name, fit):
    assert twonn(table(name), fit=fit).value == pytest.approx(FROZEN[name][f"twonn {fit}"], rel=1e-9)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_local_components_agree(name, criterion):
    found = lpca(table(name), k=50, criterion=criterion).value
    assert found == pytest.approx(FROZEN[name][f"lpca {criterion}"], rel=1e-9)


def test_generalised_ratios_agree_up_to_a_correction_of_one_in_n(name):
    # Theirs has N − 1 for N in the first term of the score (and cuts outliers, of which there are none here). The
    # information is at least N/d², so that the root moves by at most 1/N of itself.
    curve = gride(table(name)).curve
    for k, value in zip(curve.k, curve.values, strict=True):
        theirs = FROZEN[name][f"gride {k // 2}"]
        assert 0 <= value / theirs - 1 <= 1.05 / len(BENCHMARK[name][0]())
