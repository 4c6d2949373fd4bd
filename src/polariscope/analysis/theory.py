r"""Linear variational autoencoders: the polarised regime in closed form.

Decoder :math:`p(x|z) = \mathcal{N}(Wz + b, \gamma I_m)`, posterior :math:`\mathcal{N}(\mu(x), \Sigma)`, loss
:math:`-\mathbb{E} \log p(x|z) + \beta\, \mathrm{KL}(q(z|x) \,\|\, p(z))` in nats. :func:`linear_vae` returns the global
optimum, :func:`linear_posterior` the best posterior for a given W and prior, and :func:`conditional_prior` the best
prior p(z|u) of an iVAE for given posteriors.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Bool, Float, Shaped

from polariscope.core.errors import InputError
from polariscope.core.records import AbstractRecord

if TYPE_CHECKING:
    import pandas


@dataclasses.dataclass(frozen=True, eq=False)
class LinearSolution(AbstractRecord):
    """Optimum of a linear β-VAE, with one entry per latent, by eigenvalue, largest first; surplus latents are last."""

    loss: float
    """Expected loss in nats per sample."""
    active: Bool[np.ndarray, " latent"]
    singular_values: Float[np.ndarray, " latent"]
    """Singular values of the decoder W = UΛPᵀ, with principal directions U and a signed permutation P."""
    variances: Float[np.ndarray, " latent"]
    """Posterior variance, the same for every input."""
    mean_variances: Float[np.ndarray, " latent"]
    """Variance of the posterior mean over the data; it and the posterior variance add up to 1."""
    kls: Float[np.ndarray, " latent"]
    """Mean KL from the prior, in nats."""
    beta: float
    gamma: float
    """Variance of the decoder, as passed or as learned."""

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each latent."""
        import pandas

        columns = {
            **{"active": self.active, "singular_value": self.singular_values, "variance": self.variances},
            **{"mean_variance": self.mean_variances, "kl": self.kls},
        }
        return pandas.DataFrame(columns).rename_axis("latent")

    @property
    def n_active(self) -> int:
        return int(self.active.sum())

    @property
    def trace(self) -> float:
        """FONDUE's statistic Tr Var[z] − Tr Var[μ] = Σ_j E[σ_j²]; a passive latent adds 1."""
        return float(self.variances.sum())

    @property
    def rate(self) -> float:
        """KL from the prior, summed over latents, in nats."""
        return float(self.kls.sum())

    @property
    def distortion(self) -> float:
        """Expected −log p(x|z), in nats."""
        return self.loss - self.beta * self.rate


def linear_vae(
    eigenvalues: Float[np.ndarray, " feature"],
    n_latents: int,
    *,
    beta: float = 1.0,
    gamma: float | None = 1.0,
) -> LinearSolution:
    r"""Return the optimum of a linear β-VAE with a diagonal posterior and prior N(0, I).

    ``eigenvalues`` are all m eigenvalues λ_i of the data's covariance, in any order. ``gamma`` is the decoder's
    variance γ, or None for the learned one (β = 1 only). With λ_1 ≥ λ_2 ≥ …, component i ≤ n is active if and only if
    λ_i > βγ, and then

    .. math:: \Lambda_{ii}^2 = \lambda_i - \beta\gamma, \quad \sigma_i^2 = \beta\gamma/\lambda_i, \quad
        \mathrm{Var}[\mu_i] = 1 - \beta\gamma/\lambda_i, \quad \mathrm{KL}_i = \tfrac12 \log(\lambda_i/\beta\gamma);

    otherwise the component is passive, and these are 0, 1, 0 and 0. The loss is

    .. math:: \tfrac12 \Bigl( m \log 2\pi\gamma + \frac1\gamma \Bigl[ \sum_{i \le n} \min(\lambda_i, \beta\gamma)
        + \sum_{i > n} \lambda_i \Bigr] \Bigr) + \beta \sum_{i \le n} \mathrm{KL}_i

    As γ → 0, every direction that varies becomes active, without noise. As β → ∞, all latents become passive. For
    β = 1, a learned γ is the mean of the discarded eigenvalues, as in probabilistic PCA. If all discarded directions
    are constant, γ would be 0 and the loss minus infinity, which raises an error. Eigenvalues are assumed to be
    distinct; within an eigenspace the directions are arbitrary (zietlow2022 Prop. 1), and the results still hold.

    Reference: bonheme2023 §4.2–4.3 for the posterior given W; Tipping & Bishop, Probabilistic principal component
    analysis (tipping1999), for γ. The optimum of W with β is derived here: replace γ by βγ in theirs.

    >>> result = linear_vae(np.array([4.0, 1.0, 0.5]), 2, beta=2.0, gamma=1.0)
    >>> result.active, result.variances
    (array([ True, False]), array([0.5, 1. ]))
    """
    values = np.sort(np.asarray(eigenvalues, dtype=np.float64))[::-1]
    _check(n_latents, values, beta, gamma)
    largest, rest = values[:n_latents], values[n_latents:]
    if gamma is None:
        gamma = _learned(values, rest)
    noise = beta * gamma
    # Latents beyond the number of features have the eigenvalue 0.
    largest = np.pad(largest, (0, n_latents - len(largest)))
    active = largest > noise
    ratios = np.divide(largest, noise, out=np.ones_like(largest), where=active)  # λ/βγ, or 1
    kls = 0.5 * np.log(ratios)
    error = np.minimum(largest, noise).sum() + rest.sum()
    distortion = 0.5 * (len(values) * math.log(2 * math.pi * gamma) + error / gamma)
    return LinearSolution(
        loss=float(distortion + beta * kls.sum()),
        active=active,
        singular_values=np.sqrt(np.maximum(0.0, largest - noise)),
        variances=1 / ratios,
        mean_variances=1 - 1 / ratios,
        kls=kls,
        beta=beta,
        gamma=gamma,
    )


