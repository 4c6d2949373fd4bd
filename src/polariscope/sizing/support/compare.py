"""What several methods answer, side by side."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polariscope.core.errors import PolariscopeError
from polariscope.data.chain import Given, apply_variants, shorthands
from polariscope.data.missing import Missing
from polariscope.sizing import Size, family
from polariscope.sizing.support.checks import (
    BOUNDS,
    check_recipe,
    check_scale,
    check_varies,
    own_options,
    supported_options,
    trained_units,
)
from polariscope.sizing.support.size import size
from polariscope.storage.search import SearchFolder
from polariscope.training.threads import check_threads
from polariscope.training.train import choose_device

if TYPE_CHECKING:
    import pandas

COMPARED = ("fondue", "active-units", "ard", "elbow", "probe-elbow", "id")
"""What ``compare_sizes`` runs unless told otherwise: affordable together, and each a different idea."""


class SizeComparison(tuple[Size, ...]):
    """The answers of several methods: a tuple of :class:`polariscope.sizing.Size` that is also a table."""

    __slots__ = ()

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each method: its answer, the interval and the gradient steps spent."""
        import pandas

        rows = []
        for answer in self:
            low, high = answer.interval or (None, None)
            rows.append(
                {
                    **{"method": answer.method, "value": answer.value, "low": low, "high": high},
                    **{
                        "n_steps": answer.n_steps,
                        "n_models": len(answer.trials),
                        "statistic": answer.statistic,
                    },
                    **{"threshold": answer.threshold},
                }
            )
        columns = ["method", "value", "low", "high", "n_steps", "n_models", "statistic", "threshold"]
        return pandas.DataFrame(rows, columns=columns).set_index("method")

    def to_dict(self) -> dict[str, Any]:
        """Return the answers by method, as JSON."""
        return {answer.method: answer.to_dict() for answer in self}


def needs_factors(method: str) -> bool:
    """Whether a method is for data with known factors only.

    :param method: a name of ``polariscope.sizing``.
    """
    return bool(family.traits(method).get("needs_factors", False))


def compare_sizes(
    data: object,
    methods: Sequence[str] | None = None,
    *,
    out: str | Path | None = None,
    begin: Callable[[str], None] | None = None,
    variants: Given = (),
    standardise: bool = False,
    scale: bool = False,
    keep_units: bool = False,
    missing: Missing = "refuse",
    **options: object,
) -> SizeComparison:
    """The answers of several methods, side by side; arguments as in :func:`size`, each for the methods that use it.

    ``methods`` are by default one of each idea, without those that need factors where the data have none. In
    ``out`` each method has a folder of its own, so their costs can be compared; all answers are
    kept. ``begin`` is told the name of each method when its turn comes.

    :param data: a dataset, or an array of observations.
    :param methods: (default: one of each idea) names of ``polariscope.sizing``.
    :param out: (default None: nothing is written) folder for the models and all answers.
    :param begin: (default None) called with the name of each method when its turn comes.
    :param variants: (default none) variants of the data, as in :func:`polariscope.train`.
    :param standardise: (default False) bring every feature of a table to mean 0 and standard deviation 1 first.
    :param scale: (default False) bring every feature of a table to [0, 1] first.
    :param keep_units: (default False) leave a table in the units it has, as in :func:`polariscope.train`.
    :param missing: (default "refuse") what is done about missing values of an array, as in :func:`polariscope.train`.
    :param options: further arguments of :func:`size`, each for the methods that use it.
    """
    shorthands(standardise=standardise, scale=scale, keep_units=keep_units)
    dataset = apply_variants(data, variants, standardise=standardise, scale=scale, missing=missing)
    chosen = methods or [name for name in COMPARED if dataset.factor_names or not needs_factors(name)]
    keys = {*BOUNDS, *inspect.signature(size).parameters}.union(*map(own_options, chosen))
    recipe = {key: value for key, value in options.items() if key not in keys}
    dataset = trained_units(dataset, recipe, keep_units=keep_units)
    recipe |= {"keep_units": True} if keep_units else {}
    for name in chosen:  # refuse what is wrong with the call before anything is trained
        check_recipe(dataset, name, recipe)
        check_scale(dataset, name, recipe)
    check_varies(dataset)
    choose_device(options.get("device", "auto"))
    check_threads(options.get("threads"))
    answers = []
    for name in chosen:
        place = None if out is None else Path(out) / name
        if begin is not None:
            begin(name)
        try:
            its = supported_options(name, options, chosen)
            answers.append(size(dataset, name, out=place, keep_units=keep_units, **its))
        except PolariscopeError as error:  # no answer is also a result, beside the others'
            statistic = family.traits(name)["statistic"]
            answers.append(Size(None, None, name, statistic=statistic, notes=(str(error),)))
    if out is not None:
        SearchFolder(out).write_answers([answer.to_dict() for answer in answers])
    return SizeComparison(answers)
