"""Data on which variational autoencoders entangle the factors."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, UInt8
from numpy.typing import ArrayLike

from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.paths import resolved_path
from polariscope.data.dataset import AbstractDataset
from polariscope.data.variants import AbstractVariant, variant

if TYPE_CHECKING:
    from polariscope.manipulation.network import Tabulated


@variant("manipulated", of="anything", bare="folder", example="manipulated:FOLDER")
@dataclasses.dataclass(frozen=True)
class ManipulatedVariant(AbstractVariant):
    r"""Observations with values changed by at most ε, such that entangled codes describe them better.

    .. math:: x' = r(x + \varepsilon\, m(w))

    with the factors w of an observation and the manipulation m that ``polariscope manipulate`` stored in a folder. For
    values in [0, 1] r reflects at 0 and at 1; images are rounded to bytes, towards x if the nearest byte differs by
    more than ε. Factors do not change. No data are copied: observations are computed on access, and are the same every
    time. The control is ``pixel-noise`` with the same ε.

    The variant applies to any data with the same names of factors and the same shape of observations.

    Reference: zietlow2022 §4.2.4 and §4.3.1.
    """

    folder: str
    """Folder of a finished manipulation."""
    key: str | None = None
    """Hash of the manipulation; another manipulation in the folder is refused. None accepts any."""

    @classmethod
    def read_options(cls, base: AbstractDataset, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Return the options, with the folder as a string.

        :param base: dataset that the variant applies to.
        :param arguments: options by name.
        """
        folder = {"folder": str(arguments["folder"])} if isinstance(arguments.get("folder"), Path) else {}
        return {**super().read_options(base, arguments), **folder}

    def check(self) -> None:
        # A relative path would change its meaning with the current folder; the dataclass is frozen.
        object.__setattr__(self, "folder", str(resolved_path(self.folder, "folder")))
        architecture = self.manipulation.architecture
        if self.key is not None and self.key != self.manipulation.digest:
            raise PolariscopeError(
                f"{self.folder} contains a different manipulation than the recorded one; "
                "restore the old one, or start again with the new one."
            )
        for what, theirs, ours in (
            ("observations of shape", architecture.shape, tuple(self.base.shape)),
            ("the factors", architecture.factor_names, tuple(self.base.factor_names)),
            ("values in [0, 1]:", architecture.reflects, self.base.is_unit_interval),
        ):
            if theirs != ours:
                raise InputError(
                    problem=(
                        f"the manipulation in {self.folder} was trained for {what} {_shown(theirs)}, and "
                        f"{self.base.name} has {_shown(ours)}"
                    ),
                    remedy="use it with data like those it was trained for",
                )

    @functools.cached_property
    def manipulation(self) -> Tabulated:
        """The manipulation in the folder, after checking; an unfinished one is refused."""
        from polariscope.manipulation.manipulation import read_manipulation

        return read_manipulation(self.folder)[1]

    def options(self) -> dict[str, Any]:
        """Return the folder, and the key of its manipulation."""
        return {"folder": self.folder, "key": self.manipulation.digest}

    def identity(self) -> dict[str, Any]:
        """Return the key alone, because the path of the folder does not affect the data."""
        return {"key": self.manipulation.digest}

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        if len(self.shape) != 3:
            return self.base.images(indices)  # flat data raise an error
        from polariscope.manipulation.bounds import moved_bytes

        x, m = self.base.values(indices), self._change(indices)
        return moved_bytes(x, m, self.manipulation.architecture.epsilon)

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample *shape"]:
        # Values of images are derived from their bytes, so both agree.
        if len(self.shape) == 3:
            return AbstractDataset.values(self, indices)
        from polariscope.manipulation.bounds import moved_values

        architecture = self.manipulation.architecture
        x, m = self.base.values(indices), self._change(indices)
        return moved_values(x, m, architecture.epsilon, reflects=architecture.reflects).astype(np.float32)

    def _change(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample *shape"]:
        indices = self.check_indices(indices)
        if not len(indices):
            return np.zeros((0, *self.shape), dtype=np.float32)
        return self.manipulation(self.base.factors(indices))


def _shown(value: object) -> str:
    """Return a shape, names or a boolean as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    assert isinstance(value, tuple)
    return ", ".join(map(str, value)) if all(isinstance(part, str) for part in value) else str(value)
