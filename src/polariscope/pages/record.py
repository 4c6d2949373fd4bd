"""Results that a report shows, computed before anything is drawn."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from polariscope.analysis.code_view import CodeView, Per
from polariscope.analysis.regime.posterior import pooled_rows
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.regime.rule import TypeRule
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.core.text import plural
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.data.inputs import as_dataset
from polariscope.data.observations import Subset
from polariscope.models.protocol import AbstractModel
from polariscope.pages.formatting import concept
from polariscope.pages.sections import Subject, measure_all
from polariscope.pages.sections.decoder import Views, views
from polariscope.pages.sections.training import History, read_history
from polariscope.pages.settings_groups import data_in_words
from polariscope.runs.run import Run
from polariscope.storage.artefacts import Artefact

if TYPE_CHECKING:
    from polariscope.runs.listing import Row

logger = logging.getLogger("polariscope")

OF_A_PART = ("decomposition", "scores")
"""Results that depend on a part of the split. Those of the diagnosed part are preferred; otherwise the page names the
part."""


@dataclasses.dataclass(frozen=True)
class ConditionalMoments:
    """Moments of a latent's conditional prior N(μ†(u), Σ†(u)) over the samples, and of the posterior relative to it."""

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
    """Results of a run, of a model from another library, or of codes."""

    name: str
    """Name of the run's folder, of the model or of the file of codes."""
    facts: tuple[tuple[str, str], ...]
    """Short facts for the header: data, objective, net …"""
    settings: dict[str, object] | None
    """Settings of a run, otherwise None."""
    step: int | None
    """Step of a checkpoint; None for the finished model."""
    shape: tuple[int, ...]
    """Shape of one observation; empty for codes."""
    has_rate: bool
    """If True, posteriors have a KL to the prior. False for a deterministic encoder."""
    n_observations: int
    factors: tuple[tuple[str, int], ...]
    """Name and number of values of each known factor; 0 for a continuous factor."""
    history: History | None
    """Log of a run, otherwise None."""
    regime: Regime
    prior: Float[np.ndarray, "latent 2"] | None
    """Mean and variance of the prior of each latent; None if the prior is not the same normal for every sample."""
    conditional: tuple[ConditionalMoments, ...] | None
    """Moments of the prior of each latent if it depends on an auxiliary variable, otherwise None."""
    views: Views | None
    """Outputs of the decoder; None for a model without a decoder."""
    notes: tuple[str, ...]
    """Limits of the results."""
    parts: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Results computed by sections, by the name of the section."""
    others: tuple[Row, ...] = ()
    """Other cached results of the run."""
    damaged: tuple[str, ...] = ()
    """Files that are not shown because they do not match their hash."""
    part: str = "all"
    """Part of the run's split that was diagnosed."""
    target: str = ""
    """Path of the run for commands; empty if there is no run."""
    measured_on: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Part of the split of each kind of result that was not computed on the diagnosed part."""
    judged_on: str = "test"
    """Part of the run's split whose observations are reconstructed."""
    n_probed: int = 0
    """Number of validation samples for the results on latents in the log."""
    n_models: int = 0
    """Number of steps of the run with a saved model."""

    def prior_of(self, latent: int) -> tuple[float, float] | None:
        """Return the mean and variance of a latent's prior, or None."""
        return None if self.prior is None else (float(self.prior[latent, 0]), float(self.prior[latent, 1]))

    @property
    def is_image(self) -> bool:
        return len(self.shape) == 3


Newest = Literal["newest"]


