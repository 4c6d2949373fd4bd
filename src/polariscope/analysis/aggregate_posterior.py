"""Aggregate posterior q(z), the distribution of the codes of all observations: its scale and its fit to the prior."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from polariscope.analysis.code_view import Unit
from polariscope.analysis.regime.posterior import kl_is_gaussian, relative_posterior
from polariscope.analysis.regime.use import uses
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.core.records import AbstractRecord, AbstractStoredRecord
from polariscope.core.seeds import generator
from polariscope.core.tables import TextTable
from polariscope.core.text import percent, readable
from polariscope.numerics.intervals import NORMAL_QUANTILE, Interval
from polariscope.numerics.two_samples import (
    Coverage,
    Distance,
    coverage,
    energy_distance,
    kolmogorov_distance,
    sliced_coverage,
)

if TYPE_CHECKING:
    import pandas

MAX_COMPARED = 1000
"""Maximum number of draws of q(z) and of the prior that are compared."""
MAX_PRODUCTS = 2_500_000_000
"""Maximum number of products of values for the distances between two samples."""
MIN_COMPARED = 40
"""Minimum number of draws for a comparison with the prior."""


@dataclasses.dataclass(frozen=True)
class AggregateMoments(AbstractRecord):
    """Mean and standard deviation of q(z), with 95 % intervals over observations."""

    mean: float
    mean_interval: Interval
    std: float
    std_interval: Interval

    @property
    def scale(self) -> float:
        """Factor 1/SD that gives codes a standard deviation of 1; infinite for constant codes."""
        return 1 / self.std if self.std > 0 else math.inf

    @property
    def scale_interval(self) -> Interval:
        """95 % interval of the scale factor."""
        low, high = (1 / end if end > 0 else math.inf for end in self.std_interval)
        return high, low


@dataclasses.dataclass(frozen=True)
class AggregateMarginal(AbstractRecord):
    """Distribution q(z_j) of one latent or channel."""

    index: int
    moments: AggregateMoments
    variance_of_mean: float
    """Var μ, over observations and positions."""
    mean_of_variance: float
    """E σ². The two add up to the variance of q(z_j)."""
    prior_mean: float | None
    """Mean of the prior, averaged over positions; None if it depends on the sample."""
    prior_std: float | None
    """Standard deviation of the prior."""
    distance: Distance | None
    """Kolmogorov–Smirnov distance from the prior; None without a comparison (``notes``)."""
    coverage: Coverage | None
    """Share of the prior's mass that contains data."""


