"""Analyses of a representation that also accept a model and data, which they encode first."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from polariscope.analysis import decomposition
from polariscope.analysis import score as scoring
from polariscope.analysis.regime import diagnose as diagnosing
from polariscope.analysis.representation import Representation
from polariscope.core.errors import Argument, InputError
from polariscope.data.codes import ENDINGS, open_codes
from polariscope.data.data_like import is_anndata

Result = TypeVar("Result")

DATA_DOC = """\
:param data: (default None) if the first argument is a model, of this or another library: the dataset or array to
    encode, at most 10,000 observations, as with :func:`polariscope.encode`. For a model that belongs to a run, the
    default is the run's data. Can be the second positional argument. The first argument can also be the path of an .npz
    or .h5ad file of codes, without data."""


CELLS_DOC = """\
An AnnData object can be the first argument: ``diagnose(adata)`` reads posterior means and variances from ``obsm``
(choose them by name with ``mean`` and ``variance``), and ``diagnose(adata, model=model)`` encodes all cells. Latents
in use are written to ``obsm["X_polariscope"]``, and the types to ``uns["polariscope"]``; ``key`` is another name
(:func:`polariscope.runs.cells.diagnose_cells`)."""


def taking_models(analysis: Callable[..., Result]) -> Callable[..., Result]:
    """Return an analysis that accepts a representation, a file of codes, or a model and data.

    :param analysis: a function whose first argument is a representation.
    """

    @functools.wraps(analysis)
    def take(*arguments: Any, data: Any = None, **options: Any) -> Result:
        first, *rest = arguments or (None,)
        if isinstance(first, str | Path) and Path(first).suffix in ENDINGS:
            first = open_codes(first, cast(int, options.get("seed", 0)))
        if _is_model(first):
            if rest and data is None:
                data, *rest = rest
            from polariscope.runs.encode import (
                encode,
            )  # imports torch, which analyses of arrays do not require

            # The decoder effect is measured for the unit of the diagnosis.
            view = {"per": options["per"]} if options.get("per") is not None else {}
            first = encode(first, data, seed=cast(int, options.get("seed", 0)), **view)
        elif data is not None:
            raise InputError(
                problem=(Argument("data"), " requires a model as the first argument"),
                got=type(first).__name__,
                remedy="leave it out",
            )
        # Without arguments the analysis itself raises the error.
        return analysis(*([] if first is None and not arguments else [first]), *rest, **options)

    face: Any = take
    signature = inspect.signature(analysis)
    extra = inspect.Parameter("data", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=object)
    face.__signature__ = signature.replace(parameters=[*signature.parameters.values(), extra])
    # The description of data belongs before the examples.
    before, example, after = inspect.cleandoc(analysis.__doc__ or "").partition("\n\n>>>")
    face.__doc__ = f"{before}\n{DATA_DOC}{example}{after}"
    return take


def _is_model(thing: object) -> bool:
    """Return True for a model of any library, or the path of one; torch is not imported for arrays."""
    if thing is None or isinstance(thing, Representation | np.ndarray | Mapping | list | tuple):
        return False
    if callable(thing):
        return True
    # Tensors and frames are arrays of codes.
    if hasattr(thing, "__array__"):
        return False
    from polariscope.models.open_model import is_openable

    return is_openable(thing)


def taking_cells(analysis: Callable[..., Result]) -> Callable[..., Result]:
    """Return a diagnosis that also accepts an AnnData object as its first argument, and writes its result into it.

    :param analysis: the diagnosis of codes, or of a model and data.
    """

    @functools.wraps(analysis)
    def take(*arguments: Any, **options: Any) -> Any:
        if arguments and is_anndata(arguments[0]):
            from polariscope.runs.cells import diagnose_cells

            return diagnose_cells(*arguments, **options)
        return analysis(*arguments, **options)

    before, parameters, after = (analysis.__doc__ or "").partition("\n\n:param representation")
    take.__doc__ = f"{before}\n\n{CELLS_DOC}{parameters}{after}"
    return take


diagnose = taking_cells(taking_models(diagnosing.diagnose))
score = taking_models(scoring.score)
decompose = taking_models(decomposition.decompose)
