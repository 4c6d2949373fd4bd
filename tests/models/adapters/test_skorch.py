"""Networks with the attributes of those of skorch."""

from __future__ import annotations

import numpy as np
import pytest

import polariscope as ps
from foreign_models import ROWS, Parts, expected, of_library, seeded
from polariscope.core.errors import InputError


class NeuralNet:
    def get_params(self):
        return {}

    def __repr__(self):
        raise AssertionError("the repr fills a screen")


def test_the_module_is_analysed():
    net = of_library(NeuralNet, "skorch")()
    with pytest.raises(InputError, match=r"model must be fitted, got a NeuralNet of skorch without module_"):
        ps.encode(net, ROWS)
    net.module_ = seeded(Parts)
    rep = ps.encode(net, ROWS, n_samples=None)
    np.testing.assert_allclose(rep.mean, expected(net.module_.encoder)[0], atol=1e-6)
