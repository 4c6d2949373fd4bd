"""Dataset of the user's arrays: flat rows or images, with factors if these are known."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Gt

from polariscope.core.errors import Argument, InputError
from polariscope.core.options import option
from polariscope.core.paths import resolved_path
from polariscope.core.types import FactorsLike
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import dataset
from polariscope.data.missing import Missing, check_missing
from polariscope.data.own import Layout
from polariscope.data.own.support.archive import read_archive
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.objects import read_object, refuse_objects, tensors_of
from polariscope.data.own.support.observed import AbstractRowsDataset


@dataset("arrays", endings=(".npz", ".npy"))
@dataclasses.dataclass(frozen=True, eq=False)
class ArraysDataset(AbstractRowsDataset):
    """Rows or images from an array in a file or in memory.

    The file is an ``.npz`` whose observations are called ``X``, ``images`` or ``values`` (or are its only array), with
    optional ``factors`` (or ``y``, ``labels``, ``targets``), ``factor_names``, ``factor_kinds``, ``feature_names`` and
    ``ids``. An ``.npy`` file works too, and a large one is read as needed. :func:`from_arrays`, which creates the same
    dataset from memory, describes the supported arrays. Loading never runs code from the file. The fingerprint is a
    hash of the contents.
    """

    path: str | None
    """The .npz or .npy file; None for arrays in memory."""
    layout: Layout | None = None
    """Position of the channels in four-dimensional arrays; None for the axis of size 1 or 3."""
    unit_interval: bool = False
    """If True, flat values lie in [0, 1] and a Bernoulli likelihood is allowed. It is always allowed for images."""
    white: int | None = None
    """Byte that is white in images of bytes: 1, 255, or None to choose 1 if all bytes are 0 or 1, otherwise 255."""
    max_unpacked: Annotated[float, Gt(0)] | None = None
    """Maximum size in gigabytes after unpacking; None for 200 times the size of the file, but at least 4."""
    missing: Missing = option("refuse", since="0.3", absent="refuse")  # noqa: RUF009
    """Treatment of missing values of a table: refuse them, drop rows with a missing value, or fill in the median of the
    column over all rows."""
    contents: dataclasses.InitVar[Contents | None] = None

    def __post_init__(self, contents: Contents | None) -> None:
        if contents is None:
            if self.path is None:
                raise InputError(
                    problem=("dataset 'arrays' requires ", Argument("path"), ", an .npz file"),
                    remedy="for arrays in memory use from_arrays",
                )
            object.__setattr__(self, "path", str(resolved_path(self.path, "path")))
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
    """Create a dataset from arrays in memory: NumPy, torch, pandas, polars, SciPy's sparse matrices, or nested lists.

    ``X`` is either flat, ``(sample, feature)``, with any numbers; or images, ``(sample, height, width)``,
    ``(sample, channel, height, width)`` or ``(sample, height, width, channel)``, with bytes or floats in [0, 1].
    Images have 1 or 3 channels, or any number if ``layout`` is passed. Arrays are stored as they are and not copied,
    unless ``X`` is a frame: bytes stay bytes, a memory map stays in its file, and only the rows of a batch of a sparse
    matrix are made dense. Do not change them afterwards.

    Bytes 0 … 255 are divided by 255. If the whole array contains only 0 and 1, like the images of dSprites, 1 is white;
    ``white`` overrides this, and the attribute of that name shows which was used. Flat values are treated as values in
    [0, 1] only if ``unit_interval`` is True. The columns of a frame name the features, and its index the rows. Columns
    of text raise an error that names them, and so do missing values unless ``missing`` is passed.

    ``factors`` is ``(sample, factor)`` or ``(sample,)``. Columns of integers are categorical and others continuous,
    unless ``factor_kinds`` is passed. Text is numbered in alphabetical order, and the names of its classes are kept in
    ``factor_classes``. A frame also names the factors.

    :param X: the observations, as above.
    :param factors: (default None: not known) ground-truth factors, one row per observation.
    :param factor_names: (default: the columns of a frame, otherwise factor-1, factor-2 …) name of each factor.
    :param factor_kinds: (default: from the values) "categorical", "ordinal", "cyclic" or "continuous" for each factor.
    :param feature_names: (default: the columns of a frame, otherwise none) name of each column of flat rows.
    :param ids: (default: the index of a frame, otherwise row numbers) identifier of each observation.
    :param layout: (default: from the shape) "channels-first" or "channels-last", if the shape of images is ambiguous.
    :param unit_interval: (default False) if True, flat values lie in [0, 1] by their nature, so a Bernoulli likelihood
        fits them.
    :param white: (default: from the values) the byte that is white, 1 or 255, for images of bytes.
    :param missing: (default "refuse") treatment of missing values of a table: "drop" leaves out rows with a missing
        value, "median" fills in the median of the column over all rows.

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
    refuse_objects(X)
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
    """Create a dataset from any object with observations by index: ``data[i]`` and ``len(data)``.

    * A map-style dataset of PyTorch or Hugging Face, or a similar object. Items are tensors, arrays, PIL images or
      lists of numbers; tuples of such an observation and its labels; or dictionaries, in which the observation is
      called ``image``, ``X`` or similar and the labels are called ``label``, ``y`` or similar. A ``TensorDataset`` is
      used as its arrays.
    * An array of another library with a ``shape``, such as zarr or h5py.
    * An AnnData object: its ``X`` or a layer, with the names of cells and genes; ``labels`` are columns of ``obs``.
    * Everything that :func:`from_arrays` accepts.

    All items are read once, to check them and to collect their labels. They stay in memory if they fit
    ``cache_megabytes``; otherwise they are read again, batch by batch. Item i must always be the same, so random
    augmentation is not supported. Iterable datasets without access by index are not supported either.

    :param data: the object.
    :param key: (default: recognised) key of the observation, if items are dictionaries.
    :param labels: (default: recognised in dictionaries; none for AnnData) entries of a dictionary, or columns of
        ``obs``, that are factors.
    :param layer: (default None: X) the layer of an AnnData object that contains the observations.
    :param layout: (default: from the shape) "channels-first" or "channels-last", as in :func:`from_arrays`.
    :param unit_interval: (default False) if True, flat values lie in [0, 1] by their nature.
    :param white: (default: from the values) the byte that is white, 1 or 255, for images of bytes.
    :param missing: (default "refuse") treatment of missing values of a table: "drop" leaves out rows with a missing
        value, "median" fills in the median of the column over all rows.
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
