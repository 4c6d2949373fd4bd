"""Curves over the number of latents: what models of each width cost, keep and tell, and what the methods answer."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from polariscope.analysis.regime.rule import TypeRule
from polariscope.analysis.regime.types import TYPES, moments, types_of
from polariscope.analysis.representation import Representation
from polariscope.core import files
from polariscope.core.errors import Argument, InputError, PolariscopeError
from polariscope.core.options import options_of, spelled_out
from polariscope.core.records import AbstractRecord, AbstractStoredRecord, from_plain, to_plain
from polariscope.core.tables import TextTable
from polariscope.core.text import plural
from polariscope.core.types import OptionValue
from polariscope.data.dataset import AbstractDataset
from polariscope.data.observations import Part, Subset
from polariscope.data.types import DataLike
from polariscope.numerics.intervals import t_interval
from polariscope.sizing.candidates import AbstractCandidates
from polariscope.sizing.checks import BOUNDS, check_bounds_used, check_models, make_goal, supported_options
from polariscope.sizing.compare import needs_factors
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import family
from polariscope.sizing.methods.probe_elbow import probe_score
from polariscope.sizing.result import TRACE, Size
from polariscope.sizing.search import Question, Search, SearchSettings, ask
from polariscope.sizing.statistics import trace
from polariscope.sizing.trained import TrainedCandidates, max_latents
from polariscope.storage.search import SearchFolder
from polariscope.training.plan import FAMILIES, concept_of, plan
from polariscope.training.planner import IMAGES, Planned

if TYPE_CHECKING:
    import pandas

K = 20
"""Neighbours behind each intrinsic dimension, as published."""
VARIATIONAL = "vae"
"""Objective of the models that are asked where those of the curves have no posterior variances; also their folder."""
WIDTHS = Argument("n_latents")
"""The numbers of latents in messages."""
LENGTH = ("steps", "epochs")
"""Options that say how long the models of the curves are trained."""
DIGITS = {"probe": 3, "active": 1, "mixed": 1, "passive": 1}
"""Digits after the point in a printed table, where they are not 2."""
LABELS: dict[str, str] = {
    "loss": "loss",
    "reconstruction": "reconstruction",
    "rate": "KL",
    "probe": "probe",
    "trace_mean": "Tr Var[μ]",
    "trace_sampled": "Tr Var[z]",
    "trace": TRACE,
    "dimension_mean": "ID[μ]",
    "dimension_sampled": "ID[z]",
    **{str(kind): str(kind) for kind in TYPES},
}
"""What is measured of each model, in the order of tables, and how it is headed."""


@dataclasses.dataclass(frozen=True)
class CurvePoint(AbstractRecord):
    """One model of a curve: what it costs on held-out samples, and what its codes are like."""

    n_latents: int
    seed: int
    steps: int
    """Gradient steps it was trained for."""
    loss: float
    """What is minimised, nats per held-out sample."""
    reconstruction: float
    """Reconstruction loss, nats per held-out sample."""
    rate: float | None
    """KL, nats per held-out sample; None where the encoder is deterministic."""
    probe: float | None
    """Held-out accuracy (R² for continuous factors) of boosted trees on the mean representation, averaged over factors;
    None where no factor is known."""
    trace_mean: float
    """Tr Var[μ], the variance of the mean representation."""
    trace_sampled: float | None
    """Tr Var[z], the variance of the sampled representation; None where nothing is sampled."""
    trace: float | None
    """Σ E[σ²], FONDUE's statistic: the expectation of the difference of the two above."""
    dimension_mean: float | None
    """Intrinsic dimension of the mean representation (maximum likelihood, k = 20); None where it cannot be told."""
    dimension_sampled: float | None
    """The same of the sampled representation."""
    active: int | None
    """Latents that are active; None, as the next two, where the encoder is deterministic."""
    mixed: int | None
    passive: int | None


@dataclasses.dataclass(frozen=True)
class Band(AbstractRecord):
    """One quantity over the seeds of one number of latents."""

    quantity: str
    n_latents: int
    n: int
    """Models that have a value."""
    mean: float
    sd: float | None
    """Standard deviation over seeds (n − 1); None for one seed."""
    low: float | None
    """Lower end of the 95 % interval of the mean by Student's t; None for one seed."""
    high: float | None


