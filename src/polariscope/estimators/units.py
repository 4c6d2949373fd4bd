"""Conversion of arrays between the units of the user and those of the network."""

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
    r"""Shape, scale and type of the observations that an estimator was fitted on.

    A row x of a table becomes (x − offset) / scale: the units of the variants ``centred``, ``standardised`` and
    ``scaled`` (:func:`polariscope.data.chain.units_of_rows`). Standardising changes the relative importance of the
    features, as it does for PCA. A log-density in the user's units is that in the network's units less Σ log scale.

    Counts are not changed if the likelihood is one of counts.

    Images, and rows with a Bernoulli likelihood, keep their values in [0, 1]. Bytes are divided by 255, unless all
    bytes in ``fit`` are 0 or 1. In this case 1 is white, and outputs are floats in [0, 1], because bytes 0 and 1 cannot
    represent grey.
    """

    kind: Kind
    shape: tuple[int, ...]
    """Shape of one observation in the user's array."""
    is_bytes: bool
    """If True, images are arrays of bytes 0 … 255, and outputs are bytes too."""
    is_unit_interval: bool
    """If True, the inputs of the network are in [0, 1]."""
    offset: Float[np.ndarray, " feature"] | None = None
    scale: Float[np.ndarray, " feature"] | None = None
    white: int | None = None
    """Byte that is white, 1 or 255; None if images are not bytes."""
    ratio: float = 1.0
    """Ratio of the largest to the smallest variance of a feature; 1 if a table is standardised or scaled."""

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
        """Return the units of ``X``, which has passed scikit-learn's checks."""
        shape = tuple(X.shape[1:])
        keeps_units = counts or (unit_interval and not scale)
        if X.ndim != 2 or keeps_units:
            values = "rows in [0, 1] for a Bernoulli likelihood"
            values = "images" if X.ndim != 2 else "counts" if counts else values
            remedy = (
                "leave it out"
                if values == "counts"
                else "leave it out: their values are used unchanged, in [0, 1]"
            )
            for name, is_set in (("standardise", standardise), ("scale", scale)):
                if is_set:
                    raise InputError(name, f"be False for {values}", got="True", remedy=remedy)
        if X.ndim == 2 and (counts or not keeps_units):
            units = units_of_rows(X, standardise=standardise, scale=scale, keep_units=keeps_units)
            if units is None:
                return Units("rows", shape, False, False)
            ratio = 1.0 if standardise or scale else merged([X]).ratio
            return Units("rows", shape, False, scale, units.offset, units.unit, ratio=ratio)
        kind: Kind = "rows" if X.ndim == 2 else "grey"
        if X.ndim == 4:
            # from_arrays decides which axis contains the channels.
            first = from_arrays(X[:1], layout=layout).shape == shape
            kind = layout or ("channels-first" if first else "channels-last")
        # Raises an error for values that are neither bytes nor in [0, 1].
        dataset = Units(kind, shape, False, True).dataset(X)
        return Units(kind, shape, dataset.white == 255, True, white=dataset.white)

    @property
    def n_values(self) -> int:
        """Number of values in one observation."""
        return int(np.prod(self.shape))

    @property
    def log_scale(self) -> float:
        """Σ log scale: the difference between log-densities in the network's units and in the user's units."""
        return 0.0 if self._rescaling is None else self._rescaling.log_volume

    @property
    def _rescaling(self) -> Rescaling | None:
        if self.offset is None or self.scale is None:
            return None
        return Rescaling(self.offset, self.scale)

    def dataset(self, X: Shaped[np.ndarray, "sample ..."]) -> ArraysDataset:
        """Return the dataset in the network's units."""
        self.check(X)
        if self.kind == "rows":
            return from_arrays(self._scaled(X), unit_interval=self.is_unit_interval)
        return from_arrays(
            X,
            layout=None if self.kind == "grey" else self.kind,
            white=self.white if X.dtype == np.uint8 else None,
        )

    def source(self, X: Shaped[np.ndarray, "sample ..."]) -> ArraysDataset:
        """Return the dataset in the user's units, for functions that change the units themselves."""
        if self.kind != "rows":
            return self.dataset(X)
        return from_arrays(X, unit_interval=self.is_unit_interval and self.scale is None)

    def values(self, X: Shaped[np.ndarray, "sample ..."]) -> Float[np.ndarray, "sample ..."]:
        """Return ``X`` in the network's units; rows keep their precision."""
        self.check(X)
        return self._scaled(X) if self.kind == "rows" else self.dataset(X).values(np.arange(len(X)))

    def restore(
        self, values: Float[np.ndarray, "sample ..."], dtype: Any
    ) -> Shaped[np.ndarray, "sample ..."]:
        """Invert :meth:`values` to the user's shape and units; bytes if ``X`` was bytes, otherwise ``dtype``."""
        if (rescaling := self._rescaling) is not None:
            return rescaling.inverse(values, dtype)
        if self.kind == "grey":
            values = values[:, 0]
        elif self.kind == "channels-last":
            values = np.moveaxis(values, 1, 3)
        return np.round(values * 255).astype(np.uint8) if self.is_bytes else values.astype(dtype)

    def check(self, X: Shaped[np.ndarray, "sample ..."]) -> None:
        if tuple(X.shape[1:]) != self.shape:
            expected, got = (", ".join(map(str, ("sample", *shape))) for shape in (self.shape, X.shape[1:]))
            raise InputError("X", f"have shape ({expected}) as in fit", got=f"({got})")

    def _scaled(self, X: Shaped[np.ndarray, "sample feature"]) -> Float[np.ndarray, "sample feature"]:
        return X if (rescaling := self._rescaling) is None else rescaling.apply(X, X.dtype)
