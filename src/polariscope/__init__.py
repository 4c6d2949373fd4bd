"""Polariscope: train, size and inspect variational autoencoders.

The names below are the public API. They are imported at first use, so ``import polariscope`` is fast and torch is
imported only by functions that require it.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0.dev0"

_HOMES = {
    "load_dataset": "polariscope.data.sources",
    "apply_variants": "polariscope.data.chain",
    "from_arrays": "polariscope.data.own.arrays",
    "from_dataset": "polariscope.data.own.arrays",
    "from_folder": "polariscope.data.own.images",
    "train": "polariscope.training.train",
    "load_model": "polariscope.runs.run",
    "open_run": "polariscope.runs.run",
    "encode": "polariscope.runs.encode",
    "wrap": "polariscope.models.open_model",
    "Representation": "polariscope.analysis.representation",
    "diagnose": "polariscope.runs.model_analyses",
    "decompose": "polariscope.runs.model_analyses",
    "size": "polariscope.sizing.size",
    "compare_sizes": "polariscope.sizing.compare",
    "size_curve": "polariscope.sizing.curve",
    "manipulate": "polariscope.manipulation.manipulate",
    "VAE": "polariscope.estimators",
    "score": "polariscope.runs.model_analyses",
    "compare": "polariscope.runs.compare_models",
    "stability": "polariscope.runs.stability_of_runs",
    "report": "polariscope.pages.report",
    "Study": "polariscope.studies.study",
    "size_table": "polariscope.studies.size_table",
    "InputError": "polariscope.core.errors",
    "PolariscopeError": "polariscope.core.errors",
}
_FAMILIES = {
    "objectives": "polariscope.objectives",
    "priors": "polariscope.models.priors",
    "posteriors": "polariscope.models.posteriors",
    "likelihoods": "polariscope.models.likelihoods",
    "nets": "polariscope.models.nets",
    "datasets": "polariscope.data.dataset",
    "variants": "polariscope.data.variants",
    "metrics": "polariscope.analysis.metrics",
    "similarity": "polariscope.analysis.similarity",
    "dimension": "polariscope.analysis.dimension",
    "sizing": "polariscope.sizing.methods",
    "analyses": "polariscope.studies.analyses",
    "figures": "polariscope.studies.figures",
    "workers": "polariscope.studies.workers",
}

__all__ = ["__version__", *_HOMES, *_FAMILIES]


def __getattr__(name: str) -> Any:
    if name in _FAMILIES:
        value = importlib.import_module(_FAMILIES[name]).family
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'polariscope' has no attribute {name!r}")
    globals()[name] = value
    return value


class _PublicModule(ModuleType):
    """The module ``polariscope``, in which the name of a family is its registry.

    Importing the package of a family would replace the registry by the package.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        is_folder = name in _FAMILIES and isinstance(value, ModuleType)
        super().__setattr__(name, value.family if is_folder and hasattr(value, "family") else value)


sys.modules[__name__].__class__ = _PublicModule


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:
    from polariscope._signatures import (
        analyses,
        compare_sizes,
        datasets,
        dimension,
        figures,
        likelihoods,
        metrics,
        nets,
        objectives,
        posteriors,
        priors,
        similarity,
        size,
        size_curve,
        size_table,
        variants,
        workers,
    )
    from polariscope.analysis.representation import Representation
    from polariscope.core.errors import InputError, PolariscopeError
    from polariscope.data.chain import apply_variants
    from polariscope.data.own.arrays import from_arrays, from_dataset
    from polariscope.data.own.images import from_folder
    from polariscope.data.sources import load_dataset
    from polariscope.estimators import VAE
    from polariscope.manipulation.manipulate import manipulate
    from polariscope.models.open_model import wrap
    from polariscope.pages.report import report
    from polariscope.runs.compare_models import compare
    from polariscope.runs.encode import encode
    from polariscope.runs.model_analyses import decompose, diagnose, score
    from polariscope.runs.run import load_model, open_run
    from polariscope.runs.stability_of_runs import stability
    from polariscope.sizing.methods import family as sizing
    from polariscope.studies.study import Study
    from polariscope.training.train import train
