"""Named unions of the objects that public functions accept as data, and their recognition."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from polariscope.core.types import ArrayInput
    from polariscope.data.dataset import AbstractDataset

    DataLike: TypeAlias = AbstractDataset | ArrayInput
    """A dataset, an array, a frame, or a dataset of PyTorch."""
else:
    # Other objects are refused with a message that names the remedy, so they must reach the function.
    DataLike = object


def is_anndata(data: object) -> bool:
    """Return whether an object is an AnnData, by its attributes, because AnnData need not be installed.

    :param data: the object.
    """
    return all(hasattr(data, name) for name in ("X", "obs", "layers"))
