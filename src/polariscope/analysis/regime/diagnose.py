"""Diagnosis of a representation."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from jaxtyping import Float

from polariscope.analysis.code_view import Per
from polariscope.analysis.regime.criteria import (
    compare_criteria,
    mixedness,
    mixture,
    order_by_kl,
    order_by_variance,
    polarisation,
)
from polariscope.analysis.regime.latent_types import (
    TYPES,
    alpha_ranges,
    moments,
    sensitivity,
    type_shares,
    types_of,
)
from polariscope.analysis.regime.note import Note
from polariscope.analysis.regime.notes import notes, varying_factors
from polariscope.analysis.regime.posterior import (
    RelativePosterior,
    kl_is_gaussian,
    pooled_rows,
    relative_posterior,
)
from polariscope.analysis.regime.regime import IN_USE, Latent, Positions, Regime, Structure
from polariscope.analysis.regime.rule import TypeRule
from polariscope.analysis.regime.structure import DependenceTables, partners, redundancy, truncation
from polariscope.analysis.regime.use import uses
from polariscope.analysis.representation import Representation, draw_sampled, flatten_codes
from polariscope.core.errors import Argument, InputError
from polariscope.core.seeds import generator
from polariscope.core.types import ArrayInput
from polariscope.numerics.column_blocks import by_columns
from polariscope.numerics.dependence import (
    correlation,
    covariance,
    effective_rank,
    noise_free_covariance,
    total_correlation_of,
)
from polariscope.numerics.information import (
    averaged_mutual_information,
    chance_information_table,
    discretise,
    mutual_information_table,
)
from polariscope.numerics.intervals import mean_with_interval

LARGEST = 1e30  # squares and cubes of larger values overflow; only a diverged encoder produces them


def diagnose(
    representation: Representation | object = None,
    *,
    mean: ArrayInput | None = None,
    variance: ArrayInput | None = None,
    sampled: ArrayInput | None = None,
    prior_mean: ArrayInput | None = None,
    prior_variance: ArrayInput | None = None,
    alpha: float = TypeRule.alpha,
    n_bootstrap: int = TypeRule.n_bootstrap,
    seed: int = 0,
    per: Per | None = None,
) -> Regime:
    """Diagnose a representation: active, mixed and passive latents, the certainty of the types, and the consequences.

    Pass a :class:`~polariscope.analysis.representation.Representation`, or its arrays by name: ``mean`` and
    ``variance`` (σ², not its logarithm), both (sample, latent), and ``sampled``. Without ``sampled``, one draw from
    N(mean, variance) is made with ``seed``. If the prior is not N(0, 1), ``prior_mean`` and ``prior_variance`` have the
    shape (latent,), or (sample, latent) for a conditional prior.

    Codes of a convolutional encoder have the shape (sample, channel, height, width), or any number of axes of positions
    after the channel; :func:`polariscope.encode` records it. By default, each channel is diagnosed as a whole. Moments
    pool samples and positions, the KL of a channel is summed over its positions (nats per observation), and
    ``regime.positions`` contains the KL at each position. Positions of an observation are correlated, so all intervals
    and resamples are over observations. Correlations, mutual information and total correlation are those of the
    channels at the same position; dependence between positions is not included. With ``per="value"``, each value is a
    latent.

    ``alpha`` is the tolerance of the rule (:mod:`polariscope.analysis.regime.latent_types`), between 0 and 0.5.
    ``n_bootstrap`` is the number of resamples from which each confidence is estimated. The same arguments give the same
    result.

    Degenerate cases: a constant latent adds 0 to the total correlation and has correlation 0 with others. Linearly
    dependent latents have an infinite total correlation. A posterior variance of 0 has an infinite KL. Fewer than two
    samples, NaN, negative variances and values beyond 1e30 raise an error.

    :param representation: a Representation, or None if the arrays are passed.
    :param mean: posterior means, (sample, latent).
    :param variance: posterior variances σ², (sample, latent).
    :param sampled: (default: drawn) one draw per sample from the posterior.
    :param prior_mean: (default 0) mean of the prior.
    :param prior_variance: (default 1) variance of the prior.
    :param alpha: (default 0.1) tolerance of the rule that determines the types.
    :param n_bootstrap: (default 200) number of resamples from which each confidence is estimated.
    :param seed: (default 0) seed of the resamples, and of the draw if ``sampled`` is not passed.
    :param per: (default: that of the representation, "channel") unit of codes with several axes: "channel" or "value".

    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=(1000, 2)) * [1, 0.01]
    >>> regime = diagnose(mean=mean, variance=np.full((1000, 2), [0.01, 1.0]))
    >>> regime.types
    ['active', 'passive']
    """
    rule = TypeRule(alpha, n_bootstrap)
    arrays = {
        "mean": mean,
        "variance": variance,
        "sampled": sampled,
        "prior_mean": prior_mean,
        "prior_variance": prior_variance,
    }
    checked = _representation(representation, arrays, seed)
    checked = checked if per is None else checked.viewed(per)
    _check_size(checked)
    regime = _diagnose(checked, rule, seed)
    drawn = [Note("drawn")] if checked.sampled_was_drawn else []
    view = []
    if len(checked.code_shape) > 1:
        code = "channels" if checked.unit == "channel" else "flattened"
        view = [Note(code, code_shape=list(checked.code_shape))]
    notes = [Note.from_text(text) for text in checked.notes]
    return dataclasses.replace(regime, notes=(*view, *drawn, *notes, *regime.notes))


def _diagnose(representation: Representation, rule: TypeRule, seed: int) -> Regime:
    # For channels there is a row for each sample and position. Latents are used as they are.
    rows, size = pooled_rows(representation), representation.n_positions
    sources = {"mean": rows.mean, "sampled": rows.sampled}
    covariances = {name: covariance(array) for name, array in sources.items()}
    noise_free = noise_free_covariance(rows.mean, rows.variance, rows.covariance)
    binned = {name: discretise(array) for name, array in sources.items()}
    informations = {name: mutual_information_table(bins) for name, bins in binned.items()}
    chances = {name: chance_information_table(bins, seed, name, size) for name, bins in binned.items()}
    # Everything above is computed and freed first, because the moments in float64 are twice as large as the codes.
    del binned
    posterior = relative_posterior(representation)
    latents = _latents(posterior, rule, generator(seed, "diagnose", "bootstrap"))
    types = [latent.type for latent in latents]
    not_passive = np.array([name != "passive" for name in types])
    # Ranks of a polarised model: passive means are nearly constant, but passive samples are noise of the prior's
    # variance.
    expected = {"mean": int(not_passive.sum()), "sampled": len(types)}
    explained = redundancy(covariances["mean"], not_passive, int(posterior.n_effective.min()))
    latents = tuple(
        dataclasses.replace(
            latent,
            mixedness=mixedness(latent.type, latent.known, latent.unknown, latent.mean_of_ratio),
            redundancy=share,
            std_at_position=std,
        )
        for latent, share, std in zip(latents, explained, _std_at_position(posterior), strict=True)
    )
    structures = {
        name: _structure(covariances[name], informations[name], chances[name], expected[name])
        for name in sources
    }
    tables = DependenceTables(
        (covariances["mean"], covariances["sampled"], noise_free),
        (informations["mean"], informations["sampled"]),
        (chances["mean"], chances["sampled"]),
    )
    use = uses(representation)
    return Regime(
        latents=latents,
        order=tuple(order_by_kl(posterior).tolist()),
        order_by_variance=tuple(order_by_variance(posterior).tolist()),
        # fsum does not depend on the order of the latents.
        kl=math.fsum(latent.kl for latent in latents),
        trace=math.fsum(latent.mean_of_variance for latent in latents),
        mean=structures["mean"],
        sampled=structures["sampled"],
        noise_free_total_correlation=total_correlation_of(noise_free),
        truncation=truncation(types, tables),
        criteria=compare_criteria(posterior, not_passive),
        sensitivity=sensitivity(moments(posterior), rule.alpha),
        polarisation=polarisation(posterior),
        notes=tuple(
            note if representation.unit == "latent" else note.of_channels()
            for note in notes(rows, posterior, latents, covariances, rule.alpha)
        ),
        n_samples=representation.n_samples,
        alpha=rule.alpha,
        n_bootstrap=rule.n_bootstrap,
        seed=seed,
        prior=posterior.prior,
        has_gaussian_kl=bool(kl_is_gaussian(posterior)),
        meaning_of_passive=representation.meaning_of_passive,
        n_factors=varying_factors(representation),
        use=use,
        training=representation.training,
        fit=representation.fit,
        dependence_in_use=tables.of(IN_USE, [index for index, each in enumerate(use) if each.in_use]),
        positions=_positions(representation, posterior),
    )


def _positions(representation: Representation, posterior: RelativePosterior) -> Positions | None:
    """Return the results on positions; None if latents have none."""
    if representation.unit == "latent":
        return None
    rate = representation.rate
    # The KL of each value, which the posterior of a channel contains only as a sum.
    kl = relative_posterior(representation.viewed("value")).kl if rate is None else rate.astype(np.float64)
    n_units, size = representation.n_units, representation.n_positions
    by_position = mean_with_interval(kl)[0].reshape(n_units, size)
    rho = np.zeros(n_units) if posterior.correlation is None else posterior.correlation
    return Positions(
        code_shape=representation.code_shape,
        kl=tuple(map(tuple, by_position.tolist())),
        correlation=tuple(rho.tolist()),
        n_effective=tuple(posterior.n_effective.tolist()),
    )


def _latents(
    posterior: RelativePosterior, rule: TypeRule, generator: np.random.Generator
) -> tuple[Latent, ...]:
    moments_of_latents = moments(posterior)
    types = types_of(moments_of_latents, rule.alpha).tolist()
    shares = type_shares(posterior, alpha=rule.alpha, n_bootstrap=rule.n_bootstrap, generator=generator)
    ranges = alpha_ranges(moments_of_latents, rule.alpha)
    # A KL is not negative, but a model's single-draw estimate of it can be.
    kl, interval = mean_with_interval(
        posterior.kl, at_least=0.0 if posterior.kl is posterior.gaussian_kl else -np.inf
    )
    labels = mixture(posterior.variance, rule.alpha)
    mean, variance = posterior.absolute_mean, posterior.absolute_variance
    columns = zip(
        kl.tolist(),
        interval.tolist(),
        mean.mean(axis=0).tolist(),
        by_columns(lambda values: values.std(axis=0), mean).tolist(),
        variance.mean(axis=0).tolist(),
        by_columns(lambda values: values.var(axis=0), variance).tolist(),
        moments_of_latents.mean.tolist(),
        moments_of_latents.variance.tolist(),
        labels.known.tolist(),
        labels.unknown.tolist(),
        labels.labels,
        strict=True,
    )
    return tuple(
        Latent(
            j,
            types[j],
            float(shares[j, TYPES.index(types[j])]),
            dict(zip(TYPES, shares[j].tolist(), strict=True)),
            ranges[j],
            values[0],
            (values[1][0], values[1][1]),
            *values[2:],
        )
        for j, values in enumerate(columns)
    )


def _std_at_position(posterior: RelativePosterior) -> list[float | None]:
    """Return the root of the variance of μ over samples at the same position, averaged over positions.

    The values are None for latents, which have no positions.
    """
    size = posterior.n_positions
    if size == 1:
        return [None] * posterior.mean.shape[1]
    columns = (column.reshape(-1, size) for column in posterior.absolute_mean.T)
    return [math.sqrt(column.var(axis=0).mean()) for column in columns]


def _structure(
    covariance: Float[np.ndarray, "latent latent"],
    information: Float[np.ndarray, "latent latent"],
    chance: Float[np.ndarray, "latent latent"],
    predicted_rank: int,
) -> Structure:
    correlations = correlation(covariance)
    return Structure(
        total_correlation=total_correlation_of(covariance),
        averaged_mutual_information=averaged_mutual_information(information),
        effective_rank=effective_rank(covariance),
        predicted_rank=predicted_rank,
        correlation=tuple(map(tuple, correlations.tolist())),
        mutual_information=tuple(map(tuple, information.tolist())),
        partners=partners(correlations),
        chance_mutual_information=averaged_mutual_information(chance),
    )


def _check_size(representation: Representation) -> None:
    if representation.n_samples < 2:
        raise InputError(
            problem="a diagnosis requires at least 2 samples",
            got=representation.n_samples,
            remedy="types are computed from moments over samples: encode a few thousand",
        )
    for name in ("mean", "variance", "sampled", "prior_mean", "prior_variance", "rate"):
        array = getattr(representation, name)
        if array is not None and np.abs(array).max() > LARGEST:
            raise InputError(
                name,
                f"stay below {LARGEST:g}",
                got=f"{np.abs(array).max():.3g}",
                remedy="the model has diverged",
            )
    narrow = representation.prior_variance
    if narrow is not None and narrow.min() < 1 / LARGEST:
        raise InputError(
            "prior_variance",
            f"be at least {1 / LARGEST:g}",
            got=f"{narrow.min():.3g}",
            remedy="it has collapsed",
        )


def _representation(
    representation: Representation | Any, arrays: dict[str, Any], seed: int
) -> Representation:
    """Return the representation, or build it from the arrays; without a sampled array one is drawn."""
    passed = [name for name, array in arrays.items() if array is not None]
    if isinstance(representation, Representation):
        if passed:
            raise InputError(
                problem="a Representation and arrays were both passed",
                got=f"a Representation and {', '.join(passed)}",
                remedy="pass one or the other",
            )
        fields = {name: getattr(representation, name) for name in (*arrays, "rate")}
        floats: dict[str, Any] = {k: _as_float(k, array) for k, array in fields.items() if array is not None}
        return dataclasses.replace(representation, **floats)
    if representation is not None:
        raise InputError(
            "the first argument",
            "be a Representation",
            got=type(representation).__name__,
            remedy=(
                "encode a model with polariscope.encode(model, data), or pass arrays by name: ",
                Argument("mean"),
                ", ",
                Argument("variance"),
                " and ",
                Argument("sampled"),
            ),
        )
    missing = [name for name in ("mean", "variance") if arrays[name] is None]
    if missing:
        raise InputError(
            problem=f"diagnose requires {' and '.join(missing)}",
            remedy=(
                "pass a Representation, or ",
                Argument("mean"),
                " and ",
                Argument("variance"),
                " arrays of shape (sample, latent) or (sample, channel, height, width)",
            ),
        )
    checked: dict[str, Any] = {name: _as_float(name, arrays[name]) for name in passed}
    checked, code_shape = flatten_codes(checked)
    checked["code_shape"] = code_shape
    if "sampled" not in checked:
        # Representation validates its arrays; without that, the draw would take the root of a negative variance.
        valid = Representation(**checked, sampled=checked["mean"])
        checked |= {"sampled": draw_sampled(valid.mean, valid.variance, seed), "sampled_was_drawn": True}
    return Representation(**checked)


def _as_float(name: str, value: Any) -> Float[np.ndarray, "*_"]:
    from polariscope.core.arrays import real_numbers

    array = real_numbers(value, name)
    # float32 is not copied, because codes can be large. float16 is converted, because its squares overflow
    # beyond 255.
    return array.astype(np.float64) if array.dtype.kind != "f" or array.dtype == np.float16 else array