def make_record(
    path: str | Path | Run,
    data: DataLike | None = None,
    *,
    n_samples: int | Newest | None = "newest",
    seed: int | Newest = "newest",
    alpha: float | Newest = "newest",
    part: str = "newest",
    step: int | None = None,
    show: Sequence[str] = (),
) -> ReportRecord:
    """Compute the results for the report of a run; arguments as in :func:`polariscope.pages.report.report`."""
    run = (
        path
        if isinstance(path, Run) and data is None
        else Run(path.path if isinstance(path, Run) else path, data)
    )
    # Refuses unknown files before anything is computed.
    requested_files = _requested_files(run, show)
    # Listed before results are read, because reading sets damaged files aside.
    damaged = run.folder.artefacts.damaged()
    for reason in damaged.values():
        logger.warning("%s It is not in the report; 'polariscope check %s' lists remedies.", reason, run.path)
    run.digest(step)  # raises an error if there is no model of this step
    lines = run.log_until(step)
    history = read_history(lines) if lines or step is None else None
    requested_settings = {"n_samples": n_samples, "seed": seed, "alpha": alpha}
    diagnosis = _diagnosis(run, step, requested_settings, part, requested_files)
    regime = run.regime(**diagnosis, step=step)
    where = {
        "n_samples": diagnosis["n_samples"],
        "seed": diagnosis["seed"],
        "part": diagnosis["part"],
        "step": step,
    }
    model, dataset, representation = run.model(step), run.data(), run.representation(**where)
    measured_on: dict[str, str] = {}
    subject = Subject(
        representation=representation,
        regime=regime,
        has_rate=model.has_density,
        seed=diagnosis["seed"],
        model=model,
        data=dataset,
        run=run,
        where=where,
        find=functools.partial(_newest, run, requested_files, step, diagnosis["part"], measured_on),
    )
    parts = measure_all(subject)
    split = run.split()
    judged_on = "test" if len(split.test) else "validation" if split.is_held_out else "train"
    held_out = split.test if len(split.test) else split.validation
    return ReportRecord(
        name=run.name,
        facts=(
            *_facts_of_run(run, step),
            *((("likelihood", regime.fit.in_words),) if regime.fit.in_words else ()),
        ),
        settings=run.settings,
        step=step,
        history=history,
        **_of_data(dataset),
        **_of_codes(representation, regime, has_rate=model.has_density),
        views=views(model, dataset, held_out, representation, regime, diagnosis["seed"]),
        notes=(*_about_data(run), *_about_objective(run.settings), *regime.notes),
        parts=parts,
        # Sections have read their results by now; the others are listed.
        others=_rows(
            [artefact for artefact in run.artefacts() if artefact.path not in run.used], run.fingerprint
        ),
        damaged=tuple(sorted(path.name for path in damaged)),
        part=diagnosis["part"],
        target=str(run.path),
        measured_on=measured_on,
        judged_on=judged_on,
        n_probed=min(run.settings["training"]["probe_samples"], len(split.validation)),
        n_models=len(run.steps),
    )


def record_of_model(
    model: AbstractModel,
    data: DataLike,
    *,
    n_samples: int | None = Subset.n_samples,
    seed: int = Subset.seed,
    alpha: float = TypeRule.alpha,
    per: Per = CodeView.per,
) -> ReportRecord:
    """Compute the results for the page of a model that is not part of a run."""
    from polariscope.analysis.regime.diagnose import diagnose
    from polariscope.data.chain import in_units
    from polariscope.runs.encode import encode

    dataset = in_units(as_dataset(data), model.units)
    representation = encode(model, dataset, n_samples, seed, per=per)
    regime = diagnose(representation, alpha=alpha, seed=seed)
    # Computed first, because the analysis of a decoder can add a note to the model.
    subject = Subject(representation, regime, model.has_density, seed, model=model, data=dataset)
    parts = measure_all(subject)
    # The split of the training is unknown, so any observations are reconstructed.
    others = generator(seed, "report", "held out").permutation(len(dataset))
    name = str(getattr(model, "name", type(model).__name__))
    sizes = " × ".join(map(str, dataset.shape))
    facts: dict[str, str] = {
        "model": name,
        "data": f"{dataset.name}, {len(dataset):,} observations of {sizes}",
        **_unit_facts(regime),
        **({"likelihood": str(getattr(model, "likelihood", ""))} if model.has_decoder else {}),
        "diagnosed on": f"{regime.n_samples:,} observations, α = {regime.alpha:g}",
    }
    return ReportRecord(
        name=name,
        facts=tuple(facts.items()),
        settings=None,
        step=model.step,
        history=None,
        **_of_data(dataset),
        **_of_codes(representation, regime, has_rate=model.has_density),
        views=views(model, dataset, others, representation, regime, seed),
        notes=tuple(dict.fromkeys((*getattr(model, "notes", ()), *regime.notes))),
        parts=parts,
    )


