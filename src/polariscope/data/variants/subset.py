"""Subsets of the observations: of a given size, or by their factors."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge
from jaxtyping import Bool, Int

from polariscope.core.errors import Argument, InputError, unknown
from polariscope.core.options import options_of
from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset
from polariscope.data.variants import variant
from polariscope.data.variants.support.subsets import AbstractSelection, column_of, factors_of

NUMBER = r"-?\d+(?:\.\d*)?(?:[eE]-?\d+)?"
INTERVAL = re.compile(rf"\s*({NUMBER})\s*(?:-\s*({NUMBER}))?\s*")


@variant("subset", of="anything", example="subset:n=50")
@dataclasses.dataclass(frozen=True)
class SubsetVariant(AbstractSelection):
    """A subset of the observations, selected by their factors, at random, or both, in the order of the base.

    On the command line, ``subset:n=50000,seed=1`` draws 50,000 without replacement, and ``subset:shape=0,x=3-10`` keeps
    those whose factors have these values (3-10: from 3 to 10, both included; 0/2: 0 or 2). In Python,
    ``{"name": "subset", "shape": 0, "x": (3, 10)}`` does the same, and a list is a choice of values. With both, ``n``
    are drawn from those that match. Factors keep their values and their numbers of values.
    """

    n: Annotated[int, Ge(1)] | None = None
    """Number of observations, drawn without replacement; None for all that match."""
    seed: int = 0
    """Seed of the draw."""
    where: tuple[str, ...] = ()
    """Values of factors, each as FACTOR=VALUES. If no option has the factor's name, it can be used like an option."""

    @classmethod
    def read_options(cls, base: AbstractDataset, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Convert arguments with the names of factors to conditions.

        :param base: the dataset with these factors.
        :param arguments: options and conditions by name.
        """
        known = options_of(cls)
        options = {name: value for name, value in arguments.items() if name in known}
        conditions = []
        for name, value in arguments.items():
            if name not in known:
                if name not in base.factor_names:
                    raise unknown("option of variant 'subset' or factor", name, [*known, *base.factor_names])
                conditions.append(f"{name}={_written(value)}")
        before = options.get("where", ())
        before = (before,) if isinstance(before, str) else before
        if isinstance(before, Mapping):
            before = [f"{name}={_written(value)}" for name, value in before.items()]
        return {**options, "where": (*before, *conditions)} if conditions or before else options  # type: ignore[misc]

    def check(self) -> None:
        if self.n is None and not self.where:
            raise InputError(
                problem="variant 'subset' requires a number of observations or values of factors",
                remedy=("pass ", Argument("n"), ", or a factor's name with its values"),
            )
        matching = self.matching
        if not len(matching):
            raise InputError(
                problem=f"no observation of {self.base.name} has {' and '.join(map(_shown, self.where))}",
                remedy="a subset must not be empty; widen the values",
            )
        if self.n is not None and self.n > len(matching):
            among = f" with {' and '.join(map(_shown, self.where))}" if self.where else ""
            raise InputError(
                "n", f"be at most {len(matching)}, the observations of {self.base.name}{among}", got=self.n
            )

    def choose(self) -> Int[np.ndarray, " sample"]:
        matching = self.matching
        if self.n is None:
            return matching
        drawn = generator(self.seed, "subset").choice(len(matching), size=self.n, replace=False)
        return matching[np.sort(drawn)]

    @functools.cached_property
    def matching(self) -> Int[np.ndarray, " sample"]:
        """Indices of the base that fulfil all conditions."""
        if not self.where:
            return np.arange(len(self.base))
        conditions = [condition.partition("=") for condition in self.where]
        columns = [column_of(self.base, name.strip()) for name, _, _ in conditions]
        factors = factors_of(self.base, columns)
        matches = [_within(column, *parts) for column, parts in zip(factors.T, conditions, strict=True)]
        return np.flatnonzero(np.all(matches, axis=0))


def _within(column: np.ndarray, name: str, equals: str, values: str) -> Bool[np.ndarray, " sample"]:
    """Return where a factor has one of the values, which are written as 3-10 or 0/2."""
    matches = [INTERVAL.fullmatch(part) for part in values.split("/")]
    intervals = [match.groups() for match in matches if match is not None]
    if not equals or len(intervals) != len(matches):
        raise InputError(
            f"the values of factor {name.strip()!r}",
            "be a number, a range such as 3-10, or several of these joined by '/'",
            got=f"{values!r}",
        )
    return np.any(
        [(column >= float(low)) & (column <= float(high or low)) for low, high in intervals], axis=0
    )


def _written(value: Any) -> str:
    """Write values of a factor as on the command line: a pair is a range, a list a choice.

    >>> _written(3), _written((3, 10)), _written([0, 2]), _written("0/2")
    ('3', '3-10', '0/2', '0/2')
    """
    if isinstance(value, list):
        return "/".join(map(_written, value))
    if isinstance(value, tuple):
        return "-".join(map(str, value))
    return str(value)


def _shown(condition: str) -> str:
    """Describe a condition."""
    name, _, values = condition.partition("=")
    return f"{name} {values.replace('/', ' or ')}"
