"""Data on which variational autoencoders entangle."""

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
from polariscope.data.dataset import AbstractDataset
from polariscope.data.variants import AbstractVariant, variant

if TYPE_CHECKING:
    from polariscope.manipulation.network import Tabulated


@variant("manipulated", of="anything", bare="folder", example="manipulated:FOLDER")
@dataclasses.dataclass(frozen=True)
class ManipulatedVariant(AbstractVariant):
    r"""Observations that were changed by at most ε each, so entangled codes describe them better.

    .. math:: x' = r(x + \varepsilon\, m(w))

    with the factors w of an observation and the manipulation m that ``polariscope manipulate`` trained and left in a
    folder. For values in [0, 1] r reflects at 0 and at 1; images are rounded to bytes, towards x where the nearest
    byte is further away than ε. Factors stay as they are. Nothing of the data is copied: an observation is made when
    it is asked for, and is the same every time. The control is ``pixel-noise`` with the same ε.

    Any data with factors of the same names and observations of the same shape can be manipulated so.

    Reference: zietlow2022 §4.2.4 and §4.3.1.
    """

    folder: str
    """Folder of a finished manipulation."""
    key: str | None = None
    """Hash of the manipulation, by which another one in the same folder is refused; none: whichever is there."""

    @classmethod
    def read_options(cls, base: AbstractDataset, arguments: Mapping[str, object]) -> dict[str, Any]:
        """The options, with the folder as text.

        :param base: what the variant will be made of.
        :param arguments: options by name.
        """
        folder = {"folder": str(arguments["folder"])} if isinstance(arguments.get("folder"), Path) else {}
        return {**super().read_options(base, arguments), **folder}

    def check(self) -> None:
        object.__setattr__(self, "folder", str(Path(self.folder).expanduser().resolve()))
        architecture = self.manipulation.architecture
        if self.key is not None and self.key != self.manipulation.digest:
            raise PolariscopeError(
                f"{self.folder} holds another manipulation than the one that was recorded; "
                "put the old one back, or start again with the new."
            )
        for what, theirs, ours in (
            ("observations of shape", architecture.shape, tuple(self.base.shape)),
            ("the factors", architecture.factor_names, tuple(self.base.factor_names)),
            ("values in [0, 1]:", architecture.reflects, self.base.is_unit_interval),
        ):
            if theirs != ours:
                raise InputError(
                    problem=(
                        f"the manipulation in {self.folder} was made for {what} {_shown(theirs)}, and "
                        f"{self.base.name} has {_shown(ours)}"
                    ),
                    remedy="manipulate the data that it was made for",
                )

    @functools.cached_property
    def manipulation(self) -> Tabulated:
        """What the folder holds, checked; one that is not finished is refused."""
        from polariscope.manipulation.manipulation import read_manipulation

        return read_manipulation(self.folder)[1]

    def options(self) -> dict[str, Any]:
        """The folder, and the key of what it holds."""
        return {"folder": self.folder, "key": self.manipulation.digest}

    def identity(self) -> dict[str, Any]:
        """The key: where the manipulation lies decides nothing."""
        return {"key": self.manipulation.digest}

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        if len(self.shape) != 3:
            return self.base.images(indices)  # which flat data refuse
        from polariscope.manipulation.bounds import moved_bytes

        x, m = self.base.values(indices), self._change(indices)
        return moved_bytes(x, m, self.manipulation.architecture.epsilon)

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample *shape"]:
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
    """A shape, names, or whether something is so, in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    assert isinstance(value, tuple)
    return ", ".join(map(str, value)) if all(isinstance(part, str) for part in value) else str(value)
