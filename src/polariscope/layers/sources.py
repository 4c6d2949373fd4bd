"""What can be compared: models, runs, checkpoints of a run, or the activations themselves."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped

from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.seeds import derive
from polariscope.data.dataset import AbstractDataset
from polariscope.data.own.arrays import from_arrays
from polariscope.data.sources import load_recorded
from polariscope.layers.scratch import Scratch
from polariscope.models.auxiliary import auxiliary_of
from polariscope.models.model import Blueprint, Model, load_model
from polariscope.storage.checkpoints import saved_steps
from polariscope.storage.run_folder import read_settings

BATCH = 256  # fixed, so that the noise of the sampled layer does not depend on memory

# Remedies in Python's words; the command line puts its own in their place.
KEEP_ALL = "keep_checkpoints='all'"
GIVE_DATA = "say on which to compare them with data="

Layers = Mapping[str, Shaped[np.ndarray, "..."]]


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """One of the things compared: its name, the group it is averaged in, and where its layers come from."""

    label: str
    group: str
    model: Callable[[], Model] | None
    """Loads the model, one at a time; None for given activations."""
    layers: Layers | None
    run: Path | None
    checkpoint: tuple[int, int] | None = None
    """Of a checkpoint, which of the runs it belongs to, from 0, and its step."""


def find_sources(models: Any, checkpoints: Any) -> list[Source]:
    """The things to compare, in order; groups from a mapping, from checkpoints, or one for each thing."""
    wanted = _wanted(checkpoints)
    if isinstance(models, (str, Path, Model, np.ndarray)):
        models = [models]
    groups = dict(models) if isinstance(models, Mapping) else None
    if groups is not None and any(isinstance(members, np.ndarray) for members in groups.values()):
        raise InputError("models must be several; put the layers of one model in a list: [{'layer': array}].")
    members = [(None, item) for item in models] if groups is None else _flatten(groups)
    if not members:
        raise InputError("models must hold at least one model, run folder or mapping of layers, got none.")
    sources: list[Source] = []
    for number, (group, item) in enumerate(members):
        if wanted is not False:
            sources += _checkpoints(item, wanted, number)
        else:
            sources.append(_source(group, item, number=len(sources) + 1))
    return _with_unique_labels(sources)


def _flatten(groups: dict[str, Any]) -> list[tuple[str | None, Any]]:
    single = (str, Path, Model, Mapping)
    return [
        (str(name), item)
        for name, items in groups.items()
        for item in ([items] if isinstance(items, single) else items)
    ]


def _source(group: str | None, item: Any, number: int) -> Source:
    if isinstance(item, (str, Path)):
        label, path = Path(item).resolve().name, Path(item)
        return Source(label, group or label, lambda: load_model(path), None, path)
    if isinstance(item, Model):
        label = item.folder.resolve().name if item.folder else f"model {number}"
        return Source(label, group or label, lambda: item, None, item.folder)
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
        "models must be models, run folders or mappings from layer names to arrays, as in [{'layer': array}], "
        f"got {what}."
    )


def _wanted(checkpoints: Any) -> bool | list[int]:
    """Whether all checkpoints are asked for, or the steps of those that are."""
    if isinstance(checkpoints, bool):
        return checkpoints
    several = isinstance(checkpoints, (Sequence, np.ndarray))
    if not several or not all(isinstance(step, (int, np.integer)) for step in checkpoints):
        raise InputError(
            f"checkpoints must be True for all that were kept, or a list of steps, got {checkpoints!r}; "
            "put a single step in a list: [100]."
        )
    return [int(step) for step in checkpoints]


def _checkpoints(run: Any, wanted: Literal[True] | list[int], number: int) -> list[Source]:
    """The checkpoints of a run as models, in groups by step, so that seeds are averaged."""
    if not isinstance(run, (str, Path)):
        raise InputError(f"checkpoints are those of run folders, got {type(run).__name__}; give paths.")
    path = Path(run)
    read_settings(path)  # says so if it is no run
    found = saved_steps(path / "checkpoints")
    if wanted is True and len(found) == 1:
        raise InputError(
            f"{run} has a checkpoint of step {found[0]} only, and no other to compare it with; "
            f"train with {KEEP_ALL} to keep every one."
        )
    steps = found if wanted is True else wanted
    missing = [step for step in steps if step not in found]
    if missing or not steps:
        raise InputError(
            f"{run} has checkpoints of the steps {', '.join(map(str, found)) or 'none'}, not of "
            f"{', '.join(map(str, missing)) or 'any'}; train with {KEEP_ALL} to keep every one."
        )
    name = path.resolve().name
    return [
        Source(
            label=f"{name} at {step}",
            group=f"step {step}",
            model=functools.partial(load_checkpoint, path, step),
            layers=None,
            run=path,
            checkpoint=(number, step),
        )
        for step in steps
    ]


def load_checkpoint(run: str | Path, step: int) -> Model:
    """The model as it was after ``step`` steps of a run that kept this checkpoint."""
    file = Path(run) / "checkpoints" / f"step-{step}" / "state.safetensors"
    if not file.exists():
        raise InputError(f"{run} has no checkpoint of step {step}.")
    tensors, _ = files.read_tensors(file)
    model = Blueprint.from_record(read_settings(run)["model"]).build(seed=0)
    weights = {name.removeprefix("model/"): t for name, t in tensors.items() if name.startswith("model/")}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise PolariscopeError(f"{file} does not fit the model of its run: {error}") from None
    return model.settle("cpu").eval()


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


def find_data(sources: Sequence[Source], data: Any) -> AbstractDataset:
    """The data given, or those all runs were trained on."""
    if data is not None:
        return data if isinstance(data, AbstractDataset) else from_arrays(data)
    records = {}
    for source in sources:
        if source.run is None:
            raise InputError("data must be given, since not all models belong to a run.")
        record = read_settings(source.run)["data"]
        records[record["fingerprint"]] = (source.label, record)
    if len(records) > 1:
        (first, one), (second, other) = list(records.values())[:2]
        raise InputError(
            f"models must see the same observations, but {first} was trained on {_describe(one)} and {second} on "
            f"{_describe(other)}; {GIVE_DATA}."
        )
    return load_recorded(next(iter(records.values()))[1])


def _describe(record: Mapping[str, Any]) -> str:
    options = {key: value for key, value in record.items() if key not in ("name", "fingerprint")}
    return f"{record['name']} ({', '.join(f'{key}={value}' for key, value in options.items())})"


def encode_layers(
    source: Source,
    number: int,
    dataset: AbstractDataset,
    indices: Int[np.ndarray, " sample"],
    seed: int,
    place: Scratch,
) -> tuple[str, dict[str, Float[np.ndarray, "sample feature"]]]:
    """The digest of a model, and every layer of it on these observations, flattened, in float32.

    Each model draws its own noise: noise in common would make the sampled layers of two collapsed models alike.
    """
    assert source.model is not None
    model = source.model()
    if tuple(dataset.shape) != model.blueprint.shape:
        raise InputError(
            f"{source.label} takes observations of shape {model.blueprint.shape}, got data of shape "
            f"{tuple(dataset.shape)}; compare models of the same data."
        )
    noise = torch.Generator(model.device).manual_seed(derive(seed, "compare", "sampled", number))
    layers: dict[str, np.ndarray] = {}
    model.eval()
    for start in range(0, len(indices), BATCH):
        for name, values in _activations(model, dataset, indices[start : start + BATCH], noise):
            if name not in layers:
                layers[name] = place.array((len(indices), values.shape[1]))
            layers[name][start : start + BATCH] = values
    return model.digest, layers


def _activations(
    model: Model, dataset: AbstractDataset, rows: np.ndarray, noise: torch.Generator
) -> Iterator[tuple[str, np.ndarray]]:
    with torch.inference_mode():
        u = auxiliary_of(model, dataset, rows)
        x = model.place(torch.from_numpy(dataset.values(rows)))
        for name, activation in model.activations(x, noise, u):
            yield name, activation.flatten(1).float().cpu().numpy()
