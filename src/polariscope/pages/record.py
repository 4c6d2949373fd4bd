"""Everything a report says of a run, computed before anything is drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.posterior import relative_posterior
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.regime.variable_types import VariableType
from polariscope.analysis.representation import Representation
from polariscope.analysis.score import Scores
from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.options import build
from polariscope.data.dataset import AbstractDataset
from polariscope.data.own.arrays import from_arrays
from polariscope.data.sources import load_recorded
from polariscope.layers.comparison import Comparison
from polariscope.models.model import Model, load_model
from polariscope.objectives import family as objectives
from polariscope.pages.histograms import Histogram, Source, histograms, representatives
from polariscope.pages.history import History, read_history
from polariscope.pages.sections.geometry import Geometry, geometry_of
from polariscope.pages.sections.scores import read_scores, scores_file
from polariscope.pages.sections.similarity import read_similarity
from polariscope.pages.views import Views, views
from polariscope.runs.encode import encode
from polariscope.sizing.support.answer import Size
from polariscope.sizing.support.size import read_size
from polariscope.storage.run_folder import read_log, read_settings
from polariscope.training.settings import TrainSettings
from polariscope.training.train import split_of

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class ConditionalMoments:
    """A latent's conditional prior N(μ†(u), Σ†(u)) over the samples, and the posterior beside it."""

    mean: float
    """Mean of μ†."""
    std_of_mean: float
    """Standard deviation of μ†."""
    variance: float
    """Mean of Σ†."""
    ratio: float
    """Mean of σ²/Σ†."""
    displacement: float
    """Mean of (μ − μ†)²/Σ†."""


@dataclasses.dataclass(frozen=True, eq=False)
class ReportRecord:
    """A finished run: what was asked for, what happened, what came out."""

    name: str
    """Name of the run's folder."""
    settings: dict[str, Any]
    """Contents of settings.json."""
    n_observations: int
    factors: tuple[tuple[str, int], ...]
    """Name and number of values of each known factor; 0 values: continuous."""
    history: History
    regime: Regime
    histograms: dict[Source, Histogram]
    representatives: dict[VariableType, int]
    """The clearest latent of each type that occurs."""
    prior: Float[np.ndarray, "latent 2"] | None
    """Mean and variance of the prior of each latent; None when it is not one normal for every sample."""
    conditional: tuple[ConditionalMoments, ...] | None
    """The prior of each latent where it depends on an auxiliary variable, else None."""
    views: Views | None
    """What the decoder shows; None for a model without."""
    notes: tuple[str, ...]
    """Where the report should be read with care."""
    n_samples: int | None
    """Observations asked for in the diagnosis, None for all."""
    seed: int
    size: Size | None
    """How the number of latents was found, when the run's folder has a size.json."""
    scores: Scores | None
    """Metrics and probes, when it has a scores.json of this model; of the mean representation, if both are there."""
    sampled_scores: Scores | None
    """Those of the sampled representation, beside ``scores``."""
    geometry: Geometry | None
    """What is measured of the decoder; None for a model without."""
    similarity: Comparison | None
    """Layers compared, when it has a similarity.json in which this model occurs."""
    doubts: dict[str, str]
    """Of scores and similarity, why the file is not shown, or that it does not say of which model it is."""

    def prior_of(self, latent: int) -> tuple[float, float] | None:
        """Mean and variance of a latent's prior."""
        return None if self.prior is None else (float(self.prior[latent, 0]), float(self.prior[latent, 1]))

    @property
    def has_rate(self) -> bool:
        """Whether posteriors have a KL to the prior; those of a deterministic encoder have none."""
        return self.history.kl is not None

    @property
    def is_image(self) -> bool:
        return len(self.settings["model"]["shape"]) == 3