def _unit_facts(regime: Regime) -> dict[str, str]:
    """Return the number of latents, or of channels and their positions."""
    if regime.positions is None:
        return {"latents": str(regime.n_latents)}
    sizes = " × ".join(map(str, regime.positions.code_shape[1:]))
    return {"channels": f"{regime.n_latents}, with {sizes} positions"}


def record_of_codes(
    representation: Representation,
    name: str,
    *,
    seed: int = Subset.seed,
    alpha: float = TypeRule.alpha,
    per: Per | None = None,
) -> ReportRecord:
    """Compute the results for the page of codes: types, distributions, dependence and the parts of the rate."""
    from polariscope.analysis.regime.diagnose import diagnose

    representation = representation if per is None else representation.viewed(per)
    regime = diagnose(representation, alpha=alpha, seed=seed)
    has_rate = bool(np.min(representation.variance) > 0)
    factors = representation.factors
    sizes = () if factors is None else tuple(len(np.unique(column)) for column in factors.T)
    names = representation.factor_names or tuple(map(str, range(len(sizes))))
    facts = {
        "codes": name,
        "samples": f"{representation.n_samples:,}",
        **_unit_facts(regime),
        "diagnosed with": f"α = {regime.alpha:g}",
    }
    return ReportRecord(
        name=name,
        facts=tuple(facts.items()),
        settings=None,
        step=None,
        history=None,
        shape=(),
        n_observations=representation.n_samples,
        factors=tuple(zip(names, sizes, strict=True)),
        **_of_codes(representation, regime, has_rate=has_rate),
        views=None,
        notes=regime.notes,
        parts=measure_all(Subject(representation, regime, has_rate, seed)),
    )


def _of_data(dataset: AbstractDataset) -> dict[str, Any]:
    return {
        "shape": tuple(dataset.shape),
        "n_observations": len(dataset),
        "factors": tuple(zip(dataset.factor_names, dataset.factor_sizes, strict=True)),
    }


def _of_codes(representation: Representation, regime: Regime, *, has_rate: bool) -> dict[str, Any]:
    rows = pooled_rows(representation)
    return {
        "has_rate": has_rate,
        "regime": regime,
        "prior": _normal_prior(rows) if has_rate else None,
        "conditional": _conditional_prior(rows),
    }


def _facts_of_run(run: Run, step: int | None) -> tuple[tuple[str, str], ...]:
    """Return short facts on a run, without the diagnosed observations, which :mod:`polariscope.pages.report` adds."""
    settings, data = run.settings, data_in_words(run.settings["data"])
    steps = f"{step or run.n_steps:,} steps" + ("" if step is None else f" (a checkpoint of {run.n_steps:,})")
    if step is None and (stopped := run.folder.stopped_at) is not None:
        steps = f"{run.folder.finished_steps:,} steps (best model; stopped early at step {stopped:,})"
    count = settings["model"]["n_latents"]
    sizes = " × ".join(map(str, settings["model"]["shape"]))
    return (
        ("data", f"{settings['data']['name']}, {len(run.data()):,} observations of {sizes}"),
        *((("variants", data["variants"]),) if "variants" in data else ()),
        ("objective", concept(settings["objective"])),
        ("net", f"{settings['model']['net']['name']}, {plural(count, 'latent')}"),
        ("trained", f"{steps}, seed {settings['training']['seed']}"),
        *((("noise", noise.in_words),) if (noise := run.noise(step)) is not None else ()),
        *((("chosen for you", "; ".join(settings["chosen"])),) if settings.get("chosen") else ()),
    )