FLOOR = 1e-4
"""Default lower limit of a learned decoder variance, relative to the mean variance of the features."""


@dataclasses.dataclass(frozen=True, eq=False)
class LinearSize(AbstractRecord):
    """Number of latents that a linear VAE needs, with the evidence."""

    n_latents: int
    """Largest n such that models with 1 … n latents all have Σ E[σ²] within the threshold; 0 if n = 1 exceeds it."""
    gamma: float
    """Variance of the decoder with ``n_latents`` latents; for 0 latents, that with one."""
    traces: Float[np.ndarray, " n"]
    """Σ E[σ²] for n = 1, 2, …"""
    gammas: Float[np.ndarray, " n"]
    """Variance of the decoder for n = 1, 2, …"""
    is_at_end: bool
    """If True, every n is within the threshold, so the result is limited by the size of the data."""

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each number of latents: Σ E[σ²] and the variance of the decoder."""
        import pandas

        index = pandas.RangeIndex(1, len(self.traces) + 1, name="n_latents")
        return pandas.DataFrame({"trace": self.traces, "gamma": self.gammas}, index=index)


def linear_size(
    eigenvalues: Float[np.ndarray, " feature"],
    threshold: float = 1.0,
    n_samples: int | None = None,
    *,
    gamma: float | None = None,
    floor: float | None = None,
) -> LinearSize:
    r"""Return the number of latents that FONDUE selects with optimal linear VAEs, without training.

    It is the largest n such that no n' ≤ n exceeds the threshold t:

    .. math:: \sum_{i \le n'} \min(1, \gamma_{n'} / \lambda_i) \le t, \qquad
        \gamma_n = \max\Bigl( \mathrm{floor}, \frac{1}{m - n} \sum_{i > n} \lambda_i \Bigr)

    with the eigenvalues λ_1 ≥ … ≥ λ_m of the data's covariance. The learned variance γ_n is the mean of the discarded
    eigenvalues. It falls with n, so the sum does not always rise with n. Near m it usually falls again, so models with
    almost as many latents as features are within the threshold although smaller ones exceed it. Such larger n are
    ignored. The largest n considered is min(m, samples) − 1, but at least 1, because γ needs a discarded direction.

    The sums equal those of :func:`linear_vae` for each n (also with ``gamma=None``), but include the floor. The floor
    matters for data without noise once no direction is left: their result is the number of directions.

    :param eigenvalues: all m eigenvalues of the data's covariance, in any order.
    :param threshold: (default 1) maximum Σ E[σ²]; above it a latent is unused.
    :param n_samples: (default None: many) number of samples from which the covariance was computed.
    :param gamma: (default None: learned) variance of the decoder.
    :param floor: (default 1e-4 of the mean eigenvalue, as in training) lower limit of the learned variance.

    >>> result = linear_size(np.array([8.0, 4.0, 2.0, 0.5, 0.25, 0.25]))
    >>> result.n_latents, round(result.gamma, 3), result.traces.round(2)
    (4, 0.25, array([0.18, 0.28, 0.29, 0.72, 1.72]))
    """
    values = np.sort(np.asarray(eigenvalues, dtype=np.float64))[::-1]
    _check(1, values, 1.0, gamma)
    for name, number in (("threshold", threshold), ("floor", floor)):
        if number is not None and not (number > 0 and math.isfinite(number)):
            raise InputError(name, "be positive", got=number)
    if n_samples is not None and n_samples < 2:
        raise InputError("n_samples", "be at least 2", got=n_samples)
    if values[0] == 0:
        raise InputError("eigenvalues", "not all be 0", remedy="constant data need no latent")
    max_latents = max(1, min(len(values), n_samples or len(values)) - 1)
    counts = np.arange(1, max_latents + 1)
    if gamma is None:
        discarded = np.append(np.cumsum(values[::-1])[::-1], 0.0)[counts]  # Σ_{i > n} λ_i
        lowest = FLOOR * values.mean() if floor is None else floor
        # A single feature leaves no direction to average over.
        gammas = np.maximum(lowest, discarded / np.maximum(len(values) - counts, 1))
    else:
        gammas = np.full(max_latents, float(gamma))
    # searchsorted requires ascending order, so both sides are negated.
    active = np.minimum(counts, np.searchsorted(-values, -gammas))  # number of the n latents with λ > γ_n
    # Entry k is the sum of 1/λ over the k largest eigenvalues.
    inverses = np.cumsum(np.append(0.0, 1 / values[values > 0]))
    traces = gammas * inverses[active] + (counts - active)
    answer = first_stretch(traces, threshold)
    return LinearSize(
        n_latents=answer,
        gamma=float(gammas[max(answer, 1) - 1]),
        traces=traces,
        gammas=gammas,
        is_at_end=answer == max_latents,
    )


def first_stretch(traces: Float[np.ndarray, " n"], threshold: float | int) -> int:
    """Return the largest n such that models with 1 … n latents all have Σ E[σ²] within the threshold.

    :param traces: Σ E[σ²] for 1, 2, … latents.
    :param threshold: maximum Σ E[σ²].

    >>> first_stretch(np.array([0.2, 0.9, 1.2, 0.8]), 1.0), first_stretch(np.array([0.2, 0.3]), 1.0)
    (2, 2)
    """
    surplus = np.flatnonzero(traces > threshold)
    return int(surplus[0]) if len(surplus) else len(traces)


def _check(n_latents: int, values: Float[np.ndarray, " feature"], beta: float, gamma: float | None) -> None:
    if n_latents < 1:
        raise InputError("n_latents", "be at least 1", got=n_latents)
    if len(values) == 0 or not np.isfinite(values).all() or values[-1] < 0:
        raise InputError(
            "eigenvalues",
            "be finite and not negative, one for each feature",
            got=values.tolist(),
            remedy="they are the eigenvalues of a covariance: np.linalg.eigvalsh(np.cov(x.T))",
        )
    _check_noise(beta, gamma)


def _check_noise(beta: float, gamma: float | None) -> None:
    if not (beta > 0 and math.isfinite(beta)):
        raise InputError("beta", "be positive", got=beta, remedy="1 is the VAE")
    if gamma is None:
        if beta != 1:
            raise InputError(
                problem="a learned gamma has a closed form only for beta = 1",
                got=f"beta = {beta}",
                remedy="pass gamma",
            )
    elif not (gamma > 0 and math.isfinite(gamma)):
        raise InputError("gamma", "be positive", got=gamma, remedy="it is the variance of the decoder")


def _learned(values: Float[np.ndarray, " feature"], rest: Float[np.ndarray, " rest"]) -> float:
    if len(rest) == 0 or rest.sum() == 0:
        raise InputError(
            problem="a learned gamma is 0 if all discarded directions are constant",
            got=(
                f"{len(values)} eigenvalues, of which {int((values > 0).sum())} are positive, and "
                f"{len(values) - len(rest)} are not discarded"
            ),
            remedy="pass gamma or use fewer latents",
        )
    return float(rest.mean())


@dataclasses.dataclass(frozen=True, eq=False)
class LinearPosterior(AbstractRecord):
    """Best posterior for a decoder: N(mean_map (x − b) + prior_map μ†, covariance)."""

    covariance: Float[np.ndarray, "latent latent"]
    mean_map: Float[np.ndarray, "latent feature"]
    prior_map: Float[np.ndarray, "latent latent"]
    """Linear map of the prior's mean μ†; it has no effect if μ† = 0."""

    def mean(
        self,
        centred: Float[np.ndarray, "sample feature"],
        prior_mean: Float[np.ndarray, "*sample latent"] | float = 0.0,
    ) -> Float[np.ndarray, "sample latent"]:
        """Return the posterior means of observations x − b, with prior means μ† of each observation or of all."""
        shift = np.broadcast_to(prior_mean, (len(centred), len(self.mean_map)))
        return centred @ self.mean_map.T + shift @ self.prior_map.T