@dataclasses.dataclass(frozen=True)
class AggregatePosterior(AbstractStoredRecord, remedy="compute it again"):
    """Moments of q(z) of each latent or channel and of all values, and the comparison of q(z) with the prior."""

    marginals: tuple[AggregateMarginal, ...]
    moments: AggregateMoments
    """Moments over all values of the codes: one scale for the whole code."""
    distance: Distance | None
    """Energy distance of whole codes from the prior, in units of the prior's standard deviations."""
    coverage: Coverage | None
    """Share of the prior's mass that contains data, averaged over random directions in the space of the latents in
    use."""
    in_use: tuple[int, ...]
    """Latents or channels in use; all of them if none is."""
    unit: Unit
    n_samples: int
    n_positions: int
    n_compared: int
    """Number of draws of q(z), and of the prior, that are compared; 0 without a comparison."""
    seed: int
    notes: tuple[str, ...] = ()
    """Reasons for missing results."""

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each latent or channel."""
        import pandas

        rows = []
        for marginal in self.marginals:
            distance, share = marginal.distance, marginal.coverage
            rows.append(
                {
                    self.unit: marginal.index,
                    **_columns("mean", marginal.moments.mean, marginal.moments.mean_interval),
                    **_columns("std", marginal.moments.std, marginal.moments.std_interval),
                    **_columns("scale", marginal.moments.scale, marginal.moments.scale_interval),
                    "variance_of_mean": marginal.variance_of_mean,
                    "mean_of_variance": marginal.mean_of_variance,
                    "prior_mean": marginal.prior_mean,
                    "prior_std": marginal.prior_std,
                    "distance": None if distance is None else distance.value,
                    "distance_null_high": None if distance is None else distance.null_high,
                    "p_value": None if distance is None else distance.p_value,
                    **_columns(
                        "coverage",
                        *((None, (None, None)) if share is None else (share.value, share.interval)),
                    ),
                }
            )
        return pandas.DataFrame(rows).set_index(self.unit).astype(float)

    @property
    def summary(self) -> str:
        """Sentences about the scale of the codes and the fit to the prior."""
        moments = self.moments
        low, high = map(readable, moments.scale_interval)
        parts = [
            f"Aggregate posterior: mean {readable(moments.mean)}, SD {readable(moments.std)} over all values, so the "
            f"scale factor is {readable(moments.scale)} ({low} to {high})."
        ]
        if self.distance is not None and self.coverage is not None:
            differs = "differs" if self.distance.p_value <= 0.05 else "does not differ significantly"
            where = "at one position" if self.n_positions > 1 else "along a random direction"
            parts.append(
                f"It {differs} from the prior: the energy distance of whole codes is {readable(self.distance.value)}, "
                f"and the 95 % quantile for equal distributions is {readable(self.distance.null_high)} (p = "
                f"{self.distance.p_value:.2g})."
            )
            parts.append(
                f"{percent(self.coverage.value)} of the prior's mass {where} contains data "
                f"({percent(self.coverage.expected)} for equal distributions)."
            )
        return " ".join([*parts, *self.notes])

    def __str__(self) -> str:
        headers = (self.unit, "mean", "SD", "scale 1/SD", "95 %", "KS distance", "chance", "covered")
        table = TextTable(*headers, numbers=headers[:4] + headers[5:])
        for marginal in self.marginals:
            distance, share = marginal.distance, marginal.coverage
            table.add_row(
                str(marginal.index),
                *map(readable, (marginal.moments.mean, marginal.moments.std, marginal.moments.scale)),
                " to ".join(map(readable, marginal.moments.scale_interval)),
                readable(None if distance is None else distance.value),
                readable(None if distance is None else distance.null_high),
                percent(None if share is None else share.value),
            )
        return f"{self.summary}\n\n{table}"


def _columns(
    name: str, value: float | None, interval: tuple[float | None, float | None]
) -> dict[str, float | None]:
    return {name: value, f"{name}_low": interval[0], f"{name}_high": interval[1]}


def aggregate_posterior(
    representation: Representation,
    draws: Float[np.ndarray, "draw latent"] | None = None,
    *,
    seed: int = 0,
) -> AggregatePosterior:
    r"""Compute the scale of the codes and their distance from the prior, per latent or channel and for all values.

    The moments of the aggregate posterior :math:`q(z) = \mathrm{E}_x\, q(z|x)` are exact, without the noise of draws:

    .. math:: \mathrm{E}_q z = \mathrm{E}\,\mu, \qquad \mathrm{Var}_q z = \mathrm{Var}\,\mu + \mathrm{E}\,\sigma^2

    with positions of a channel pooled. Models that are trained on the codes, such as latent diffusion, divide them by
    the SD: ``scale`` is the value for ``scaling_factor`` (all values) or, per channel, for ``latents_mean`` and
    ``latents_std``. Intervals are over observations: each observation contributes the average over its positions, since
    its positions are correlated.

    The comparison with the prior uses one draw z ~ q(z|x) per observation, so rows are independent. For whole codes,
    with all latents and positions, it gives the energy distance with its permutation null
    (:func:`polariscope.numerics.two_samples.energy_distance`). For each latent, or each channel at one random position
    of every observation, it gives the Kolmogorov–Smirnov distance with its null distribution, and the share of the
    prior's mass that contains data (:func:`polariscope.numerics.two_samples.coverage`). In the space of the latents in
    use, it gives this share averaged over random directions
    (:func:`polariscope.numerics.two_samples.sliced_coverage`). The share is 0.97 if q(z) is the prior, and small if
    codes fill a small part of it, so that most samples from the prior are far from any data. It does not show
    dependence between positions, which the energy distance includes. All values are relative to the prior's moments. At
    most 1,000 draws are compared, and fewer whole codes if they have more than 2,500 values.

    A deterministic encoder has σ² = 0, and q(z) is the distribution of its codes. A conditional prior is not a single
    prior, so only moments are computed; the same holds for a prior that is not Gaussian, unless ``draws`` are passed,
    and for fewer than 40 observations.

    :param representation: result of :func:`polariscope.encode`.
    :param draws: (default None: Gaussian draws with the prior's moments) draws of the prior, flattened like the codes.
    :param seed: (default 0) seed of the positions, the draws of the prior, the permutations and the directions.

    >>> codes = np.random.default_rng(0).normal(size=(2000, 1)) * 0.5
    >>> rep = Representation(codes, np.full((2000, 1), 0.75), codes)
    >>> round(aggregate_posterior(rep).moments.std, 1)
    1.0
    """
    if representation.n_samples < 2:
        raise InputError(
            problem="an aggregate posterior requires at least 2 samples", got=1, remedy="encode more"
        )
    relative = relative_posterior(representation)
    notes = []
    if relative.prior == "conditional":
        notes.append("The prior depends on the sample, so there is no single p(z) to compare q(z) with.")
    elif draws is None and not kl_is_gaussian(relative):
        notes.append(
            "The prior is not Gaussian and no draws of it are available, so q(z) is not compared with it."
        )
    elif representation.n_samples < MIN_COMPARED:
        notes.append(f"At least {MIN_COMPARED} observations are required for a comparison with the prior.")
    rows = None if notes else _compared(representation, draws, seed)
    in_use = [index for index, use in enumerate(uses(representation)) if use.in_use]
    in_use = in_use or list(range(representation.n_units))
    distance = share = None
    if rows is not None:
        # Fewer rows of large codes, because the time grows with their number of values.
        n_rows = max(MIN_COMPARED, math.isqrt(MAX_PRODUCTS // representation.n_latents))
        distance = energy_distance(
            rows.codes[:n_rows], rows.prior[:n_rows], generator(seed, "aggregate", "permutation")
        )
        share = sliced_coverage(
            rows.codes_at_position[:, in_use],
            rows.prior_at_position[:, in_use],
            generator(seed, "aggregate", "directions"),
        )
    return AggregatePosterior(
        marginals=tuple(_marginal(representation, unit, rows) for unit in range(representation.n_units)),
        moments=_moments(representation.mean, representation.variance),
        distance=distance,
        coverage=share,
        in_use=tuple(in_use),
        unit=representation.unit,
        n_samples=representation.n_samples,
        n_positions=representation.n_positions,
        n_compared=0 if rows is None else len(rows.codes),
        seed=seed,
        notes=tuple(notes),
    )


class _Rows(NamedTuple):
    """Independent draws of q(z) and of the prior, both relative to the prior's moments."""

    codes: Float[np.ndarray, "row latent"]
    prior: Float[np.ndarray, "row_of_prior latent"]
    codes_at_position: Float[np.ndarray, "row unit"]
    """The codes of each row at one random position."""
    prior_at_position: Float[np.ndarray, "row_of_prior unit"]
    is_gaussian: bool
    """If True, the prior is N(0, 1) in these units."""


def _compared(representation: Representation, draws: np.ndarray | None, seed: int) -> _Rows:
    """Return one draw of q(z) per observation, and as many draws of the prior."""
    draw = generator(seed, "aggregate", "draws")
    chosen = draw.permutation(representation.n_samples)[:MAX_COMPARED]
    codes = _relative(representation.sampled[chosen], representation)
    if draws is None:
        prior = draw.normal(size=codes.shape)
    elif draws.ndim != 2 or draws.shape[1] != representation.n_latents:
        raise InputError(
            "draws",
            f"have shape (draw, latent) with {representation.n_latents} latents",
            got=draws.shape,
            remedy="draw them from the prior of the model that encoded the codes",
        )
    else:
        prior = _relative(draws[draw.permutation(len(draws))[: len(codes)]], representation)
    return _Rows(
        codes,
        prior,
        _at_random_positions(codes, representation, draw),
        _at_random_positions(prior, representation, draw),
        draws is None,
    )


def _relative(
    values: Float[np.ndarray, "row latent"], representation: Representation
) -> Float[np.ndarray, "row latent"]:
    """Return values relative to the prior's moments."""
    values = values.astype(np.float64)
    for moment, relate in (
        (representation.prior_mean, np.subtract),
        (representation.prior_variance, _divide),
    ):
        if moment is not None:
            # A prior that is stored for each sample is the same for all of them.
            values = relate(values, moment if moment.ndim == 1 else moment[0])
    return values


def _at_random_positions(
    values: Float[np.ndarray, "row latent"], representation: Representation, draw: np.random.Generator
) -> Float[np.ndarray, "row unit"]:
    """Return the values of all channels at one random position of each row."""
    by_unit = values.reshape(len(values), representation.n_units, representation.n_positions)
    positions = draw.integers(representation.n_positions, size=len(values))
    return np.take_along_axis(by_unit, positions[:, None, None], axis=2)[:, :, 0]


def _divide(values: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return values / np.sqrt(variance.astype(np.float64))


def _marginal(representation: Representation, unit: int, rows: _Rows | None) -> AggregateMarginal:
    size = representation.n_positions
    columns = slice(unit * size, (unit + 1) * size)
    mean, variance = (array[:, columns] for array in (representation.mean, representation.variance))
    prior = [
        np.full(size, default) if moment is None else moment[..., columns].astype(np.float64)
        for moment, default in ((representation.prior_mean, 0.0), (representation.prior_variance, 1.0))
    ]
    distance = share = None
    if rows is not None:
        codes, draws = rows.codes_at_position[:, unit], rows.prior_at_position[:, unit]
        distance = kolmogorov_distance(codes, None if rows.is_gaussian else draws)
        share = coverage(codes, draws)
    is_single = all(moment.ndim == 1 or not np.ptp(moment, axis=0).any() for moment in prior)
    return AggregateMarginal(
        index=unit,
        moments=_moments(mean, variance),
        variance_of_mean=float(mean.astype(np.float64).var()),
        mean_of_variance=float(variance.mean(dtype=np.float64)),
        prior_mean=float(prior[0].mean()) if is_single else None,
        # The variance of a mixture over positions, for a prior that differs between them.
        prior_std=math.sqrt(float(prior[1].mean() + prior[0].var())) if is_single else None,
        distance=distance,
        coverage=share,
    )


def _moments(
    mean: Float[np.ndarray, "sample column"], variance: Float[np.ndarray, "sample column"]
) -> AggregateMoments:
    """Return the moments of q(z) over all columns, with intervals over samples."""
    n = len(mean)
    centre = float(mean.mean(dtype=np.float64))
    # One value per sample, because columns of a sample depend on each other.
    means = mean.mean(axis=1, dtype=np.float64)
    squares = np.array(
        [
            ((row.astype(np.float64) - centre) ** 2 + noise).mean()
            for row, noise in zip(mean, variance, strict=True)
        ]
    )
    total = float(squares.mean())
    std = math.sqrt(total)
    margin = NORMAL_QUANTILE * float(means.std(ddof=1)) / math.sqrt(n)
    # On the logarithmic scale the interval of a standard deviation stays positive.
    relative = NORMAL_QUANTILE * float(squares.std(ddof=1)) / math.sqrt(n) / (2 * total) if total > 0 else 0.0
    return AggregateMoments(
        mean=centre,
        mean_interval=(centre - margin, centre + margin),
        std=std,
        std_interval=(std * math.exp(-relative), std * math.exp(relative)),
    )
