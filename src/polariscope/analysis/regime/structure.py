"""Dependence between latents: correlations, redundancy, and dependence within each combination of types."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from polariscope.analysis.regime.latent_types import SELECTIONS, VariableType, select
from polariscope.analysis.regime.regime import LARGE, Dependence, Partner, Truncation
from polariscope.numerics.dependence import total_correlation_of
from polariscope.numerics.information import averaged_mutual_information


def redundancy(
    covariance: Float[np.ndarray, "latent latent"], not_passive: Bool[np.ndarray, " latent"], n_samples: int
) -> list[float | None]:
    r"""Compute the R² of a linear prediction of each latent from the other latents that are not passive.

    .. math:: R_j^2 = C_{jA} C_{AA}^{-1} C_{Aj} / C_{jj}, \qquad
        \bar R_j^2 = 1 - (1 - R_j^2) \frac{n - 1}{n - k - 1}

    with C the covariance of n samples and A the k latents that are not passive, without j itself. Near 1, the other
    latents already carry the information in latent j. Near 0 (never below), no linear function of them predicts it,
    although a nonlinear function might. The value is None if latent j is constant and if n < k + 2.

    :param covariance: covariance of the representation, usually the mean
    :param not_passive: mask of the latents that are used as predictors
    :param n_samples: number of samples from which the covariance was computed

    >>> result = redundancy(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([True, False]), 7)
    >>> [round(share, 3) for share in result]
    [0.0, 0.1]
    """
    shares: list[float | None] = []
    for j, variance in enumerate(np.diag(covariance).tolist()):
        others = np.flatnonzero(not_passive & (np.arange(len(covariance)) != j))
        others = others[np.diag(covariance)[others] > 0]
        freedom = n_samples - len(others) - 1
        if variance == 0 or freedom < 1:
            shares.append(None)
            continue
        # Standardise, because pinv's rank cutoff would otherwise drop latents with a small spread.
        scale = np.sqrt(np.diag(covariance)[others])
        shared = covariance[j, others] / scale
        inner = covariance[np.ix_(others, others)] / np.outer(scale, scale)
        explained = float(shared @ np.linalg.pinv(inner, hermitian=True) @ shared) / variance
        shares.append(min(1.0, max(0.0, 1 - (1 - explained) * (n_samples - 1) / freedom)))
    return shares


def partners(correlation: Float[np.ndarray, "latent latent"]) -> tuple[Partner, ...]:
    """Return the strongest partner of every latent and the number of latents that correlate with it.

    In a polarised mean representation, passive latents correlate strongly with some other latents and active ones do
    not. In the sampled representation neither do (bonheme2023 Fig. 6.9).

    >>> partners(np.array([[1.0, -0.5], [-0.5, 1.0]]))[0]
    Partner(latent=0, partner=1, correlation=-0.5, n_correlated=1)
    """
    n_latents = len(correlation)
    if n_latents == 1:
        return (Partner(0, None, 0.0, 0),)
    strength = np.abs(correlation)
    # A latent is not its own partner.
    np.fill_diagonal(strength, -1.0)
    strongest = strength.argmax(axis=1)
    return tuple(
        Partner(i, int(j), float(correlation[i, j]), int((strength[i] > LARGE).sum()))
        for i, j in enumerate(strongest)
    )


@dataclasses.dataclass(frozen=True)
class DependenceTables:
    """Tables of all pairs of latents, from which the dependence within any subset is computed."""

    covariances: tuple[
        Float[np.ndarray, "latent latent"],
        Float[np.ndarray, "latent latent"],
        Float[np.ndarray, "latent latent"],
    ]
    """Covariances of the mean, the sampled and the noise-free sampled representation."""
    informations: tuple[Float[np.ndarray, "latent latent"], Float[np.ndarray, "latent latent"]]
    """Mutual information of the mean and the sampled representation, discretised once on all latents."""
    chances: tuple[Float[np.ndarray, "latent latent"], Float[np.ndarray, "latent latent"]]
    """Mutual information of shuffled columns, the chance level."""

    def of(self, selection: str, latents: Sequence[int]) -> Truncation:
        """Return total correlation and averaged mutual information of a subset of the latents.

        :param selection: name of the subset.
        :param latents: columns of the subset.
        """
        if len(latents) < 2:
            return Truncation(selection, tuple(latents), None, None, None)
        mean, sampled, noise_free = (
            total_correlation_of(table[np.ix_(latents, latents)]) for table in self.covariances
        )
        of_mean, of_sampled = (
            Dependence(correlation, *(averaged_mutual_information(table, latents) for table in tables))
            for correlation, *tables in zip((mean, sampled), self.informations, self.chances, strict=True)
        )
        return Truncation(selection, tuple(latents), of_mean, of_sampled, noise_free)


def truncation(types: Sequence[VariableType], tables: DependenceTables) -> tuple[Truncation, ...]:
    """Compute total correlation and averaged mutual information of every combination of types.

    In a polarised model, both drop in the mean representation to the values of the sampled one once the passive latents
    are left out (active+mixed).

    Reference: bonheme2023 §6.4.4, Figs 6.7 (averaged mutual information) and 6.8 (total correlation).

    :param types: type of each latent.
    :param tables: covariances and mutual information of all latents.
    """
    return tuple(tables.of(selection, select(types, selection)) for selection in SELECTIONS)
