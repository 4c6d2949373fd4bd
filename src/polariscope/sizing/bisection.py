"""Searches for the largest number of latents that fits: doubling, bisection, and a search guided by a prediction."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from numbers import Real

import numpy as np
from jaxtyping import Float

from polariscope.analysis.theory import first_stretch
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.text import plural
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.trial import Trial

CAP = 1024
"""Default maximum number of latents: a search that never finds a surplus must end."""


class CapError(PolariscopeError):
    """Error raised if a search reaches its cap and no model has too many latents."""


def grow_and_bisect(fits: Callable[[int], bool], n_init: int, cap: int = CAP) -> int:
    """Find the largest n that fits: double from ``n_init`` until a model no longer fits, then bisect.

    bonheme2023 Algorithms 1, 3 and 5. ``fits`` is called once for each n. The result is 0 if not even one latent fits.

    Ours: a cap, because the published loop never ends if everything fits; reaching it raises :class:`CapError`.

    >>> tried = []
    >>> grow_and_bisect(lambda n: tried.append(n) or n <= 19, n_init=4)
    19
    >>> tried
    [4, 8, 16, 32, 24, 20, 18, 19]
    """
    check_range(n_init, cap)
    known: dict[int, bool] = {}
    low, high, n = 0, math.inf, n_init
    while n != low:
        if n not in known:
            known[n] = fits(n)
        if known[n]:
            if n >= cap:
                raise CapError(
                    f"{no_surplus(n)}, and cap is {cap}; raise the cap, or check the threshold and "
                    "whether the models were trained long enough."
                )
            # After the first failure 2 n mostly exceeds high, which is known not to fit, so the next pass bisects.
            low, n = n, int(min(2 * n, high, cap))
        else:
            high, n = n, (low + n) // 2
    return n


def bisect(fits: Callable[[int], bool], low: int = 1, high: int = 200) -> int:
    """Find the largest n that fits between ``low`` and ``high`` by binary search (bonheme2023 Algorithms 7 and 8).

    ``high`` itself is never tried, so the answer is at most ``high`` − 1. That answer raises :class:`CapError`, because
    larger values were not tried.

    >>> tried = []
    >>> bisect(lambda n: tried.append(n) or n <= 19)
    19
    >>> tried
    [100, 50, 25, 13, 19, 22, 21, 20]
    """
    check_range(low, high)
    cap = high
    # Invariant: everything below low fits, and high does not fit or is the cap.
    while low < high:
        n = (low + high) // 2
        if fits(n):
            low = n + 1
        else:
            high = n
    if low == cap:
        raise CapError(f"{no_surplus(cap - 1)}, the maximum that is tried; raise the cap.")
    return low - 1


Measured = Callable[[int], tuple[bool, float]]
"""A function of the number of latents that returns True if the model fits, and its statistic."""


def search_guided(
    measured: Measured, predicted: Float[np.ndarray, " width"], threshold: float, cap: int = CAP
) -> int:
    """Find the largest n that fits, in few measurements, from a prediction of the statistic for every n.

    Each measurement shifts the prediction to the measured value, and two models that fit also rescale it to the slope
    between them. The next n is the crossing of the corrected prediction with the threshold. An increase is at most half
    of n. A decrease is at most the excess of the statistic over the threshold, because a latent that is left out lowers
    it by at most 1. Beyond the predicted widths each further latent adds 1. Two measurements suffice if the prediction
    is right. After five, the search bisects. A search that reaches its cap raises :class:`CapError`.

    >>> def measured(n):  # fits up to 16
    ...     tried.append(n)
    ...     return n <= 16, n / 16
    >>> tried = []
    >>> search_guided(measured, np.arange(1, 33) / 11, 1.0), tried
    (16, [11, 14, 16, 17])
    """
    check_range(1, cap)
    # cap + 1 is never tried; it only closes the range.
    low, high, n = 0, cap + 1, _crossing(predicted, threshold)
    fitting: list[tuple[float, float]] = []
    for n_measured in itertools.count(1):
        # Every measurement must narrow the range (low, high), or the search would not end.
        n = min(max(n, low + 1), high - 1)
        fits, value = measured(n)
        low, high = (n, high) if fits else (low, n)
        if low == cap:
            raise CapError(f"{no_surplus(cap)}, and cap is {cap}; raise the cap.")
        if high - low == 1:
            break
        expected = _at(predicted, n)
        fitting += [(expected, value)] if fits else []
        farthest = low + max(1, low // 2)
        # The rest of the way to the threshold, divided by the slope, is a distance in units of the prediction.
        n = _crossing(predicted, expected + (threshold - value) / _slope(fitting))
        # Leaving out a latent lowers the statistic by the variance of that latent, which is at most 1.
        n = min(n, farthest) if fits else max(n, high - max(1, math.ceil(value - threshold)))
        if n_measured >= SETTINGS.max_guided:
            # As long as high exceeds the cap, no model had too many latents, so there is nothing to bisect.
            n = (low + high) // 2 if high <= cap else farthest
    return low


def _slope(fitting: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the statistic against the prediction between the last two models that fit, 1 if unknown."""
    if len(fitting) < 2:
        return 1.0
    (expected, value), (next_expected, next_value) = fitting[-2:]
    step = next_expected - expected
    return float(np.clip((next_value - value) / step, SETTINGS.min_slope, 1)) if step > 0 else 1.0


