"""Stability of latents across runs, models and codes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from polariscope.analysis.code_view import Pool
from polariscope.analysis.representation import Representation
from polariscope.analysis.stability import RETURNS, Relation, Stability
from polariscope.analysis.stability import stability as stability_of_codes
from polariscope.core.errors import Either, InputError
from polariscope.core.options import spelled_out
from polariscope.core.types import ArrayInput
from polariscope.data.codes import open_codes
from polariscope.data.data_like import DataLike
from polariscope.data.observations import ObservationOptions, Observations
from polariscope.layers.layer_sources import Source
from polariscope.models.open_model import is_openable
from polariscope.models.protocol import AbstractModel
from polariscope.runs.comparison_sources import find_data
from polariscope.runs.encode import encode
from polariscope.runs.run import Run
from polariscope.runs.run_like import RunsLike


@spelled_out(Observations)
def stability(
    models: RunsLike,
    data: DataLike | None = None,
    *,
    variance: Sequence[ArrayInput] | None = None,
    relation: Relation = "spearman",
    threshold: float = RETURNS,
    n_permutations: int = 100,
    pool: Pool = "none",
    **observations: Unpack[ObservationOptions],
) -> Stability:
    """Find the latents that recur when a model is retrained, the consistency of the models, and the most central one.

    Latents of every pair of models are matched one to one by the absolute correlation of their codes on the same
    observations; see :func:`polariscope.analysis.stability.stability` for the definitions, the chance level and the
    intervals.

    :param models: runs, run folders, models of any library, representations, .npz files of codes, or arrays
        ``(sample, latent)`` of mean codes of the same samples; a list, or a mapping from names to them. Models must
        have the same number of latents; arrays can differ, because their passive latents might have been dropped.
    :param data: (default: the data of the runs) dataset or array to encode with runs and models.
    :param variance: (default None) posterior variances of each array; latents that are not in use are then excluded, as
        for runs. Without variances, every latent that varies is included.
    :param relation: (default "spearman") correlation: "spearman" or "pearson".
    :param threshold: (default √½) correlation above which a latent recurs.
    :param n_permutations: (default 100) number of permutations of the samples for the chance level.
    :param pool: (default "none") values of channels with positions: "none" for all, "mean" for the mean over them.
    :param observations: the observations that runs and models encode.

    >>> codes = np.random.default_rng(0).normal(size=(200, 3))
    >>> round(stability({"first": codes, "second": -codes[:, ::-1]}).value, 6)
    1.0
    """
    named = _named(models)
    runs = {name: item for name, item in named.items() if isinstance(item, Run)}
    others = [item for item in named.values() if _is_model(item)]
    if data is not None and not runs and not others:
        raise InputError("data", "be left out with codes, which are already encoded")
    if runs:
        # Raises an error for runs on different data. Runs on arrays in memory are opened with ``data`` below.
        find_data([Source(name, name, None, None, run.path) for name, run in runs.items()], data)
    which = Observations(**observations)
    codes: dict[str, Any] = {}
    for name, item in named.items():
        if isinstance(item, Run):
            opened = item if data is None else Run(item.path, data)
            codes[name] = opened.representation(**which.options())
        else:
            subset = (which.n_samples, which.seed)
            codes[name] = encode(item, data, *subset, part=which.part) if _is_model(item) else item
    _check_alike(codes)
    result = stability_of_codes(
        codes,
        variance=variance,
        relation=relation,
        threshold=threshold,
        n_permutations=n_permutations,
        seed=which.seed,
        pool=pool,
    )
    return dataclasses.replace(result, notes=(*result.notes, *_differences(runs)))


def _check_alike(codes: Mapping[str, Any]) -> None:
    """Raise an error if models have different numbers of latents, because they then differ by more than the seed."""
    counts = {name: item.n_units for name, item in codes.items() if isinstance(item, Representation)}
    first = next(iter(counts), "")
    for name, count in counts.items():
        if count != counts[first]:
            raise InputError(
                "models",
                "have the same number of latents, since they must differ only by their seed",
                got=f"{counts[first]} in {first} and {count} in {name}",
                remedy=Either(
                    "to match them anyway, pass the latents of each as an array (sample, latent)",
                    "select runs of the same size",
                ),
            )


def _differences(runs: Mapping[str, Run]) -> list[str]:
    """Return a note on the settings, besides the seed, in which runs differ."""
    parts = ("objective", "model", "training")
    flat = [
        {f"{part} {name}": value for part in parts for name, value in run.settings[part].items()}
        for run in runs.values()
    ]
    names = sorted({name for settings in flat for name in settings if name != "training seed"})
    differ = [name for name in names if any(each.get(name) != flat[0].get(name) for each in flat)]
    if not differ:
        return []
    return [f"The runs differ by more than their seed: {', '.join(differ)}."]


def _named(models: Any) -> dict[str, Any]:
    """Return models by unique names; folders become runs."""
    # An array with three axes is a sequence of codes.
    if isinstance(models, (str, Path, Run, AbstractModel, Representation)) or (
        models.ndim < 3
        if isinstance(models, np.ndarray)
        else not _is_collection(models) and is_openable(models)
    ):
        raise InputError("models", "be several, in a list or by name", got="one")
    if isinstance(models, Mapping):
        return {str(name): _opened(item) for name, item in models.items()}
    if not isinstance(models, Iterable):
        raise InputError(
            "models", "be several, in a list or by name", got=f"an object of type {type(models).__name__}"
        )
    named: dict[str, Any] = {}
    for number, model in enumerate(models):
        item = _opened(model)
        label = getattr(item, "name", None) if isinstance(item, Run | AbstractModel) else None
        name = str(number) if label in (None, "wrapped") else str(label)
        if isinstance(model, (str, Path)) and not isinstance(item, Run):
            name = Path(model).name
        named[name if name not in named else f"{name} ({number + 1})"] = item
    return named


def _is_collection(models: object) -> bool:
    return isinstance(models, Mapping | list | tuple)


def _is_model(item: object) -> bool:
    """Return True for a model of any library, and False for codes and runs."""
    if isinstance(item, Run | Representation | np.ndarray | list | tuple) or hasattr(item, "__array__"):
        return False
    return is_openable(item)


def _opened(item: Any) -> Any:
    if not isinstance(item, (str, Path)) or is_openable(item):
        return item
    return open_codes(item) if Path(item).is_file() else Run(item)