@dataclasses.dataclass(frozen=True)
class SizeCurve(AbstractStoredRecord, remedy="make the curves again"):
    """Models of several widths and seeds, all trained for as long; and how many latents the methods advise."""

    points: tuple[CurvePoint, ...]
    """By number of latents, then seed."""
    answers: tuple[Size, ...]
    """Of the methods that were asked."""
    objective: str
    steps: int
    """Gradient steps of each model."""
    epochs: float
    """The same in passes over the training data."""
    n_samples: int
    """Observations that were encoded of each model."""
    part: Part = Subset.part
    """Of the split: where these observations come from."""
    notes: tuple[str, ...] = ()
    """What is left out, and why."""

    @property
    def n_latents(self) -> tuple[int, ...]:
        """The numbers of latents, ascending."""
        return tuple(sorted({point.n_latents for point in self.points}))

    @property
    def n_seeds(self) -> int:
        """How many seeds."""
        return len({point.seed for point in self.points})

    @property
    def quantities(self) -> tuple[str, ...]:
        """What was measured: names of fields of :class:`CurvePoint` that have a value in some model."""
        return tuple(
            name for name in LABELS if any(getattr(point, name) is not None for point in self.points)
        )

    def bands(self, quantity: str) -> list[Band]:
        """Mean over seeds with its 95 % interval by Student's t, for each number of latents that has a value.

        :param quantity: a name of :attr:`quantities`.
        """
        if quantity not in LABELS:
            raise InputError("quantity", f"be one of {', '.join(LABELS)}", got=f"{quantity!r}")
        bands = []
        for n in self.n_latents:
            all_values = [getattr(point, quantity) for point in self.points if point.n_latents == n]
            values = np.array([value for value in all_values if value is not None], dtype=np.float64)
            if not len(values):
                continue
            # A loss has no lowest value, and latents of one type are at most all of them.
            least = -math.inf if quantity in ("loss", "reconstruction") else 0.0
            bounds = (least, float(n) if quantity in TYPES else math.inf)
            low, high = t_interval(values, bounds=bounds) or (None, None)
            deviation = float(values.std(ddof=1)) if len(values) > 1 else None
            bands.append(Band(quantity, n, len(values), float(values.mean()), deviation, low, high))
        return bands

    def to_csv(self) -> str:
        """What is drawn: a row for each quantity and number of latents, then one for each answer.

        The row of an answer has its value as mean, and its interval.
        """
        columns = [field.name for field in dataclasses.fields(Band)]
        rows = [dataclasses.asdict(band) for name in self.quantities for band in self.bands(name)]
        for size in self.answers:
            low, high = size.interval or (None, None)
            rows.append({"quantity": f"answer of {size.method}", "n": len(size.per_seed), "mean": size.value})
            rows[-1] |= {"low": low, "high": high}
        return files.csv_text(columns, rows)

    def models_csv(self) -> str:
        """A row for each model; an empty cell is what has no meaning for it."""
        columns = [field.name for field in dataclasses.fields(CurvePoint)]
        return files.csv_text(columns, [dataclasses.asdict(point) for point in self.points])

    @property
    def headline(self) -> str:
        """What was trained and how bands are made, in a sentence."""
        seeds = plural(self.n_seeds, "seed")
        band = "mean ± half of the 95 % interval by Student's t" if self.n_seeds > 1 else "no interval"
        return (
            f"Objective {self.objective}, {len(self.points)} models of {self.steps:,} gradient steps each "
            f"({self.epochs:.3g} passes over the training data); {seeds}: {band}."
        )

    def table(self) -> list[tuple[str, ...]]:
        """A heading, then a row for each number of latents: means with half the width of their intervals."""
        bands = {
            (band.quantity, band.n_latents): band for name in self.quantities for band in self.bands(name)
        }
        rows = [("latents", *(LABELS[name] for name in self.quantities))]
        rows += [(str(n), *(_cell(bands.get((name, n))) for name in self.quantities)) for n in self.n_latents]
        return rows

    def __str__(self) -> str:
        heading, *rows = self.table()
        table = TextTable(*heading, rows=rows, numbers=heading)
        answers = [f"{size.method}: {size.answer}." for size in self.answers]
        return "\n".join([self.headline, "", str(table), "", *answers, *self.notes]).rstrip()

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each model, indexed by number of latents and seed."""
        import pandas

        rows = [dataclasses.asdict(point) for point in self.points]
        return pandas.DataFrame(rows).set_index(["n_latents", "seed"])


def _cell(band: Band | None) -> str:
    if band is None:
        return "–"
    digits = DIGITS.get(band.quantity, 2)
    if band.low is None:
        return f"{band.mean:.{digits}f}"
    return f"{band.mean:.{digits}f} ± {band.mean - band.low:.{digits}f}"


@spelled_out(SearchSettings, Goal, open_ended=True)
def size_curve(
    data: DataLike,
    n_latents: Sequence[int],
    *,
    methods: Sequence[str] = ("fondue",),
    seeds: int = 5,
    part: Part = Subset.part,
    begin: Callable[[str], None] | None = None,
    announce: Callable[[CurvePlan], None] | None = None,
    **options: OptionValue,
) -> SizeCurve:
    """Measure loss, probe accuracy, traces, intrinsic dimensions and types of latents as the number of latents grows.

    For each number of latents and each seed one model is trained, all for as long: ``steps`` gradient steps (default
    2,000), or ``epochs`` passes over the training data, at the learning rate of ``fondue``. With ``out`` nothing is
    trained twice: models are those of :func:`polariscope.size` in the same folder, and an interrupted call is resumed.
    Losses are of held-out samples; codes of 10,000 samples of ``part``. Quantities that an objective does not have
    (types, and everything sampled, of an autoencoder) are left out, and ``notes`` say so.

    ``methods`` answer with as many seeds, in the same folder, so they use models that are there; ``threshold``, ``cap``
    and the like are theirs, ``steps`` and ``epochs`` are not. Those that need posterior variances, if the models have
    none, answer for the VAE of the same nets, as bonheme2023 Fig. 8.6 does.

    Reference: bonheme2023 Figs 8.1, 8.5 to 8.10, 8.12 and D.1 to D.4.

    :param data: a dataset, or an array of observations.
    :param n_latents: numbers of latents, ascending.
    :param methods: (default fondue) names of ``polariscope.sizing`` whose answers are shown with the curves.
    :param seeds: (default 5) number of seeds.
    :param part: (default "all") part of the split that is encoded: "all", "train", "validation" or "test".
    :param begin: (default None) called with the name of each method when its turn comes.
    :param announce: (default None) called with the plan before anything is trained.
    :param options: options of the methods as in :func:`polariscope.size`, and of the models (``objective``, ``net`` …)
        as in :func:`polariscope.train`.
    """
    search = Search.prepare(data, methods, {**options, "seeds": seeds}, trains=True)
    job = plan_curve(search, n_latents, part)
    if announce is not None:
        announce(job)
    with search.session() as (folder, progress):
        points = []
        for seed in search.seeds:
            candidates = search.candidates(folder, seed, job.recipe, progress, part=part)
            assert isinstance(candidates, TrainedCandidates)
            points += [_cached_point(candidates, n, job) for n in job.n_latents]
        answers = []
        for question in job.questions:
            if begin is not None:
                begin(question.method)
            models = folder if question.recipe == job.recipe else folder / VARIATIONAL
            try:
                answer = search.answer(question, models, progress)
            except PolariscopeError as error:  # a method without an answer does not stop the others
                statistic = family.traits(question.method)["statistic"]
                answer = Size(None, None, question.method, statistic=statistic, notes=(str(error),))
            answers.append(answer)
    points.sort(key=lambda point: (point.n_latents, point.seed))
    curve = SizeCurve(
        tuple(points),
        tuple(answers),
        job.objective,
        job.steps,
        job.steps / job.steps_per_epoch,
        job.n_samples,
        part,
        (*job.notes, *_missing(points)),
    )
    if search.out is not None:
        _write(search, curve, job)
    return curve


@dataclasses.dataclass(frozen=True)
class CurvePlan:
    """What is trained and asked for curves, checked; nothing is written yet."""

    data: AbstractDataset
    """In the units in which models are trained."""
    n_latents: tuple[int, ...]
    recipe: Mapping[str, Any]
    """Of the models."""
    changes: Mapping[str, Any]
    """Options of the models that differ from the recipe, as the methods have them."""
    objective: str
    steps: int
    """Gradient steps of each model."""
    steps_per_epoch: int
    part: Part
    """Of the split: whose observations are encoded."""
    n_samples: int
    """Observations that are encoded."""
    questions: tuple[Question, ...]
    """What the methods are asked."""
    chosen: tuple[str, ...]
    """What nobody asked for by name, in words."""
    notes: tuple[str, ...]
    """What is left out, and why."""


def plan_curve(search: Search, n_latents: Sequence[int], part: Part) -> CurvePlan:
    """Return what is trained and asked for curves; what cannot be is refused.

    :param search: data, methods and options.
    :param n_latents: numbers of latents, ascending.
    :param part: part of the split that is encoded.
    """
    dataset, options, recipe = search.data, search.options, search.recipe
    goal = make_goal({name: value for name, value in options.items() if name in BOUNDS}, dataset, recipe)
    check_widths(n_latents, goal.cap)
    check_bounds_used(options, search.methods, (*LENGTH, "cap", "learning_rate"))
    if goal.learning_rate is not None:
        recipe["learning_rate"] = goal.learning_rate
    pace = {"learning_rate": goal.careful_rate(), "batch_size": IMAGES.batch_size}
    job = plan(dataset, n_latents=1, **{"steps": goal.fixed_steps, **pace, **recipe})
    planned = Planned({name: pace[name] for name in pace if name not in recipe}, {})
    check_models(job, recipe)
    most = max_latents(job)
    if most is not None and max(n_latents) > most:
        raise InputError(
            WIDTHS,
            f"be at most {most}, since γ is learned and {dataset.n_features:,} features of {len(dataset):,} samples "
            "leave nothing to learn it from beyond",
            got=max(n_latents),
            remedy=("ask for fewer, or fix it with ", Argument("variance")),
        )
    per_epoch = plan(dataset, n_latents=1, **{**recipe, "epochs": 1}).settings.steps
    deal = functools.partial(job.settings.split_of, dataset)
    n_samples = len(Subset(part=part).choose(len(dataset), deal))
    has_density = job.blueprint.posterior.has_density
    notes = [] if dataset.factor_names else ["Probe accuracy is left out: the data have no known factors."]
    if not has_density:
        notes.append(
            "KL, types, Σ E[σ²] and everything sampled are left out: the encoder is deterministic, so there are no "
            "posterior variances."
        )
    questions = []
    for name in search.methods:
        question, note = _question(search, name, recipe, has_density=has_density)
        questions.append(question)
        notes += [note] if note else []
    objective = FAMILIES["objective"].name_of(job.objective)
    return CurvePlan(
        dataset,
        tuple(int(n) for n in n_latents),
        recipe,
        {"learning_rate": goal.careful_rate()},
        objective,
        goal.fixed_steps if goal.epochs is None else goal.epochs * per_epoch,
        per_epoch,
        part,
        n_samples,
        tuple(questions),
        (*job.chosen, *planned.in_words),
        tuple(notes),
    )


def check_widths(n_latents: object, cap: int) -> None:
    """Refuse what is no ascending list of numbers of latents up to a cap.

    :param n_latents: what was given.
    :param cap: the most that are tried.
    """
    numbers = list(n_latents) if isinstance(n_latents, Sequence) and not isinstance(n_latents, str) else []
    if not numbers or any(isinstance(n, bool) or not isinstance(n, Integral) or n < 1 for n in numbers):
        raise InputError(
            WIDTHS, "be integers from 1, as in (3, 6, 8, 10), at least one", got=f"{n_latents!r}"
        )
    if any(after <= before for before, after in pairwise(numbers)):
        raise InputError(WIDTHS, "ascend, each number once", got=f"{n_latents!r}")
    if numbers[-1] > cap:
        raise InputError(
            WIDTHS, ("be at most ", Argument("cap")), got=f"{numbers[-1]} and {cap}", remedy="raise the cap"
        )


def _question(
    search: Search, method: str, recipe: Mapping[str, Any], *, has_density: bool
) -> tuple[Question, str]:
    """Return what a method is asked, of the models of the curves or of VAEs if those have no variances, with a note."""
    dataset, options = search.data, search.options
    if needs_factors(method) and not dataset.factor_names:
        raise InputError(
            problem=f"method {method!r} is for data with known factors, which these have not",
            remedy=("leave it out of ", Argument("methods")),
        )
    chosen, note = dict(recipe), ""
    if family.traits(method)["needs_variances"] and not has_density:
        theirs = {*options_of(concept_of("objective", recipe["objective"])), "objective", "posterior"}
        chosen = {
            name: value
            for name, value in recipe.items()
            if name.removeprefix("objective_") not in theirs and not name.startswith("posterior_")
        }
        chosen["objective"] = VARIATIONAL
        note = (
            f"{method} answers for the VAE of the same nets, since it needs posterior variances: the same number of "
            "latents is said to suit autoencoders (bonheme2023 Fig. 8.6)."
        )
    # The length of the curves' models is not the methods'.
    given = {name: options[name] for name in options if name not in LENGTH and name not in recipe}
    given |= {name: recipe[name] for name in ("learning_rate",) if name in recipe}
    models = {name: value for name, value in chosen.items() if name != "learning_rate"}
    question = ask(dataset, method, {**supported_options(method, given, search.methods), **models})
    # Where nothing is trained, the folder is still that of the same models.
    return dataclasses.replace(question, recipe=chosen), note


def _cached_point(candidates: TrainedCandidates, n_latents: int, job: CurvePlan) -> CurvePoint:
    """The point that was measured before, else measure it and keep it at once."""
    about = {**job.changes, "part": job.part, "n_samples": job.n_samples}
    key = ", ".join([f"{n_latents} latents", f"{job.steps} steps", *(f"{k} {v}" for k, v in about.items())])
    stored = candidates.folder.points().get(key)
    if stored is not None:
        return from_plain(CurvePoint, stored, "delete it, and make the curves again")
    changes = dict(job.changes)
    if candidates.has_gone_beyond(n_latents, job.steps, **changes):
        # A search went on with it, so it is trained again beside that; this option changes nothing but its name.
        changes["checkpoint_every"] = job.steps
    point = measure_point(candidates, n_latents, job.steps, **changes)
    candidates.folder.keep_point(key, to_plain(point))
    return point


def measure_point(
    candidates: AbstractCandidates, n_latents: int, steps: int, **changes: OptionValue
) -> CurvePoint:
    """Train a model, if need be, and measure everything.

    :param candidates: trains and encodes a model for any number of latents.
    :param n_latents: of the model.
    :param steps: how long it is trained.
    :param changes: options that differ from the recipe.
    """
    losses = candidates.losses(n_latents, steps, **changes)
    codes = candidates.representation(n_latents, steps, **changes)
    has_density = losses.rate is not None
    counts: dict[str, int | None] = dict.fromkeys(TYPES)
    if has_density:
        from polariscope.analysis.regime.posterior import relative_posterior

        types = types_of(moments(relative_posterior(codes)), TypeRule.alpha).tolist()
        counts = {kind: types.count(kind) for kind in TYPES}
    return CurvePoint(
        n_latents=n_latents,
        seed=candidates.seed,
        steps=steps,
        loss=losses.total,
        reconstruction=losses.reconstruction,
        rate=losses.rate,
        probe=_probe(codes, candidates.seed),
        trace_mean=_total_variance(codes.mean),
        trace_sampled=_total_variance(codes.sampled) if has_density else None,
        trace=trace(codes) if has_density else None,
        dimension_mean=_dimension(codes.mean, candidates.seed),
        dimension_sampled=_dimension(codes.sampled, candidates.seed) if has_density else None,
        active=counts["active"],
        mixed=counts["mixed"],
        passive=counts["passive"],
    )


def _total_variance(codes: Float[np.ndarray, "sample latent"]) -> float:
    """Trace of the covariance (n − 1)."""
    return float(codes.var(axis=0, dtype=np.float64, ddof=1).sum())


def _dimension(codes: Float[np.ndarray, "sample latent"], seed: int) -> float | None:
    """Intrinsic dimension as FONDUE_IDE takes it; None where it is refused: codes that hardly vary, or too few."""
    from polariscope.analysis.dimension.mle import mle

    try:
        return mle(codes, k=K, n_bootstrap=20, seed=seed).value
    except InputError:
        return None


def _probe(codes: Representation, seed: int) -> float | None:
    """How well the factors can be predicted; None without factors that vary."""
    if codes.factors is None or not any(len(np.unique(column)) > 1 for column in codes.factors.T):
        return None
    return probe_score(codes, seed)


def _missing(points: Sequence[CurvePoint]) -> list[str]:
    """A note where an intrinsic dimension could not be told."""
    notes = []
    for name, words in (("dimension_mean", "mean"), ("dimension_sampled", "sampled")):
        if words == "sampled" and all(point.rate is None for point in points):
            continue  # a note says so already
        lost = sorted({point.n_latents for point in points if getattr(point, name) is None})
        if lost:
            notes.append(
                f"The intrinsic dimension of the {words} representation cannot be told for some models with "
                f"{', '.join(map(str, lost))} latents: codes hardly vary, or there are too few."
            )
    return notes


def _write(search: Search, curve: SizeCurve, job: CurvePlan) -> None:
    """Write the curves with their settings, and their numbers as tables."""
    assert search.out is not None
    folder = SearchFolder(search.out)
    settings = {
        "data": {**job.data.describe(), "fingerprint": job.data.fingerprint},
        "n_latents": job.n_latents,
        "methods": [question.method for question in job.questions],
        "seed": search.settings.seed,
        "seeds": search.settings.seeds,
        "recipe": job.recipe,
        "goals": {question.method: to_plain(question.goal) for question in job.questions},
        "chosen_for_you": list(job.chosen),
    }
    folder.write_curve(curve.to_dict(), settings)
    files.write_text(folder.curve_bands, curve.to_csv())
    files.write_text(folder.curve_models, curve.models_csv())


def read_curve(folder: str | Path) -> SizeCurve:
    """Return the curves that were stored in a folder, checked.

    :param folder: where :func:`size_curve` wrote to.
    """
    return SizeCurve.from_dict(SearchFolder(folder).read_curve()[0])
