"""Codes of other libraries: a representation from the arrays of an npz file."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from polariscope.analysis.code_names import renamed
from polariscope.analysis.representation import ARRAYS, Representation, draw_sampled, flatten_codes
from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.paths import user_path


def load_codes(path: str | Path, seed: int = 0) -> Representation:
    """Read a representation from an npz file of another library.

    The file contains ``mean`` and ``variance`` (or ``log_variance``), both ``(sample, latent)``, or ``(sample, channel,
    height, width)`` for a convolutional encoder. The names of other libraries, such as ``mu``, ``logvar`` and ``std``,
    are known too (``analysis/code_names.py``). If ``sampled`` is missing, it is drawn with ``seed``. Optional arrays
    are ``factors``, ``factor_names``, ``factor_kinds``, ``ids``, ``prior_mean``, ``prior_variance``, ``rate``,
    ``indices`` and, if latents are correlated given x, ``covariance``, which requires ``sampled``. Pickled objects
    raise an error, so loading never runs code from the file.
    """
    arrays = files.read_arrays(user_path(path))
    return codes_from_arrays(arrays, seed, where=str(path))


def codes_from_arrays(
    arrays: dict[str, np.ndarray], seed: int = 0, where: str = "the arrays"
) -> Representation:
    """Return a representation from named arrays, as :func:`load_codes` reads them."""
    arrays = renamed(arrays, where)
    known = {"mean", "variance", "log_variance", *ARRAYS, "factor_names", "factor_kinds", "ids"}
    if "mean" not in arrays or not {"variance", "log_variance"} & set(arrays):
        listed = ", ".join(sorted(arrays)) or "nothing"
        raise InputError(where, "contain 'mean' and 'variance' (or 'log_variance')", got=listed)
    unknown_names = sorted(set(arrays) - known)
    if unknown_names:
        raise InputError(
            problem=f"unknown array {unknown_names[0]!r} in {where}",
            remedy=f"known arrays are {', '.join(sorted(known))}",
        )
    fields: dict[str, Any] = {}
    numbers = (
        "mean",
        "variance",
        "log_variance",
        "sampled",
        "prior_mean",
        "prior_variance",
        "rate",
        "covariance",
    )
    for name in numbers:
        if name in arrays:
            if not np.issubdtype(arrays[name].dtype, np.number) or np.iscomplexobj(arrays[name]):
                raise InputError(name, "be numbers", got=arrays[name].dtype)
            # Integers and half floats become float32 or wider; float64 stays.
            fields[name] = arrays[name].astype(np.result_type(arrays[name].dtype, np.float32), copy=False)
    if "log_variance" in fields:
        log_variance = fields.pop("log_variance")
        if log_variance.size and np.max(log_variance) > 60:
            raise InputError(
                problem=f"log_variance is up to {np.max(log_variance):.3g}, which is implausibly large",
                remedy="if it is a variance, name it 'variance'",
            )
        fields["variance"] = np.exp(log_variance)
    fields, code_shape = flatten_codes(fields)
    # Validate before drawing: a negative variance has no root.
    probe = Representation(
        fields["mean"], fields["variance"], fields.get("sampled", fields["mean"]), code_shape=code_shape
    )
    if "sampled" not in fields:
        if "covariance" in fields:
            raise InputError(
                problem=f"'covariance' is in {where} without 'sampled'",
                remedy="draw z ~ N(mean, covariance) and add it",
            )
        fields["sampled"] = draw_sampled(probe.mean, probe.variance, seed)
        fields["sampled_was_drawn"] = True
    names, kinds = (tuple(map(str, arrays.get(word, ()))) for word in ("factor_names", "factor_kinds"))
    extra: dict[str, Any] = {name: arrays[name] for name in ("factors", "indices", "ids") if name in arrays}
    # A column of factors is one factor.
    if "factors" in extra and np.ndim(extra["factors"]) == 1:
        extra["factors"] = np.asarray(extra["factors"])[:, None]
    extra["factor_kinds"] = kinds
    return dataclasses.replace(probe, **fields, **extra, factor_names=names)
