"""Data as a caller in Python has them, as a dataset."""

from __future__ import annotations

from polariscope.core.errors import Argument, InputError
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.data.missing import Missing


def as_dataset(data: DataLike, missing: Missing = "refuse") -> AbstractDataset:
    """The dataset given, or an array or items as one; a name is refused, since options may belong to it.

    :param data: a dataset, an array or items.
    :param missing: (default "refuse") what is done about missing values of an array.
    """
    if isinstance(data, str):
        raise InputError(
            "data", "be a dataset or an array", got=f"{data!r}", remedy=f"use load_dataset({data!r})"
        )
    if isinstance(data, AbstractDataset):
        if missing != "refuse":
            raise InputError(
                problem=(Argument("missing"), f" is for arrays, and {data.name} is a dataset"),
                remedy="give it where the dataset is made, to load_dataset or from_arrays",
            )
        return data
    from polariscope.data.own.arrays import from_dataset

    return from_dataset(data, missing=missing)
