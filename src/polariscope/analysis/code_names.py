"""Names by which libraries call the parts of a posterior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from polariscope.core.errors import InputError

Second = Literal["log_variance", "variance", "std", "log_std"]
KINDS: tuple[Second, ...] = ("log_variance", "variance", "std", "log_std")
"""Meanings of the array that contains the variance, its logarithm, its root, or the logarithm of its root."""
MEANS = ("mean", "mu", "embedding", "loc", "z_mean", "qz_m", "qzm", "z_mu")
"""Names of posterior means."""
SECONDS: dict[str, Second] = {
    "log_variance": "log_variance",
    "logvar": "log_variance",
    "log_var": "log_variance",
    "log_covariance": "log_variance",
    "z_log_var": "log_variance",
    "z_logvar": "log_variance",
    "variance": "variance",
    "var": "variance",
    "qz_v": "variance",
    "qzv": "variance",
    "std": "std",
    "stddev": "std",
    "scale": "std",
    "sigma": "std",
    "log_std": "log_std",
    "log_sigma": "log_std",
    "log_scale": "log_std",
}
"""Names of the second array, with its meaning."""


def renamed(arrays: Mapping[str, np.ndarray], where: str) -> dict[str, Any]:
    """Return arrays with the names of this package: mean, and variance or log_variance.

    :param arrays: arrays of a file by name.
    :param where: name of the file, for messages.

    >>> sorted(renamed({"mu": np.zeros((1, 2)), "std": np.full((1, 2), 2.0)}, "codes.npz"))
    ['mean', 'variance']
    """
    means = [name for name in arrays if name in MEANS]
    seconds = [name for name in arrays if name in SECONDS]
    for names in (means, seconds):
        if len(names) > 1:
            listed = " and ".join(f"'{name}'" for name in names)
            raise InputError(problem=f"{listed} are both in {where}", remedy="remove one of them")
    result = {name: array for name, array in arrays.items() if name not in (*means, *seconds)}
    for name in means:
        result["mean"] = arrays[name]
    for name in seconds:
        array = arrays[name]
        kind = SECONDS[name]
        if kind in ("log_variance", "variance"):
            result[kind] = array
        elif kind == "log_std":
            result["log_variance"] = 2 * array
        else:
            if np.issubdtype(array.dtype, np.number) and np.size(array) and np.min(array) < 0:
                raise InputError(
                    f"{name!r} in {where}", "not be negative", got=f"a minimum of {np.min(array):.3g}"
                )
            result["variance"] = array.astype(np.result_type(array.dtype, np.float32)) ** 2
    return result
