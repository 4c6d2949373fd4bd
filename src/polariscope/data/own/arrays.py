"""Arrays as a dataset: flat rows or images of your own, with factors where you know them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int, Shaped, UInt8
from numpy.typing import ArrayLike

from polariscope.core import files
from polariscope.core.arrays import refuse_masked
from polariscope.core.errors import Argument, InputError
from polariscope.data.dataset import AbstractDataset, FactorKind, dataset

if TYPE_CHECKING:
    from polariscope.data.grid import FactorGrid

Layout = Literal["channels-first", "channels-last"]
_CHANNELS = (1, 3)
FEWEST_STEPS = 16
"""A column whose range is fewer steps of float32 is looked at closely."""
ROUNDING = 1e-14
"""Range of a column, relative to its values, that float64 leaves when a constant is computed."""
_BESIDES = ("factors", "factor_names", "factor_kinds")


@dataclasses.dataclass(frozen=True, eq=False)
class Contents:
    """What an array dataset is made from, as it was given."""

    array: object
    factors: object = None
    factor_names: Sequence[str] | None = None
    factor_kinds: Sequence[str] | None = None


@dataset("arrays")
@dataclasses.dataclass(frozen=True, eq=False)
class ArraysDataset(AbstractDataset):
    """Rows or images from an array in a file or in memory.

    The file is an ``.npz`` whose observations are called ``X``, ``images`` or ``values`` (or are its only
    array), beside optional ``factors``, ``factor_names`` and ``factor_kinds``; an ``.npy`` works too. What
    the arrays may be is said at :func:`from_arrays`, which makes the same dataset from memory. Loading never
    runs code from the file. The fingerprint is a hash of the contents.
    """

    path: str | None
    """The .npz file; none for arrays in memory."""
    layout: Layout | None = None
    """Where the channels of four-dimensional arrays are; none: where the size is 1 or 3."""
    unit_interval: bool = False
    """Flat values lie in [0, 1] and may be given to a Bernoulli likelihood. Images always may."""
    white: int | None = None
    """Which byte is white in images of bytes, 1 or 255; none: 1 where the whole array holds only 0 and 1."""
    contents: dataclasses.InitVar[Contents | None] = None
    _array: Shaped[np.ndarray, "sample ..."] = dataclasses.field(init=False, repr=False)
    _factors: Shaped[np.ndarray, "sample factor"] | None = dataclasses.field(init=False, repr=False)

    def __post_init__(self, contents: Contents | None) -> None:
        if contents is None:
            if self.path is None:
                raise InputError(
                    problem=("dataset 'arrays' needs ", Argument("path"), ", an .npz file"),
                    remedy="for arrays in memory use from_arrays",
                )
            object.__setattr__(self, "path", str(Path(self.path).expanduser().resolve()))
            contents = _read(Path(self.path))
        array = _numbers(contents.array, "X")
        images = array if array.ndim == 2 else _as_images(array, self.layout)
        if array.ndim == 2:
            _check_precision(array)
        if self.unit_interval and array.ndim == 2 and (array.min() < 0 or array.max() > 1):
            raise InputError(
                problem=(Argument("unit_interval", True), " needs values in [0, 1]"),
                got=f"{array.min()} … {array.max()}",
                remedy="rescale X",
            )
        factors, names, sizes, kinds = _known_factors(contents, len(array))
        for name, value in (
            ("white", _white(array, self.white)),
            ("_array", images),
            ("_factors", factors),
            ("factor_names", names),
            ("factor_sizes", sizes),
            ("factor_kinds", kinds),
            ("choices", _choices(array, images, self.layout, self.white)),
        ):
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._array.shape[1:])

    def __len__(self) -> int:
        return len(self._array)

    @property
    def is_unit_interval(self) -> bool:
        return self.unit_interval or len(self.shape) == 3

    @functools.cached_property
    def is_counts(self) -> bool:
        return self._array.ndim == 2 and self._array.dtype.kind in "iu" and bool(self._array.min() >= 0)

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        if self.white == 255:
            return np.ascontiguousarray(self._array[self.check_indices(indices)])
        return super().images(indices)

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample ..."]:
        chosen = self._array[self.check_indices(indices)].astype(np.float32, order="C")
        return chosen / np.float32(255) if self.white == 255 else chosen

    def factors(self, indices: ArrayLike | int) -> Shaped[np.ndarray, "sample factor"]:
        return (
            super().factors(indices) if self._factors is None else self._factors[self.check_indices(indices)]
        )

    def index_of(self, factors: ArrayLike) -> Int[np.ndarray, " sample"]:
        has_grid = bool(self.factor_sizes) and 0 not in self.factor_sizes
        return self._grid.index_of(factors) if has_grid else super().index_of(factors)

    @functools.cached_property
    def _grid(self) -> FactorGrid:
        from polariscope.data.grid import FactorGrid

        return FactorGrid.of(self)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the observations and factors."""
        factors = None if self._factors is None else files.digest_array(self._factors)
        record = [
            files.digest_array(self._array),
            factors,
            self.factor_names,
            self.factor_kinds,
            self.unit_interval,
        ]
        # The same bytes are other observations where 1 is white.
        return files.digest([*record, "white is 1"] if self.white == 1 else record)

    def describe(self) -> dict[str, Any]:
        """Where the arrays are, which byte is white, their shape and hash. Arrays in memory cannot be loaded again."""
        return {
            "name": self.name,
            "path": self.path,
            "layout": self.layout,
            "unit_interval": self.unit_interval,
            "white": self.white,
            "shape": [len(self), *self.shape],
            "fingerprint": self.fingerprint,
        }


