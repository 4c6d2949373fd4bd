"""Arrays as a dataset: flat rows or images of your own, with factors where you know them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Gt

from polariscope.core.errors import Argument, InputError
from polariscope.core.options import option
from polariscope.core.types import FactorsLike
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import dataset
from polariscope.data.missing import Missing, check_missing
from polariscope.data.own import Layout
from polariscope.data.own.support.archive import read_archive
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.objects import read_object, tensors_of
from polariscope.data.own.support.observed import AbstractRowsDataset


@dataset("arrays", endings=(".npz", ".npy"))
@dataclasses.dataclass(frozen=True, eq=False)
class ArraysDataset(AbstractRowsDataset):
    """Rows or images from an array in a file or in memory.

    The file is an ``.npz`` whose observations are called ``X``, ``images`` or ``values`` (or are its only array),
    beside optional ``factors`` (or ``y``, ``labels``, ``targets``), ``factor_names``, ``factor_kinds``,
    ``feature_names`` and ``ids``; an ``.npy`` works too, and a large one is read as needed. What the arrays may be is
    said at :func:`from_arrays`, which makes the same dataset from memory. Loading never runs code from the file. The
    fingerprint is a hash of the contents.
    """

    path: str | None
    """The .npz or .npy file; none for arrays in memory."""
    layout: Layout | None = None
    """Where the channels of four-dimensional arrays are; none: where the size is 1 or 3."""
    unit_interval: bool = False
    """Flat values lie in [0, 1] and may be given to a Bernoulli likelihood. Images always may."""
    white: int | None = None
    """Which byte is white in images of bytes, 1 or 255; none: 1 where the whole array holds only 0 and 1."""
    max_unpacked: Annotated[float, Gt(0)] | None = None
    """Gigabytes to which the file may unpack; none: 4, or 200 times the file where that is more."""
    missing: Missing = option("refuse", since="0.3", absent="refuse")  # noqa: RUF009
    """What is done about missing values of a table: refuse them, drop rows that lack one, or fill in the median of the
    column over all rows."""
    contents: dataclasses.InitVar[Contents | None] = None

    def __post_init__(self, contents: Contents | None) -> None:
        if contents is None:
            if self.path is None:
                raise InputError(
                    problem=("dataset 'arrays' needs ", Argument("path"), ", an .npz file"),
                    remedy="for arrays in memory use from_arrays",
                )
            object.__setattr__(self, "path", str(Path(self.path).expanduser().resolve()))
            contents = read_archive(Path(self.path), self.max_unpacked)
        self._fill(contents)


def from_arrays(
    X: DataLike,
    factors: FactorsLike | None = None,
    *,
    factor_names: Sequence[str] | None = None,
    factor_kinds: Sequence[str] | None = None,
    feature_names: Sequence[str] = (),
    ids: object = None,
    layout: Layout | None = None,
    unit_interval: bool = False,
    white: int | None = None,
    missing: Missing = "refuse",
) -> ArraysDataset:
    """Make a dataset of arrays in memory: NumPy, torch, pandas, polars, SciPy's sparse matrices, or nested lists.

    ``X`` is flat, ``(sample, feature)``, of any numbers; or images, ``(sample, height, width)``,
    ``(sample, channel, height, width)`` or ``(sample, height, width, channel)`` with 1 or 3 channels (or any
    number, where ``layout`` says where they are), of
    bytes or of floats in [0, 1]. It is stored as it is (bytes stay bytes, a memory map stays in its file, of a sparse
    matrix only the rows of a batch are made dense) and not copied, unless it is a frame: do not change it
    afterwards. Bytes are 0 … 255, divided by 255, unless the whole array holds only 0 and 1, as the images of dSprites
    do: then 1 is white. ``white`` says which was recognised, or decides it. Flat values count as lying in [0, 1] only
    when ``unit_interval`` says so, never because they happen to. Columns of a frame name the features, its index the
    rows; columns of text are refused by name, and so are missing values unless ``missing`` says otherwise.

    ``factors`` is ``(sample, factor)`` or ``(sample,)``: columns of whole numbers are categorical, others continuous,
    unless ``factor_kinds`` says otherwise. Text is numbered in alphabetical order, and its classes keep their names
    (``factor_classes``). A frame of factors brings their names along.

    :param X: the observations, as above.
    :param factors: (default None: none are known) ground-truth factors, one row per observation.
    :param factor_names: (default: of a frame its columns, else factor-1, factor-2 …) name of each factor.
    :param factor_kinds: (default: from the values) "categorical", "ordinal", "cyclic" or "continuous" for each factor.
    :param feature_names: (default: of a frame its columns, else none) name of each column of flat rows.
    :param ids: (default: of a frame its index, else row numbers) what identifies each observation.
    :param layout: (default: from the shape) "channels-first" or "channels-last", where the shape of images leaves it
        open.
    :param unit_interval: (default False) flat values lie in [0, 1] by their nature, so a Bernoulli likelihood fits
        them.
    :param white: (default: recognised) the byte that is white, 1 or 255, for images of bytes.
    :param missing: (default "refuse") what is done about missing values of a table: "drop" leaves out rows that lack
        one, "median" fills in the median of the column over all rows.

    >>> import numpy as np
    >>> data = from_arrays(np.zeros((5, 28, 28), np.uint8), [0, 1, 2, 0, 1], factor_names=["digit"])
    >>> data.shape, data.factor_names, data.factor_sizes
    ((1, 28, 28), ('digit',), (3,))
    >>> from_arrays(np.eye(4, dtype=np.uint8)[np.newaxis]).white
    1
    >>> from_arrays([[1.0], [2.0]], ["old", "new"]).factor_classes
    {'factor-1': ('new', 'old')}
    """
    if factors is None and (tensors := tensors_of(X)) is not None:
        X, factors = tensors
    contents = Contents(X, factors, factor_names, factor_kinds, tuple(feature_names), ids)
    check_missing(missing)
    return ArraysDataset(
        path=None,
        layout=layout,
        unit_interval=unit_interval,
        white=white,
        missing=missing,
        contents=contents,
    )


def from_dataset(
    data: DataLike,
    *,
    key: str | None = None,
    labels: Sequence[str] = (),
    layer: str | None = None,
    layout: Layout | None = None,
    unit_interval: bool = False,
    white: int | None = None,
    missing: Missing = "refuse",
    cache_megabytes: Annotated[int, Ge(0)] = 1024,
) -> ArraysDataset:
    """Make a dataset of any object that gives observations by number: ``data[i]`` and ``len(data)``.

    * A map-style dataset of PyTorch or Hugging Face, or anything like it. Items are tensors, arrays, PIL images or
      lists of numbers; tuples of such an observation and its labels; or dictionaries, in which the observation is
      called ``image``, ``X`` or the like and labels are called ``label``, ``y`` or the like. A ``TensorDataset`` is
      used as the arrays that it holds.
    * An array of another library with a ``shape``: of zarr, of h5py.
    * An AnnData: its ``X`` or a layer, with the names of cells and genes; ``labels`` are columns of ``obs``.
    * Everything that :func:`from_arrays` takes.

    All items are read once, to check them and to see their labels. They then stay in memory if they fit
    ``cache_megabytes``, and otherwise asked for again, batch by batch. Item i must be the same every time it is asked
    for: random augmentation does not work here. Datasets that only give one item after the other are refused.

    :param data: the object.
    :param key: (default: recognised) what the observation is called, where items are dictionaries.
    :param labels: (default: recognised in dictionaries; none of an AnnData) which entries of a dictionary, or columns
        of ``obs``, are factors.
    :param layer: (default None: X) the layer of an AnnData that holds the observations.
    :param layout: (default: from the shape) "channels-first" or "channels-last", as in :func:`from_arrays`.
    :param unit_interval: (default False) flat values lie in [0, 1] by their nature.
    :param white: (default: recognised) the byte that is white, 1 or 255, for images of bytes.
    :param missing: (default "refuse") what is done about missing values of a table: "drop" leaves out rows that lack
        one, "median" fills in the median of the column over all rows.
    :param cache_megabytes: (default 1024) observations stay in memory if all of them fit this size.

    >>> pairs = [([0.0, 1.0], "left"), ([1.0, 0.0], "right")]
    >>> from_dataset(pairs).factors([1])
    array([[1]])
    """
    contents, layout = read_object(data, key, tuple(labels), layer, layout, cache_megabytes)
    check_missing(missing)
    return ArraysDataset(
        path=None,
        layout=layout,
        unit_interval=unit_interval,
        white=white,
        missing=missing,
        contents=contents,
    )
