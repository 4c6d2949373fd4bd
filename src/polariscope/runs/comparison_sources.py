"""The models of a comparison: which ones, of which steps, and on which data."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from polariscope.analysis.representation import Representation
from polariscope.core.errors import Argument, Either, InputError
from polariscope.data.chain import changes_of_units, in_units, in_words, variants_of
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.data.inputs import as_dataset
from polariscope.layers.layer_sources import Source
from polariscope.models.model import Model
from polariscope.models.protocol import AbstractModel
from polariscope.runs.run_like import CheckpointsLike, RunsLike
from polariscope.runs.trained_run import TrainedRun
from polariscope.storage import readable_name

KEEP_ALL = Argument("keep_checkpoints", "all")
GIVE_DATA = Either(("say on which to compare them with ", Argument("data")), "compare runs of the same data")


def find_sources(models: RunsLike, checkpoints: CheckpointsLike, step: int | None = None) -> list[Source]:
    """The things to compare, in order; groups from a mapping, from checkpoints, or one for each thing."""
    wanted = _wanted(checkpoints)
    if wanted is not False and step is not None:
        raise InputError(
            problem=(
                Argument("step"),
                " and ",
                Argument("checkpoints"),
                " both say which models of a run are meant",
            ),
            remedy="give one of them",
        )
    if isinstance(models, (str, Path, TrainedRun, Model, Representation, np.ndarray)):
        models = [models]
    items: Any = models
    groups = dict(items) if isinstance(items, Mapping) else None
    if groups is not None and any(isinstance(members, np.ndarray) for members in groups.values()):
        raise InputError(
            "models", "be several", remedy="put the layers of one model in a list: [{'layer': array}]"
        )
    members = [(None, item) for item in items] if groups is None else _flatten(groups)
    if not members:
        raise InputError("models", "hold at least one model, run folder or mapping of layers", got="none")
    sources: list[Source] = []
    for number, (group, item) in enumerate(members):
        if wanted is not False:
            sources += _checkpoints(item, wanted, number)
        else:
            sources.append(_source(group, item, len(sources) + 1, step))
    return _with_unique_labels(sources)


def _flatten(groups: dict[str, Any]) -> list[tuple[str | None, Any]]:
    single = (str, Path, TrainedRun, Model, Representation, Mapping)
    return [
        (str(name), item)
        for name, items in groups.items()
        for item in ([items] if isinstance(items, single) else items)
    ]


def _source(group: str | None, item: Any, number: int, step: int | None) -> Source:
    if isinstance(item, (str, Path, TrainedRun)):
        run = item if isinstance(item, TrainedRun) else TrainedRun(item)
        run.digest(step)  # refuses what has no such model, before anything is computed
        return Source(run.name, group or run.name, functools.partial(_load, run, step), None, run.path)
    if isinstance(item, AbstractModel):
        label = readable_name(item.folder) if item.folder else f"model {number}"
        return Source(label, group or label, lambda: item, None, item.folder)
    if isinstance(item, Representation):
        label = f"representation {number}"
        layers = {"mean": item.mean, "variance": item.variance, "sampled": item.sampled}
        return Source(label, group or label, None, layers, None, ids=item.ids)
    if isinstance(item, Mapping) and item:
        label = f"model {number}"
        layers = {str(name): np.asarray(array) for name, array in item.items()}
        return Source(label, group or label, None, layers, None)
    if isinstance(item, Mapping):
        what = "a mapping without any layer"
    else:
        shape = f" of shape {tuple(item.shape)}" if hasattr(item, "shape") else ""
        what = f"{type(item).__name__}{shape}"
    raise InputError(
        "models",
        (
            "be models, run folders, representations or mappings from layer names to arrays, as "
            "in [{'layer': array}]"
        ),
        got=what,
    )


def _wanted(checkpoints: Any) -> bool | list[int]:
    """Whether all checkpoints are asked for, or the steps of those that are."""
    if isinstance(checkpoints, bool):
        return checkpoints
    several = isinstance(checkpoints, (Sequence, np.ndarray))
    if not several or not all(isinstance(step, (int, np.integer)) for step in checkpoints):
        raise InputError(
            "checkpoints",
            "be True for all that were kept, or a list of steps",
            got=f"{checkpoints!r}",
            remedy="put a single step in a list: [100]",
        )
    return [int(step) for step in checkpoints]


def _checkpoints(run: Any, wanted: Literal[True] | list[int], number: int) -> list[Source]:
    """The checkpoints of a run as models, in groups by step, so seeds are averaged."""
    if not isinstance(run, (str, Path, TrainedRun)):
        raise InputError(
            problem="checkpoints are those of run folders", got=type(run).__name__, remedy="give paths"
        )
    opened = run if isinstance(run, TrainedRun) else TrainedRun(run)
    run, available = opened.path, opened.folder.checkpoints.steps
    if wanted is True and len(available) == 1:
        raise InputError(
            problem=f"{run} has a checkpoint of step {available[0]} only, and no other to compare it with",
            remedy=("train with ", KEEP_ALL, " to keep every one"),
        )
    steps = available if wanted is True else wanted
    missing = [step for step in steps if step not in available]
    if missing or not steps:
        raise InputError(
            problem=(
                f"{run} has checkpoints of the steps {', '.join(map(str, available)) or 'none'}, not of "
                f"{', '.join(map(str, missing)) or 'any'}"
            ),
            remedy=("train with ", KEEP_ALL, " to keep every one"),
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
    """A model of its own, which is gone when it has been used: a run keeps those it hands out."""
    return TrainedRun(run.path).model(step)


def _with_unique_labels(sources: list[Source]) -> list[Source]:
    """Number what would have the same label; a group that was named by its label follows."""
    seen: dict[str, int] = {}
    made = []
    for source in sources:
        seen[source.label] = count = seen.get(source.label, 0) + 1
        label = source.label if count == 1 else f"{source.label} ({count})"
        group = label if source.group == source.label else source.group
        made.append(dataclasses.replace(source, label=label, group=group))
    return made


def find_data(sources: Sequence[Source], data: DataLike | None) -> AbstractDataset:
    """The data given, or those all runs were trained on."""
    if data is not None:
        return in_common_units(sources, as_dataset(data))
    records = {}
    for source in sources:
        if source.run is None:
            raise InputError("data", "be given, since not all models belong to a run")
        record = TrainedRun(source.run).settings["data"]
        records[record["fingerprint"]] = (source.label, record)
    if len(records) > 1:
        (first, one), (second, other) = list(records.values())[:2]
        raise InputError(
            "models",
            (
                f"see the same observations, but {first} was trained on {_describe(one)} and {second} "
                f"on {_describe(other)}"
            ),
            remedy=GIVE_DATA,
        )
    assert sources[0].run is not None
    return TrainedRun(sources[0].run).data()


def in_common_units(sources: Sequence[Source], data: AbstractDataset) -> AbstractDataset:
    """The data in the units that all runs were trained in; refused where these differ."""
    every = [
        changes_of_units(variants_of(TrainedRun(source.run).settings["data"]))
        for source in sources
        if source.run is not None
    ]
    if any(units != every[0] for units in every):
        raise InputError(
            "models",
            "be trained in the same units, since they see the same observations",
            got=" and ".join(dict.fromkeys(in_words(units) or "the units of the data" for units in every)),
            remedy="compare their representations, each made with polariscope.encode",
        )
    return in_units(data, every[0]) if every else data


def _describe(record: Mapping[str, Any]) -> str:
    hidden = ("name", "fingerprint", "root_fingerprint", "variants")
    options = {key: value for key, value in record.items() if key not in hidden}
    if "variants" in record:
        options["variants"] = in_words(record["variants"])
    return f"{record['name']} ({', '.join(f'{key}={value}' for key, value in options.items())})"
