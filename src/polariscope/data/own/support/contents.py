"""What a dataset of the user's own is made from, before it is checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Shaped


@dataclasses.dataclass(frozen=True, eq=False)
class Contents:
    """Observations and what is known of them, as they were given or read."""

    array: object
    """The observations: an array, a sparse matrix, or rows of :mod:`polariscope.data.own.support.rows`."""
    factors: object = None
    """Factors or labels: an array, a frame, or columns by name; text is numbered later."""
    factor_names: Sequence[str] | None = None
    factor_kinds: Sequence[str] | None = None
    feature_names: tuple[str, ...] = ()
    """Names of the features of flat rows; empty where they have none."""
    ids: object = None
    """What identifies each observation; None: its number."""
    choices: tuple[str, ...] = ()
    """What was decided while reading, in a few words each."""
    aside: Mapping[str, Shaped[np.ndarray, " sample"]] = dataclasses.field(default_factory=dict)
    """Columns that are neither features nor factors, by name: what data are split by."""
