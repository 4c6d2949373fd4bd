"""How latents hang together: who correlates with whom, and dependence within each combination of types."""

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
    r"""How well the others predict each latent: R² of a linear regression on those that are not passive.

    .. math:: R_j^2 = C_{jA} C_{AA}^{-1} C_{Aj} / C_{jj}, \qquad
        \bar R_j^2 = 1 - (1 - R_j^2) \frac{n - 1}{n - k - 1}

    with C the covariance of n samples and A the k latents that are not passive, without j itself. Near 1: what latent
    j holds is in the others already. Near 0 (never below): no linear function of them tells anything of it; a
    function of another shape may. None for a latent that never varies and for n < k + 2.

    :param covariance: of the representation, usually the mean
    :param not_passive: which latents may predict others
    :param n_samples: number of samples behind the covariance

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
        # In units of each latent's spread, or the cut for rank would drop those that spread little.
        scale = np.sqrt(np.diag(covariance)[others])
        shared = covariance[j, others] / scale
        inner = covariance[np.ix_(others, others)] / np.outer(scale, scale)
        explained = float(shared @ np.linalg.pinv(inner, hermitian=True) @ shared) / variance
        shares.append(min(1.0, max(0.0, 1 - (1 - explained) * (n_samples - 1) / freedom)))
    return shares


def partners(correlation: Float[np.ndarray, "latent latent"]) -> tuple[Partner, ...]:
    """The strongest partner of every latent and how many others correlate with it.

    In a polarised mean representation passive latents correlate strongly with some others and active ones do
    not; in the sampled representation neither does (bonheme2023 Fig. 6.9).

    >>> partners(np.array([[1.0, -0.5], [-0.5, 1.0]]))[0]
    Partner(latent=0, partner=1, correlation=-0.5, n_correlated=1)
    """
    n_latents = len(correlation)
    if n_latents == 1:
        return (Partner(0, None, 0.0, 0),)
    strength = np.abs(correlation)
    np.fill_diagonal(strength, -1.0)
    strongest = strength.argmax(axis=1)
    return tuple(
        Partner(i, int(j), float(correlation[i, j]), int((strength[i] > LARGE).sum()))
        for i, j in enumerate(strongest)
    )


@dataclasses.dataclass(frozen=True)
class DependenceTables:
    """DependenceTables of all latents, from which the dependence of some of them is computed."""

    covariances: tuple[
        Float[np.ndarray, "latent latent"],
        Float[np.ndarray, "latent latent"],
        Float[np.ndarray, "latent latent"],
    ]
    """Of the mean, the sampled and the noise-free sampled representation."""
    informations: tuple[Float[np.ndarray, "latent latent"], Float[np.ndarray, "latent latent"]]
    """Mutual information of the mean and the sampled representation, discretised once on all latents."""
    chances: tuple[Float[np.ndarray, "latent latent"], Float[np.ndarray, "latent latent"]]
    """The same of shuffled columns."""

    def of(self, selection: str, latents: Sequence[int]) -> Truncation:
        """Return total correlation and averaged mutual information of some latents.

        :param selection: name of these latents.
        :param latents: their columns.
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
    """Total correlation and averaged mutual information of every combination of types.

    What to look for: the mean's numbers fall to the sampled ones' once the passive latents are left out (active+mixed).

    Reference: bonheme2023 §6.4.4, Figs 6.7–6.8.

    :param types: type of each latent.
    :param tables: covariances and mutual information of all latents.
    """
    return tuple(tables.of(selection, select(types, selection)) for selection in SELECTIONS)
