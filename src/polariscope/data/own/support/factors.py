"""Factors and labels of the user's own data: their names, kinds and classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
from jaxtyping import Int, Shaped

from polariscope.core.arrays import LARGEST_WHOLE, refuse_masked
from polariscope.core.errors import Argument, InputError
from polariscope.data.dataset import FactorKind
from polariscope.data.own.support.column_kinds import Troubles, is_absent, number_classes
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.foreign_frames import frame_columns, is_frame, is_series
from polariscope.data.own.support.rows import as_rows, check_finite


@dataclasses.dataclass(frozen=True, eq=False)
class Factors:
    """Checked factors of every observation."""

    values: Shaped[np.ndarray, "sample factor"] | None = None
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    kinds: tuple[FactorKind, ...] = ()
    classes: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    """The text of each class, for factors that were text."""

    def take(self, rows: Int[np.ndarray, " some"]) -> Factors:
        """Return the factors of some observations; text classes that no longer occur are left out.

        :param rows: indices of the observations.
        """
        if self.values is None:
            return self
        values, classes, sizes = self.values[rows], {}, []
        for column, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True)):
            present, numbers = np.unique(values[:, column], return_inverse=True)
            # Only classes of text are numbered again: other integers keep their values, which can have a meaning.
            if name in self.classes:
                values[:, column] = numbers.reshape(-1)
                classes[name] = tuple(self.classes[name][int(number)] for number in present)
            sizes.append(0 if kind == "continuous" else len(present))
        return dataclasses.replace(self, values=values, sizes=tuple(sizes), classes=classes)


def known_factors(contents: Contents, n_samples: int) -> Factors:
    """Check factors and complete their names, numbers of values, kinds and class names.

    Columns of integers are categorical and others continuous, unless the user passes their kinds. Text is numbered in
    alphabetical order.

    :param contents: contents of the dataset.
    :param n_samples: number of observations.
    """
    if contents.factors is None:
        if contents.factor_names is not None or contents.factor_kinds is not None:
            raise InputError(
                problem=(
                    Argument("factor_names"),
                    " and ",
                    Argument("factor_kinds"),
                    " describe factors, but no factors were passed",
                ),
                remedy=("pass ", Argument("factors")),
            )
        return Factors()
    factors, column_names, texts = _numbers(contents.factors)
    if factors.ndim != 2 or len(factors) != n_samples:
        raise InputError(
            "factors",
            f"have shape (sample, factor) with a row for each of the {n_samples} samples",
            got=factors.shape,
        )
    count = factors.shape[1]
    whole = factors.dtype.kind in "biu"
    names, kinds = contents.factor_names, contents.factor_kinds
    if names is None:
        names = column_names or tuple(f"factor-{column + 1}" for column in range(count))
    names = tuple(map(str, names))
    if kinds is None:
        # Column by column, because they share one array, and one measured factor makes every column float.
        integral = (factors == np.rint(factors)).all(axis=0)
        kinds = tuple("categorical" if each else "continuous" for each in integral)
    kinds = tuple(map(str, kinds))
    for argument, entries in (("factor_names", names), ("factor_kinds", kinds)):
        if len(entries) != count:
            raise InputError(argument, f"have one entry for each of the {count} factors", got=len(entries))
    if len(set(names)) != count:
        raise InputError("factor_names", "differ from one another", got=", ".join(names))
    for name, kind, column in zip(names, kinds, factors.T, strict=True):
        if kind not in get_args(FactorKind):
            raise InputError("factor_kinds", f"be among {', '.join(get_args(FactorKind))}", got=f"{kind!r}")
        if kind != "continuous" and not whole and (column != np.rint(column)).any():
            raise InputError(
                f"factor {name!r}", f"contain integers, because it is {kind}", remedy="number its values"
            )
    factors = factors.astype(np.float64 if "continuous" in kinds else np.int64)
    sizes = tuple(
        0 if kind == "continuous" else len(np.unique(column))
        for kind, column in zip(kinds, factors.T, strict=True)
    )
    classes = {names[column]: texts[column] for column in texts}
    return Factors(factors, names, sizes, kinds, classes)  # type: ignore[arg-type]


def _numbers(factors: Any) -> tuple[np.ndarray, tuple[str, ...], dict[int, tuple[str, ...]]]:
    """Return factors as numbers, the names of their columns if they have any, and the classes of text factors."""
    refuse_masked(factors, "factors")
    columns: dict[str, np.ndarray] | None = None
    if isinstance(factors, Mapping):
        columns = _unmasked({str(name): column for name, column in factors.items()})
    elif is_frame(factors) or is_series(factors):
        columns = frame_columns(factors, "factors")
    if columns is None:
        array = _as_array(factors)
        if array.dtype.kind not in "OUS":
            rows = as_rows(array, "factors")
            check_finite(rows, "factors")
            return array[:, np.newaxis] if array.ndim == 1 else array, (), {}
        array = array[:, np.newaxis] if array.ndim == 1 else array
        if array.ndim != 2:
            raise InputError("factors", "have shape (sample, factor)", got=f"shape {array.shape}")
        names: tuple[str, ...] = ()
        listed = list(array.T)
    else:
        names, listed = tuple(columns), list(columns.values())
    texts: dict[int, tuple[str, ...]] = {}
    numbers = []
    for index, column in enumerate(listed):
        name = names[index] if names else f"factor-{index + 1}"
        if column.dtype.kind in "OUS":
            _check_text(name, column)
            column, texts[index] = number_classes(column)
        rows = as_rows(column, f"factor {name!r}")
        check_finite(rows, f"factor {name!r}")
        numbers.append(column)
    if len({len(column) for column in numbers}) != 1:
        raise InputError("factors", "be columns of the same length", got=[len(column) for column in numbers])
    _check_exact(numbers, names)
    return np.column_stack(numbers), names, texts


def _unmasked(columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the columns as ordinary arrays; raise an error if values are masked, which means missing."""
    troubles = Troubles()
    for name, column in columns.items():
        if np.ma.is_masked(column):
            troubles.missing(name, np.flatnonzero(np.ma.getmaskarray(column)).tolist())
    troubles.refuse("factors", "drop these samples, or fill in the values")
    return {name: np.asarray(column) for name, column in columns.items()}