def linear_posterior(
    W: Float[np.ndarray, "feature latent"],
    *,
    beta: float = 1.0,
    gamma: float = 1.0,
    prior_variance: Float[np.ndarray, "..."] | None = None,
    covariance: Literal["diagonal", "full"] = "diagonal",
) -> LinearPosterior:
    r"""Return the posterior that minimises the loss for a decoder N(Wz + b, γI) and a prior N(μ†, diag Σ†).

    .. math:: \Sigma = \Bigl( \frac{W^\top W}{\beta\gamma} + \Sigma^{\dagger -1} \Bigr)^{-1}, \qquad
        \mu = \bigl( W^\top W + \beta\gamma\, \Sigma^{\dagger -1} \bigr)^{-1} W^\top (x - b)
        + \Bigl( \frac{\Sigma^\dagger W^\top W}{\beta\gamma} + I \Bigr)^{-1} \mu^\dagger

    for a full covariance. For a diagonal one, WᵀW is replaced by its diagonal in Σ, and the mean is the same.
    ``prior_variance`` is diag Σ†, or None for the standard normal, for which μ = Wᵀ(WWᵀ + βγI)⁻¹(x − b).
    A latent that the decoder does not use (a column of W that is 0) has the prior's variance. As γ → 0, the variance of
    the other latents goes to 0.

    Reference: bonheme2023 Eqs 4.6–4.16 (β = 1), 4.23–4.24 (β) for N(0, I), 5.7 and 5.9 for a conditional prior
    (a linear iVAE, β = 1). The thesis prints WWᵀ in the derivative above Eq. 5.7; WᵀW is meant.

    >>> W = np.array([[2.0, 0.0], [0.0, 1.0]])
    >>> linear_posterior(W, gamma=0.1).covariance.diagonal().round(4)
    array([0.0244, 0.0909])
    """
    if W.ndim != 2 or 0 in W.shape:
        raise InputError("W", "have shape (feature, latent) with at least one of each", got=W.shape)
    _check_noise(beta, gamma)
    W = W.astype(np.float64)
    n_latents = W.shape[1]
    prior = np.ones(n_latents) if prior_variance is None else prior_variance.astype(np.float64)
    if prior.shape != (n_latents,) or not (np.isfinite(prior).all() and prior.min() > 0):
        raise InputError(
            "prior_variance",
            f"be positive, one number for each of the {n_latents} latents",
            got=prior.tolist(),
        )
    if covariance not in ("diagonal", "full"):
        raise InputError("covariance", "be 'diagonal' or 'full'", got=f"{covariance!r}")
    used = W.T @ W / (beta * gamma)
    precision = used + np.diag(1 / prior)
    return LinearPosterior(
        covariance=np.linalg.inv(precision) if covariance == "full" else np.diag(1 / precision.diagonal()),
        mean_map=np.linalg.solve(precision, W.T / (beta * gamma)),
        prior_map=np.linalg.solve(prior[:, None] * used + np.eye(n_latents), np.eye(n_latents)),
    )


