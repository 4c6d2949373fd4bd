"""Everything a report says of a run, computed before anything is drawn."""

from __future__ import annotations

import dataclasses
import importlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from polariscope.analysis.regime.posterior import relative_posterior
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.regime.types import VariableType
from polariscope.analysis.representation import Representation
from polariscope.pages.series import Histogram, History, Source, histograms, read_history, representatives
from polariscope.pages.views import Views, views
from polariscope.runs.run import Run
from polariscope.storage.artefacts import Artefact

if TYPE_CHECKING:
    from polariscope.analysis.decomposition import Decomposition
    from polariscope.analysis.score import Scores
    from polariscope.geometry.summary import Geometry
    from polariscope.layers.comparison import Comparison
    from polariscope.runs.listing import Row
    from polariscope.sizing.support.answer import Size

logger = logging.getLogger("polariscope")

RECORDS = {
    "decomposition": "polariscope.analysis.decomposition.Decomposition",
    "scores": "polariscope.analysis.score.Scores",
    "comparison": "polariscope.layers.comparison.Comparison",
    "size": "polariscope.sizing.support.answer.Size",
}
"""Where the record of each kind is, opened only when there is one to show."""


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
    """What was asked for."""
    step: int | None
    """Of a checkpoint, its step; None for the finished model."""
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
    size: Size | None
    """How the number of latents was found, when an answer is kept with the run."""
    decomposition: Decomposition | None
    """The parts of the rate, when they were computed."""
    scores: Scores | None
    """Metrics and probes, when there are any of this model; of the mean representation, if both are there."""
    sampled_scores: Scores | None
    """Those of the sampled representation, beside ``scores``."""
    geometry: Geometry | None
    """What is measured of the decoder; None for a model without."""
    similarity: Comparison | None
    """Layers compared, when this model was."""
    others: tuple[Row, ...]
    """What else is kept with the run."""
    damaged: tuple[str, ...]
    """Files that cannot be shown, since they do not match their hash."""

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


Newest = Literal["newest"]


def make_record(
    path: str | Path,
    data: Any = None,
    *,
    n_samples: int | Newest | None = "newest",
    seed: int | Newest = "newest",
    alpha: float | Newest = "newest",
    step: int | None = None,
) -> ReportRecord:
    """Compute the report of a run; arguments as in :func:`polariscope.pages.report.report`."""
    run = Run(path, data)
    damaged = run.folder.artefacts.damaged()
    for reason in damaged.values():
        logger.warning(
            "%s It is not in the report; 'polariscope check %s' says what to do.", reason, run.path
        )
    history = read_history([line for line in run.log() if step is None or line["step"] <= step])
    chosen = _diagnosis(run, step, {"n_samples": n_samples, "seed": seed, "alpha": alpha})
    regime = run.regime(**chosen, step=step)
    where = {"n_samples": chosen["n_samples"], "seed": chosen["seed"], "part": chosen["part"], "step": step}
    model, dataset, representation = run.model(step), run.data(), run.representation(**where)
    scores, sampled = (_newest(run, "scores", step, source=source) for source in ("mean", "sampled"))
    if scores is None:
        scores, sampled = sampled, None
    parts: dict[str, Any] = {
        "decomposition": _newest(run, "decomposition", step),
        "geometry": None if not model.has_decoder else run.geometry(chosen["alpha"], **where),
        "similarity": _newest(run, "comparison", step),
        "size": _newest(run, "size", step),
    }
    return ReportRecord(
        name=run.name,
        settings=run.settings,
        step=step,
        n_observations=len(dataset),
        factors=tuple(zip(dataset.factor_names, dataset.factor_sizes, strict=True)),
        history=history,
        regime=regime,
        histograms=histograms(representation),
        representatives=representatives(regime),
        prior=_normal_prior(representation) if history.kl is not None else None,
        conditional=_conditional_prior(representation),
        views=views(model, dataset, run.split().test, representation, regime, chosen["seed"]),
        notes=(*_about_data(run), *_about_objective(run.settings), *regime.notes),
        scores=scores,
        sampled_scores=sampled,
        others=_rows([artefact for artefact in run.artefacts() if artefact.path not in run.used]),
        damaged=tuple(sorted(path.name for path in damaged)),
        **parts,
    )


def _diagnosis(run: Run, step: int | None, asked: dict[str, Any]) -> dict[str, Any]:
    """The settings of the diagnosis that is shown: the newest that fits what is asked for, else a new one."""
    given = {name: value for name, value in asked.items() if value != "newest"}
    matching = dict(given)
    if "n_samples" in given:  # as many as there are, at most
        count, everything = given["n_samples"], len(run.data())
        matching["n_samples"] = everything if count is None else min(count, everything)
    newest = run.newest("regime", step, **matching)
    if newest is not None:
        return {**newest.key.settings, "part": newest.key.part}
    return {"n_samples": 10_000, "seed": 0, "alpha": 0.1, "n_bootstrap": 200, "part": "all", **given}


def _newest(run: Run, kind: str, step: int | None, **settings: Any) -> Any:
    """The record of a kind that was made last, if there is one of this model."""
    artefact = run.newest(kind, step, **settings)
    stored = None if artefact is None else run.read(artefact)
    if stored is None:
        return None
    module, _, name = RECORDS[kind].rpartition(".")
    return getattr(importlib.import_module(module), name).from_dict(stored)


def _rows(others: list[Artefact]) -> tuple[Row, ...]:
    if not others:
        return ()
    from polariscope.runs.listing import row_of

    return tuple(map(row_of, others))


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
    return [settings["caution"]] if settings["caution"] else []


def _about_data(run: Run) -> list[str]:
    if run.has_its_own_data:
        return []
    return [
        "The data are not those the model was trained on: the diagnosis, traversals and reconstructions are "
        "of the data given, the training curves of the original ones."
    ]
