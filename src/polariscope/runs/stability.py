"""The stability of latents over runs: which models, encoded on which data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from polariscope.analysis.representation import Representation
from polariscope.analysis.stability import RETURNS, Relation, Stability
from polariscope.analysis.stability import stability as stability_of_codes
from polariscope.core.errors import InputError
from polariscope.layers.sources import Source
from polariscope.models.protocol import AbstractModel
from polariscope.runs.compare import find_data
from polariscope.runs.encode import encode
from polariscope.runs.run import Run


def stability(
    models: object,
    data: object = None,
    *,
    relation: Relation = "spearman",
    threshold: float = RETURNS,
    n_permutations: int = 100,
    n_samples: object = 10_000,
    seed: int = 0,
    part: str = "all",
    step: int | None = None,
) -> Stability:
    """Which latents return when a model is trained again, how consistent the models are, and which one is central.

    Latents of every two models are matched one to one by the absolute correlation of their codes on the same
    observations; see :func:`polariscope.analysis.stability.stability` for the definitions, the chance level and what
    the intervals hold.

    :param models: runs, run folders, models, representations, or arrays ``(sample, latent)`` of mean codes of the same
        samples from any library; a list, or a mapping from names to them.
    :param data: (default: the runs' own) the dataset or array that runs and models encode.
    :param relation: (default "spearman") which correlation; or "pearson".
    :param threshold: (default √½) strength from which a latent counts as found again.
    :param n_permutations: (default 100) shuffles of the samples behind the chance level.
    :param n_samples: (default 10,000) observations that runs and models encode.
    :param seed: (default 0) seed of their choice, of the draws and of the shuffles.
    :param part: (default "all") or the part of the runs' split: "train", "validation" or "test".
    :param step: (default None: the finished models) the checkpoint of this step of each run.

    >>> codes = np.random.default_rng(0).normal(size=(200, 3))
    >>> round(stability({"first": codes, "second": -codes[:, ::-1]}).value, 6)
    1.0
    """
    named = _named(models)
    runs = {name: item for name, item in named.items() if isinstance(item, Run)}
    others = [item for item in named.values() if isinstance(item, AbstractModel)]
    if data is not None and not runs and not others:
        raise InputError("data", "be left out with codes, since nothing is encoded")
    if runs:
        # Refuses runs of different data; of arrays in memory each run is opened with those given.
        find_data([Source(name, name, None, None, run.path) for name, run in runs.items()], data)
    where: dict[str, Any] = {"n_samples": n_samples, "seed": seed, "part": part}
    codes: dict[str, Any] = {}
    for name, item in named.items():
        if isinstance(item, Run):
            opened = item if data is None else Run(item.path, data)
            codes[name] = opened.representation(**where, step=step)
        else:
            codes[name] = encode(item, data, **where) if isinstance(item, AbstractModel) else item
    return stability_of_codes(
        codes, relation=relation, threshold=threshold, n_permutations=n_permutations, seed=seed
    )


def _named(models: Any) -> dict[str, Any]:
    """Every model under a name of its own; folders become runs."""
    if isinstance(models, (str, Path, Run, AbstractModel, Representation)) or (
        isinstance(models, np.ndarray) and models.ndim < 3
    ):
        raise InputError("models", "be several, in a list or by name", got="one")
    if isinstance(models, Mapping):
        return {str(name): _opened(item) for name, item in models.items()}
    found: dict[str, Any] = {}
    for number, item in enumerate(map(_opened, models)):
        name = item.name if isinstance(item, Run) else str(number)
        found[name if name not in found else f"{name} ({number + 1})"] = item
    return found


def _opened(item: Any) -> Any:
    return Run(item) if isinstance(item, (str, Path)) else item
