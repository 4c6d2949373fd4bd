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
from polariscope.core.options import options_of
from polariscope.core.records import AbstractRecord, from_plain, to_plain
from polariscope.data.chain import Given, apply_variants, shorthands
from polariscope.data.dataset import AbstractDataset
from polariscope.data.missing import Missing
from polariscope.data.observations import Part, Subset
from polariscope.numerics.intervals import t_interval
from polariscope.sizing import TRACE, AbstractCandidates, Size, family
from polariscope.sizing.probe_elbow import probe_score
from polariscope.sizing.support.candidates import TrainedCandidates, most_latents
from polariscope.sizing.support.checks import (
    BOUNDS,
    check_bounds_used,
    check_models,
    check_seeds,
    check_units,
    check_varies,
    make_goal,
    own_options,
    supported_options,
    trained_units,
)
from polariscope.sizing.support.compare import needs_factors
from polariscope.sizing.support.search import trace
from polariscope.sizing.support.size import Listen, Question, ask, candidates_place, search, spoken
from polariscope.storage.search import SearchFolder
from polariscope.training.plan import FAMILIES, concept_of, plan
from polariscope.training.threads import check_threads
from polariscope.training.train import choose_device

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
class SizeCurve:
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
        found = []
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
            found.append(Band(quantity, n, len(values), float(values.mean()), deviation, low, high))
        return found

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
        seeds = f"{self.n_seeds} seed{'s' if self.n_seeds > 1 else ''}"
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
        rows = self.table()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in rows]
        said = [f"{size.method}: {size.answer}." for size in self.answers]
        return "\n".join([self.headline, "", *lines, "", *said, *self.notes]).rstrip()

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each model, indexed by number of latents and seed."""
        import pandas

        rows = [dataclasses.asdict(point) for point in self.points]
        return pandas.DataFrame(rows).set_index(["n_latents", "seed"])

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return to_plain(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, object]) -> SizeCurve:
        """What :meth:`to_dict` wrote, equal in every bit; anything else is refused."""
        return from_plain(cls, stored, "make the curves again")


def _cell(band: Band | None) -> str:
    if band is None:
        return "–"
    digits = DIGITS.get(band.quantity, 2)
    if band.low is None:
        return f"{band.mean:.{digits}f}"
    return f"{band.mean:.{digits}f} ± {band.mean - band.low:.{digits}f}"


def size_curve(
    data: object,
    n_latents: Sequence[int],
    *,
    methods: Sequence[str] = ("fondue",),
    seed: int = 0,
    seeds: int = 5,
    out: str | Path | None = None,
    part: Part = Subset.part,
    device: object = "auto",
    threads: int | None = None,
    progress: bool | Listen = False,
    begin: Callable[[str], None] | None = None,
    variants: Given = (),
    standardise: bool = False,
    scale: bool = False,
    keep_units: bool = False,
    missing: Missing = "refuse",
    **options: object,
) -> SizeCurve:
    """Loss, probe accuracy, traces, intrinsic dimensions and types of latents as the number of latents grows.

    For each number of latents and each seed one model is trained, all for as long: ``steps`` gradient steps (default
    2,000), or ``epochs`` passes over the training data, at the learning rate of ``fondue``. With ``out`` nothing is
    trained twice: models are those of :func:`polariscope.size` in the same folder, what was measured is kept at once,
    and an interrupted call goes on where it stopped. Losses are of held-out samples; codes of 10,000 samples of
    ``part``. What has no meaning for an objective (types, and all that is sampled, of an autoencoder) is left out, and
    ``notes`` say so.

    ``methods`` answer with as many seeds, in the same folder, so they use models that are there; ``threshold``, ``cap``
    and the like are theirs, ``steps`` and ``epochs`` are not. Those that need posterior variances, where the models
    have none, answer for the VAE of the same nets, as bonheme2023 Fig. 8.6 does.

    Reference: bonheme2023 Figs 8.1, 8.5 to 8.10, 8.12 and D.1 to D.4.

    :param data: a dataset, or an array of observations.
    :param n_latents: numbers of latents, ascending.
    :param methods: (default fondue) names of ``polariscope.sizing`` whose answers are shown beside the curves.
    :param seed: (default 0) seed of the first models; the others have ``seed`` + 1, …
    :param seeds: (default 5) how many seeds.
    :param out: (default None: nothing is written) folder for the models and what was measured of them.
    :param part: (default "all") whose codes are looked at: "all", "train", "validation" or "test".
    :param device: (default "auto") as in :func:`polariscope.train`.
    :param threads: (default: by the work in a step and the cores) as in :func:`polariscope.train`.
    :param progress: (default False) a function called with (seed, n_latents, step, Σ E[σ²]), or True for a line on the
        terminal.
    :param begin: (default None) called with the name of each method when its turn comes.
    :param variants: (default none) variants of the data, as in :func:`polariscope.train`.
    :param standardise: (default False) bring every feature of a table to mean 0 and standard deviation 1 first.
    :param scale: (default False) bring every feature of a table to [0, 1] first.
    :param keep_units: (default False) leave a table in the units it has, as in :func:`polariscope.train`.
    :param missing: (default "refuse") what is done about missing values of an array, as in :func:`polariscope.train`.
    :param options: ``steps`` or ``epochs`` of the models; bounds and options of the methods as in :func:`size`; and
        ``objective``, ``net`` … as in :func:`polariscope.train`.
    """
    shorthands(standardise=standardise, scale=scale, keep_units=keep_units)
    job = plan_curve(
        apply_variants(data, variants, standardise=standardise, scale=scale, missing=missing),
        n_latents,
        methods,
        seeds,
        part,
        {**options, **({"keep_units": True} if keep_units else {})},
    )
    choose_device(device)
    check_threads(threads)
    where: dict[str, Any] = {"device": device, "threads": threads}
    with candidates_place(out) as folder, spoken(progress) as listen:
        points = []
        for number in range(seed, seed + seeds):
            candidates = TrainedCandidates(
                job.data,
                SearchFolder(folder).seed(number).path,
                number,
                {**job.recipe, **where},
                None if listen is None else functools.partial(listen, number),
                part=part,
            )
            points += [_kept_point(candidates, n, job) for n in job.n_latents]
        answers = []
        for question in job.questions:
            if begin is not None:
                begin(question.method)
            place = folder if question.recipe == job.recipe else folder / VARIATIONAL
            try:
                found = search(question, job.data, place, seed=seed, seeds=seeds, listen=listen, **where)
            except PolariscopeError as error:  # no answer is also a result, beside the others'
                statistic = family.traits(question.method)["statistic"]
                found = Size(None, None, question.method, statistic=statistic, notes=(str(error),))
            answers.append(found)
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
    if out is not None:
        _write(out, curve, job, seed, seeds)
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


def plan_curve(
    dataset: AbstractDataset,
    n_latents: Sequence[int],
    methods: Sequence[str],
    seeds: int,
    part: Part,
    options: Mapping[str, object],
) -> CurvePlan:
    """Refuse what cannot be trained or asked, before anything is trained.

    :param dataset: with its variants, in its own units.
    :param n_latents: numbers of latents, ascending.
    :param methods: names of ``polariscope.sizing``.
    :param seeds: how many seeds.
    :param part: of the split, whose codes are looked at.
    :param options: of the models, of their length, and of the methods.
    """
    theirs = {*BOUNDS}.union(*map(own_options, methods))
    recipe: dict[str, Any] = {name: value for name, value in options.items() if name not in theirs}
    dataset = trained_units(dataset, recipe, keep_units=recipe.get("keep_units", False))
    check_seeds(seeds)
    bounds = {name: value for name, value in options.items() if name in BOUNDS}
    goal = make_goal(bounds, dataset, recipe)
    check_widths(n_latents, goal.cap)
    check_bounds_used(options, methods, (*LENGTH, "cap", "learning_rate"))
    if goal.learning_rate is not None:
        recipe["learning_rate"] = goal.learning_rate
    job = plan(dataset, n_latents=1, **{"steps": goal.fixed_steps, **recipe})
    check_models(job, recipe)
    most = most_latents(job)
    if most is not None and max(n_latents) > most:
        raise InputError(
            WIDTHS,
            f"be at most {most}, since γ is learned and {dataset.n_features:,} features of {len(dataset):,} samples "
            "leave nothing to learn it from beyond",
            got=max(n_latents),
            remedy=("ask for fewer, or fix it with ", Argument("variance")),
        )
    check_varies(dataset)
    check_units(dataset, recipe)
    per_epoch = plan(dataset, n_latents=1, **{**recipe, "epochs": 1}).settings.steps
    deal = functools.partial(job.settings.deal, dataset)
    n_samples = len(Subset(part=part).choose(len(dataset), deal))
    has_density = job.blueprint.posterior.has_density
    notes = [] if dataset.factor_names else ["Probe accuracy is left out: the data have no known factors."]
    if not has_density:
        notes.append(
            "KL, types, Σ E[σ²] and everything sampled are left out: the encoder is deterministic, so there are no "
            "posterior variances."
        )
    questions = []
    for name in methods:
        question, note = _question(dataset, name, methods, options, recipe, has_density=has_density)
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
        job.chosen,
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
    dataset: AbstractDataset,
    method: str,
    methods: Sequence[str],
    options: Mapping[str, object],
    recipe: Mapping[str, Any],
    *,
    has_density: bool,
) -> tuple[Question, str]:
    """What a method is asked: of the models of the curves, or of VAEs where those have no variances, with a note."""
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
    question = ask(dataset, method, {**supported_options(method, given, methods), **models})
    # Where nothing is trained, the folder is still that of the same models.
    return dataclasses.replace(question, recipe=chosen), note


def _kept_point(candidates: TrainedCandidates, n_latents: int, job: CurvePlan) -> CurvePoint:
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
    candidates: AbstractCandidates, n_latents: int, steps: int, **changes: object
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


def _write(out: str | Path, curve: SizeCurve, job: CurvePlan, seed: int, seeds: int) -> None:
    """Keep the curves beside their settings, with their numbers as tables."""
    folder = SearchFolder(out)
    settings = {
        "data": {**job.data.describe(), "fingerprint": job.data.fingerprint},
        "n_latents": job.n_latents,
        "methods": [question.method for question in job.questions],
        "seed": seed,
        "seeds": seeds,
        "recipe": job.recipe,
        "goals": {question.method: to_plain(question.goal) for question in job.questions},
        "chosen_for_you": list(job.chosen),
    }
    folder.write_curve(curve.to_dict(), settings)
    files.write_text(folder.curve_bands, curve.to_csv())
    files.write_text(folder.curve_models, curve.models_csv())


def read_curve(folder: str | Path) -> SizeCurve:
    """The curves that were kept in a folder, checked.

    :param folder: where :func:`size_curve` wrote to.
    """
    return SizeCurve.from_dict(SearchFolder(folder).read_curve()[0])