def _check_exact(columns: Sequence[np.ndarray], names: Sequence[str]) -> None:
    """Raise an error if large integers would be rounded because they share a float array with measured factors."""
    # Columns of one array share a type; with a measured factor it is float.
    if np.result_type(*columns).kind != "f":
        return
    for index, column in enumerate(columns):
        large = column.dtype.kind in "iu" and ((column > LARGEST_WHOLE) | (column < -LARGEST_WHOLE)).any()
        if large:
            raise InputError(
                f"factor {names[index] if names else f'factor-{index + 1}'!r}",
                "be at most 2^53, because factors are stored as floats if one of them is continuous",
                got=column.max(),
                remedy="number its values",
            )


def _as_array(values: Any) -> np.ndarray:
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError("factors", "be one array", got=f"rows that do not fit together ({error})") from None


def _check_text(name: str, column: np.ndarray) -> None:
    """Raise an error if a column of objects contains anything but text, or lacks values."""
    values = column.tolist()
    troubles = Troubles()
    lacking = [row for row, value in enumerate(values) if is_absent(value)]
    if lacking:
        troubles.missing(name, lacking)
    troubles.refuse("factors", "drop these samples, or give them a class of their own")
    strange = next((value for value in values if not isinstance(value, str | bytes)), None)
    if strange is not None:
        raise InputError(
            f"factor {name!r}",
            "contain numbers or text",
            got=type(strange).__name__,
            remedy="convert its values",
        )
