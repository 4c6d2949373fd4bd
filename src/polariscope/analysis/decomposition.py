"""Decomposition of the rate into mutual information, total correlation and dimension-wise KL."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float

from polariscope.analysis.regime.note import MISFIT, name_latents
from polariscope.analysis.regime.posterior import gaussian_kl, not_drawn, prior_kind
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.core.records import AbstractStoredRecord
from polariscope.core.seeds import generator
from polariscope.core.text import number
from polariscope.numerics.mixtures import LOG_2PI, log_mixture, log_normal_mixture

if TYPE_CHECKING:
    import pandas

CROWD = 10
"""Minimum average number of overlapping encodings; with fewer, q(z) describes the samples instead of the data."""
MIN_VARIANCE, MAX_VARIANCE = 1e-100, 1e30
"""Smallest and largest posterior variance; beyond them inverses and squares overflow."""

PriorForm = Literal["gaussian", "independent", "other", "conditional"]


@dataclasses.dataclass(frozen=True)
class Decomposition(AbstractStoredRecord, remedy="diagnose the model again"):
    """Rate and its three parts, in nats; ``errors`` contains the standard error of each."""

    rate: float
    """E[log q(z|x) − log p(z)] over the draws: the sum of the three parts, to rounding."""
    mutual_information: float
    """I(x; z), the information of the latents about which sample was encoded; at most ``bound``."""
    total_correlation: float
    """KL(q(z) ‖ Π q(z_j)); 0 if the latents are independent."""
    dimension_wise_kl: float | None
    """Σ_j KL(q(z_j) ‖ p(z_j)); None if the marginals of the prior are unknown."""
    aggregate_kl: float | None
    """KL(q(z) ‖ p(z)), the sum of total correlation and dimension-wise KL; None for a conditional prior."""
    latent_kls: tuple[float, ...] | None
    """KL(q(z_j) ‖ p(z_j)) of each latent; None if ``dimension_wise_kl`` is None."""
    latent_information: tuple[float, ...]
    """I(x; z_j) of each latent alone."""
    exact_rate: float | None
    """Rate in closed form, without the noise of the draws, if posterior and prior are Gaussian."""
    errors: dict[str, float]
    """Standard error of each value above, from the spread over draws; slightly too large."""
    n_samples: int
    prior: PriorForm
    notes: tuple[str, ...]
    """Limits of the results."""

    @property
    def n_latents(self) -> int:
        return len(self.latent_information)

    @property
    def bound(self) -> float:
        """log N, the largest mutual information that N samples can show."""
        return math.log(self.n_samples)

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each part of the rate, in nats, with its standard error."""
        import pandas

        rows = [(name, value, self.errors.get(name)) for name, _, value in self._parts()]
        return pandas.DataFrame(rows, columns=["part", "value", "error"]).set_index("part").astype(float)

    def __str__(self) -> str:
        lines = [f"Parts of the rate, {self.n_samples} samples (nats, ± standard error)"]
        lines += [
            f"  {label:<22}{number(value):>9}"
            + (f" ± {number(self.errors[name])}" if name in self.errors else "")
            for name, label, value in self._parts()
        ]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def _parts(self) -> Iterable[tuple[str, str, float | None]]:
        yield "mutual_information", "mutual information", self.mutual_information
        yield "total_correlation", "total correlation", self.total_correlation
        if self.dimension_wise_kl is not None:
            yield "dimension_wise_kl", "dimension-wise KL", self.dimension_wise_kl
        elif self.aggregate_kl is not None:
            yield "aggregate_kl", "KL(q(z) ‖ p(z))", self.aggregate_kl
        yield "rate", "rate", self.rate
        if self.exact_rate is not None:
            yield "exact_rate", "rate in closed form", self.exact_rate


N_SAMPLES = 5000
"""Default number of samples."""
MIN_SAMPLES, AFFORDABLE_LATENTS = 500, 64
"""Minimum number of samples, and number of latents up to which the default is used, for codes with positions."""


def affordable_samples(representation: Representation) -> int:
    """Return the number of samples for a decomposition in a report; fewer than the default for flattened codes.

    The time grows with the square of the number of samples and with the number of values of a code, which a
    convolutional encoder has many of.

    :param representation: codes.
    """
    if len(representation.code_shape) == 1 or representation.n_latents <= AFFORDABLE_LATENTS:
        return N_SAMPLES
    return max(MIN_SAMPLES, int(N_SAMPLES * math.sqrt(AFFORDABLE_LATENTS / representation.n_latents)))


