"""How many latents does this data need?"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import InputError
from polariscope.core.options import spelled_out
from polariscope.core.seeds import generator
from polariscope.core.types import OptionValue
from polariscope.data.data_like import DataLike
from polariscope.sizing.checks import BOUNDS, check_call
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import family
from polariscope.sizing.result import DIMENSION, DataDimension, Size
from polariscope.sizing.search import Question, Search, SearchSettings, ask
from polariscope.storage.artefacts import Key
from polariscope.storage.folder import RunFolder
from polariscope.storage.search_folder import SearchFolder

N_FOR_DIMENSION = 2000
"""Observations from which the intrinsic dimension is estimated beside an answer: its time grows with their square."""


@spelled_out(SearchSettings, Goal, open_ended=True)
def size(
    data: DataLike,
    method: str = "fondue",
    *,
    target: str = "latents",
    n_latents: int | None = None,
    **options: OptionValue,
) -> Size:
    """Return how many latents the data need, or with ``target="beta"`` how large β can be for ``n_latents``.

    With ``out`` nothing is trained twice: run the same call again to resume an interrupted search.

    :param data: a dataset, or an array of observations
    :param method: (default fondue) a name of :data:`polariscope.sizing`: ``fondue`` (the largest n whose Σ E[σ²]
        stays within ``threshold``, in few steps), the published searches, and others
    :param target: (default latents) what is sought: latents, or the largest beta
    :param n_latents: number of latents, with ``target="beta"``
    :param options: options of the method, and of the models: ``objective``, ``net``, ``likelihood`` … as in
        :func:`polariscope.train`
    """
    sought = check_call(method, target, n_latents, options.get("seeds", SearchSettings.seeds), options)
    search = Search.prepare(data, (method,), options)
    return size_by(search, ask(search.data, method, search.options, sought, n_latents))


def size_by(search: Search, question: Question) -> Size:
    """Return the answer to one question, with the intrinsic dimension of the data, and write it to the folder.

    :param search: the search.
    :param question: what a method is asked.
    """
    data, seed = search.data, search.seeds[0]
    with search.session() as (folder, progress):
        result = search.answer(question, folder, progress)
        if question.target == "latents" and family.traits(question.method)["statistic"] != DIMENSION:
            sample = generator(seed, "dimension of the data").permutation(len(data))[:N_FOR_DIMENSION]
            rows = data.values(np.sort(sample)).reshape(len(sample), -1)
            result = dataclasses.replace(result, dimension=dimension_of(rows, seed))
        if search.out is not None:
            settings = {
                "data": {**data.describe(), "fingerprint": data.fingerprint},
                "method": question.method,
                "target": question.target,
                "seed": seed,
                "seeds": len(search.seeds),
                "goal": {name: getattr(question.goal, name) for name in BOUNDS},
                "options": question.own,
                "recipe": question.recipe,
                "chosen_for_you": list(question.chosen),
            }
            write_size(search.out, result, settings)
    return result


def dimension_of(rows: Float[np.ndarray, "sample feature"], seed: int) -> DataDimension:
    """Return the intrinsic dimension of observations as method ``id`` estimates it, or why there is none.

    :param rows: observations, (sample, feature).
    :param seed: seed of its resamples.
    """
    from polariscope.analysis.intrinsic_dimension import intrinsic_dimension

    try:
        estimate = intrinsic_dimension(rows, seed=seed)
    except InputError as refusal:
        return DataDimension(None, problem=str(refusal))
    return DataDimension(estimate.value, estimate.interval, estimate.n_points)


def write_size(folder: str | Path, size: Size, settings: dict[str, object]) -> None:
    """Keep an answer beside its settings."""
    SearchFolder(folder).write_answer(size.to_dict(), settings)


def read_size(folder: str | Path) -> Size:
    """The answer that a search left in its folder, checked."""
    return Size.from_dict(SearchFolder(folder).read_answer()[0])


def settings_of_models(folder: str | Path) -> dict[str, Any] | None:
    """Return the settings of a model that a search trained, the one with as many latents as the answer if it is there.

    :param folder: that of the search; None is returned if its method trained nothing.
    """
    answer = read_size(folder).value
    models = [model for seed in SearchFolder(folder).seeds() for model in seed.models() if model.is_begun]
    fitting = [model for model in models if model.settings["model"]["n_latents"] == answer]
    return (fitting or models)[0].settings if models else None


def keep_size(folder: str | Path, run: str | Path) -> None:
    """Keep the answer of a search beside a run, where its report finds it."""
    answer, settings = SearchFolder(folder).read_answer()
    folder_of_run = RunFolder(run)
    folder_of_run.artefacts.keep(
        Key("size", None, settings["data"]["fingerprint"], settings=settings), answer
    )
