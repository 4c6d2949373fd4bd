"""All metrics of a representation in one pass; intermediate results are shared."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, cast, get_args

import numpy as np

from polariscope.analysis.code_checks import check_factors, check_names
from polariscope.analysis.code_table import Table
from polariscope.analysis.code_view import Pool
from polariscope.analysis.metrics import Coverage, Score, Scores, family
from polariscope.analysis.regime.latent_types import moments, types_of
from polariscope.analysis.regime.posterior import relative_posterior
from polariscope.analysis.regime.rule import TypeRule
from polariscope.analysis.regime.use import latents_in_use
from polariscope.analysis.representation import FactorKind, Representation
from polariscope.core import files
from polariscope.core.arrays import as_array
from polariscope.core.errors import Argument, InputError, check_word, unknown
from polariscope.core.options import check_options, non_default
from polariscope.core.progress import AnyProgress, ProgressEvent, listener
from polariscope.core.text import file_size
from polariscope.core.types import FactorsLike

Source = Literal["mean", "sampled"]
NONE_IN_USE = "no latent is in use, so there is nothing to score"
"""Reason why a metric of the latents in use does not apply to a collapsed model."""


def score(
    representation: object,
    metrics: str | Sequence[str] = "all",
    seed: int = 0,
    *,
    options: Mapping[str, Mapping[str, object]] | None = None,
    source: str = "mean",
    latents: str = "all",
    factors: FactorsLike | None = None,
    factor_names: Sequence[str] = (),
    factor_kinds: Sequence[FactorKind] | None = None,
    progress: AnyProgress | None = None,
    pool: Pool = "none",
) -> Scores:
    """Compute metrics of one representation; shared tables, splits and resamples are computed once.

    ``representation`` is a Representation, or an array (sample, latent) of codes together with ``factors`` and
    ``factor_names``. Metrics that use posterior variances require a Representation.

    ``metrics`` is "all", a comma-separated string, or a list of names. A variant other than the default follows a
    colon: ``"mig,dci:lasso"``. ``options`` maps a metric to its options, ``{"mig": {"n_bins": 10}}``, which are stored
    with its score. ``source`` selects the mean or the sampled codes, or describes the codes of an array. Kinds of
    factors are those of the representation unless ``factor_kinds`` is passed; a measured factor of an array must be
    declared there.

    Codes with positions, (channel, height, width), are flattened: each observation is one row, so no observation is in
    both training and test samples, and each value is a column. ``pool="mean"`` scores the mean over the positions of
    each channel instead. If flattened codes would take more than 2 GB of intermediate results, an error names this
    remedy. Channels in use are those of :func:`polariscope.diagnose`.

    A factor with a single value is left out, with a note. Factors with the wrong number of samples, or undeclared
    measured ones, raise an error, unless they belong to a Representation and no metric requires them. A metric that
    does not apply, because factors, variances or several models are missing, is listed with the reason; the others are
    computed.

    :param representation: a Representation, or codes as an array (sample, latent).
    :param metrics: (default "all") names joined by commas, or a list of them.
    :param seed: (default 0) seed of splits, resamples and classifiers.
    :param options: (default: the defaults of each metric) options by name of the metric.
    :param source: (default "mean") codes to score: "mean" or "sampled".
    :param latents: (default "all") latents to score: "all", or "in-use" for those in use
        (:mod:`polariscope.analysis.regime.use`). If no latent is in use, no metric applies.
    :param factors: (default: the representation's) ground-truth factors, if the codes are an array.
    :param factor_names: (default: the representation's) names of the factors.
    :param factor_kinds: (default: the representation's, otherwise categorical) kind of each factor.
    :param progress: (default None) function called before each metric with its name, the number of metrics done and
        their total, or with an event if it accepts a :class:`polariscope.core.progress.ProgressEvent`.
    :param pool: (default "none") columns of codes with positions: "none" for every value, "mean" for the mean over the
        positions of each channel.

    >>> rng = np.random.default_rng(0)
    >>> factors = rng.integers(3, size=(500, 2))
    >>> codes = factors + 0.01 * rng.normal(size=(500, 2))
    >>> rep = Representation(codes, np.full((500, 2), 0.01), codes, factors)
    >>> score(rep, "modularity,dci:lasso").scores.keys()
    dict_keys(['modularity', 'dci:lasso'])
    >>> score(codes, "modularity,mig:chen", factors=factors).not_applicable.keys()
    dict_keys(['mig:chen'])
    """
    if source not in get_args(Source):
        raise unknown("source", source, get_args(Source))
    if latents not in get_args(Coverage):
        raise unknown("latents", latents, get_args(Coverage))
    check_word("pool", pool, get_args(Pool))
    plan = _plan(metrics, options)
    representation, in_use = _columns(representation, pool)
    n_positions = representation.n_positions if isinstance(representation, Representation) else 1
    if latents == "in-use":
        if in_use is None or not isinstance(representation, Representation):
            raise InputError(
                "latents",
                "be 'all' for codes without variances, because use is computed from variances",
                got="'in-use'",
                remedy="pass a Representation",
            )
        if not in_use:
            return Scores(
                {},
                dict.fromkeys(plan, NONE_IN_USE),
                source,
                representation.n_samples,
                0,
                (),
                seed,
                latents="in-use",
                in_use=(),
            )
        representation = _columns_of(representation, in_use)
    arrays = _arrays(representation, source, factors, factor_names, factor_kinds)
    scorer = _Pass(arrays, source, {name for name, _ in plan.values()}, seed)
    events = listener(progress, lambda event: (event.task, event.done, event.total))
    scores: dict[str, Score] = {}
    refused: dict[str, str] = {}
    for number, (word, (name, options)) in enumerate(plan.items()):
        if events is not None:
            message = f"{number + 1}/{len(plan)} {word}"
            events(ProgressEvent(word, number, len(plan), "metric", message=message))
        try:
            scores[word] = scorer.score(name, options)
        except InputError as error:
            refused[word] = str(error)
    return Scores(
        scores=scores,
        not_applicable=refused,
        source=source,
        n_samples=scorer.without_factors.n_samples,
        n_latents=scorer.without_factors.n_latents,
        factor_names=scorer.names,
        seed=seed,
        notes=scorer.notes,
        factor_kinds=() if scorer.with_factors is None else scorer.with_factors.factor_kinds,
        fingerprint=scorer.fingerprint,
        latents=cast("Coverage", latents),
        in_use=in_use,
        n_positions=n_positions,
    )


def _columns(codes: Any, pool: Pool) -> tuple[Any, tuple[int, ...] | None]:
    """Return codes with the columns to score, and the columns in use; None if it is not known which ones are."""
    # Also for all latents, because the record lists which of them are in use.
    if isinstance(codes, Representation):
        in_use = latents_in_use(codes)
        if pool == "mean":
            columns = codes.columns_of(range(codes.n_units))[:: codes.n_positions]
            in_use = tuple(unit for unit, first in enumerate(columns) if first in in_use)
            return codes.averaged(), in_use
        if len(codes.code_shape) > 1:
            n_factors = 1 if codes.factors is None else max(1, codes.factors.shape[1])
            _check_memory(codes.n_samples, codes.n_latents, n_factors)
        return codes, in_use
    if getattr(codes, "ndim", 2) > 2:
        rows = as_array(codes, "representation")
        rows = rows.reshape(*rows.shape[:2], -1)
        codes = rows.mean(axis=2) if pool == "mean" else rows.reshape(len(rows), -1)
        _check_memory(len(codes), codes.shape[1], 1)
    return codes, None


MAX_BYTES = 2**31
"""Largest intermediate result of metrics on flattened codes."""


def _check_memory(n_samples: int, n_columns: int, n_factors: int) -> None:
    """Refuse flattened codes whose tables would not fit in memory.

    The largest intermediate results contain a value for each sample, column and factor, or for each pair of columns.
    """
    needed = 8 * max(n_samples * n_columns * n_factors, n_columns**2)
    if needed > MAX_BYTES:
        raise InputError(
            problem=f"metrics on {n_columns:,} flattened columns require about {file_size(needed)} of memory",
            remedy=(
                "use ",
                Argument("pool", "mean"),
                ", the mean over the positions of each channel, or fewer samples",
            ),
        )


def _columns_of(rep: Representation, latents: Sequence[int]) -> Representation:
    """Return a representation with only some of the latents."""
    keep = list(latents)
    last: tuple[str, ...] = ("mean", "variance", "sampled", "rate", "prior_mean", "prior_variance")
    if rep.n_positions == 1:
        last = (*last, "effect", "effect_error")
    else:
        rep = dataclasses.replace(rep, effect=None, effect_error=None)
    arrays = {name: getattr(rep, name) for name in last}
    selected: dict[str, Any] = {
        # Latents are the last axis of all these arrays, with and without samples.
        name: None if array is None else array[..., keep]
        for name, array in arrays.items()
    }
    covariance = None if rep.covariance is None else rep.covariance[:, keep][:, :, keep]
    if len(rep.code_shape) > 1:
        # Whole channels are selected, so the remaining columns have positions, too.
        n_channels = len(keep) // math.prod(rep.code_shape[1:]) if rep.unit == "channel" else 0
        selected["code_shape"] = (n_channels, *rep.code_shape[1:]) if n_channels else ()
    return dataclasses.replace(rep, **selected, covariance=covariance)


def selected_options(
    metrics: str | Sequence[str], options: Mapping[str, Mapping[str, object]] | None
) -> dict[str, dict[str, Any]]:
    """Check the options of the selected metrics and return those that are not the defaults, without variants.

    >>> selected_options("mig,tc", {"mig": {"n_bins": "10", "n_samples": 2000}})
    {'mig': {'n_bins': 10}}
    """
    _plan(metrics, options)
    checked = {
        name: non_default(family[name], check_options(f"metric {name!r}", family[name], values))
        for name, values in (options or {}).items()
    }
    return {name: changed for name, changed in sorted(checked.items()) if changed}


def selected_metrics(metrics: str | Sequence[str]) -> list[str]:
    """Check the names of metrics and return them as a list; a variant follows a colon, and "all" selects every metric.

    >>> selected_metrics("mig, dci:lasso")
    ['mig', 'dci:lasso']
    """
    return list(_plan(metrics))


def _plan(
    metrics: str | Sequence[str], options: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the metric and options of each token; all tokens are checked before any metric is computed."""
    tokens = (
        [word.strip() for word in metrics.split(",")]
        if isinstance(metrics, str)
        else list(metrics)
        if isinstance(metrics, Iterable)
        else [metrics]
    )
    if not all(isinstance(word, str) for word in tokens):
        raise InputError("metrics", "be names as a list or joined by commas, or 'all'", got=metrics)
    tokens = [name for word in tokens if word for name in (family if word == "all" else [word])]
    plan = {}
    for word in tokens:
        name, colon, variant = word.partition(":")
        values = {**(options or {}).get(name, {}), **({"variant": variant} if colon else {})}
        plan[word] = name, check_options(f"metric {name!r}", family[name], values)
    if not plan:
        raise InputError("metrics", "contain at least one metric, or be 'all'", got="none")
    scored = {name for name, _ in plan.values()}
    for name in options or {}:
        if name not in scored:
            family[name]  # raises an error for unknown names
            raise InputError(
                problem=f"options of {name!r} were passed, but the metrics are {', '.join(sorted(scored))}"
            )
    return plan


@dataclasses.dataclass(frozen=True, eq=False)
class _Arrays:
    """Arrays to score."""

    codes: Any
    variance: Any
    factors: Any
    factor_names: tuple[str, ...]
    factor_kinds: Sequence[str] | None
    representation: Representation | None
    """Origin of the arrays; None if the caller passed them."""


def _arrays(
    representation: Any,
    source: str,
    factors: Any,
    factor_names: Sequence[str],
    factor_kinds: Sequence[str] | None,
) -> _Arrays:
    if not isinstance(representation, Representation):
        if isinstance(representation, (str, bytes, Mapping)) or not hasattr(representation, "__array__"):
            raise InputError(
                "representation",
                "be a Representation or an array (sample, latent)",
                got=type(representation).__name__,
                remedy="encode a model or a run with polariscope.encode(model, data)",
            )
        return _Arrays(representation, None, factors, tuple(factor_names), factor_kinds, None)
    if factors is not None or factor_names:
        raise InputError(
            "factors", "be omitted with a Representation, which includes them", remedy="set them there"
        )
    codes = representation.mean if source == "mean" else representation.sampled
    # An empty tuple means that no kinds are declared.
    kinds = factor_kinds if factor_kinds is not None else representation.factor_kinds or None
    return _Arrays(
        codes,
        representation.variance,
        representation.factors,
        representation.factor_names,
        kinds,
        representation,
    )


class _Pass:
    """Checked arrays, to which the metrics are applied."""

    def __init__(
        self,
        arrays: _Arrays,
        source: str,
        metrics: Collection[str],
        seed: int,
    ) -> None:
        traits = [family.traits(name) for name in metrics]
        needs_factors = any("factors" in trait["needs"] for trait in traits)
        # Types take time to compute, so they are computed only if a metric uses them.
        uses_types = any("types" in trait["uses"] for trait in traits)
        self.arrays = arrays
        self.known: dict[str, Any] = {
            "variance": arrays.variance,
            "seed": seed,
            "source": source,
            **_about_posterior(arrays.representation, uses_types),
        }
        self.names: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.without_factors = Table(arrays.codes, **self.known)
        self.refusal: InputError | None
        try:
            self.with_factors, self.refusal = self._with_factors()
        except InputError as error:
            # Wrong factors of a representation matter only if a metric requires them.
            if needs_factors or arrays.representation is None:  # the caller passed them
                raise
            self.with_factors, self.refusal = None, error

    @property
    def fingerprint(self) -> str:
        """Hash of all arrays that a score can depend on."""
        rep = self.arrays.representation
        parts = {
            "codes": self.without_factors.codes,
            "variance": self.arrays.variance,
            "factors": None if self.with_factors is None else self.with_factors.factors,
            "prior_mean": None if rep is None else rep.prior_mean,
            "prior_variance": None if rep is None else rep.prior_variance,
        }
        return files.digest({name: None if a is None else files.digest_array(a) for name, a in parts.items()})

    def _with_factors(self) -> tuple[Table | None, InputError | None]:
        """Return the table for metrics with factors, or the reason why there is none."""
        if self.arrays.factors is None:
            return None, InputError(
                problem="factors are required, and these samples have none",
                remedy="encode a dataset with known factors, or pass factors together with an array of codes",
            )
        factors = check_factors(self.arrays.factors, self.without_factors.n_samples)
        names = check_names(self.arrays.factor_names, factors.shape[1])
        varies = np.array([len(np.unique(column)) > 1 for column in factors.T])
        if not varies.any():
            return None, InputError(
                problem=f"no factor varies in these {len(factors)} samples", remedy="draw more samples"
            )
        kinds = self.arrays.factor_kinds
        if kinds is not None:
            if len(kinds) != len(names):
                raise InputError(
                    "factor_kinds", f"have a kind for each of the {len(names)} factors", got=len(kinds)
                )
            kinds = [kind for kind, is_varying in zip(kinds, varies, strict=True) if is_varying]
        self.names = tuple(name for name, is_varying in zip(names, varies, strict=True) if is_varying)
        for name, is_varying in zip(names, varies, strict=True):
            if not is_varying:
                self.notes += (f"Factor {name!r} has a single value in these samples and is left out.",)
        described: dict[str, Any] = {"factor_names": self.names, "factor_kinds": kinds}
        return Table(self.arrays.codes, factors[:, varies], **described, **self.known), None

    def score(self, name: str, options: Mapping[str, Any]) -> Score:
        needs = family.traits(name)["needs"]
        if "models" in needs:
            raise InputError(
                problem="it compares several models, but only one was passed",
                remedy=f"in Python, pass a list with the codes of each model to polariscope.metrics[{name!r}]",
            )
        if "factors" not in needs:
            return family[name].of(self.without_factors, **options)
        if self.with_factors is None:
            assert self.refusal is not None
            raise self.refusal
        return family[name].of(self.with_factors, **options)


def _about_posterior(rep: Representation | None, uses_types: bool) -> dict[str, Any]:
    """Return the arguments of a table that describe the posterior and the prior, besides the variances."""
    if rep is None:
        return {}
    types = None
    if uses_types:
        # A value of a channel has the type of the channel.
        types = np.repeat(
            types_of(moments(relative_posterior(rep)), TypeRule.alpha), rep.n_positions
        ).tolist()
    mean, variance = rep.prior_mean, rep.prior_variance
    is_standard = (mean is None or not np.any(mean != 0)) and (variance is None or not np.any(variance != 1))
    return {"types": types, "prior_is_standard": is_standard}