def decompose(
    representation: Representation,
    n_samples: int | None = N_SAMPLES,
    seed: int = 0,
) -> Decomposition:
    r"""Split the rate of a representation into mutual information, total correlation and dimension-wise KL.

    .. math:: \mathrm{E}_x \mathrm{KL}(q(z|x) \,\|\, p(z)) = I_q(x; z)
        + \mathrm{KL}\Bigl( q(z) \,\Big\|\, \prod_j q(z_j) \Bigr) + \sum_j \mathrm{KL}(q(z_j) \,\|\, p(z_j))

    with the aggregate posterior :math:`q(z) = \frac1N \sum_k q(z|x_k)`. It and its marginals are summed exactly over
    the N samples, at one draw z ~ q(z|x_i) per sample, the representation's ``sampled``. The identity holds for every
    draw; only the average over draws is Monte Carlo. ``errors`` are its standard errors, slightly too large: one draw
    per sample varies less than N draws from q(z).

    ``n_samples`` samples are selected with ``seed``, or all if it is None. Time grows with N² · latents, memory does
    not. q(z) is that of these samples, so the mutual information is at most log N, and in expectation at most that of
    all data: it has the form of the InfoNCE bound (Poole et al., On Variational Bounds of Mutual Information,
    poole2019). If few of the encodings overlap, all three parts are properties of the N points, and a note is added.

    A total correlation of 0 means independent latents. A mutual information of 0 means that the posterior is the same
    for every input. For a prior that is not Gaussian, E log p(z) is computed from the representation's ``rate``. If the
    latents are dependent under the prior (a mixture), or are not known to be independent (``prior_is_factorised``,
    which :func:`polariscope.encode` sets), only KL(q(z) ‖ p(z)) is computed. A conditional prior p(z|u) is not a single
    prior, so only mutual information and total correlation are computed. Posteriors with a full covariance require the
    representation's ``covariance``, which :func:`polariscope.encode` adds for models that have one. A posterior that is
    a point has no density and raises an error.

    Codes with positions, (channel, height, width), are decomposed as flattened codes: every value is a latent, so the
    total correlation includes the dependence between positions, and results per latent are those of values. With many
    values almost no encodings overlap; the mutual information is then near log N, and a note is added.

    Reference: mushom2020 Eqs 4.3–4.4 (the sum runs over the n latents; N is printed); Chen et al., Isolating Sources
    of Disentanglement in VAEs (chen2018).

    :param representation: result of :func:`polariscope.encode`.
    :param n_samples: (default 5,000) number of samples to use; None for all.
    :param seed: (default 0) seed of the selection of samples.
    """
    rows = _rows(representation, n_samples, seed)
    mean, variance, z = (
        np.asarray(part, dtype=np.float64)[rows]
        for part in (representation.mean, representation.variance, representation.sampled)
    )
    if variance.min() <= 0:
        raise InputError(
            "variance",
            (
                "be positive: a posterior that is a point has no density, and its mutual information "
                "is always log N"
            ),
            remedy="decompose a model whose posterior is 'diagonal' or 'full'",
        )
    _check_variances(variance)
    misfit = _misfit(representation)
    centre = mean.mean(axis=0)
    mean, z = mean - centre, z - centre  # a common offset would cost digits in the products below
    factor = _factor(representation, rows)

    marginal = -0.5 * (LOG_2PI + np.log(variance) + (z - mean) ** 2 / variance)
    # With a full covariance the columns are conditional densities; their sum is log q(z|x) in both cases.
    own = marginal if factor is None else _chain_rule(z - mean, factor)
    # Computed from differences, not from products like the joint density, so narrow posteriors do not lose digits.
    deviation = np.sqrt(variance)
    noise = (z - mean) / deviation
    columns = zip(mean.T, deviation.T, noise.T, strict=True)
    log_marginals = np.stack([log_normal_mixture(*column) for column in columns], axis=1)
    if z.shape[1] == 1:
        # The joint density of one latent is the marginal, which is computed more precisely.
        log_joint = log_marginals[:, 0]
    else:
        log_joint = log_aggregate(*joint_products(z, mean, variance, factor), own.sum(axis=1))
    form, log_prior, exact = _log_prior(representation, rows, own, z + centre, factor)

    draws: dict[str, Float[np.ndarray, " sample"]] = {
        "rate": (own - log_prior).sum(axis=1),
        "mutual_information": own.sum(axis=1) - log_joint,
        "total_correlation": log_joint - log_marginals.sum(axis=1),
    }
    latent_kls = None
    if form != "conditional":
        draws["aggregate_kl"] = log_joint - log_prior.sum(axis=1)
    if form in ("gaussian", "independent"):
        draws["dimension_wise_kl"] = (log_marginals - log_prior).sum(axis=1)
        latent_kls = tuple((log_marginals - log_prior).mean(axis=0).tolist())
    means = {name: float(values.mean()) for name, values in draws.items()}
    errors = {name: float(values.std(ddof=1)) / math.sqrt(len(z)) for name, values in draws.items()}
    return Decomposition(
        rate=means["rate"],
        mutual_information=means["mutual_information"],
        total_correlation=means["total_correlation"],
        dimension_wise_kl=means.get("dimension_wise_kl"),
        aggregate_kl=means.get("aggregate_kl"),
        latent_kls=latent_kls,
        latent_information=tuple((marginal - log_marginals).mean(axis=0).tolist()),
        exact_rate=exact,
        errors=errors,
        n_samples=len(z),
        prior=form,
        notes=(*misfit, *_notes(means["mutual_information"], len(z), form)),
    )


