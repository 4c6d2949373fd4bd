"""Held-out evidence of linear VAEs in closed form: the number of latents that generalise, without training."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Float

from polariscope.analysis.theory import FLOOR, first_stretch
from polariscope.core.errors import InputError
from polariscope.core.records import AbstractRecord
from polariscope.core.seeds import generator

N_FOLDS = 10
"""Number of folds; each is held out once."""


@dataclasses.dataclass(frozen=True, eq=False)
class LinearEvidence(AbstractRecord):
    """Number of latents of a linear VAE that generalise, with the evidence."""

    n_latents: int
    """Largest n such that models with 1 … n latents all have Σ E[σ²] within the threshold on held-out observations, and
    at most the number with the lowest held-out loss."""
    interval: tuple[int, int]
    """Smallest and largest result when one fold is left out."""
    traces: Float[np.ndarray, " n"]
    """Held-out Σ E[σ²] for n = 1, 2, …"""
    gammas: Float[np.ndarray, " n"]
    """Held-out residual per discarded direction for n = 1, 2, …, the variance γ of a decoder that generalises."""
    losses: Float[np.ndarray, " model"]
    """Mean −log p(x) of held-out observations in nats, for n = 0, 1, …"""

    @property
    def has_noise_floor(self) -> bool:
        """If True, the held-out loss is lowest with fewer latents than the maximum.

        For a linear model, the remaining directions are then noise of equal variance. Otherwise each further direction
        lowers the loss, and n_latents depends on the threshold alone.
        """
        return int(self.losses.argmin()) < len(self.losses) - 1


def cross_validate(
    rows: Float[np.ndarray, "sample feature"],
    threshold: float = 1.0,
    *,
    n_folds: int = N_FOLDS,
    seed: int = 0,
) -> LinearEvidence:
    r"""Return the number of latents of a linear VAE whose variances are measured on held-out observations.

    The directions :math:`u_i` are the principal ones of nine folds; :math:`\lambda_i`, the mean square of the tenth
    fold along :math:`u_i`, averaged over folds, replaces the eigenvalue. Then, as in
    :func:`polariscope.analysis.theory.linear_size`,

    .. math:: \gamma_n = \frac{1}{m - n} \sum_{i > n} \lambda_i, \qquad
        \sum_{i \le n'} \min(1, \gamma_{n'} / \lambda_i) \le t \text{ for all } n' \le n.

    n is also at most the number with the lowest held-out loss, beyond which a latent adds nothing. With many
    observations this is the closed form. With few, the eigenvalues of noise spread and the largest look like signal,
    but not on held-out observations.

    :param rows: observations, (sample, feature).
    :param threshold: (default 1) maximum Σ E[σ²].
    :param n_folds: (default 10) number of folds, at most one for each observation.
    :param seed: (default 0) seed of the folds.

    >>> draw = np.random.default_rng(0)
    >>> rows = draw.normal(size=(100, 40)) + 3 * draw.normal(size=(100, 3)) @ np.eye(3, 40)
    >>> cross_validate(rows).n_latents
    3
    """
    n_samples = len(rows)
    if n_samples < 3:
        raise InputError("rows", "have at least 3 observations", got=n_samples)
    if n_folds < 2:
        raise InputError("n_folds", "be at least 2", got=n_folds)
    folds = np.array_split(generator(seed, "linear evidence").permutation(n_samples), min(n_folds, n_samples))
    # The first fold is the largest, so all training sets have at least this many observations.
    max_latents = n_latents_at_most(n_samples - len(folds[0]), rows.shape[1])
    squares, losses = [], []
    for fold in folds:
        rest = np.ones(n_samples, dtype=bool)
        rest[fold] = False
        values, along = _principal(rows[rest], rows[fold])
        squares.append((along**2).mean(axis=0))
        losses.append(_losses(values, along, max_latents).mean(axis=0))
    sizes = np.array([len(fold) for fold in folds], dtype=float)

    def judge(weights: Float[np.ndarray, " fold"]) -> LinearEvidence:
        traces, gammas = _traces(np.average(squares, axis=0, weights=weights), max_latents)
        mean = np.average(losses, axis=0, weights=weights)
        answer = min(first_stretch(traces, threshold), int(mean.argmin()))
        return LinearEvidence(answer, (answer, answer), traces, gammas, mean)

    every = np.arange(len(folds))
    # A weight of 0 leaves a fold out.
    answers = [judge(np.where(every == left_out, 0.0, sizes)).n_latents for left_out in every]
    return dataclasses.replace(judge(sizes), interval=(min(answers), max(answers)))


def held_out_losses(
    training: Float[np.ndarray, "sample feature"], held_out: Float[np.ndarray, "other feature"]
) -> Float[np.ndarray, " model"]:
    """Return the mean −log p(x) of held-out observations, in nats, for the best linear VAEs with 0, 1, 2, … latents.

    A linear VAE at its optimum has no gap between the loss and −log p(x), so this is also its held-out loss.

    :param training: observations that the models are fitted to.
    :param held_out: observations that the models are evaluated on.

    >>> draw = np.random.default_rng(0)
    >>> rows = draw.normal(size=(400, 6)) + 5 * draw.normal(size=(400, 2)) @ np.eye(2, 6)
    >>> int(held_out_losses(rows[:200], rows[200:]).argmin())
    2
    """
    if len(training) < 2 or not len(held_out):
        raise InputError(
            "training and held_out",
            "have at least 2 and 1 observations",
            got=f"{len(training)} and {len(held_out)}",
        )
    values, along = _principal(training, held_out)
    return _losses(values, along, n_latents_at_most(len(training), training.shape[1])).mean(axis=0)


def n_latents_at_most(n_samples: int, n_features: int) -> int:
    """Return the largest number of latents that leaves one direction for estimating γ.

    :param n_samples: number of observations.
    :param n_features: number of values of each observation.
    """
    return max(1, min(n_samples, n_features) - 1)


def _principal(
    training: Float[np.ndarray, "sample feature"], held_out: Float[np.ndarray, "other feature"]
) -> tuple[Float[np.ndarray, " feature"], Float[np.ndarray, "other feature"]]:
    """Return the eigenvalues of the training covariance, and held-out observations along its eigenvectors."""
    centre = training.mean(axis=0, dtype=np.float64)
    centred = training - centre
    values, vectors = np.linalg.eigh(centred.T @ centred / len(training))
    # eigh returns ascending order. Rounding can make eigenvalues of a singular matrix negative.
    return np.maximum(values[::-1], 0.0), (held_out - centre) @ vectors[:, ::-1]


def _losses(
    values: Float[np.ndarray, " feature"], along: Float[np.ndarray, "other feature"], max_latents: int
) -> Float[np.ndarray, "other model"]:
    """Return −log p(x) of each observation by probabilistic PCA with 0 … ``max_latents`` components."""
    squares, n_features = along**2, len(values)
    # Constant data have a mean of 0, and the logarithm of γ must be finite.
    floor = FLOOR * max(float(values.mean()), np.finfo(float).tiny)
    columns = []
    for n in range(max_latents + 1):
        gamma = max(float(values[n:].mean()), floor)
        variances = np.maximum(values[:n], gamma)
        constant = (
            n_features * math.log(2 * math.pi) + np.log(variances).sum() + (n_features - n) * math.log(gamma)
        )
        columns.append(
            0.5 * (constant + (squares[:, :n] / variances).sum(axis=1) + squares[:, n:].sum(axis=1) / gamma)
        )
    return np.stack(columns, axis=1)


def _traces(
    squares: Float[np.ndarray, " feature"], max_latents: int
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return Σ E[σ²] and γ for n = 1, 2, … from the mean squares along each direction."""
    floor = FLOOR * squares.mean()
    gammas = np.array([max(floor, squares[n:].mean()) for n in range(1, max_latents + 1)])
    ratios = gammas[:, None] / np.maximum(squares[:max_latents], np.finfo(float).tiny)
    # Row n of the lower triangle contains the first n latents.
    return np.tril(np.minimum(1.0, ratios)).sum(axis=1), gammas
