"""Datasets of other libraries, recognised by their attributes: items by index, arrays with a shape, AnnData."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Int, Shaped

from polariscope.core.errors import Argument, InputError, unknown
from polariscope.core.text import listed
from polariscope.data.data_like import DataLike, is_anndata
from polariscope.data.dataset import AbstractDataset
from polariscope.data.own import Layout
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.foreign_frames import frame_columns, is_frame
from polariscope.data.own.support.rows import AbstractRows, DenseRows, IndexedRows, chunk_length, in_memory

OBSERVATIONS = (
    *("X", "x", "image", "images", "img", "pixel_values", "pixels"),
    *("values", "features", "input", "inputs", "data"),
)
"""Possible names of the observation in an item."""
LABELS = ("factors", "labels", "label", "targets", "target", "y", "class", "fine_label")
"""Possible names of the labels in an item."""


def tensors_of(data: DataLike) -> tuple[Any, Any] | None:
    """Return the observations and labels of a TensorDataset of PyTorch; None for any other object.

    :param data: the object.
    """
    tensors: Any = getattr(data, "tensors", None)
    if not isinstance(tensors, tuple | list) or not tensors:
        return None
    labels = [np.asarray(tensor.detach().cpu()) for tensor in tensors[1:]]
    columns = [label[:, np.newaxis] if label.ndim == 1 else label for label in labels]
    if any(column.ndim != 2 for column in columns):
        raise InputError(
            problem=f"a {type(data).__name__} of {len(tensors)} tensors contains more than observations and labels",
            got=f"shapes {', '.join(str(tuple(tensor.shape)) for tensor in tensors)}",
            remedy="pass the tensor with the observations, tensors[0]",
        )
    return tensors[0], np.concatenate(columns, axis=1) if columns else None


def refuse_objects(data: object) -> None:
    """Raise an error that names the right function if an object is not an array, a frame or nested lists.

    NumPy would read such an object item by item, which can take forever, and the result would not be numbers.

    :param data: the object.
    """
    is_array = any(hasattr(data, name) for name in ("__array__", "detach", "tocsr", "dtype"))
    holds_rows = isinstance(data, list | tuple | memoryview | AbstractRows) or is_frame(data)
    remedy = ""
    if isinstance(data, str | Path):
        remedy = f"use load_dataset({str(data)!r})"
    elif isinstance(data, AbstractDataset):
        remedy = "it is a dataset already, so it can be used as it is"
    elif is_anndata(data):
        remedy = "use from_dataset, whose options are layer and labels (columns of obs)"
    elif _is_loader(data):
        remedy = "use from_dataset(loader.dataset)"
    elif isinstance(data, Mapping):
        remedy = "pass the array of observations that it contains"
    elif hasattr(data, "__getitem__") and hasattr(data, "__len__") and not (is_array or holds_rows):
        remedy = "use from_dataset, which reads its items"
    # NumPy converts other objects quickly or refuses them.
    if not remedy:
        return
    raise InputError("X", "be an array of observations", got=type(data).__name__, remedy=remedy)


def _is_loader(data: object) -> bool:
    """Return whether an object is a loader of PyTorch, which yields batches and has no items by index."""
    return hasattr(data, "dataset") and hasattr(data, "batch_size")


def read_object(
    data: DataLike,
    key: str | None,
    labels: tuple[str, ...],
    layer: str | None,
    layout: Layout | None,
    cache_megabytes: int,
) -> tuple[Contents, Layout | None]:
    """Read any object that :func:`polariscope.from_dataset` accepts; return its contents and the channels' position.

    :param data: the object.
    :param key: key of the observation in dictionaries; None to recognise it.
    :param labels: names of factors.
    :param layer: layer of an AnnData object.
    :param layout: position of the channels, if the user passed it.
    :param cache_megabytes: maximum size of an array that stays in memory.
    """
    if is_anndata(data):
        return read_anndata(data, labels, layer, cache_megabytes), layout
    if layer is not None:
        raise InputError(
            problem=(Argument("layer"), " is for AnnData"), got=type(data).__name__, remedy="leave it out"
        )
    if (tensors := tensors_of(data)) is not None:
        return Contents(*tensors), layout
    if is_frame(data) or hasattr(data, "tocsr") or hasattr(data, "detach") or _is_nested(data):
        return Contents(data), layout
    _refuse_streams(data)
    if hasattr(data, "shape") and hasattr(data, "dtype"):
        return Contents(in_memory(IndexedRows(data), cache_megabytes)), layout
    return _read_items(Items(data, key, labels), layout, cache_megabytes)


def _is_nested(data: object) -> bool:
    """Return whether an object is an array, or a list of rows that NumPy can convert to one."""
    if isinstance(data, np.ndarray) or hasattr(data, "__array__"):
        return True
    if not isinstance(data, list | tuple):
        return False
    first = data[0] if data else None
    # Items that are dictionaries, tuples or pictures are not rows of one array.
    return not (isinstance(first, Mapping | tuple) or hasattr(first, "convert"))


def _refuse_streams(data: object) -> None:
    """Raise an error if an object does not return items by index."""
    name = type(data).__name__
    remedy = "collect its items in an array, or pass a dataset with data[i] and len(data)"
    if _is_loader(data):
        remedy = "pass the dataset that it loads, loader.dataset"
    if isinstance(data, AbstractDataset):
        raise InputError(
            "data",
            "be an object of another library",
            got=name,
            remedy="it is a dataset already, so it can be used as it is",
        )
    is_stream = any(kind.__name__ == "IterableDataset" for kind in type(data).__mro__)
    if is_stream or not hasattr(data, "__getitem__"):
        if isinstance(data, Iterable):
            raise InputError(
                "data",
                "return each observation by its index",
                got=f"{name}, which only iterates",
                remedy=remedy,
            )
        raise InputError(
            "data", "be a dataset or an array", got=name, remedy="pass an object with data[i] and len(data)"
        )
    if not hasattr(data, "__len__"):
        raise InputError("data", "have a length", got=f"{name} without one", remedy=remedy)


class Items:
    """Items of a map-style dataset, each split into an observation and its labels.

    :param source: object that returns items by index.
    :param key: key of the observation in dictionaries; None to recognise it.
    :param labels: keys of the labels in dictionaries; empty to recognise them.
    """

    def __init__(self, source: object, key: str | None, labels: tuple[str, ...]) -> None:
        self.source = cast(Any, source)
        try:
            n_items = len(self.source)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                problem=f"the number of items of the {type(source).__name__} cannot be read ({error})",
                remedy="its __len__ must return an integer of at least 0",
            ) from None
        if not n_items:
            raise InputError(problem=f"the {type(source).__name__} is empty", remedy="pass one with items")
        first = _item(self.source, 0)
        self.key, self.labels = key, labels
        if isinstance(first, Mapping):
            self._choose_keys(first)
        elif key is not None or labels:
            raise InputError(
                problem=(
                    Argument("key"),
                    " and ",
                    Argument("labels"),
                    " are for items that are dictionaries",
                ),
                got=f"items that are {type(first).__name__}",
                remedy="leave them out",
            )
        self.first, self.first_labels = self.split(first, 0)
        # Random augmentation changes an item each time it is read.
        again, _ = self.split(self.source[0], 0)
        if self.first.tobytes() != again.tobytes():
            raise InputError(
                problem=f"item 0 of the {type(source).__name__} changes every time it is read",
                remedy="remove random augmentation, so item i is always the same",
            )
        value = self._observation(first)
        self.has_pictures = hasattr(value, "convert") and hasattr(value, "mode")

    def _choose_keys(self, first: Mapping[str, object]) -> None:
        names = list(map(str, first))
        if self.key is None:
            known = [name for name in OBSERVATIONS if name in names] or [
                name for name in names if name not in (*LABELS, *self.labels)
            ]
            if len(known) != 1:
                raise InputError(
                    problem=(
                        f"items are dictionaries of {listed(names, quoted=True)}, and it is not clear which is the "
                        "observation"
                    ),
                    remedy=("choose it with ", Argument("key", names[0])),
                )
            self.key = known[0]
        for name in (self.key, *self.labels):
            if name not in names:
                raise unknown("entry of the items", name, names)
        self.labels = self.labels or tuple(name for name in LABELS if name in names and name != self.key)

    @property
    def not_used(self) -> list[str]:
        """Entries of dictionaries that are neither observations nor labels."""
        first = _item(self.source, 0)
        return (
            [name for name in first if name not in (self.key, *self.labels)]
            if isinstance(first, Mapping)
            else []
        )

    def _observation(self, item: Any) -> Any:
        if isinstance(item, Mapping):
            return item[self.key]
        return item[0] if isinstance(item, tuple) else item

    def split(self, item: Any, index: int) -> tuple[Shaped[np.ndarray, "..."], dict[str, object]]:
        """Return the observation of an item, and its labels by name.

        :param item: an item of the dataset.
        :param index: its index, for messages.
        """
        labels: dict[str, object] = {}
        if isinstance(item, Mapping):
            labels = {name: item[name] for name in self.labels}
        elif isinstance(item, tuple):
            rest = item[1:]
            labels = {
                "label" if len(rest) == 1 else f"label-{number + 1}": label
                for number, label in enumerate(rest)
            }
        flat: dict[str, object] = {}
        for name, label in labels.items():
            flat |= _scalars(name, label, index)
        return _array(self._observation(item), index), flat

    def take(self, indices: Sequence[int]) -> tuple[list[Shaped[np.ndarray, "..."]], list[dict[str, object]]]:
        """Return the observations and labels of some items, which must have the shape of the first.

        :param indices: indices of the items.
        """
        # PyTorch datasets can read several items at once.
        together = getattr(self.source, "__getitems__", None)
        items = together(list(indices)) if together else [_item(self.source, index) for index in indices]
        observations, labels = [], []
        for index, item in zip(indices, items, strict=True):
            observation, label = self.split(item, index)
            if observation.shape != self.first.shape or label.keys() != self.first_labels.keys():
                here, first = (listed(names, quoted=True) or "none" for names in (label, self.first_labels))
                raise InputError(
                    problem=(
                        f"item {index} is of shape {observation.shape} with labels {here}, and item 0 of shape "
                        f"{self.first.shape} with {first}"
                    ),
                    remedy="convert all items to one shape",
                )
            observations.append(observation)
            labels.append(label)
        return observations, labels


class ItemRows(AbstractRows):
    """Observations of a map-style dataset, read item by item.

    :param items: the items.
    :param dtype: type of their numbers.
    """

    def __init__(self, items: Items, dtype: np.dtype) -> None:
        self.items, self.dtype = items, dtype
        self.shape = (len(items.source), *items.first.shape)

    def take(self, indices: Int[np.ndarray, " row"]) -> Shaped[np.ndarray, "row ..."]:
        rows = np.empty((len(indices), *self.shape[1:]), dtype=self.dtype)
        for row, observation in enumerate(self.items.take(indices.tolist())[0]):
            rows[row] = observation
        return rows


def _read_items(items: Items, layout: Layout | None, cache_megabytes: int) -> tuple[Contents, Layout | None]:
    """Read every item once: check it, collect its labels, and cache the observations if they fit in memory."""
    rows = ItemRows(items, items.first.dtype)
    # Observations that do not fit are only checked here, and read again when they are needed.
    fits = int(np.prod(rows.shape)) * rows.dtype.itemsize <= cache_megabytes * 2**20
    cached = np.empty(rows.shape, dtype=rows.dtype) if fits else None
    labels: dict[str, list[object]] = {name: [] for name in items.first_labels}
    step = chunk_length(rows.shape, rows.dtype)
    for start in range(0, len(rows), step):
        indices = range(start, min(start + step, len(rows)))
        observations, chunk_labels = items.take(indices)
        for index, observation in zip(indices, observations, strict=True):
            # A fraction among integers would be truncated without a word.
            if not np.can_cast(observation.dtype, rows.dtype, "same_kind"):
                raise InputError(
                    problem=f"item {index} contains {observation.dtype} numbers, but item 0 contains {rows.dtype}",
                    remedy="convert all items to the same type",
                )
            if cached is not None:
                cached[index] = observation
        for label in chunk_labels:
            for name, value in label.items():
                labels[name].append(value)
    factors = {name: np.array(values) for name, values in labels.items()} or None
    not_used = items.not_used
    choices = (f"not used: {listed(not_used, quoted=True)}",) if not_used else ()
    if items.has_pictures and layout is None:
        layout = "channels-last"
    return Contents(rows if cached is None else DenseRows(cached), factors, choices=choices), layout


def _array(value: Any, index: int) -> np.ndarray:
    """Convert an observation (a tensor, a picture or numbers) to an array."""
    if hasattr(value, "convert") and hasattr(value, "mode"):
        from polariscope.data.own.support.picture_bytes import pixels

        return pixels(value)
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(problem=f"item {index} is not an array ({error})") from None
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        raise InputError(
            problem=f"item {index} does not contain an array of numbers",
            got=f"{type(value).__name__} of dtype {array.dtype}",
            remedy="use items that are arrays, or pairs of an array and its label",
        )
    return array


def _scalars(name: str, label: Any, index: int) -> dict[str, object]:
    """Return the labels of an item one by one; a label is a number, a text, or several in an array or dictionary."""
    if isinstance(label, Mapping):
        return {
            str(key): value
            for part, labels in label.items()
            for key, value in _scalars(str(part), labels, index).items()
        }
    if isinstance(label, str):
        return {name: label}
    values = np.asarray(label.detach().cpu() if hasattr(label, "detach") else label)
    if values.dtype.kind not in "biufU" or values.ndim > 1:
        raise InputError(
            problem=f"label {name!r} of item {index} is neither a number nor a text nor a list of these",
            got=f"{type(label).__name__} of shape {values.shape}",
            remedy="leave it out of the items",
        )
    if values.ndim == 0:
        return {name: values.item()}
    return {f"{name}-{number + 1}": value for number, value in enumerate(values.tolist())}


def read_anndata(data: DataLike, labels: Sequence[str], layer: str | None, cache_megabytes: int) -> Contents:
    """Read the cells of an AnnData object: X or a layer, the names of both axes, and columns of ``obs``.

    :param data: the AnnData object.
    :param labels: columns of ``obs`` that are factors.
    :param layer: the layer that contains the observations; None for X.
    :param cache_megabytes: maximum size of an array that stays in memory, if it is backed by a file.
    """
    cells: Any = data
    if layer is not None and layer not in cells.layers:
        raise unknown("layer", layer, map(str, cells.layers.keys()))
    matrix = cells.X if layer is None else cells.layers[layer]
    if matrix is None:
        raise InputError(
            problem="the AnnData has no X",
            remedy=("choose a layer with ", Argument("layer"), ", or set its X"),
        )
    columns = list(map(str, cells.obs.columns))
    for name in labels:
        if name not in columns:
            raise unknown("column of obs", name, columns)
    if not (isinstance(matrix, np.ndarray) or hasattr(matrix, "tocsr")):
        matrix = in_memory(IndexedRows(matrix), cache_megabytes)
    return Contents(
        matrix,
        frame_columns(cells.obs[list(labels)], "obs") if labels else None,
        feature_names=_names(cells, "var_names"),
        ids=_names(cells, "obs_names") or None,
    )


def _names(cells: Any, axis: str) -> tuple[str, ...]:
    return tuple(str(name) for name in getattr(cells, axis, ()))


def _item(source: Any, index: int) -> Any:
    try:
        return source[index]
    except (IndexError, KeyError) as error:
        raise InputError(
            problem=f"the {type(source).__name__} has length {len(source)}, but no item {index} "
            f"({type(error).__name__})",
            remedy="pass an object with data[i] for every i below len(data)",
        ) from None
