"""Reading of ``.npz`` and ``.npy`` files as contents of a dataset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.text import listed
from polariscope.data.own.support.contents import Contents

OBSERVATIONS = ("X", "images", "values")
FACTORS = ("factors", "y", "labels", "targets")
"""Possible names of the factors; a file contains at most one of them."""
METADATA = ("factor_names", "factor_kinds", "feature_names", "ids")
MAPPED_BYTES = 2**26
"""Size in bytes above which an .npy file is memory-mapped instead of read."""


def read_archive(path: Path, max_unpacked: float | None = None) -> Contents:
    """Read an .npz or .npy file: observations, factors and names; other arrays are listed in ``choices``.

    :param path: the file.
    :param max_unpacked: (default: that of :mod:`polariscope.core.archives`) maximum gigabytes after unpacking.
    """
    arrays = _arrays(path, max_unpacked)
    if "" in arrays:
        mapped = isinstance(arrays[""], np.memmap)
        return Contents(arrays[""], choices=("read from the file as needed",) if mapped else ())
    named = [name for name in OBSERVATIONS if name in arrays]
    others = [name for name in arrays if name not in (*FACTORS, *METADATA)]
    if len(named or others) != 1:
        raise InputError(
            str(path),
            (
                "name its observations X (or images, or values), or contain one array besides "
                f"{', '.join(FACTORS + METADATA)}"
            ),
            got=", ".join(arrays) or "no arrays",
        )
    observations = (named or others)[0]
    labels = [name for name in FACTORS if name in arrays]
    if len(labels) > 1:
        raise InputError(
            str(path), "contain its factors once", got=", ".join(labels), remedy="keep one of these arrays"
        )
    metadata = {
        name: tuple(str(entry) for entry in np.atleast_1d(arrays[name]))
        for name in METADATA[:3]
        if name in arrays
    }
    factors = arrays[labels[0]] if labels else None
    is_single = factors is not None and (factors.ndim == 1 or factors.shape[1:] == (1,))
    # The array's name says what the single factor is, unless it is only "factors".
    if is_single and labels != ["factors"] and "factor_names" not in metadata:
        metadata["factor_names"] = (labels[0],)
    choices = [f"observations are {observations!r}"] if observations not in OBSERVATIONS else []
    if labels and labels != ["factors"]:
        choices.append(f"factors are {labels[0]!r}")
    ignored = [name for name in others if name != observations]
    if ignored:
        choices.append(f"not used: {listed(ignored, quoted=True)}")
    return Contents(
        arrays[observations],
        factors,
        metadata.get("factor_names"),
        metadata.get("factor_kinds"),
        metadata.get("feature_names", ()),
        arrays.get("ids"),
        tuple(choices),
    )


def _arrays(path: Path, max_unpacked: float | None) -> dict[str, Shaped[np.ndarray, "..."]]:
    """Return the arrays by name; a large .npy file is memory-mapped."""
    if path.is_file() and path.stat().st_size > MAPPED_BYTES:
        with path.open("rb") as file:
            # Recognised by its first bytes, because a large npz file is not mapped.
            is_array = file.read(6) == b"\x93NUMPY"
        if is_array:
            try:
                return {"": np.lib.format.open_memmap(path, mode="r")}
            except (ValueError, OSError, EOFError):
                raise InputError(
                    str(path),
                    "be an npy file of a plain array",
                    remedy="write it with numpy.save and no object arrays",
                ) from None
    return files.read_arrays(path, max_unpacked)
