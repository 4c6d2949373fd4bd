"""The stability of latents over runs: which models, encoded on which data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from polariscope.analysis.code_files import load_codes
from polariscope.analysis.representation import Representation
from polariscope.analysis.stability import RETURNS, Relation, Stability
from polariscope.analysis.stability import stability as stability_of_codes
from polariscope.core.errors import Either, InputError
from polariscope.core.options import spelled_out
from polariscope.core.types import ArrayInput
from polariscope.data.data_like import DataLike
from polariscope.data.observations import ObservationOptions, Observations
from polariscope.layers.layer_sources import Source
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
    **observations: Unpack[ObservationOptions],
) -> Stability:
    """Which latents return when a model is trained again, how consistent the models are, and which one is central.

    Latents of every two models are matched one to one by the absolute correlation of their codes on the same
    observations; see :func:`polariscope.analysis.stability.stability` for the definitions, the chance level and what
    the intervals hold.

    :param models: runs, run folders, models, representations, .npz files of codes, or arrays ``(sample, latent)`` of
        mean codes of the same samples from any library; a list, or a mapping from names to them. Models trained alike
        have as many latents, so others are refused; arrays may have lost their passive ones.
    :param data: (default: the runs' own) the dataset or array that runs and models encode.
    :param variance: (default None) with arrays, the posterior variances of each: latents that carry less than 0.01
        nats are then left out, as of runs.
    :param relation: (default "spearman") which correlation; or "pearson".
    :param threshold: (default √½) strength from which a latent counts as recurring.
    :param n_permutations: (default 100) shuffles of the samples behind the chance level.
    :param observations: the observations that runs and models encode.

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
    which = Observations(**observations)
    codes: dict[str, Any] = {}
    for name, item in named.items():
        if isinstance(item, Run):
            opened = item if data is None else Run(item.path, data)
            codes[name] = opened.representation(**which.options())
        else:
            subset = (which.n_samples, which.seed)
            is_model = isinstance(item, AbstractModel)
            codes[name] = encode(item, data, *subset, part=which.part) if is_model else item
    _check_alike(codes)
    result = stability_of_codes(
        codes,
        variance=variance,
        relation=relation,
        threshold=threshold,
        n_permutations=n_permutations,
        seed=which.seed,
    )
    return dataclasses.replace(result, notes=(*result.notes, *_differences(runs)))


def _check_alike(codes: Mapping[str, Any]) -> None:
    """Refuse codes of models with other numbers of latents: they were not trained alike."""
    counts = {name: item.mean.shape[1] for name, item in codes.items() if isinstance(item, Representation)}
    first = next(iter(counts), "")
    for name, count in counts.items():
        if count != counts[first]:
            raise InputError(
                "models",
                "have the same number of latents, since they are to differ by their seed",
                got=f"{counts[first]} in {first} and {count} in {name}",
                remedy=Either(
                    "to match them all the same, give the latents of each as an array (sample, latent)",
                    "choose runs of the same size",
                ),
            )


def _differences(runs: Mapping[str, Run]) -> list[str]:
    """A note on what runs differ in beside their seed."""
    parts = ("objective", "model", "training")
    flat = [
        {f"{part} {name}": value for part in parts for name, value in run.settings[part].items()}
        for run in runs.values()
    ]
    names = sorted({name for one in flat for name in one if name != "training seed"})
    differ = [name for name in names if any(one.get(name) != flat[0].get(name) for one in flat)]
    if not differ:
        return []
    return [f"The runs differ by more than their seed: {', '.join(differ)}."]


def _named(models: Any) -> dict[str, Any]:
    """Every model under a name of its own; folders become runs."""
    if isinstance(models, (str, Path, Run, AbstractModel, Representation)) or (
        isinstance(models, np.ndarray) and models.ndim < 3
    ):
        raise InputError("models", "be several, in a list or by name", got="one")
    if isinstance(models, Mapping):
        return {str(name): _opened(item) for name, item in models.items()}
    named: dict[str, Any] = {}
    for number, model in enumerate(models):
        item = _opened(model)
        name = item.name if isinstance(item, Run) else str(number)
        if isinstance(model, (str, Path)) and not isinstance(item, Run):
            name = Path(model).name
        named[name if name not in named else f"{name} ({number + 1})"] = item
    return named


def _opened(item: Any) -> Any:
    if not isinstance(item, (str, Path)):
        return item
    return load_codes(item) if Path(item).is_file() else Run(item)
