"""Codes of other libraries: a representation from the arrays of an npz file."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from polariscope.analysis.representation import ARRAYS, Representation, draw_sampled
from polariscope.core import files
from polariscope.core.errors import InputError


def load_codes(path: str | Path, seed: int = 0) -> Representation:
    """A representation from an npz file of another library.

    Arrays: ``mean`` and ``variance`` (or ``log_variance``), ``(sample, latent)``; if there is no ``sampled``, it
    is drawn with ``seed``. Also read if present: ``factors``, ``factor_names``, ``factor_kinds``, ``ids``,
    ``prior_mean``, ``prior_variance``, ``rate``, ``indices`` and, where latents are correlated given x, ``covariance``
    (then ``sampled`` must be there).
    Objects are refused: loading never runs code from the file.
    """
    arrays = files.read_arrays(Path(path))
    return codes_from_arrays(arrays, seed, where=str(path))


def codes_from_arrays(
    arrays: dict[str, np.ndarray], seed: int = 0, where: str = "the arrays"
) -> Representation:
    """A representation from named arrays, as :func:`load_codes` reads them."""
    known = {"mean", "variance", "log_variance", *ARRAYS, "factor_names", "factor_kinds", "ids"}
    if "mean" not in arrays or not {"variance", "log_variance"} & set(arrays):
        listed = ", ".join(sorted(arrays)) or "nothing"
        raise InputError(where, "hold 'mean' and 'variance' (or 'log_variance')", got=listed)
    if {"variance", "log_variance"} <= set(arrays):
        raise InputError(
            problem=f"{where} hold both 'variance' and 'log_variance'", remedy="keep one of them"
        )
    unknown_names = sorted(set(arrays) - known)
    if unknown_names:
        raise InputError(
            problem=f"{where} hold {unknown_names[0]!r}, which is not read",
            remedy=f"known are {', '.join(sorted(known))}",
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
            fields[name] = arrays[name].astype(np.result_type(arrays[name].dtype, np.float32), copy=False)
    if "log_variance" in fields:
        log_variance = fields.pop("log_variance")
        if log_variance.size and np.max(log_variance) > 60:
            raise InputError(
                problem=f"the log-variance reaches {np.max(log_variance):.3g}, a variance beyond all scale",
                remedy="was it a variance?",
            )
        fields["variance"] = np.exp(log_variance)
    probe = Representation(fields["mean"], fields["variance"], fields.get("sampled", fields["mean"]))
    if "sampled" not in fields:
        if "covariance" in fields:
            raise InputError(
                problem=f"{where} hold 'covariance' without 'sampled'",
                remedy="draw z ~ N(mean, covariance) and add it",
            )
        fields["sampled"] = draw_sampled(probe.mean, probe.variance, seed)
        fields["sampled_was_drawn"] = True
    names, kinds = (tuple(map(str, arrays.get(word, ()))) for word in ("factor_names", "factor_kinds"))
    extra: dict[str, Any] = {name: arrays[name] for name in ("factors", "indices", "ids") if name in arrays}
    extra["factor_kinds"] = kinds
    return dataclasses.replace(probe, **fields, **extra, factor_names=names)