def _diagnosis(
    run: Run, step: int | None, requested_settings: dict[str, Any], part: str, requested: Sequence[Artefact]
) -> dict[str, Any]:
    """Return the settings of the newest diagnosis that matches the arguments, otherwise those of a new one."""
    for artefact in requested:
        if artefact.kind == "regime":
            return {**artefact.key.settings, "part": artefact.key.part}
    options = {name: value for name, value in requested_settings.items() if value != "newest"}
    matching = dict(options)
    if (
        "n_samples" in options
    ):  # a diagnosis records the actual number, which is limited by the size of the part
        part_option = {} if part == "newest" else {"part": part}
        subset = Subset(n_samples=options["n_samples"], **part_option)  # type: ignore[arg-type]
        matching["n_samples"] = len(subset.choose(run.n_observations, run.split))
    newest = run.newest("regime", step, None if part == "newest" else part, **matching)
    if newest is not None:
        return {**newest.key.settings, "part": newest.key.part}
    options |= {} if part == "newest" else {"part": part}
    return {**dataclasses.asdict(Subset()), **dataclasses.asdict(TypeRule()), **options}


def _requested_files(run: Run, show: Sequence[str]) -> list[Artefact]:
    """Return the cached results whose file names begin with the values of ``show``; unknown names raise an error."""
    artefacts = []
    for word in [show] if isinstance(show, str) else show:
        matching = [artefact for artefact in run.artefacts() if artefact.path.name.startswith(word)]
        if len(matching) != 1:
            names = ", ".join(artefact.path.name for artefact in matching or run.artefacts())
            raise InputError(
                "show",
                f"name one of the files in {run.path}",
                got=(
                    f"{word!r}, which {('none begins with' if not matching else 'several begin with')}: "
                    f"{names}"
                ),
            )
        artefacts += matching
    return artefacts


def _newest(
    run: Run,
    requested: Sequence[Artefact],
    step: int | None,
    part: str,
    measured_on: dict[str, str],
    kind: str,
    **settings: Any,
) -> Any:
    """Return the requested result of a kind, otherwise the newest of this model; None if there is none.

    Results of the diagnosed part are preferred. If there are only results of another part, they are returned, and the
    part is recorded in ``measured_on`` because the page names it.
    """
    artefact = next(
        (artefact for artefact in requested if artefact.kind == kind and artefact.matches(**settings)), None
    )
    for each_part in (part, None) if kind in OF_A_PART else (None,):
        artefact = artefact or run.newest(kind, step, each_part, **settings)
    if artefact is None:
        return None
    if kind in OF_A_PART and artefact.key.part != part:
        measured_on[kind] = artefact.key.part
    return run.read(artefact)


def _rows(others: list[Artefact], fingerprint: str) -> tuple[Row, ...]:
    if not others:
        return ()
    from polariscope.runs.listing import row_of

    return tuple(row_of(artefact, fingerprint) for artefact in others)


def _normal_prior(representation: Representation) -> Float[np.ndarray, "latent 2"] | None:
    mean, variance = representation.prior_mean, representation.prior_variance
    if mean is None or variance is None or mean.ndim != 1 or variance.ndim != 1:
        return None
    return np.stack([mean, variance], axis=1).astype(np.float64)


def _conditional_prior(representation: Representation) -> tuple[ConditionalMoments, ...] | None:
    mean, variance = representation.prior_mean, representation.prior_variance
    if mean is None or variance is None or mean.ndim == 1:
        return None
    from polariscope.analysis.regime.posterior import relative_posterior

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
        "These are not the data that the model was trained on. The diagnosis, traversals and reconstructions use these "
        "data, and the training curves the original data."
    ]