def make_record(
    run: str | Path, data: Any = None, *, n_samples: int | None = 10_000, seed: int = 0, alpha: float = 0.1
) -> ReportRecord:
    """Compute the report of a finished run; arguments as in :func:`polariscope.pages.report.report`."""
    model, dataset = open_run(run, data)
    settings = read_settings(run)
    history = read_history(read_log(run))
    representation, regime = _diagnose(model, dataset, Path(run), n_samples, seed, alpha=alpha)
    held_out = split_of(dataset, TrainSettings(**settings["training"])).test
    (scores, about_scores), (sampled, about_sampled) = (
        _kept(scores_file(Path(run), source), model.digest, lambda file: read_scores(file, model.n_latents))
        for source in ("mean", "sampled")
    )
    if scores is None:
        scores, sampled = sampled, None
    similarity, about_similarity = _kept(Path(run) / "similarity.json", model.digest, read_similarity)
    return ReportRecord(
        name=Path(run).resolve().name,
        settings=settings,
        n_observations=len(dataset),
        factors=tuple(zip(dataset.factor_names, dataset.factor_sizes, strict=True)),
        history=history,
        regime=regime,
        histograms=histograms(representation),
        representatives=representatives(regime),
        prior=_normal_prior(representation) if history.kl is not None else None,
        conditional=_conditional_prior(representation),
        views=views(model, dataset, held_out, representation, regime, seed),
        notes=(*_about_data(dataset, settings), *_about_objective(settings), *regime.notes),
        n_samples=n_samples,
        seed=seed,
        size=read_size(kept) if (kept := Path(run) / "size.json").exists() else None,
        scores=scores,
        sampled_scores=sampled,
        geometry=geometry_of(model, dataset, representation, regime, seed),
        similarity=similarity,
        doubts={"scores": about_scores or about_sampled, "similarity": about_similarity},
    )


def diagnose_run(
    run: str | Path, data: Any = None, *, n_samples: int | None = 10_000, seed: int = 0, **options: Any
) -> Regime:
    """Diagnose a finished run and keep the diagnosis beside it as ``regime.json``.

    ``data`` as in :func:`polariscope.pages.report.report`; ``options`` are those of
    :func:`polariscope.analysis.regime.diagnose.diagnose`: ``alpha`` and ``n_bootstrap``.
    """
    model, dataset = open_run(run, data)
    return _diagnose(model, dataset, Path(run), n_samples, seed, **options)[1]


def open_run(run: str | Path, data: Any = None) -> tuple[Model, AbstractDataset]:
    """The model and the dataset of a finished run; ``data`` instead of the recorded dataset."""
    settings = read_settings(run)
    model = load_model(run)
    _, metadata = files.read_tensors(Path(run) / "model.safetensors")
    done, asked = metadata["step"], settings["training"]["steps"]
    if done != asked:
        raise InputError(
            f"{run} has a model of {done} steps, but {asked} were asked for since: the run was interrupted; "
            "run the same train command again to resume it."
        )
    if data is None:
        return model, load_recorded(settings["data"])
    return model, data if isinstance(data, AbstractDataset) else from_arrays(data)


def _kept(file: Path, digest: str, read: Callable[[Path], T]) -> tuple[T | None, str]:
    """What a command wrote beside the run if it is of this model, and what to say when it is not or cannot be known."""
    if not file.exists():
        return None, ""
    stored = files.read_json(file)
    digests = stored.get("digests") if isinstance(stored, dict) else None
    if not digests:
        return read(file), f"It is not known of which model this is, since {file.name} does not say"
    if digest not in digests:
        return None, f"Not shown, since {file.name} is of another model, or of this one at another step"
    return read(file), ""


def _diagnose(
    model: Model, dataset: AbstractDataset, run: Path, n_samples: int | None, seed: int, **options: Any
) -> tuple[Representation, Regime]:
    representation = encode(model, dataset, n_samples, seed)
    regime = diagnose(representation, seed=seed, **options)
    files.write_json(run / "regime.json", regime.to_dict())
    return representation, regime


def _normal_prior(representation: Representation) -> Float[np.ndarray, "latent 2"] | None:
    mean, variance = representation.prior_mean, representation.prior_variance
    if mean is None or variance is None or mean.ndim != 1 or variance.ndim != 1:
        return None
    return np.stack([mean, variance], axis=1).astype(np.float64)


def _conditional_prior(representation: Representation) -> tuple[ConditionalMoments, ...] | None:
    mean, variance = representation.prior_mean, representation.prior_variance
    if mean is None or variance is None or mean.ndim == 1:
        return None
    relative = relative_posterior(representation)
    columns = (
        mean.mean(axis=0, dtype=np.float64),
        mean.std(axis=0, dtype=np.float64),
        variance.mean(axis=0, dtype=np.float64),
        relative.variance.mean(axis=0),
        (relative.mean**2).mean(axis=0),
    )
    return tuple(ConditionalMoments(*map(float, values)) for values in zip(*columns, strict=True))


def _about_objective(settings: dict[str, Any]) -> list[str]:
    caution = build(objectives, settings["objective"]).caution
    return [caution] if caution else []


def _about_data(dataset: AbstractDataset, settings: dict[str, Any]) -> list[str]:
    if dataset.fingerprint == settings["data"]["fingerprint"]:
        return []
    return [
        "The data are not those the model was trained on: the diagnosis, traversals and reconstructions are "
        "of the data given, the training curves of the original ones."
    ]
