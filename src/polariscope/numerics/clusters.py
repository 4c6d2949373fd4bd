"""Values that belong to clusters, such as the positions of one observation: their correlation and effective number."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def intraclass_correlation(
    values: Float[np.ndarray, "cluster column member"],
) -> Float[np.ndarray, " column"]:
    r"""Estimate the correlation ρ of two members of the same cluster, for each column, from a one-way ANOVA.

    .. math:: \rho = \frac{B - W}{B + (P - 1) W}, \qquad
        B = \frac{P}{N - 1} \sum_i (\bar x_i - \bar x)^2, \qquad
        W = \frac{1}{N (P - 1)} \sum_{ip} (x_{ip} - \bar x_i)^2

    for N clusters of P members each. It is 1 if all members of a cluster are equal, and about 0 if they are
    independent. Negative estimates are set to 0. A constant column has ρ = 0. With a single member, ρ is not defined,
    and 0 is returned.

    Reference: Fisher, Statistical Methods for Research Workers (fisher1925); the estimator is called ICC(1).

    :param values: values of at least two clusters.

    >>> intraclass_correlation(np.array([[[1.0, 1.0]], [[2.0, 2.0]]])).tolist()
    [1.0]
    """
    n, _, members = values.shape
    if members == 1 or n < 2:
        return np.zeros(values.shape[1])
    result = np.zeros(values.shape[1])
    for column in range(values.shape[1]):  # one at a time, because temporaries are as large as the codes
        x = values[:, column].astype(np.float64)
        means = x.mean(axis=1)
        between = members * means.var(ddof=1)
        within = ((x - means[:, None]) ** 2).sum() / (n * (members - 1))
        total = between + (members - 1) * within
        # Rounding leaves a variance of about ε² for a constant column.
        is_constant = total <= members * (np.finfo(np.float64).eps * np.abs(x).max()) ** 2
        result[column] = 0.0 if is_constant else max(0.0, (between - within) / total)
    return result


def effective_number(
    n_clusters: int, n_members: int, correlation: Float[np.ndarray, " column"]
) -> Float[np.ndarray, " column"]:
    r"""Return the number of independent values whose mean is as precise as that of all members of all clusters.

    .. math:: n_\mathrm{eff} = \frac{N P}{1 + (P - 1) \rho}

    It is N · P if members are independent (ρ = 0), and N if all members of a cluster are equal (ρ = 1).

    Reference: Kish, Survey Sampling (kish1965); 1 + (P − 1)ρ is the design effect.

    :param n_clusters: N.
    :param n_members: P.
    :param correlation: ρ of each column (:func:`intraclass_correlation`).

    >>> effective_number(100, 16, np.array([0.0, 1.0])).tolist()
    [1600.0, 100.0]
    """
    return n_clusters * n_members / (1 + (n_members - 1) * correlation)
