"""Conversion of a Python caller's data to a dataset."""

from __future__ import annotations

from polariscope.core.errors import Argument, InputError
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.data.missing import Missing


def as_dataset(data: DataLike, missing: Missing = "refuse") -> AbstractDataset:
    """Return data as a dataset; a name is refused, because it might need options.

    :param data: a dataset, an array or items.
    :param missing: (default "refuse") treatment of missing values of an array.
    """
    if isinstance(data, str):
        raise InputError(
            "data", "be a dataset or an array", got=f"{data!r}", remedy=f"use load_dataset({data!r})"
        )
    if isinstance(data, AbstractDataset):
        if missing != "refuse":
            raise InputError(
                problem=(Argument("missing"), f" is for arrays, and {data.name} is a dataset"),
                remedy="pass it to load_dataset or from_arrays, which create the dataset",
            )
        return data
    from polariscope.data.own.arrays import from_dataset

    return from_dataset(data, missing=missing)
