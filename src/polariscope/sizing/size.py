"""Number of latents that data need."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import Argument, InputError
from polariscope.core.options import spelled_out
from polariscope.core.seeds import generator
from polariscope.core.types import OptionValue
from polariscope.data.data_like import DataLike, is_anndata
from polariscope.data.dataset import AbstractDataset
from polariscope.data.inputs import as_dataset
from polariscope.sizing.checks import BOUNDS, check_call
from polariscope.sizing.goal import Goal, Target
from polariscope.sizing.methods import family
from polariscope.sizing.result import DIMENSION, DataDimension, Size
from polariscope.sizing.search import Question, Search, SearchSettings, ask
from polariscope.storage.artefacts import Key
from polariscope.storage.folder import RunFolder
from polariscope.storage.search_folder import SearchFolder

N_FOR_DIMENSION = 2000
"""Maximum number of observations for the intrinsic dimension next to an answer: its time grows with their square."""


@spelled_out(SearchSettings, Goal, open_ended=True)
def size(
    data: DataLike,
    method: str = "fondue",
    *,
    trainer: Callable[..., object] | None = None,
    target: str = "latents",
    n_latents: int | None = None,
    **options: OptionValue,
) -> Size:
    """Find the number of latents that data need, or with ``target="beta"`` the largest β for ``n_latents``.

    With ``out`` no model is trained twice: run the same call again to resume an interrupted search.

    :param data: a dataset, or an array of observations
    :param method: (default fondue) a name of :data:`polariscope.sizing`: ``fondue`` (the largest n whose Σ E[σ²]
        is at most ``threshold``, in few steps), the published searches, and others
    :param trainer: (default None: models of this package are trained) your own function ``trainer(n_latents)``, or
        ``trainer(n_latents, seed)``. It returns a trained model of any library that :func:`polariscope.encode`
        accepts, or a Representation. Only ``fondue``, ``fondue-published`` and ``fondue-binary`` accept it, with the
        options ``threshold``, ``n_init``, ``cap``, ``seed``, ``seeds``, ``out`` and ``progress``
    :param target: (default latents) quantity to find: ``"latents"`` for the number of latents, ``"beta"`` for the
        largest β
    :param n_latents: number of latents, with ``target="beta"``
    :param options: options of the method and of the models: ``objective``, ``net``, ``likelihood`` … as in
        :func:`polariscope.train`
    """
    sought = check_call(method, target, n_latents, options.get("seeds", SearchSettings.seeds), options)
    if trainer is not None:
        return _size_of_trainer(trainer, data, method, sought, options)
    search = Search.prepare(data, (method,), options)
    return size_by(search, ask(search.data, method, search.options, sought, n_latents))


def _size_of_trainer(
    trainer: Callable[..., object], data: DataLike, method: str, target: Target, options: Mapping[str, Any]
) -> Size:
    """Size models that the caller's function trains, and write the answer to the folder."""
    from polariscope.sizing.size_with import size_with

    if target != "latents":
        raise InputError(
            problem=(Argument("trainer"), " is for the number of latents"), got=Argument("target", target)
        )
    dataset = as_dataset(data)
    # Models of single cells encode the AnnData object itself, with its covariates.
    result, settings = size_with(trainer, data if is_anndata(data) else dataset, method, options)
    result = _with_dimension(result, dataset, settings["seed"])
    if options.get("out") is not None:
        described = {"data": {**dataset.describe(), "fingerprint": dataset.fingerprint}}
        write_size(options["out"], result, {**settings, **described, "method": method, "target": target})
    return result


def _with_dimension(result: Size, data: AbstractDataset, seed: int) -> Size:
    """Add the intrinsic dimension of the data to an answer."""
    sample = generator(seed, "dimension of the data").permutation(len(data))[:N_FOR_DIMENSION]
    rows = data.values(np.sort(sample)).reshape(len(sample), -1)
    return dataclasses.replace(result, dimension=dimension_of(rows, seed))


def size_by(search: Search, question: Question) -> Size:
    """Run one method, add the intrinsic dimension of the data to its answer, and write the answer to the folder.

    :param search: the search.
    :param question: the method with its options, checked.
    """
    data, seed = search.data, search.seeds[0]
    with search.session() as (folder, progress):
        result = search.answer(question, folder, progress)
        # Other methods than the one that estimates the dimension itself show it next to their answer.
        if question.target == "latents" and family.traits(question.method)["statistic"] != DIMENSION:
            result = _with_dimension(result, data, seed)
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
    """Estimate the intrinsic dimension of observations like method ``id``, or return the reason why it is not possible.

    :param rows: observations, (sample, feature).
    :param seed: seed of the bootstrap.
    """
    from polariscope.analysis.intrinsic_dimension import intrinsic_dimension

    try:
        estimate = intrinsic_dimension(rows, seed=seed)
    except InputError as refusal:
        return DataDimension(None, problem=str(refusal))
    return DataDimension(estimate.value, estimate.interval, estimate.n_points)


def write_size(folder: str | Path, size: Size, settings: dict[str, object]) -> None:
    """Write an answer and its settings to the folder of a search."""
    SearchFolder(folder).write_answer(size.to_dict(), settings)


def read_size(folder: str | Path) -> Size:
    """Read the answer from the folder of a search and check it."""
    return Size.from_dict(SearchFolder(folder).read_answer()[0])


def settings_of_models(folder: str | Path) -> dict[str, Any] | None:
    """Return the settings of a model that a search trained, preferably one with as many latents as the answer.

    :param folder: folder of the search; the result is None if its method did not train a model.
    """
    answer = read_size(folder).value
    models = [model for seed in SearchFolder(folder).seeds() for model in seed.models() if model.is_begun]
    fitting = [model for model in models if model.settings["model"]["n_latents"] == answer]
    return (fitting or models)[0].settings if models else None


def keep_size(folder: str | Path, run: str | Path) -> None:
    """Store the answer of a search with the cached results of a run, so the report of the run can show it."""
    answer, settings = SearchFolder(folder).read_answer()
    folder_of_run = RunFolder(run)
    folder_of_run.artefacts.keep(
        Key("size", None, settings["data"]["fingerprint"], settings=settings), answer
    )
