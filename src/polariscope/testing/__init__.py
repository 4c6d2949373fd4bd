"""Contract tests that other packages can run on their own members.

A contract is a class of pytest tests that every member of a family passes. Name your members in a subclass, in a test
file of your package::

    from polariscope.testing import DatasetContract, MetricContract


    class TestMetrics(MetricContract):
        names = ["halves"]


    class TestDatasets(DatasetContract):
        names = ["moons"]

The members are found through the entry points of your package (:mod:`polariscope.core.plugins`). This package requires
pytest, which Polariscope does not install.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

try:
    import pytest
except ModuleNotFoundError as error:
    if error.name != "pytest":
        raise
    raise ModuleNotFoundError(
        "polariscope.testing requires pytest; run pip install pytest.", name="pytest"
    ) from None

if TYPE_CHECKING:
    from polariscope.testing.contract import AbstractContract, each
    from polariscope.testing.datasets import DatasetContract
    from polariscope.testing.dimension import DimensionContract
    from polariscope.testing.figures import FigureContract
    from polariscope.testing.likelihoods import LikelihoodContract
    from polariscope.testing.metrics import MetricContract
    from polariscope.testing.nets import NetContract
    from polariscope.testing.objectives import ObjectiveContract
    from polariscope.testing.posteriors import PosteriorContract
    from polariscope.testing.priors import PriorContract
    from polariscope.testing.similarity import SimilarityContract
    from polariscope.testing.sizing import SizingContract
    from polariscope.testing.variants import VariantContract

_HOMES = {
    "AbstractContract": "polariscope.testing.contract",
    "each": "polariscope.testing.contract",
    "DatasetContract": "polariscope.testing.datasets",
    "DimensionContract": "polariscope.testing.dimension",
    "FigureContract": "polariscope.testing.figures",
    "LikelihoodContract": "polariscope.testing.likelihoods",
    "NetContract": "polariscope.testing.nets",
    "ObjectiveContract": "polariscope.testing.objectives",
    "PosteriorContract": "polariscope.testing.posteriors",
    "PriorContract": "polariscope.testing.priors",
    "MetricContract": "polariscope.testing.metrics",
    "SimilarityContract": "polariscope.testing.similarity",
    "SizingContract": "polariscope.testing.sizing",
    "VariantContract": "polariscope.testing.variants",
}

__all__ = [
    "AbstractContract",
    "DatasetContract",
    "DimensionContract",
    "FigureContract",
    "LikelihoodContract",
    "MetricContract",
    "NetContract",
    "ObjectiveContract",
    "PosteriorContract",
    "PriorContract",
    "SimilarityContract",
    "SizingContract",
    "VariantContract",
    "each",
]

# Failed assertions then show their values, as in test files; this must come before the modules are imported.
pytest.register_assert_rewrite(*sorted({*_HOMES.values(), "polariscope.testing.members"}))


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'polariscope.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