def from_arrays(
    X: object,
    factors: object = None,
    *,
    factor_names: Sequence[str] | None = None,
    factor_kinds: Sequence[str] | None = None,
    layout: Layout | None = None,
    unit_interval: bool = False,
    white: int | None = None,
) -> ArraysDataset:
    """Make a dataset of arrays in memory: NumPy, torch, pandas, or nested lists.

    ``X`` is flat, ``(sample, feature)``, of any numbers; or images, ``(sample, height, width)``,
    ``(sample, channel, height, width)`` or ``(sample, height, width, channel)`` with 1 or 3 channels (or any
    number, where ``layout`` says where they are), of
    bytes or of floats in [0, 1]. It is kept as it is (bytes stay bytes) and not copied: do not change it
    afterwards. Bytes are 0 … 255, divided by 255, unless the whole array holds only 0 and 1, as the images of dSprites
    do: then 1 is white. ``white`` says which was recognised, or decides it. Flat values count as lying in [0, 1] only
    when ``unit_interval`` says so, never because they happen to.

    ``factors`` is ``(sample, factor)`` or ``(sample,)``: columns of whole numbers are categorical, others continuous,
    unless ``factor_kinds`` says otherwise.

    :param X: the observations, as above.
    :param factors: (default None: none are known) ground-truth factors, one row per observation.
    :param factor_names: (default: factor-1, factor-2 …) name of each factor.
    :param factor_kinds: (default: from the values) "categorical", "ordinal", "cyclic" or "continuous" for each factor.
    :param layout: (default: from the shape) "channels-first" or "channels-last", where the shape of images leaves it
        open.
    :param unit_interval: (default False) flat values lie in [0, 1] by their nature, so a Bernoulli likelihood fits
        them.
    :param white: (default: recognised) the byte that is white, 1 or 255, for images of bytes.

    >>> data = from_arrays(np.zeros((5, 28, 28), np.uint8), [0, 1, 2, 0, 1], factor_names=["digit"])
    >>> data.shape, data.factor_names, data.factor_sizes
    ((1, 28, 28), ('digit',), (3,))
    >>> from_arrays(np.eye(4, dtype=np.uint8)[np.newaxis]).white
    1
    """
    return ArraysDataset(
        path=None,
        layout=layout,
        unit_interval=unit_interval,
        white=white,
        contents=Contents(X, factors, factor_names, factor_kinds),
    )


