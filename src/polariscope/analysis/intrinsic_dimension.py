"""Recommended intrinsic dimension: maximum likelihood at a stable k, with TwoNN as a check."""

from __future__ import annotations

import dataclasses

import numpy as np

from polariscope.analysis.dimension import Dimension
from polariscope.analysis.dimension.mle import LARGEST_K, Normaliser, mle
from polariscope.analysis.dimension.twonn import twonn
from polariscope.core.arrays import real_numbers
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.numerics.neighbours import NeighbourTable, Samples, at_most

MUCH = 1.25  # ratio above which two estimates disagree
N_SAMPLES = 10_000


def intrinsic_dimension(
    x: Samples, *, seed: int = 0, n_samples: int | None = N_SAMPLES, normaliser: Normaliser = "k-1"
) -> Dimension:
    """Estimate the intrinsic dimension of samples (sample, feature); use this if you need a single number.

    The estimate is maximum likelihood (:func:`~polariscope.analysis.dimension.mle.mle`, harmonic mean) at the upper end
    of the smallest range of k in which it is stable. TwoNN with the same neighbours is a check. If the two disagree by
    more than a quarter and their intervals do not overlap, a note is added. The likelihood is still preferred, because
    TwoNN is more sensitive to outliers and noise and is too large in high dimensions.

    At most ``n_samples`` of the samples are used, drawn with ``seed``; None uses all. The time grows with the square of
    their number.

    Reference: bonheme2023 §§8.2.4, 8.5.1, with 10,000 samples and k in 3, 5, 10, 20. Ours: every k up to 40, and
    the normaliser k − 1, with which the harmonic mean does not depend on k. With k − 2 it rises from d/2 at k = 3 to
    0.95 d at k = 20 for any data.

    >>> sphere = np.random.default_rng(0).normal(size=(1000, 4))
    >>> sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    >>> intrinsic_dimension(sphere).rounded
    3
    """
    if n_samples is not None and n_samples < 10:
        raise InputError("n_samples", "be at least 10 or None for all", got=n_samples)
    samples, note = _drawn(x, n_samples, seed)
    # One table serves both estimators, because the search for neighbours takes most of the time.
    table = at_most(samples, LARGEST_K)
    likelihood = mle(table, k="auto", normaliser=normaliser, seed=seed)
    try:
        check = twonn(table, seed=seed)
    except InputError as refusal:
        return dataclasses.replace(
            likelihood, notes=(*note, *likelihood.notes, f"TwoNN, the check, failed: {refusal}")
        )
    notes = (*note, *likelihood.notes, *_disagreement(likelihood, check))
    return dataclasses.replace(likelihood, checks=(check,), notes=notes)


def _drawn(x: Samples, n_samples: int | None, seed: int) -> tuple[Samples, tuple[str, ...]]:
    # Arrays of a wrong shape are returned unchanged, because the estimator reports them.
    if isinstance(x, NeighbourTable) or n_samples is None or np.ndim(x) != 2 or len(x) <= n_samples:
        return x, ()
    rows = np.sort(generator(seed, "dimension", "samples").permutation(len(x))[:n_samples])
    return real_numbers(x, "x")[rows], (f"{n_samples} of {len(x)} samples were drawn at random.",)


def _disagreement(likelihood: Dimension, check: Dimension) -> tuple[str, ...]:
    smaller, larger = sorted((likelihood, check), key=lambda estimate: estimate.value)
    disjoint = smaller.interval[1] < larger.interval[0]
    if not disjoint or larger.value <= MUCH * smaller.value:
        return ()
    start = f"TwoNN gives {check.value:.1f}, the likelihood at k = {likelihood.k} {likelihood.value:.1f}: "
    if check is larger:
        return (
            start
            + "TwoNN uses the smallest scale, which noise and outliers affect most, so the likelihood is preferred.",
        )
    return (start + "the dimension grows with the scale (curvature, or clusters); see the curve.",)
