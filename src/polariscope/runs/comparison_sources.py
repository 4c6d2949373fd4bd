"""Models, steps and data of a comparison."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from polariscope.analysis.representation import Representation, draw_sampled
from polariscope.core import files
from polariscope.core.errors import Argument, Either, InputError
from polariscope.data.chain import changes_of_units, in_units, in_words, variants_of
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.data.inputs import as_dataset
from polariscope.layers.layer_sources import Source
from polariscope.models.model import Model
from polariscope.models.open_model import is_openable, open_model
from polariscope.models.protocol import AbstractModel
from polariscope.runs.run_like import CheckpointsLike, RunsLike
from polariscope.runs.trained_run import TrainedRun
from polariscope.storage import readable_name

KEEP_ALL = Argument("keep_checkpoints", "all")
PASS_DATA = Either(
    ("pass the data to compare them on as ", Argument("data")), "compare runs on the same data"
)


def find_sources(models: RunsLike, checkpoints: CheckpointsLike, step: int | None = None) -> list[Source]:
    """Return the models to compare, in order, grouped by the keys of a mapping, by step, or each in its own group."""
    steps = _requested_steps(checkpoints)
    refuse_step_and_checkpoints(step, checkpoints)
    if isinstance(models, (str, Path, TrainedRun, AbstractModel, Representation, np.ndarray)):
        models = [models]
    items: Any = models
    if not isinstance(items, Iterable):
        raise InputError(
            "models", "be runs, models or arrays in a list", got=f"an object of type {type(items).__name__}"
        )
    groups = dict(items) if isinstance(items, Mapping) else None
    # A mapping from names to arrays is one model with its layers, not a mapping of groups.
    if groups is not None and any(isinstance(members, np.ndarray) for members in groups.values()):
        raise InputError(
            "models", "be several", remedy="put the layers of one model in a list: [{'layer': array}]"
        )
    members = [(None, item) for item in items] if groups is None else _flatten(groups)
    if not members:
        raise InputError("models", "contain at least one model, run folder or mapping of layers", got="none")
    sources: list[Source] = []
    for number, (group, item) in enumerate(members):
        if steps is not False:
            sources += _checkpoints(item, steps, number)
        else:
            sources.append(_source(group, item, len(sources) + 1, step))
    return _with_unique_labels(sources)


def open_foreign(models: RunsLike, data: DataLike | None) -> tuple[RunsLike, DataLike | None]:
    """Replace objects of other libraries by models, and return the data in the units of these models.

    :param models: one or several models, runs or arrays, as in :func:`polariscope.compare`.
    :param data: a dataset or an array.
    """
    opened: list[tuple[AbstractModel, AbstractDataset | None]] = []

    def replace(item: Any) -> Any:
        known = (TrainedRun, AbstractModel, Representation, np.ndarray)
        if isinstance(item, known) or item is None:
            return item
        if isinstance(item, Mapping):
            return {name: replace(value) for name, value in item.items()}
        if isinstance(item, list | tuple):
            return [replace(value) for value in item]
        if not is_openable(item):
            return item
        opened.append(open_model(item, data))
        return opened[-1][0]

    replaced = replace(models)
    for model, _ in opened[1:]:
        if tuple(model.units) != tuple(opened[0][0].units):
            raise InputError(
                "models",
                "be trained in the same units, since they encode the same observations",
                remedy="compare their representations, each from polariscope.encode",
            )
    return replaced, opened[0][1] if opened else data


def refuse_step_and_checkpoints(step: int | None, checkpoints: CheckpointsLike) -> None:
    """Raise an error if a step and checkpoints are both requested, since both select models of a run.

    :param step: the requested step, or None.
    :param checkpoints: False, True, or a list of steps.
    """
    if checkpoints is not False and step is not None:
        raise InputError(
            problem=(
                Argument("step"),
                " and ",
                Argument("checkpoints"),
                " both select models of a run",
            ),
            remedy="use one of them",
        )


def _flatten(groups: dict[str, Any]) -> list[tuple[str | None, Any]]:
    single = (str, Path, TrainedRun, AbstractModel, Representation, Mapping)
    return [
        (str(name), item)
        for name, items in groups.items()
        for item in ([items] if isinstance(items, single) else items)
    ]


def _sampled(item: Representation) -> Float[np.ndarray, "sample latent"]:
    """Return the sampled codes; if they were drawn for lack of samples, with noise of their own.

    Files of codes are drawn with the same seed, and common noise would make two collapsed models similar. Equal codes
    get equal noise, so a file scores 1 with itself.
    """
    if not item.sampled_was_drawn:
        return item.sampled
    return draw_sampled(item.mean, item.variance, int(files.digest_array(item.mean)[:8], 16))


def _source(group: str | None, item: Any, number: int, step: int | None) -> Source:
    if isinstance(item, (str, Path, TrainedRun)):
        run = item if isinstance(item, TrainedRun) else TrainedRun(item)
        run.digest(step)  # raises an error before anything is computed if there is no such model
        return Source(run.name, group or run.name, functools.partial(_load, run, step), None, run.path)
    if isinstance(item, AbstractModel):
        name = getattr(item, "name", None)
        default = f"model {number}" if name in (None, "wrapped") else str(name)
        label = readable_name(item.folder) if item.folder else default
        return Source(label, group or label, lambda: item, None, item.folder)
    if isinstance(item, Representation):
        label = f"representation {number}"
        layers = {"mean": item.mean, "variance": item.variance, "sampled": _sampled(item)}
        return Source(label, group or label, None, layers, None, ids=item.ids)
    if isinstance(item, Mapping) and item:
        label = f"model {number}"
        layers = {str(name): np.asarray(array) for name, array in item.items()}
        return Source(label, group or label, None, layers, None)
    if isinstance(item, Mapping):
        got = "a mapping without layers"
    else:
        shape = f" of shape {tuple(item.shape)}" if hasattr(item, "shape") else ""
        got = f"{type(item).__name__}{shape}"
    raise InputError(
        "models",
        (
            "be models, run folders, representations or mappings from layer names to arrays, as "
            "in [{'layer': array}]"
        ),
        got=got,
    )


def _requested_steps(checkpoints: Any) -> bool | list[int]:
    """Return False, True for all checkpoints, or the requested steps."""
    if isinstance(checkpoints, bool):
        return checkpoints
    several = isinstance(checkpoints, (Sequence, np.ndarray))
    if not several or not all(isinstance(step, (int, np.integer)) for step in checkpoints):
        raise InputError(
            "checkpoints",
            "be True for all checkpoints, or a list of steps",
            got=f"{checkpoints!r}",
            remedy="put a single step in a list: [100]",
        )
    return [int(step) for step in checkpoints]


def _checkpoints(run: Any, requested: Literal[True] | list[int], number: int) -> list[Source]:
    """Return the checkpoints of a run, grouped by step; the average over a group is the average over seeds."""
    if not isinstance(run, (str, Path, TrainedRun)):
        raise InputError(
            problem="checkpoints require run folders", got=type(run).__name__, remedy="pass paths of runs"
        )
    opened = run if isinstance(run, TrainedRun) else TrainedRun(run)
    run, available = opened.path, opened.folder.checkpoints.steps
    if requested is True and len(available) == 1:
        raise InputError(
            problem=f"{run} has only one checkpoint, of step {available[0]}, and a comparison requires two",
            remedy=("train with ", KEEP_ALL, " to keep every checkpoint"),
        )
    steps = available if requested is True else requested
    missing = [step for step in steps if step not in available]
    if missing or not steps:
        raise InputError(
            problem=(
                f"{run} has checkpoints of the steps {', '.join(map(str, available)) or 'none'}, not of "
                f"{', '.join(map(str, missing)) or 'any'}"
            ),
            remedy=("train with ", KEEP_ALL, " to keep every checkpoint"),
        )
    return [
        Source(
            label=f"{opened.name} at {step}",
            group=f"step {step}",
            model=functools.partial(_load, opened, step),
            layers=None,
            run=run,
            checkpoint=(number, step),
        )
        for step in steps
    ]


def _load(run: TrainedRun, step: int | None) -> Model:
    """Load a model from a newly opened run; the given run would keep it in memory."""
    return TrainedRun(run.path).model(step)


def _with_unique_labels(sources: list[Source]) -> list[Source]:
    """Number sources with the same label; a group that is named after its label is renamed too."""
    counts: dict[str, int] = {}
    labelled = []
    for source in sources:
        counts[source.label] = count = counts.get(source.label, 0) + 1
        label = source.label if count == 1 else f"{source.label} ({count})"
        group = label if source.group == source.label else source.group
        labelled.append(dataclasses.replace(source, label=label, group=group))
    return labelled


def find_data(sources: Sequence[Source], data: DataLike | None) -> AbstractDataset:
    """Return ``data``, or the dataset that all runs were trained on.

    :param sources: the models.
    :param data: a dataset or an array; None for that of the runs.
    """
    if data is not None:
        return in_common_units(sources, as_dataset(data))
    records = {}
    for source in sources:
        if source.run is None:
            raise InputError("data", "be given, since not all models belong to a run")
        record = TrainedRun(source.run).settings["data"]
        # Equal data share a fingerprint, so several entries are different data.
        records[record["fingerprint"]] = (source.label, record)
    if len(records) > 1:
        (first, record), (second, other) = list(records.values())[:2]
        raise InputError(
            "models",
            (
                f"be trained on the same data, but {first} was trained on {_describe(record)} and {second} "
                f"on {_describe(other)}"
            ),
            remedy=PASS_DATA,
        )
    assert sources[0].run is not None
    return TrainedRun(sources[0].run).data()


def in_common_units(sources: Sequence[Source], data: AbstractDataset) -> AbstractDataset:
    """Return the data in the units of the training data of all runs; an error is raised if these differ.

    :param sources: the models.
    :param data: the data.
    """
    every = [
        changes_of_units(variants_of(TrainedRun(source.run).settings["data"]))
        for source in sources
        if source.run is not None
    ]
    if any(units != every[0] for units in every):
        raise InputError(
            "models",
            "be trained in the same units, since they encode the same observations",
            got=" and ".join(dict.fromkeys(in_words(units) or "the units of the data" for units in every)),
            remedy="compare their representations, each from polariscope.encode",
        )
    return in_units(data, every[0]) if every else data


def _describe(record: Mapping[str, Any]) -> str:
    hidden = ("name", "fingerprint", "root_fingerprint", "variants")
    options = {key: value for key, value in record.items() if key not in hidden}
    if "variants" in record:
        options["variants"] = in_words(record["variants"])
    return f"{record['name']} ({', '.join(f'{key}={value}' for key, value in options.items())})"