def _at(predicted: Float[np.ndarray, " width"], n: int) -> float:
    """Return the prediction for n latents; each latent beyond the last adds 1."""
    return float(predicted[min(n, len(predicted)) - 1]) + max(0, n - len(predicted))


def _crossing(predicted: Float[np.ndarray, " width"], threshold: float) -> int:
    """Return the last n before the prediction exceeds the threshold."""
    n = first_stretch(predicted, threshold)
    # Beyond its last width the prediction rises by 1 per latent.
    return n if n < len(predicted) else n + max(0, math.floor(threshold - predicted[-1]))


def no_surplus(n: int) -> str:
    """Return the beginning of the message about a model at the cap.

    >>> no_surplus(1), no_surplus(8)
    ('even 1 latent has no surplus', 'even 8 latents have no surplus')
    """
    return f"even {plural(n, 'latent')} {'has' if n == 1 else 'have'} no surplus"


def check_threshold(threshold: object, *, positive: bool) -> None:
    """Check that the threshold is a finite number, and positive if the statistic is a sum of variances."""
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not math.isfinite(threshold):
        raise InputError("threshold", "be a finite number", got=f"{threshold!r}", remedy="1 is usual")
    if positive and threshold <= 0:
        raise InputError(
            "threshold",
            "be positive for Σ E[σ²], which no model brings to 0",
            got=f"{threshold:g}",
            remedy="1 is usual",
        )


def notes_on(trials: Sequence[Trial], answers: Sequence[float | int]) -> list[str]:
    """Return notes if a search's assumption is in doubt: the statistic rises with n and crosses the threshold once."""
    notes = []
    for seed in sorted({trial.seed for trial in trials}):
        by_width = sorted((t for t in trials if t.seed == seed), key=lambda trial: trial.n_latents)
        for before, after in pairwise(by_width):
            if (
                before.n_latents < after.n_latents
                and before.decision == "too many"
                and after.decision == "fits"
            ):
                notes.append(
                    f"seed {seed}: {before.n_latents} latents are too many but {after.n_latents} fit: the statistic "
                    "does not rise with n, so another n_init could give another answer. Train longer or use more seeds."
                )
            # A fall of less than a tenth is within the noise of training.
            elif after.statistic < before.statistic - max(0.1, 0.1 * abs(before.statistic)):
                notes.append(
                    f"seed {seed}: the statistic falls from {before.statistic:.2f} at {before.n_latents} latents to "
                    f"{after.statistic:.2f} at {after.n_latents}: it is not monotone, so the training might be "
                    "too short."
                )
    if any(answer == 0 for answer in answers):
        notes.append(
            "Not even one latent fits: the models learned nothing (train longer, or lower β), or the data are noise, "
            "or, with a Gaussian likelihood, their variance is small compared with its variance (standardise them)."
        )
    return notes


def check_range(low: int, high: int) -> None:
    for name, value in (("n_init", low), ("cap", high)):
        # bool is a subclass of int.
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InputError(name, "be an integer from 1", got=f"{value!r}")
    if low > high:
        raise InputError("n_init", "be at most cap", got=f"{low} and {high}")