def conditional_prior(
    mean: Float[np.ndarray, "sample latent"],
    variance: Float[np.ndarray, "sample latent"],
    auxiliary: Shaped[np.ndarray, "row auxiliary"],
    *,
    learned_mean: bool = True,
) -> tuple[Float[np.ndarray, "sample latent"], Float[np.ndarray, "sample latent"]]:
    r"""Return, for every sample, the prior p(z|u) = N(μ†(u), diag Σ†(u)) that minimises the mean KL of posteriors.

    .. math:: \mu^\dagger(u) = \mathrm{E}[\mu \mid u], \qquad
        \Sigma^\dagger_{jj}(u) = \mathrm{E}[\Sigma_{jj} + (\mu_j - \mu_j^\dagger(u))^2 \mid u]

    With ``learned_mean=False``, μ† = 0 and Σ† has the same form. Samples with equal rows of ``auxiliary`` share a
    prior. If u identifies every sample, prior and posterior coincide and the KL is 0, whether or not the decoder uses
    the latent. With a mean fixed at 0, an active latent has Σ† ≈ μ² instead.

    Reference: bonheme2023 Eqs 5.4–5.6 have the optimum for each sample, Σ† = Σ + (μ† − μ)(μ† − μ)ᵀ. Because the prior
    depends on u alone, ours is the conditional moment, which equals theirs if u identifies x.
    """
    if not len(mean) == len(variance) == len(auxiliary) or mean.shape != variance.shape:
        raise InputError(
            "mean, variance and auxiliary",
            "describe the same samples",
            got=f"shapes {mean.shape}, {variance.shape} and {auxiliary.shape}",
        )
    _, group, counts = np.unique(auxiliary, axis=0, return_inverse=True, return_counts=True)
    # NumPy 2.0 returned the inverse with an additional axis.
    group = group.ravel()

    def given_u(values: Float[np.ndarray, "sample latent"]) -> Float[np.ndarray, "sample latent"]:
        sums = np.zeros((len(counts), values.shape[1]))
        # add.at adds every row of a group; sums[group] += values would add only one.
        np.add.at(sums, group, values)
        return (sums / counts[:, None])[group]

    prior_mean = given_u(mean) if learned_mean else np.zeros(mean.shape)
    return prior_mean, given_u(variance + (mean - prior_mean) ** 2)