def _check_variances(variance: Float[np.ndarray, "sample latent"]) -> None:
    """Refuse variances whose inverses or squares overflow."""
    low, high = float(variance.min()), float(variance.max())
    if low < MIN_VARIANCE or high > MAX_VARIANCE:
        raise InputError(
            "variance",
            f"lie between {MIN_VARIANCE:g} and {MAX_VARIANCE:g}",
            got=f"{low if low < MIN_VARIANCE else high:g}",
            remedy="the model might have diverged",
        )


def _misfit(representation: Representation) -> list[str]:
    """Return a note if the codes are not draws from the posterior: the parts of the rate are then meaningless."""
    latents = np.flatnonzero(not_drawn(representation)).tolist()
    return [f"{MISFIT}{name_latents(latents)}, so the parts of the rate are not reliable."] if latents else []


def _rows(representation: Representation, n_samples: int | None, seed: int) -> np.ndarray:
    if not isinstance(representation, Representation):
        raise InputError(
            "representation",
            "be a Representation",
            got=type(representation).__name__,
            remedy="encode a model with polariscope.encode(model, data)",
        )
    available = representation.n_samples
    if available < 2:
        raise InputError(
            problem="a decomposition requires at least 2 samples", got=available, remedy="encode more"
        )
    if n_samples is not None and n_samples < 2:
        raise InputError("n_samples", "be at least 2, or None for all", got=n_samples)
    if n_samples is None or n_samples >= available:
        return np.arange(available)
    return np.sort(generator(seed, "decompose").choice(available, size=n_samples, replace=False))


def _factor(
    representation: Representation, rows: np.ndarray
) -> Float[np.ndarray, "sample latent latent"] | None:
    """Return Cholesky factors of full covariances; None if latents are independent given x."""
    if representation.covariance is None:
        return None
    try:
        return np.linalg.cholesky(representation.covariance[rows].astype(np.float64))
    except np.linalg.LinAlgError:
        raise InputError(
            "covariance",
            "be positive definite for every sample; rounding can break this if a variance is tiny",
            remedy="encode the model in float64",
        ) from None


def _chain_rule(
    deviation: Float[np.ndarray, "sample latent"], factor: Float[np.ndarray, "sample latent latent"]
) -> Float[np.ndarray, "sample latent"]:
    """Return log q(z_j | z_1 … z_{j−1}, x)."""
    noise = np.linalg.solve(factor, deviation[:, :, None])[:, :, 0]
    return -0.5 * (LOG_2PI + noise**2) - np.log(np.diagonal(factor, axis1=1, axis2=2))


