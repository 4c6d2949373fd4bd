"""Public interface of metrics: arrays and options are checked, and the metric's function gets a prepared table.

The file of a metric contains only its own function::

    @metric("ds", bounds=(0, inf), higher_is_better=True, needs=("codes", "factors"), invariant_to={"order"})
    def ds(table: Table, *, variant: Literal["corrected", "printed"] = "corrected") -> Score:
        ...

The registered function, which replaces ``ds``, is ``ds(codes, factors, *, variant=…, factor_names=(),
factor_kinds=None, seed=0)``. ``ds.of(table, variant=…)`` scores a prepared table, which several metrics can share.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast, get_type_hints, runtime_checkable

from numpy.typing import ArrayLike

from polariscope.analysis.code_table import Table
from polariscope.analysis.model_codes import Models
from polariscope.analysis.representation import Representation
from polariscope.core.errors import Argument, Call, Either, InputError
from polariscope.core.options import check_options, non_default
from polariscope.core.text import joined
from polariscope.core.types import ArrayInput, OptionValue

ARGUMENTS: dict[str, tuple[Any, str]] = {
    "codes": (ArrayLike, "representation to score, ``(sample, latent)``."),
    "factors": (
        ArrayLike,
        "ground-truth factors of each sample, ``(sample, factor)``: classes as integers, or measured values.",
    ),
    "models": (
        Sequence[ArrayLike | Representation],
        "mean codes ``(sample, latent)`` of each model, or their representations, of the same samples.",
    ),
    "variance": (ArrayLike | None, "(default None) posterior variances σ², shaped like the codes."),
    "types": (
        Sequence[str] | None,
        "(default: from ``variance``, for a prior N(0, 1)) type of each latent: active, mixed or passive.",
    ),
    "factor_names": (Sequence[str], "(default: their numbers) a name for each factor."),
    "factor_kinds": (
        Sequence[str] | None,
        "(default: all categorical) kind of each factor: categorical, ordinal, cyclic or continuous; measured factors "
        "must be declared.",
    ),
    "seed": (int, "(default 0) seed of every random choice."),
}
"""Arguments that metrics share besides their own options, with the text of the docstring."""
OF_MODELS = {
    "variance": (Sequence[ArrayLike] | None, "(default None) posterior variances σ² of each model."),
}
"""Arguments that differ for metrics of several models."""
DEFAULTS: dict[str, Any] = {
    "variance": None,
    "types": None,
    "factor_names": (),
    "factor_kinds": None,
    "seed": 0,
}


@runtime_checkable
class Metric(Protocol):
    """A metric as users call it."""

    __name__: str

    def __call__(self, *arrays: ArrayInput, **options: OptionValue) -> Any:
        """Score arrays."""

    def of(self, prepared: Any, **options: OptionValue) -> Any:
        """Score a prepared :class:`Table`, or :class:`Models` for a metric of several models."""


def take_arrays(name: str, function: Callable[..., Any], traits: Mapping[str, Any]) -> Metric:
    """Wrap a metric's function of a prepared table as a function of arrays."""
    needs, uses = tuple(traits["needs"]), tuple(traits["uses"])
    is_of_models = "models" in needs
    known = {**ARGUMENTS, **(OF_MODELS if is_of_models else {})}
    about_factors = ("factor_names", "factor_kinds") if "factors" in needs else ()
    common = (*needs, *uses, *about_factors, "seed")
    arguments = inspect.Signature([_parameter(argument, known[argument][0]) for argument in common])

    @functools.wraps(function)
    def metric(*arrays: Any, **keywords: Any) -> Any:
        # Options of the metric are checked by their annotations; arguments that metrics share are bound by
        # the signature.
        options = {option: value for option, value in keywords.items() if option not in common}
        named = {argument: value for argument, value in keywords.items() if argument in common}
        try:
            bound = arguments.bind(*arrays, **named)
        except TypeError as error:
            raise InputError(
                problem=f"metric {name!r} cannot be called with these arguments: {error}",
                remedy=f"its arguments are {joined(common)}, and its options by name",
            ) from None
        options = check_options(f"metric {name!r}", function, options)
        prepared = (Models if is_of_models else Table)(**bound.arguments)
        try:
            return measure(prepared, options)
        except InputError as error:
            if error.problem is None:  # an argument is wrong for every metric
                raise
            pieces = (
                (error.problem,)
                if isinstance(error.problem, str | Argument | Call | Either)
                else error.problem
            )
            raise InputError(
                problem=(f"metric {name!r} does not apply: ", *pieces), got=error.got, remedy=error.remedy
            ) from None

    def of(prepared: Any, **options: Any) -> Any:
        return measure(prepared, check_options(f"metric {name!r}", function, options))

    def measure(prepared: Any, options: dict[str, Any]) -> Any:
        if not is_of_models:
            _check_posterior(prepared, options.get("variant", default_variant), traits)
        changed = non_default(function, options)
        score = function(prepared, **options)
        return dataclasses.replace(score, options={k: v for k, v in changed.items() if k != "variant"})

    hints = get_type_hints(function, include_extras=True)
    own_parameters = [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    default_variant = next((option.default for option in own_parameters if option.name == "variant"), None)
    of_common = list(arguments.parameters.values())
    # In the order that users expect: arrays, own options, then arguments that metrics share.
    everything = [*of_common[: len(needs)], *own_parameters, *of_common[len(needs) :]]
    face: Any = metric
    # help() and tab completion show these instead of *arrays and **keywords.
    face.__signature__ = inspect.Signature(everything, return_annotation=hints["return"])
    face.__annotations__ = {parameter.name: parameter.annotation for parameter in everything}
    face.__annotations__["return"] = hints["return"]
    face.__doc__ = _docstring(function.__doc__ or "", needs, common[len(needs) :], known)
    face.own_options = function
    face.of = of
    return cast(Metric, face)


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    if name in DEFAULTS:
        default = DEFAULTS[name]
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation)


def _check_posterior(table: Table, variant: Any, traits: Mapping[str, Any]) -> None:
    """Raise an error if a variant requires mean codes or the prior N(0, I), and the table has others."""
    if variant in traits["posterior_variants"] and table.source != "mean":
        raise InputError(
            problem="it is defined by posterior means and variances", remedy="score the mean representation"
        )
    if traits["standard_prior"] and not table.prior_is_standard:
        raise InputError(
            problem="its rules compare posteriors with the prior N(0, I), and this model has another prior",
            remedy="use diagnose, which compares them with the model's own prior",
        )


def _docstring(
    text: str, first: Sequence[str], last: Sequence[str], known: Mapping[str, tuple[Any, str]]
) -> str:
    """Add lines for the shared arguments to the docstring of a metric, around those of its own options."""
    text = inspect.cleandoc(text)
    before, after = (
        "".join(f":param {name}: {known[name][1]}\n" for name in names) for names in (first, last)
    )
    params = re.search(r"(?:^:param .*\n(?:[ \t]+.*\n)*)+", f"{text}\n", flags=re.MULTILINE)
    if params is None:
        return f"{text}\n\n{before}{after}"
    return f"{text[: params.start()]}{before}{params.group()}{after}{text[params.end() :]}"
