"""Arrays as their owner has them, and as a network sees them."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.core.errors import InputError
from polariscope.data.chain import units_of_rows
from polariscope.data.own import Layout
from polariscope.data.own.arrays import ArraysDataset, from_arrays
from polariscope.data.rescaling import Rescaling
from polariscope.data.streamed_statistics import merged

Kind = Literal["rows", "grey", "channels-first", "channels-last"]


@dataclasses.dataclass(frozen=True, eq=False)
class Units:
    r"""Shape, scale and type of the observations that an estimator was fitted on, and the way there and back.

    A row x of a table becomes (x − offset) / scale: the units of the variants ``centred``, ``standardised`` and
    ``scaled`` (:func:`polariscope.data.chain.units_of_rows`). Standardised, the scale changes what the model thinks
    important, as it does for PCA. A density in the owner's units is that of the network's less Σ log scale.

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
    ratio: float = 1.0
    """Of the largest variance of a feature to the smallest, in a table that keeps their proportions."""

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
        keeps_units = counts or (unit_interval and not scale)
        if X.ndim != 2 or keeps_units:
            what = "rows in [0, 1] for a Bernoulli likelihood"
            what = "images" if X.ndim != 2 else "counts" if counts else what
            remedy = "leave it out" if what == "counts" else "they are used as they are, in [0, 1]"
            for name, asked in (("standardise", standardise), ("scale", scale)):
                if asked:
                    raise InputError(name, f"be False for {what}", got="True", remedy=remedy)
        if X.ndim == 2 and (counts or not keeps_units):
            units = units_of_rows(X, standardise=standardise, scale=scale, keep_units=keeps_units)
            if units is None:
                return Units("rows", shape, False, False)
            ratio = 1.0 if standardise or scale else merged([X]).ratio
            return Units("rows", shape, False, scale, units.offset, units.unit, ratio=ratio)
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
        """Σ log scale: the difference between a log-density in the network's units and one in the owner's."""
        return 0.0 if self._rescaling is None else self._rescaling.log_volume

    @property
    def _rescaling(self) -> Rescaling | None:
        if self.offset is None or self.scale is None:
            return None
        return Rescaling(self.offset, self.scale)

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

    def source(self, X: Shaped[np.ndarray, "sample ..."]) -> ArraysDataset:
        """The observations as their owner has them, for who puts them into units itself."""
        if self.kind != "rows":
            return self.dataset(X)
        return from_arrays(X, unit_interval=self.is_unit_interval and self.scale is None)

    def values(self, X: Shaped[np.ndarray, "sample ..."]) -> Float[np.ndarray, "sample ..."]:
        """What the network sees of ``X``; rows in their own precision."""
        self.check(X)
        return self._scaled(X) if self.kind == "rows" else self.dataset(X).values(np.arange(len(X)))

    def restore(
        self, values: Float[np.ndarray, "sample ..."], dtype: Any
    ) -> Shaped[np.ndarray, "sample ..."]:
        """The inverse of :meth:`values`: the owner's shape and units; bytes for bytes, else of ``dtype``."""
        if (rescaling := self._rescaling) is not None:
            return rescaling.inverse(values, dtype)
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
        return X if (rescaling := self._rescaling) is None else rescaling.apply(X, X.dtype)
