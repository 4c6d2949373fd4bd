"""Contents of a dataset of the user's own data, before they are checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Shaped


@dataclasses.dataclass(frozen=True, eq=False)
class Contents:
    """Observations and facts about them, as passed by the user or read from a file."""

    array: object
    """The observations: an array, a sparse matrix, or rows of :mod:`polariscope.data.own.support.rows`."""
    factors: object = None
    """Factors or labels: an array, a frame, or columns by name; text is numbered later."""
    factor_names: Sequence[str] | None = None
    factor_kinds: Sequence[str] | None = None
    feature_names: tuple[str, ...] = ()
    """Names of the features of flat rows; empty if they have no names."""
    ids: object = None
    """Identifier of each observation; None for its number."""
    choices: tuple[str, ...] = ()
    """Decisions made while reading, in a few words each."""
    aside: Mapping[str, Shaped[np.ndarray, " sample"]] = dataclasses.field(default_factory=dict)
    """Columns that are neither features nor factors, by name, such as those that define a split."""
