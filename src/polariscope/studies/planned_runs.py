"""The runs of a study after checking: settings, name and folder of each."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from polariscope.core import files
from polariscope.core.errors import Argument, InputError, PolariscopeError, unknown
from polariscope.core.options import affecting
from polariscope.core.paths import user_path
from polariscope.core.text import listed
from polariscope.data.dataset import AbstractDataset
from polariscope.data.sources import parse_source
from polariscope.runs.given_run import GivenModel
from polariscope.storage import is_run
from polariscope.storage.documents import weights_hash
from polariscope.storage.folder import RunFolder
from polariscope.studies.design import Point, StudyDesign, names_of, varying_axes
from polariscope.training.plan import RunPlan, plan
from polariscope.training.planner import IMAGES
from polariscope.training.settings import TrainSettings

SHORT = 16
"""Number of digits of a hash in the name of a folder."""


@dataclasses.dataclass(frozen=True)
class StudyRun:
    """One run of a study."""

    name: str
    """Readable name made of the settings that vary, ``beta=4,seed=0``."""
    hash: str
    """Hash of everything that determines the weights."""
    folder: Path
    """Run folder, named after the hash."""
    point: Point
    steps: int
    """Gradient steps."""
    varies: Mapping[str, object]
    """Settings that vary in the study, with the values of this run."""
    group: str
    """Identifier shared by runs that differ only in their seed."""
    given: GivenModel | None = None
    """Model that was trained elsewhere; None for a run that the study trains."""
    chosen: tuple[str, ...] = ()
    """Short descriptions of the settings that were chosen automatically because the study does not set them."""


ONCE_WITHOUT = (
    *("seed", "n_latents", "steps", "epochs", "log_every", "validate_every", "probe_samples"),
    *("checkpoint_every", "keep_checkpoints", "train_fraction"),
)
"""Settings of a run that a search for the number of latents sets itself."""


def once_settings(point: Point) -> dict[str, object]:
    """Return the settings of a run that apply to an analysis done once for each dataset and objective.

    :param point: one of the runs.
    """
    return {name: value for name, value in point.settings.items() if name not in ONCE_WITHOUT}


class Datasets:
    """The datasets of a study, each opened once; only the last ``n_open`` stay open."""

    def __init__(self, n_open: int = 2) -> None:
        self.n_open = n_open
        self._open: dict[str, AbstractDataset] = {}

    def __getitem__(self, record: Mapping[str, object]) -> AbstractDataset:
        key = files.digest(record)
        if key not in self._open:
            # Dictionaries keep the order of insertion, so the dataset that was opened first is closed.
            while len(self._open) >= self.n_open:
                del self._open[next(iter(self._open))]
            options = {name: value for name, value in record.items() if name != "name"}
            self._open[key] = parse_source(str(record["name"]), options)
        return self._open[key]


def _check_device(device: str) -> None:
    """Refuse an unknown device; the worker that trains checks if it is available."""
    import torch

    try:
        torch.device("cpu" if device == "auto" else device)
    except RuntimeError:
        raise InputError(
            "device", "be auto, or a PyTorch device such as cpu, cuda or mps", got=f"{device!r}"
        ) from None


def _digest(job: RunPlan) -> str:
    """Return the hash of everything that determines the weights of a run."""
    # Neither device nor threads are part of this hash.
    return weights_hash(job.describe("cpu", {"threads": 1}), affecting(TrainSettings, "weights"))


def is_named_by_its_settings(folder: Path) -> bool:
    """Return True if a folder contains a run with the name that a study gives it, the hash of its settings.

    :param folder: any folder.
    """
    try:
        settings = RunFolder(folder).settings
        return folder.name == weights_hash(settings, affecting(TrainSettings, "weights"))[:SHORT]
    except (PolariscopeError, OSError, KeyError, TypeError):
        return False


def _folder(study: StudyDesign, digest: str) -> Path:
    return Path(str(study.runs)) / digest[:SHORT]


def _plan(study: StudyDesign, data: AbstractDataset, point: Point) -> RunPlan:
    """Return the plan of a run: the planner's, or that of version 0.2.0 if that version started the run.

    Version 0.2.0 used the training defaults of images for every run that did not set rate, batch size or length.
    """
    job = plan(data, **point.arguments)
    # Both versions plan the same run, or this version has begun it.
    if job.settings.pace == IMAGES or RunFolder(_folder(study, _digest(job))).is_begun:
        return job
    earlier = plan(data, pace=IMAGES, **point.arguments)
    return earlier if RunFolder(_folder(study, _digest(earlier))).is_begun else job


def plan_runs(study: StudyDesign) -> list[StudyRun]:
    """Return every run of a study, checked as :func:`polariscope.train` checks it.

    :param study: the design.
    """
    _check_device(study.device)
    points = study.points()
    datasets, varying = Datasets(), varying_axes(points)
    runs: dict[str, StudyRun] = {}
    once: set[str] = set()
    for name, point in zip(names_of(points), points, strict=True):
        try:
            job = _plan(study, datasets[point.data], point)
            if (key := files.digest([point.data, once_settings(point)])) not in once:
                once.add(key)
                for analysis in study.analyses("once").values():
                    analysis.check(datasets[point.data], once_settings(point))
        except InputError as error:
            raise InputError(problem=f"run {name}: {error}") from None
        digest = _digest(job)
        if digest in runs:
            raise InputError(
                problem=f"the runs {runs[digest].name} and {name} are the same",
                remedy="remove one of them from the study",
            )
        varies = {key: point.axes.get(key) for key in varying}
        rest = {key: value for key, value in point.axes.items() if key != "seed"}
        runs[digest] = StudyRun(
            name=name,
            hash=digest,
            folder=_folder(study, digest),
            point=point,
            steps=job.settings.steps,
            varies=varies,
            chosen=job.chosen,
            group=files.digest(rest)[:SHORT],
        )
    return _with_the_same_columns([*runs.values(), *plan_given(study)])


def plan_given(study: StudyDesign) -> list[StudyRun]:
    """Return a run for every model that was trained elsewhere and every dataset; files of codes require no data.

    :param study: the design.
    """
    tables = list(study.parts("data"))
    runs = []
    for model in study.given():
        _check_options(model)
        digest = model.digest()
        if model.imported is None and not model.has_codes:
            _check_openable(model)
        datasets: Sequence[Mapping[str, object]] = [{}] if model.has_codes else tables
        if not datasets:
            raise InputError(
                problem=f"model {model.name!r} requires data",
                remedy=("set ", Argument("data"), " in the study"),
            )
        for data in datasets:
            own = files.digest([digest, data])
            axes = {"model": model.name, **({"data": data["name"]} if len(datasets) > 1 else {})}
            runs.append(
                StudyRun(
                    name=re.sub(
                        r"[^\w.,=+-]", "_", ",".join(f"{key}={value}" for key, value in axes.items())
                    ),
                    hash=own,
                    folder=_folder(study, own),
                    point=Point(data, {}, axes),
                    steps=0,
                    varies=axes,
                    group=own[:SHORT],
                    given=model,
                )
            )
    return runs


def _check_options(model: GivenModel) -> None:
    """Refuse options that :func:`polariscope.wrap` does not have, and options of a file of codes."""
    if model.has_codes and model.options:
        raise InputError(
            problem=f"model {model.name!r} is a file of codes, which has no options",
            got=listed([*map(str, model.options)]),
            remedy="leave them out",
        )
    from polariscope.models.open_model import wrap

    known = [name for name in inspect.signature(wrap).parameters if name not in ("encoder", "decoder")]
    for name in model.options:
        if name not in known:
            raise unknown(f"option of model {model.name!r}", str(name), known)


def _check_openable(model: GivenModel) -> None:
    """Refuse a path that no adapter opens before anything is computed."""
    from polariscope.models.open_model import is_openable

    path = user_path(model.path or "", "path")
    if not is_run(path) and not is_openable(path):
        raise InputError(
            problem=f"model {model.name!r}: {path} is not a file or folder of a model or of codes",
            remedy="polariscope.encode lists the kinds that can be opened; use import for others",
        )


def _with_the_same_columns(runs: list[StudyRun]) -> list[StudyRun]:
    """Return runs whose varying settings have the same names; a setting that a run does not have is None."""
    if not any(run.given for run in runs):
        return runs
    names = dict.fromkeys(name for run in reversed(runs) for name in run.varies)
    return [dataclasses.replace(run, varies={name: run.varies.get(name) for name in names}) for run in runs]
