"""Comparison of the answers of several methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polariscope.core.errors import PolariscopeError
from polariscope.core.options import spelled_out
from polariscope.core.types import OptionValue
from polariscope.data.data_like import DataLike
from polariscope.data.inputs import as_dataset
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import family
from polariscope.sizing.result import Size
from polariscope.sizing.search import Search, SearchSettings
from polariscope.sizing.size import size_by
from polariscope.storage.search_folder import SearchFolder

if TYPE_CHECKING:
    import pandas

COMPARED = ("fondue", "active-units", "ard", "elbow", "probe-elbow", "id")
"""Default methods of ``compare_sizes``: each is based on a different idea, and together they are affordable."""


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
        """Return the answers by method, as plain values for JSON."""
        return {answer.method: answer.to_dict() for answer in self}


def needs_factors(method: str) -> bool:
    """Return True if a method requires data with known factors.

    :param method: a name of ``polariscope.sizing``.
    """
    return bool(family.traits(method).get("needs_factors", False))


@spelled_out(SearchSettings, Goal, open_ended=True)
def compare_sizes(
    data: DataLike,
    methods: Sequence[str] | None = None,
    **options: OptionValue,
) -> SizeComparison:
    """Size data with several methods.

    In ``out`` each method has its own folder and trains its own models, so their costs can be compared. Progress events
    have the name of the method as their stage.

    :param data: a dataset, or an array of observations.
    :param methods: (default: one of each kind, without those that require factors if the data have none) names of
        ``polariscope.sizing``.
    :param options: options of the methods and of the models as in :func:`polariscope.size`; each option is passed to
        the methods that use it.
    """
    if methods is None:
        # Missing values are treated here, so the option must not be applied again.
        missing: Any = options.pop("missing", SearchSettings.missing)
        data = dataset = as_dataset(data, missing)
        methods = [name for name in COMPARED if dataset.factor_names or not needs_factors(name)]
    search = Search.prepare(data, methods, options)
    questions = [search.question(method) for method in methods]  # all are checked before anything is trained
    answers = []
    for question in questions:
        try:
            answers.append(size_by(search.within(question.method), question))
        except PolariscopeError as error:  # a method without an answer does not stop the others
            statistic = family.traits(question.method)["statistic"]
            answers.append(Size(None, None, question.method, statistic=statistic, notes=(str(error),)))
    if search.out is not None:
        SearchFolder(search.out).write_answers([answer.to_dict() for answer in answers])
    return SizeComparison(answers)
