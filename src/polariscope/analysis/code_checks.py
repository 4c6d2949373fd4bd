"""Checks of codes, variances and factors before they are passed to metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast, get_args

import numpy as np
from jaxtyping import Float

from polariscope.analysis.regime.latent_types import TYPES, VariableType
from polariscope.analysis.representation import FactorKind
from polariscope.core.arrays import LARGEST_WHOLE, real_numbers
from polariscope.core.errors import Argument, Either, InputError, check_word
from polariscope.core.types import ArrayInput, FactorsLike

LARGEST = 1e100
"""Limit beyond which squares of codes overflow; below its inverse they underflow."""

# Remedies for Python; the command line substitutes its own.
DECLARE = Either(
    "declare it in factor_kinds ('continuous' is a measured factor)",
    ("name it in ", Argument("continuous")),
)
GIVE_VARIANCE = "pass them as variance, an array (sample, latent) of σ²"


def is_integral(column: np.ndarray) -> bool:
    """Return True if all values are integers."""
    return bool((np.floor(column) == column).all())


def check_codes(codes: ArrayInput, name: str) -> Float[np.ndarray, "sample latent"]:
    """Return codes as float64 (sample, latent), after checking that they are finite and have at least two samples."""
    array = _as_floats(codes, name)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(name, "have shape (sample, latent)", got=array.shape, remedy="one column per latent")
    if len(array) < 2:
        raise InputError(name, "have at least 2 samples", got=len(array), remedy="encode more")
    largest = np.abs(array).max()
    if largest > LARGEST or 0 < largest < 1 / LARGEST:
        raise InputError(
            name,
            f"have values whose squares neither overflow nor underflow ({1 / LARGEST:g} to {LARGEST:g})",
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
    """Return factors as float64 (sample, factor), after checking that they are finite with a row for each sample.

    An array of one axis is one factor.
    """
    array = _as_floats(factors, "factors", "the data contain them: drop such samples or fill in the values")
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError("factors", "have shape (sample, factor)", got=array.shape)
    if len(array) != n_samples:
        raise InputError(
            "codes and factors",
            "have a row for each sample",
            got=f"{n_samples} and {len(array)} rows",
            remedy="pass the factors of the encoded samples",
        )
    return array


def check_types(types: Sequence[str], n_latents: int) -> tuple[VariableType, ...]:
    """Return the types, after checking that there is a valid one for each latent."""
    if len(types) != n_latents:
        raise InputError("types", f"have one entry for each of the {n_latents} latents", got=len(types))
    for word in types:
        check_word("variable type", word, TYPES)
    return cast(tuple[VariableType, ...], tuple(types))


def check_names(names: Sequence[str], n_factors: int) -> tuple[str, ...]:
    if names and len(names) != n_factors:
        raise InputError(
            "factor_names", f"have a name for each of the {n_factors} factors", got=f"{len(names)} names"
        )
    return named(names, n_factors)


def named(names: Sequence[str], n_factors: int) -> tuple[str, ...]:
    """Return the names of the factors, or their numbers if they have no names."""
    return tuple(names) or tuple(map(str, range(n_factors)))


def check_kinds(kinds: Sequence[str] | None, n_factors: int) -> tuple[FactorKind, ...]:
    if kinds is None:
        default: FactorKind = "categorical"
        return (default,) * n_factors
    if not set(kinds) <= set(get_args(FactorKind)) or len(kinds) != n_factors:
        raise InputError(
            "factor_kinds",
            f"be {' or '.join(map(repr, get_args(FactorKind)))} for each of the {n_factors} factors",
            got=f"{kinds!r}",
        )
    return cast(tuple[FactorKind, ...], tuple(kinds))


def _as_floats(value: Any, name: str, remedy: str = "the model might have diverged") -> np.ndarray:
    numbers = real_numbers(value, name)
    array = numbers.astype(np.float64)
    # Compared as floats, because the absolute value of the smallest int64 overflows.
    if numbers.dtype.kind in "iu" and array.size and np.abs(array).max() >= LARGEST_WHOLE:
        raise InputError(
            name,
            "be below 2⁵³, because larger integers are not exact as floats",
            got=numbers.max(),
            remedy="number them from 0",
        )
    if not np.isfinite(array).all():
        count = int(array.size - np.isfinite(array).sum())
        raise InputError(
            name, "be finite", got=f"{count} NaN or infinite of {array.size} values", remedy=f"{remedy}"
        )
    return array
