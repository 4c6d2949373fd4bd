"""Polariscope: train, size and look into variational autoencoders.

The names below are the public face. They are loaded when first used, so that ``import polariscope`` is
immediate and torch is imported only by what needs it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "load_dataset": "polariscope.data.sources",
    "from_arrays": "polariscope.data.arrays",
    "from_folder": "polariscope.data.folder",
    "train": "polariscope.training.run",
    "load_model": "polariscope.model",
    "encode": "polariscope.representations.encode",
    "Representation": "polariscope.representations",
    "diagnose": "polariscope.regime.diagnose",
    "decompose": "polariscope.regime.decomposition",
    "size": "polariscope.sizing.size",
    "compare_sizes": "polariscope.sizing.compare",
    "VAE": "polariscope.estimator",
    "score": "polariscope.metrics._scoring",
    "compare": "polariscope.comparison.compare",
    "InputError": "polariscope.errors",
    "PolariscopeError": "polariscope.errors",
}
_PACKAGES = {"report": "polariscope.report"}  # callable, since package and function share a name
_FAMILIES = {
    "objectives": "polariscope.objectives",
    "priors": "polariscope.priors",
    "posteriors": "polariscope.posteriors",
    "likelihoods": "polariscope.likelihoods",
    "nets": "polariscope.nets",
    "datasets": "polariscope.data",
    "metrics": "polariscope.metrics",
    "similarity": "polariscope.similarity",
    "dimension": "polariscope.dimension",
    "sizing": "polariscope.sizing",
}

__all__ = ["__version__", *_HOMES, *_PACKAGES, *_FAMILIES]


def __getattr__(name: str) -> Any:
    if name in _FAMILIES or name in _PACKAGES:
        value = importlib.import_module({**_FAMILIES, **_PACKAGES}[name])
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'polariscope' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:
    from polariscope.comparison.compare import compare
    from polariscope.data import family as datasets
    from polariscope.data.arrays import from_arrays
    from polariscope.data.folder import from_folder
    from polariscope.data.sources import load_dataset
    from polariscope.dimension import family as dimension
    from polariscope.errors import InputError, PolariscopeError
    from polariscope.estimator import VAE
    from polariscope.likelihoods import family as likelihoods
    from polariscope.metrics import family as metrics
    from polariscope.metrics._scoring import score
    from polariscope.model import load_model
    from polariscope.nets import family as nets
    from polariscope.objectives import family as objectives
    from polariscope.posteriors import family as posteriors
    from polariscope.priors import family as priors
    from polariscope.regime.decomposition import decompose
    from polariscope.regime.diagnose import diagnose
    from polariscope.report.report import report
    from polariscope.representations import Representation
    from polariscope.representations.encode import encode
    from polariscope.similarity import family as similarity
    from polariscope.sizing import family as sizing
    from polariscope.sizing.compare import compare_sizes, size
    from polariscope.training.run import train
