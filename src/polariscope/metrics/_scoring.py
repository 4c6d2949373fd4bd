"""All metrics of a representation in one pass: what several need is computed once."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from polariscope.errors import InputError, unknown
from polariscope.metrics import Score, family
from polariscope.metrics._shared import FactorKind, Shared
from polariscope.regime.posterior import relative_posterior
from polariscope.regime.rule import moments, types_of
from polariscope.representations import Representation
from polariscope.settings import check_options

ALPHA = 0.1  # of the rule that names variable types
Source = Literal["mean", "sampled"]
Progress = Callable[[str, int, int], None]
"""Called before each metric: its name, how many are done, how many there are."""


@dataclasses.dataclass(frozen=True, eq=False)
class Scores:
    """The scores of one representation by name: ``scores["mig"].value``."""

    scores: dict[str, Score]
    not_applicable: dict[str, str]
    """Metrics that were asked for and do not apply, with the reason."""
    source: str
    """Which representation was scored."""
    n_samples: int
    n_latents: int
    factor_names: tuple[str, ...]
    """Of the factors that were used."""
    seed: int
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Score:
        if name in self.not_applicable:
            raise InputError(f"metric {name!r} does not apply here: {self.not_applicable[name]}")
        if name not in self.scores:
            raise InputError(unknown("score", name, self.scores))
        return self.scores[name]

    def to_dict(self) -> dict[str, Any]:
        """As JSON; an infinite number becomes the word "Infinity", one that is undefined null."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            **plain,
            "scores": {name: score.to_dict() for name, score in self.scores.items()},
            "factor_names": list(self.factor_names),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [str(score) for score in self.scores.values()]
        lines += [f"{name}: does not apply. {reason}" for name, reason in self.not_applicable.items()]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def score(
    representation: Representation,
    metrics: str | Sequence[str] = "all",
    seed: int = 0,
    *,
    source: str = "mean",
    factor_kinds: Sequence[FactorKind] | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Every metric asked for, of one representation; tables, splits and resamples they share are made once.

    ``metrics`` is "all", names joined by commas or in a list, each with a variant behind a colon where another than
    the default is meant: ``"mig,dci:lasso"``. ``source`` says whether the mean or the sampled codes are scored. A
    factor that is measured must be declared in ``factor_kinds``. Factors with a single value are left out, with a
    note: nothing can be learnt about them. A metric that does not apply, for want of factors or of several models,
    is listed with the reason and does not stop the others.

    >>> rng = np.random.default_rng(0)
    >>> factors = rng.integers(3, size=(500, 2))
    >>> codes = factors + 0.01 * rng.normal(size=(500, 2))
    >>> rep = Representation(codes, np.full((500, 2), 0.01), codes, factors)
    >>> score(rep, "modularity,dci:lasso").scores.keys()
    dict_keys(['modularity', 'dci:lasso'])
    """
    if not isinstance(representation, Representation):
        raise InputError(
            f"representation must be a Representation, got {type(representation).__name__}; "
            "make one of arrays: Representation(mean, variance, sampled, factors)."
        )
    if source not in get_args(Source):
        raise InputError(unknown("source", source, get_args(Source)))
    plan = _plan(metrics)
    table = _Table(representation, source, factor_kinds, seed)
    found: dict[str, Score] = {}
    refused: dict[str, str] = {}
    for number, (word, (name, options)) in enumerate(plan.items()):
        if progress is not None:
            progress(word, number, len(plan))
        try:
            found[word] = table.score(name, options)
        except InputError as error:
            refused[word] = str(error)
    return Scores(
        scores=found,
        not_applicable=refused,
        source=source,
        n_samples=representation.n_samples,
        n_latents=representation.n_latents,
        factor_names=table.names,
        seed=seed,
        notes=table.notes,
    )


def _plan(metrics: str | Sequence[str]) -> dict[str, tuple[str, dict[str, Any]]]:
    """The metric and options behind each word; every word is checked before anything is computed."""
    words = [word.strip() for word in metrics.split(",")] if isinstance(metrics, str) else list(metrics)
    words = [name for word in words if word for name in (family if word == "all" else [word])]
    plan = {}
    for word in words:
        name, colon, variant = word.partition(":")
        given = {"variant": variant} if colon else {}
        plan[word] = name, check_options(f"metric {name!r}", family[name], given)
    if not plan:
        raise InputError("metrics must name at least one metric, or be 'all', got none.")
    return plan


class _Table:
    """The arrays of a representation, checked once, and the metrics called with them."""

    def __init__(
        self,
        representation: Representation,
        source: str,
        factor_kinds: Sequence[FactorKind] | None,
        seed: int,
    ) -> None:
        self.representation, self.seed, self.source = representation, seed, source
        self.codes = representation.mean if source == "mean" else representation.sampled
        self.names: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.without_factors = Shared(self.codes, variance=representation.variance, seed=seed)
        self.shared, self.reason = self._with_factors(factor_kinds)

    def _with_factors(self, factor_kinds: Sequence[FactorKind] | None) -> tuple[Shared | None, str]:
        """What metrics with factors start from, or why there is none."""
        factors = self.representation.factors
        if factors is None:
            return None, "it needs factors, and these samples have none; encode a dataset with known factors."
        names = self.representation.factor_names or tuple(map(str, range(factors.shape[1])))
        varies = np.array([len(np.unique(column)) > 1 for column in factors.T])
        if not varies.any():
            return None, f"no factor varies in these {len(factors)} samples; draw more samples."
        kinds = None
        if factor_kinds is not None:
            if len(factor_kinds) != len(names):
                raise InputError(
                    f"factor_kinds must name a kind for each of the {len(names)} factors, got {len(factor_kinds)}."
                )
            kinds = [kind for kind, kept in zip(factor_kinds, varies, strict=True) if kept]
        self.names = tuple(name for name, kept in zip(names, varies, strict=True) if kept)
        for name, kept in zip(names, varies, strict=True):
            if not kept:
                self.notes += (f"Factor {name!r} has a single value in these samples and is left out.",)
        try:
            arrays = (self.codes, factors[:, varies], self.representation.variance)
            return Shared(*arrays, factor_names=self.names, factor_kinds=kinds, seed=self.seed), ""
        except InputError as error:
            return None, str(error)

    def score(self, name: str, options: Mapping[str, Any]) -> Score:
        needs = family.traits(name)["needs"]
        if "models" in needs:
            raise InputError("it compares several models, and this is one; call it with the codes of each.")
        self._check_posterior(name, options)
        offered = {"variance": self.representation.variance, "types": None}
        signature = inspect.signature(family[name]).parameters
        if "types" in signature:
            offered["types"] = types_of(moments(relative_posterior(self.representation)), ALPHA).tolist()
        given = {key: value for key, value in offered.items() if key in signature}
        if "factors" not in needs:
            shared = self.without_factors
            return family[name](shared.codes, shared=shared, seed=self.seed, **given, **options)
        if self.shared is None:
            raise InputError(self.reason)
        shared = self.shared
        return family[name](shared.codes, shared.factors, shared=shared, seed=self.seed, **given, **options)

    def _check_posterior(self, name: str, options: Mapping[str, Any]) -> None:
        """Refuse what is defined by the posterior N(mean, variance) where these codes or this prior are others."""
        is_about_posteriors = name == "active-units" or (name, options.get("variant")) in (
            ("tc", "noise-free"),
            ("mig", "chen"),
        )
        if is_about_posteriors and self.source != "mean":
            raise InputError("it is defined by posterior means and variances; score the mean representation.")
        if name == "active-units":
            mean, variance = self.representation.prior_mean, self.representation.prior_variance
            if (mean is not None and np.any(mean != 0)) or (variance is not None and np.any(variance != 1)):
                raise InputError(
                    "its rules compare posteriors with the prior N(0, I), and this model has another; "
                    "diagnose counts its latents against its own prior."
                )
