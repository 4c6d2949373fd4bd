"""Codes, variances and factors as metrics take them, or what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast, get_args

import numpy as np
from jaxtyping import Float

from polariscope.analysis.regime.latent_types import TYPES, VariableType
from polariscope.analysis.representation import FactorKind
from polariscope.core.arrays import real_numbers
from polariscope.core.errors import Argument, Either, InputError, check_word
from polariscope.core.types import ArrayInput, FactorsLike

EXACT = 2.0**53
"""Integers beyond this are no longer apart as floats."""
LARGEST = 1e100
"""Codes beyond this, or all below its inverse, overflow or vanish when they are squared."""

# Remedies in Python's words; the command line puts its own in their place.
DECLARE = Either(
    "declare it in factor_kinds, where 'continuous' is a measured factor",
    ("name it in ", Argument("continuous")),
)
GIVE_VARIANCE = "give them as variance, an array (sample, latent) of σ²"


def is_integral(column: np.ndarray) -> bool:
    """Whether all values are whole numbers."""
    return bool((np.floor(column) == column).all())


def check_codes(codes: ArrayInput, name: str) -> Float[np.ndarray, "sample latent"]:
    """Codes as float64, (sample, latent), finite, at least two samples."""
    array = _as_floats(codes, name)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(name, "have shape (sample, latent)", got=array.shape, remedy="a column per latent")
    if len(array) < 2:
        raise InputError(name, "have at least 2 samples", got=len(array), remedy="encode more")
    largest = np.abs(array).max()
    if largest > LARGEST or 0 < largest < 1 / LARGEST:
        raise InputError(
            name,
            "be of a size whose square is a number",
            got=f"values up to {largest:.3g}",
            remedy="rescale them",
        )
    return array


def check_variance(
    variance: ArrayInput, codes: Float[np.ndarray, "sample latent"]
) -> Float[np.ndarray, "sample latent"]:
    array = _as_floats(variance, "variance")
    if array.shape != codes.shape:
        raise InputError(
            "codes and variance",
            "have the same shape",
            got=f"{codes.shape} and {array.shape}",
            remedy="encode both with the same model",
        )
    if array.min() < 0:
        raise InputError(
            "variance",
            "not be negative",
            got=f"a minimum of {array.min():.3g}",
            remedy="this looks like a log-variance: pass np.exp(log_variance)",
        )
    return array


def check_factors(factors: FactorsLike, n_samples: int) -> Float[np.ndarray, "sample factor"]:
    """Factors as float64, (sample, factor), finite, a row for each sample."""
    array = _as_floats(factors, "factors", "these are the data's own: drop such samples or fill them in")
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            "factors",
            "have shape (sample, factor)",
            got=array.shape,
            remedy="for a single factor pass factors[:, None]",
        )
    if len(array) != n_samples:
        raise InputError(
            "codes and factors",
            "have a row for each sample",
            got=f"{n_samples} and {len(array)} rows",
            remedy="take the factors of the samples that were encoded",
        )
    return array


def check_types(types: Sequence[str], n_latents: int) -> tuple[VariableType, ...]:
    """The type of each latent."""
    if len(types) != n_latents:
        raise InputError("types", f"name each of the {n_latents} latents", got=len(types))
    for word in types:
        check_word("variable type", word, TYPES)
    return cast(tuple[VariableType, ...], tuple(types))


def check_names(names: Sequence[str], n_factors: int) -> tuple[str, ...]:
    if names and len(names) != n_factors:
        raise InputError("factor_names", f"name each of the {n_factors} factors", got=f"{len(names)} names")
    return named(names, n_factors)


def named(names: Sequence[str], n_factors: int) -> tuple[str, ...]:
    """The factors' names, or their numbers where they have none."""
    return tuple(names) or tuple(map(str, range(n_factors)))


def check_kinds(kinds: Sequence[str] | None, n_factors: int) -> tuple[FactorKind, ...]:
    if kinds is None:
        default: FactorKind = "categorical"
        return (default,) * n_factors
    if not set(kinds) <= set(get_args(FactorKind)) or len(kinds) != n_factors:
        raise InputError(
            "factor_kinds",
            (f"say {' or '.join(map(repr, get_args(FactorKind)))} for each of the {n_factors} factors"),
            got=f"{kinds!r}",
        )
    return cast(tuple[FactorKind, ...], tuple(kinds))


def _as_floats(value: Any, name: str, remedy: str = "the model may have diverged") -> np.ndarray:
    numbers = real_numbers(value, name)
    array = numbers.astype(np.float64)
    if numbers.dtype.kind in "iu" and array.size and np.abs(array).max() >= EXACT:
        raise InputError(
            name,
            "be below 2⁵³, beyond which whole numbers merge",
            got=numbers.max(),
            remedy="number them from 0",
        )
    if not np.isfinite(array).all():
        count = int(array.size - np.isfinite(array).sum())
        raise InputError(
            name, "be finite", got=f"{count} NaN or infinite of {array.size} values", remedy=f"{remedy}"
        )
    return array
