"""Files of codes: arrays in an .npz file, or those in ``obsm`` of an .h5ad file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polariscope.analysis.code_files import codes_from_arrays, load_codes
from polariscope.analysis.code_names import MEANS, SECONDS, Second
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.core.files import read_arrays
from polariscope.core.paths import user_path
from polariscope.data.hdf5 import index_name, open_cells, texts_of

CELLS = ".h5ad"
ENDINGS = (".npz", CELLS)
"""Endings of files that can contain codes."""
MAX_CLASSES = 0.1
"""Maximum number of classes of a factor, as a share of the cells; others are identifiers."""


def open_codes(path: str | Path, seed: int = 0) -> Representation:
    """Read a representation from a file of any library.

    An .npz file contains arrays as in :func:`polariscope.analysis.code_files.load_codes`. An .h5ad file contains the
    posterior mean and its variance, log-variance or SD in ``obsm``, with the same beginning and a known ending:
    ``X_scVI_qzm`` and ``X_scVI_qzv``. Columns of ``obs`` with categories are its factors.

    :param path: the file.
    :param seed: (default 0) seed of the draws, if the file contains none.
    """
    file = user_path(path)
    if file.suffix != CELLS:
        return load_codes(file, seed)
    return codes_from_arrays(read_code_arrays(file), seed, where=str(path))


def read_code_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a file of codes, by name.

    :param path: an .npz or .h5ad file.
    """
    if path.suffix != CELLS:
        return read_arrays(path)
    with open_cells(path) as file, file:
        return _arrays(path, file)


def _arrays(path: Path, file: Any) -> dict[str, np.ndarray]:
    stored = [str(name) for name in file.get("obsm", ()) if hasattr(file["obsm"][name], "shape")]
    mean, second, kind = code_pair(stored, f"obsm of {path}")
    arrays = {"mean": np.asarray(file["obsm"][mean]), kind: np.asarray(file["obsm"][second])}
    obs = file["obs"]
    if (index := index_name(obs)) in obs:
        arrays["ids"] = np.array(texts_of(obs[index]))
    return {**arrays, **_factors(obs, len(arrays["mean"]))}


def code_pair(names: Sequence[str], where: str) -> tuple[str, str, Second]:
    """Return the names of a posterior mean and its variance, log-variance or SD, and the meaning of the second.

    :param names: names of arrays; one pair must have the same beginning and known endings.
    :param where: name of the collection, for messages.

    >>> code_pair(["X_pca", "X_scVI_qzm", "X_scVI_qzv"], "obsm")
    ('X_scVI_qzm', 'X_scVI_qzv', 'variance')
    """
    pairs = {
        (mean, second): SECONDS[ending]
        for mean in names
        for stem in _stems(mean, MEANS)
        for second in names
        for ending in SECONDS
        if second == stem + ending
    }
    if len(pairs) != 1:
        reason = "no pair" if not pairs else f"{len(pairs)} pairs"
        raise InputError(
            where,
            "contain one posterior mean and its variance, such as X_scVI_qzm and X_scVI_qzv",
            got=f"{reason} among {', '.join(names) or 'nothing'}",
            remedy=(
                "store the mean and the variance of the posterior under such names, or pass the arrays to "
                "polariscope.diagnose"
            ),
        )
    (((mean, second), kind),) = pairs.items()
    return mean, second, kind


def _stems(name: str, endings: tuple[str, ...]) -> list[str]:
    """Return the beginnings of a name that ends in one of the endings."""
    return [name.removesuffix(ending) for ending in endings if name.endswith(ending)]


def _factors(obs: Any, n_cells: int) -> dict[str, np.ndarray]:
    """Return the columns of obs with categories as classes; columns with missing values are left out."""
    columns = {
        str(name): np.asarray(obs[name]["codes"], dtype=np.int64)
        for name in obs
        if hasattr(obs[name], "keys") and "codes" in obs[name]
    }
    complete = {
        name: codes
        for name, codes in columns.items()
        if len(codes) == n_cells
        and codes.min() >= 0
        and 1 < len(np.unique(codes)) <= max(2, MAX_CLASSES * n_cells)
    }
    if not complete:
        return {}
    return {"factors": np.stack([*complete.values()], axis=1), "factor_names": np.array([*complete])}