def joint_products(
    z: Float[np.ndarray, "sample latent"],
    mean: Float[np.ndarray, "sample latent"],
    variance: Float[np.ndarray, "sample latent"],
    factor: Float[np.ndarray, "sample latent latent"] | None,
) -> tuple[Float[np.ndarray, "sample product"], Float[np.ndarray, "product sample"]]:
    r"""Return two matrices whose product has log q(z_i|x_k) in row i, column k.

    The exponent is a polynomial of degree 2 in z: −½ zᵀPz + zᵀPμ − ½ μᵀPμ with the precision P of x_k.
    """
    ones = np.ones((len(z), 1))
    if factor is None:
        weighted = mean / variance
        # The exponent sums over latents, so one matrix product gives all pairs of draws and samples.
        constant = -0.5 * (LOG_2PI + np.log(variance) + mean * weighted).sum(axis=1, keepdims=True)
        return np.hstack([z * z, z, ones]), np.hstack([-0.5 / variance, weighted, constant]).T
    inverse = np.linalg.inv(factor)
    precision = inverse.transpose(0, 2, 1) @ inverse
    weighted = (precision @ mean[:, :, None])[:, :, 0]
    log_variance = 2 * np.log(np.diagonal(factor, axis1=1, axis2=2))
    constant = -0.5 * (LOG_2PI + log_variance + mean * weighted).sum(axis=1, keepdims=True)
    squares = (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)
    return (
        np.hstack([squares, z, ones]),
        np.hstack([-0.5 * precision.reshape(len(z), -1), weighted, constant]).T,
    )


def log_aggregate(
    left: Float[np.ndarray, "sample product"],
    right: Float[np.ndarray, "product sample"],
    own: Float[np.ndarray, " sample"],
) -> Float[np.ndarray, " sample"]:
    """Return log (1/N) Σ_k q(z_i|x_k) for each i, from :func:`joint_products`.

    ``own`` is log q(z_i|x_i), computed more precisely than in the product.
    """
    # The transpose is not contiguous, and it is read once for every block.
    right = np.ascontiguousarray(right)

    def log_densities(rows: slice) -> Float[np.ndarray, "row sample"]:
        densities = left[rows] @ right
        # The product loses digits on the diagonal, where densities are largest.
        densities[np.arange(len(densities)), np.arange(rows.start, rows.stop)] = own[rows]
        return densities

    return log_mixture(len(left), log_densities)


def _log_prior(
    representation: Representation,
    rows: np.ndarray,
    own: Float[np.ndarray, "sample latent"],
    z: Float[np.ndarray, "sample latent"],
    factor: Float[np.ndarray, "sample latent latent"] | None,
) -> tuple[PriorForm, Float[np.ndarray, "sample latent"], float | None]:
    """Return the form of the prior, log p(z) at the draws for each latent, and the rate in closed form, if any."""
    mean, variance = (
        np.asarray(part, dtype=np.float64)[rows] for part in (representation.mean, representation.variance)
    )
    prior_mean, prior_variance = (
        np.full(mean.shape[1], default) if part is None else np.asarray(part, dtype=np.float64)
        for part, default in ((representation.prior_mean, 0.0), (representation.prior_variance, 1.0))
    )
    conditional = prior_kind(prior_mean, prior_variance) == "conditional"
    prior_mean, prior_variance = (
        part[rows] if part.ndim == 2 else part for part in (prior_mean, prior_variance)
    )

    rate = gaussian_kl(mean, variance, prior_mean, prior_variance).sum(axis=1)
    if factor is not None:  # tr Σ is that of the marginals; log det Σ is not
        rate += 0.5 * np.log(variance).sum(axis=1) - np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    # The rate of the model can be that of a prior whose moments are unknown.
    stated = None if representation.rate is None else np.asarray(representation.rate, dtype=np.float64)[rows]
    if stated is None or np.allclose(stated.sum(axis=1), rate, rtol=1e-3, atol=1e-3):
        form: PriorForm = "conditional" if conditional else "gaussian"
        square = (z - prior_mean) ** 2 / prior_variance
        return form, -0.5 * (LOG_2PI + np.log(prior_variance) + square), float(rate.mean())
    # The model's rate is not that of two Gaussians, so the prior is not Gaussian. If the rate was estimated at the
    # draws, this is log p(z) itself; if it is exact, the mean is still E log p(z).
    if conditional:
        return "conditional", own - stated, None
    return "independent" if representation.prior_is_factorised else "other", own - stated, None


def _notes(information: float, n_samples: int, form: PriorForm) -> Iterable[str]:
    # exp of log N − I is the number of encodings that a draw cannot tell apart.
    overlapping = math.exp(math.log(n_samples) - information)
    if overlapping < CROWD:
        yield (
            f"The mutual information is near its bound, log {n_samples} = {math.log(n_samples):.2f}: on average "
            f"{overlapping:.1f} of the {n_samples} encodings overlap at a draw, so q(z) describes these samples, "
            "not the data. Use more samples."
        )
    if form == "other":
        yield (
            "The latents are not known to be independent under this prior, so the dimension-wise KL is not "
            "defined."
        )
    if form == "conditional":
        yield "The prior depends on the sample, so there is no single p(z) to compare q(z) with."
