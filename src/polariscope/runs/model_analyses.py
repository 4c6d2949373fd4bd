"""The analyses of a representation, which also take a model and encode it first."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from polariscope.analysis import decomposition
from polariscope.analysis import score as scoring
from polariscope.analysis.regime import diagnose as diagnosing
from polariscope.analysis.representation import Representation
from polariscope.core.errors import Argument, InputError

Result = TypeVar("Result")

ALSO = """\
:param data: (default None) with a model first, of ours or of another library: the dataset or array that it encodes,
    10,000 observations at most, as :func:`polariscope.encode` does; of a model that belongs to a run by default the
    run's own. May be the second argument."""


def taking_models(analysis: Callable[..., Result]) -> Callable[..., Result]:
    """An analysis of a representation that also takes a model, with data behind it.

    :param analysis: a function whose first argument is a representation.
    """

    @functools.wraps(analysis)
    def take(*arguments: Any, data: Any = None, **options: Any) -> Result:
        first, *rest = arguments or (None,)
        if callable(first) and not isinstance(first, Representation):
            if rest and data is None:
                data, *rest = rest
            from polariscope.runs.encode import encode  # arrays need no torch

            first = encode(first, data, seed=cast(int, options.get("seed", 0)))
        elif data is not None:
            raise InputError(
                problem=(Argument("data"), " is for a model, which encodes them first"),
                got=type(first).__name__,
                remedy="leave it out",
            )
        return analysis(*([] if first is None and not arguments else [first]), *rest, **options)

    face: Any = take
    signature = inspect.signature(analysis)
    extra = inspect.Parameter("data", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=object)
    face.__signature__ = signature.replace(parameters=[*signature.parameters.values(), extra])
    before, example, after = inspect.cleandoc(analysis.__doc__ or "").partition("\n\n>>>")
    face.__doc__ = f"{before}\n{ALSO}{example}{after}"
    return take


diagnose = taking_models(diagnosing.diagnose)
score = taking_models(scoring.score)
decompose = taking_models(decomposition.decompose)