def _numbers(given: Any, name: str) -> Shaped[np.ndarray, " ..."]:
    """A finite, non-empty array of numbers with a sample axis."""
    refuse_masked(given, name)
    if hasattr(given, "toarray"):
        raise InputError(
            name, "be an ordinary array", got=f"a sparse {type(given).__name__}", remedy="use its toarray()"
        )
    if hasattr(given, "tensors"):
        raise InputError(
            name,
            "be an array",
            got=f"a {type(given).__name__}, which holds {len(given.tensors)}",
            remedy="use the one with the observations, tensors[0], and pass labels as factors",
        )
    if hasattr(given, "detach"):
        given = given.detach().cpu()
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise InputError(name, "be one array", got=f"rows that do not fit together ({error})") from None
    if array.dtype.kind not in "biuf":
        raise InputError(
            name, "hold numbers", got=f"dtype {array.dtype}", remedy="convert it, e.g. with astype(float)"
        )
    if array.ndim == 0 or array.size == 0:
        raise InputError(name, "hold at least one sample with one value", got=f"shape {array.shape}")
    # minimum and maximum pass NaN on, without a temporary array as large as the data
    low, high = float(array.min()), float(array.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        count = int(array.size - np.isfinite(array).sum())
        raise InputError(
            name,
            "be finite",
            got=f"{count} NaN or infinite of {array.size} values",
            remedy="drop or fill those samples",
        )
    if max(-low, high) > float(np.finfo(np.float32).max):
        raise InputError(name, "fit float32", got=f"values {low:.3g} … {high:.3g}", remedy="rescale it")
    return array


def _check_precision(rows: Shaped[np.ndarray, "sample feature"]) -> None:
    """Refuse rows with a column that float32, which networks see, makes coarse: little variation far from 0."""
    if rows.dtype.itemsize <= (4 if rows.dtype.kind == "f" else 2):
        return
    low, high = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    size = np.maximum(np.abs(low), np.abs(high))
    step = np.spacing(size.astype(np.float32)).astype(np.float64)
    # Less than ROUNDING is a constant that was computed, and constants are welcome.
    doubtful = (high - low < FEWEST_STEPS * step) & (high - low > ROUNDING * size)
    for column in np.flatnonzero(doubtful).tolist():
        values = np.unique(rows[:, column])
        left = len(np.unique(values.astype(np.float32)))
        if left < len(values):
            raise InputError(
                "X",
                (
                    f"vary by more than float32 can hold, which networks compute in: column {column} lies "
                    f"between {values[0]:.15g} and {values[-1]:.15g}, and of its {len(values)} different "
                    f"values {left} would be left"
                ),
                remedy="subtract the mean of each column, or standardise them",
            )


def _as_images(
    array: Shaped[np.ndarray, " ..."], layout: Layout | None
) -> Shaped[np.ndarray, "sample channel height width"]:
    """Images with their channels first (a view), checked to be bytes or floats in [0, 1]."""
    shape = array.shape
    if array.ndim not in (3, 4):
        raise InputError(
            "X",
            (
                "be (sample, feature), (sample, height, width), (sample, channel, height, width) or "
                "(sample, height, width, channel)"
            ),
            got=f"shape {shape}",
            remedy="reshape it, e.g. X.reshape(len(X), -1)",
        )
    if array.dtype.kind in "iu" and array.dtype != np.uint8:
        raise InputError(
            "images",
            "be uint8 or floats in [0, 1]",
            got=array.dtype,
            remedy="convert values 0 … 255 with X.astype(np.uint8)",
        )
    if array.dtype.kind == "f" and (array.min() < 0 or array.max() > 1):
        raise InputError(
            "images of floats",
            "lie in [0, 1]",
            got=f"{array.min()} … {array.max()}",
            remedy="divide by 255 or rescale them, or pass flat rows: X.reshape(len(X), -1)",
        )
    if array.ndim == 3:
        return array[:, np.newaxis]
    possible = {"channels-first": shape[1] in _CHANNELS, "channels-last": shape[3] in _CHANNELS}
    if layout is None:
        if all(possible.values()):
            raise InputError(
                problem=f"X of shape {shape} may have its channels first or last",
                remedy=(
                    "say which with ",
                    Argument("layout", "channels-first"),
                    " or ",
                    Argument("layout", "channels-last"),
                ),
            )
        if not any(possible.values()):
            raise InputError(
                problem=f"X of shape {shape} has neither 1 nor 3 channels first or last",
                remedy=(
                    "if it is meant so, say where they are with ",
                    Argument("layout", "channels-first"),
                    " or ",
                    Argument("layout", "channels-last"),
                ),
            )
        layout = "channels-first" if possible["channels-first"] else "channels-last"
    if layout not in possible:
        raise InputError("layout", "be 'channels-first' or 'channels-last'", got=f"{layout!r}")
    return array if layout == "channels-first" else np.moveaxis(array, 3, 1)


def _choices(
    array: Shaped[np.ndarray, "sample ..."],
    images: Shaped[np.ndarray, "sample ..."],
    layout: Layout | None,
    white: int | None,
) -> tuple[str, ...]:
    """How images are read where the user did not say."""
    found = []
    if array.ndim == 4 and layout is None:
        where = "first" if images.shape == array.shape else "last"
        found.append(f"channels {where} ({images.shape[1]})")
    if white is None and (seen := _white(array, None)) is not None:
        found.append("bytes 0 and 1 are black and white" if seen == 1 else "bytes divided by 255")
    return tuple(found)


def _white(array: Shaped[np.ndarray, "sample ..."], asked: int | None) -> int | None:
    """Which byte is white: None where there are no images of bytes."""
    if asked is not None and (isinstance(asked, bool) or asked not in (1, 255)):
        raise InputError(
            "white", "be 1 or 255", got=f"{asked!r}", remedy="leave it out to have it recognised"
        )
    if array.ndim == 2 or array.dtype != np.uint8:
        if asked is not None:
            raise InputError(
                problem=(Argument("white"), " is for images of bytes"),
                got=f"{array.dtype} of shape {array.shape}",
                remedy="leave it out",
            )
        return None
    highest = int(array.max())
    if asked == 1 and highest > 1:
        raise InputError(
            problem=(Argument("white", 1), " needs bytes that are 0 or 1"),
            got=f"bytes up to {highest}",
            remedy=("use ", Argument("white", 255), ", or rescale the images"),
        )
    return asked or (1 if highest == 1 else 255)


def _known_factors(
    contents: Contents, n_samples: int
) -> tuple[Any, tuple[str, ...], tuple[int, ...], tuple[FactorKind, ...]]:
    """Factors, their names, their numbers of values and their kinds."""
    if contents.factors is None:
        if contents.factor_names is not None or contents.factor_kinds is not None:
            raise InputError(
                problem=(
                    Argument("factor_names"),
                    " and ",
                    Argument("factor_kinds"),
                    " describe factors, but none were given",
                ),
                remedy=("pass ", Argument("factors")),
            )
        return None, (), (), ()
    factors = _numbers(contents.factors, "factors")
    factors = factors[:, np.newaxis] if factors.ndim == 1 else factors
    if factors.ndim != 2 or len(factors) != n_samples:
        raise InputError(
            "factors",
            f"have shape (sample, factor) with a row for each of the {n_samples} samples",
            got=factors.shape,
        )
    count = factors.shape[1]
    whole = factors.dtype.kind in "biu"
    names: Any = contents.factor_names
    kinds: Any = contents.factor_kinds
    names = tuple(f"factor-{i + 1}" for i in range(count)) if names is None else tuple(map(str, names))
    if (
        kinds is None
    ):  # column by column, since one array holds them all: a measured one makes every column floats
        integral = (factors == np.rint(factors)).all(axis=0)
        kinds = tuple("categorical" if each else "continuous" for each in integral)
    kinds = tuple(map(str, kinds))
    for argument, given in (("factor_names", names), ("factor_kinds", kinds)):
        if len(given) != count:
            raise InputError(argument, f"have one entry for each of the {count} factors", got=len(given))
    if len(set(names)) != count:
        raise InputError("factor_names", "differ from one another", got=", ".join(names))
    for name, kind, column in zip(names, kinds, factors.T, strict=True):
        if kind not in get_args(FactorKind):
            raise InputError("factor_kinds", f"be among {', '.join(get_args(FactorKind))}", got=f"{kind!r}")
        if kind != "continuous" and not whole and (column != np.rint(column)).any():
            raise InputError(
                f"factor {name!r}", f"hold whole numbers, since it is {kind}", remedy="number its values"
            )
    factors = factors.astype(np.float64 if "continuous" in kinds else np.int64)
    sizes = tuple(
        0 if kind == "continuous" else len(np.unique(column))
        for kind, column in zip(kinds, factors.T, strict=True)
    )
    return factors, names, sizes, kinds


def _read(path: Path) -> Contents:
    """The arrays of an .npz or .npy file."""
    found = files.read_arrays(path)
    if "" in found:
        return Contents(found[""])
    candidates = [name for name in found if name not in _BESIDES]
    named = [name for name in ("X", "images", "values") if name in found]
    if len(named or candidates) != 1:
        raise InputError(
            str(path),
            (
                "name its observations X (or images, or values), or hold one array beside "
                f"{', '.join(_BESIDES)}"
            ),
            got=", ".join(found) or "no arrays",
        )
    words = {
        name: [str(word) for word in np.atleast_1d(found[name])] for name in _BESIDES[1:] if name in found
    }
    return Contents(found[(named or candidates)[0]], found.get("factors"), **words)
