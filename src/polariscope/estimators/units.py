"""Arrays as their owner has them, and as a network sees them."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.core.errors import InputError
from polariscope.data.own.arrays import ArraysDataset, from_arrays
from polariscope.data.own.support.layout import Layout

Kind = Literal["rows", "grey", "channels-first", "channels-last"]


@dataclasses.dataclass(frozen=True, eq=False)
class Units:
    r"""Shape, scale and type of the observations that an estimator was fitted on, and the way there and back.

    A row x of a table becomes (x − offset) / scale. The offset is the mean of each feature. The scale is one
    number for all of them, the root of their mean variance, which only changes the unit; or, standardised, the
    standard deviation of each, which changes what the model thinks important, as it does for PCA. Scaled, the offset is
    the lowest value of each feature and the scale its range, which brings it to [0, 1]. Features that never vary keep
    their unit. A density in the owner's units is that of the network's less Σ log scale.

    Counts, where a likelihood of counts is asked for, stay as they are.

    Images, and rows that a Bernoulli likelihood is asked for, stay as they are: bytes are divided by 255, unless those
    that were fitted on are all 0 or 1. Then 1 is white, and what is given back are floats in [0, 1], since two bytes
    cannot hold the greys between.
    """

    kind: Kind
    shape: tuple[int, ...]
    """Of one observation, as it was given."""
    is_bytes: bool
    """Whether images were given as bytes 0 … 255, so they are returned as bytes."""
    is_unit_interval: bool
    """Whether the network sees values in [0, 1]."""
    offset: Float[np.ndarray, " feature"] | None = None
    scale: Float[np.ndarray, " feature"] | None = None
    white: int | None = None
    """Which byte is white, 1 or 255, where images were given as bytes."""

    @staticmethod
    def learn(
        X: Shaped[np.ndarray, "sample ..."],
        *,
        standardise: bool,
        scale: bool = False,
        unit_interval: bool,
        layout: Layout | None,
        counts: bool = False,
    ) -> Units:
        """The units of ``X``, which has passed scikit-learn's own checks."""
        shape = tuple(X.shape[1:])
        if counts and X.ndim == 2:
            for name, asked in (("standardise", standardise), ("scale", scale)):
                if asked:
                    raise InputError(name, "be False for counts", got="True", remedy="leave it out")
            return Units("rows", shape, False, False)
        if X.ndim == 2 and scale:
            return Units("rows", shape, False, True, *lowest_and_range(X))
        if X.ndim == 2 and not unit_interval:
            return Units("rows", shape, False, False, *offset_and_scale(X, standardise))
        for name, asked in (("standardise", standardise), ("scale", scale)):
            what = "rows in [0, 1] for a Bernoulli likelihood" if X.ndim == 2 else "images"
            if asked:
                raise InputError(
                    name, f"be False for {what}", got="True", remedy="they are used as they are, in [0, 1]"
                )
        kind: Kind = "rows" if X.ndim == 2 else "grey"
        if X.ndim == 4:
            first = from_arrays(X[:1], layout=layout).shape == shape
            kind = layout or ("channels-first" if first else "channels-last")
        seen = Units(kind, shape, False, True).dataset(X)  # refuses what is neither bytes nor in [0, 1]
        return Units(kind, shape, seen.white == 255, True, white=seen.white)

    @property
    def n_values(self) -> int:
        """Number of values in one observation."""
        return int(np.prod(self.shape))

    @property
    def log_scale(self) -> float:
        """Σ log scale: what a log-density in the network's units exceeds that in the owner's."""
        return 0.0 if self.scale is None else float(np.log(self.scale).sum())

    def dataset(self, X: Shaped[np.ndarray, "sample ..."]) -> ArraysDataset:
        """What the network is trained on."""
        self.check(X)
        if self.kind == "rows":
            return from_arrays(self._scaled(X), unit_interval=self.is_unit_interval)
        return from_arrays(
            X,
            layout=None if self.kind == "grey" else self.kind,
            white=self.white if X.dtype == np.uint8 else None,
        )

    def values(self, X: Shaped[np.ndarray, "sample ..."]) -> Float[np.ndarray, "sample ..."]:
        """What the network sees of ``X``; rows in their own precision."""
        self.check(X)
        return self._scaled(X) if self.kind == "rows" else self.dataset(X).values(np.arange(len(X)))

    def restore(
        self, values: Float[np.ndarray, "sample ..."], dtype: Any
    ) -> Shaped[np.ndarray, "sample ..."]:
        """The inverse of :meth:`values`: the owner's shape and units; bytes for bytes, else of ``dtype``."""
        if self.scale is not None and self.offset is not None:
            return (values * self.scale + self.offset).astype(dtype)
        if self.kind == "grey":
            values = values[:, 0]
        elif self.kind == "channels-last":
            values = np.moveaxis(values, 1, 3)
        return np.round(values * 255).astype(np.uint8) if self.is_bytes else values.astype(dtype)

    def check(self, X: Shaped[np.ndarray, "sample ..."]) -> None:
        if tuple(X.shape[1:]) != self.shape:
            wanted, got = (", ".join(map(str, ("sample", *shape))) for shape in (self.shape, X.shape[1:]))
            raise InputError("X", f"have shape ({wanted}) as in fit", got=f"({got})")

    def _scaled(self, X: Shaped[np.ndarray, "sample feature"]) -> Float[np.ndarray, "sample feature"]:
        return X if self.scale is None else ((X - self.offset) / self.scale).astype(X.dtype)


def offset_and_scale(
    X: Float[np.ndarray, "sample feature"], standardise: bool
) -> tuple[Float[np.ndarray, " feature"], Float[np.ndarray, " feature"]]:
    """Mean of each feature, and the standard deviation of each or the root of their mean variance.

    >>> offset_and_scale(np.array([[0.0, 5.0], [4.0, 5.0]]), standardise=True)
    (array([2., 5.]), array([2., 1.]))
    """
    offset = X.mean(axis=0, dtype=np.float64)
    variance = X.var(axis=0, dtype=np.float64)
    # What rounding leaves of the variance of a constant; less than a float32 column can vary.
    rounding = (1e-12 * np.abs(X).max(axis=0).astype(np.float64)) ** 2
    variance = np.where(variance > rounding, variance, 0.0)
    if not standardise:
        variance = np.full_like(variance, variance.mean())
    return offset, np.where(variance > 0, np.sqrt(variance), 1.0)


def lowest_and_range(
    X: Float[np.ndarray, "sample feature"],
) -> tuple[Float[np.ndarray, " feature"], Float[np.ndarray, " feature"]]:
    """Lowest value of each feature, and how far it reaches above it; 1 where it never varies.

    >>> lowest_and_range(np.array([[0.0, 5.0], [4.0, 5.0]]))
    (array([0., 5.]), array([4., 1.]))
    """
    low = X.min(axis=0).astype(np.float64)
    span = X.max(axis=0).astype(np.float64) - low
    return low, np.where(span > 0, span, 1.0)
