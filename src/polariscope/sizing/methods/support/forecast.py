"""Prediction of narrow models from a wide one, now and after more training."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Float, Int, Shaped

from polariscope.analysis.theory import first_stretch
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.judge import bounds, last_part, lines


@dataclasses.dataclass(frozen=True)
class Forecast:
    """Number of latents within the threshold, predicted by a wide model."""

    value: int
    low: int
    """Lower end: rising variances continue to rise."""
    high: int
    """Upper end: falling variances continue to fall, and as many latents become active as did recently."""
    n_active: int
    """Number of latents with a posterior variance below one half."""
    n_activating: int
    """Number of latents that can still become active: as many as did in the last two doublings."""
    n_shared: int
    """Number of latents that the partially active ones beyond the answer add up to; 0 if γ is learned."""
    n_activated: tuple[float, float]
    """Numbers of latents that became active in the last doubling and in the one before; half-active ones count 1/2."""
    moves: int
    """Number of latents by which trends can change the answer: the range without the noise of training."""
    drift: float
    """Change per doubling of Σ E[σ²] up to the first latent that is too many, in thresholds."""
    is_sound: bool
    """If True, at least one latent carries information, and no posterior is wider than the prior. Otherwise the
    forecast does not bound the answer."""
    traces: tuple[float, ...]
    """Predicted Σ E[σ²] of models with 1, 2 … latents."""
    coming: tuple[float, ...]
    """The same after twice the steps, if trends continue."""
    steps: int = SETTINGS.min_steps
    """Gradient steps of the wide model."""
    noise_fell: float = 0.0
    """Relative fall of the decoder variance γ in the last doubling: structure that was treated as noise before."""
    held_out: float | None = None
    """Lowest loss on held-out observations so far, in nats, if the loss is −ELBO; otherwise, or if not
    measured, None."""
    best: Forecast | None = None
    """Forecast at the lowest held-out loss, if the model overfits."""

    @property
    def has_settled(self) -> bool:
        """True if the wide model has converged.

        Trends change the forecast by at most one latent or a tenth, fewer than that became active in the last doubling,
        and at most a third in the last two: latents can become active in groups, with a plateau of a doubling between
        them. In addition, γ falls by less than a fifth per doubling. A latent that fluctuates around one half hardly
        counts as activated, so its side at the last measurement does not matter.
        """
        little = max(1, self.value // 10)
        is_over = self.n_activated[0] < little and sum(self.n_activated) <= max(
            1, self.value // SETTINGS.wave_divisor
        )
        is_quiet = is_over and self.noise_fell < SETTINGS.max_gamma_fall
        is_late = self.steps >= SETTINGS.min_steps
        return (
            self.is_sound
            and is_late
            and self.moves <= little
            and is_quiet
            and abs(self.drift) < SETTINGS.max_drift
        )

    def after(self, steps: int) -> Float[np.ndarray, " width"]:
        """Predict Σ E[σ²] of models with 1, 2 … latents after further steps; unchanged if the wide model has converged.

        :param steps: gradient steps of a narrow model that is initialised from this one.
        """
        # A narrow model continues from the wide one, so its steps are added to those of the wide one.
        doublings = 0.0 if self.has_settled else min(1.0, math.log2(1 + steps / self.steps))
        now, then = np.array(self.traces), np.array(self.coming)
        return now + doublings * (then - now)


def forecast(
    steps: Shaped[np.ndarray, " look"],
    variances: Float[np.ndarray, "look latent"],
    threshold: float | int,
    n_features: int | None = None,
    gammas: Float[np.ndarray, " look"] | None = None,
) -> Forecast:
    r"""Predict the answer from the curves of a wide model.

    A narrower model keeps the most informative latents. With the variances of W latents in ascending order,

    .. math:: \hat g(n) = r_n \sum_{j \le n} \mathbb{E}[\sigma_{(j)}^2], \qquad
        r_n = \frac{m - W + \sum_{n < j \le W} 1 / \mathbb{E}[\sigma_{(j)}^2]}{m - n}

    and the answer is the largest n such that :math:`\hat g(1), \dots, \hat g(n) \le t`. r is 1 if the decoder variance
    γ is fixed. If γ is learned from m values, it is larger in a narrower model: in the linear theory γ is the mean of
    the discarded eigenvalues, and a latent's variance is :math:`\gamma/\lambda_j`, so both follow from the wide model.
    For a linear VAE this is exact.

    The range of the forecast extrapolates trends. A line in log₂(step) is fitted to each latent over the last half and
    the last quarter of the training, and its rise or fall can continue for another doubling, as can the fall of γ.
    As many latents can still become active as did in the last two doublings of the steps. The threshold is varied by a
    tenth in both directions to account for the noise of training.

    Partially active surplus latents share information that a narrower model trained from scratch can concentrate in a
    few. Their number is the sum of :math:`1 - \mathbb{E}[\sigma_{(j)}^2]` over those between one quarter and three
    quarters, rounded down (``n_shared``). It is 0 if γ is learned, because γ absorbs the information that is lost.

    >>> steps = np.arange(100, 3201, 100)
    >>> forecast(steps, np.tile([1.0, 0.1, 0.2, 0.9], (32, 1)), threshold=1.0).value
    2

    :param steps: steps of the measurements
    :param variances: mean posterior variance of each latent, in units of the prior's
    :param threshold: maximum Σ E[σ²] of a model without surplus latents
    :param n_features: (default None) values of an observation, if the decoder variance is learned
    :param gammas: (default None) decoder variance at each measurement, if it is one number
    """
    values, lows, highs, drifts, moves = [], [], [], [], []
    half = steps <= steps[-1] / 2
    # Compared with half of the steps, one doubling earlier.
    noise_fell = 0.0 if gammas is None else max(0.0, float(1 - gammas[-1] / gammas[half][-1]))
    for share in SETTINGS.trend_windows:
        level, slope, _ = lines(steps, variances, share)
        lowest, highest = bounds(level, slope, SETTINGS.forecast_doublings)
        # A fitted line can fall below 0.
        values.append(first_stretch(trace_by_width(np.maximum(level, 0), n_features), threshold))
        # Up to the first latent that is too many; later ones do not affect the answer.
        drifts.append(slope[np.argsort(level)][: values[-1] + 1].sum() / threshold)
        rising = trace_by_width(highest, n_features)
        falling = trace_by_width(lowest * (1 - noise_fell), n_features)  # variances are proportional to γ
        lows.append(first_stretch(rising, (1 - SETTINGS.threshold_margin) * threshold))
        highs.append(first_stretch(falling, (1 + SETTINGS.threshold_margin) * threshold))
        moves += [values[-1], first_stretch(rising, threshold), first_stretch(falling, threshold)]
    # Level and slope are now those of the last quarter, the second window.
    traces = trace_by_width(np.maximum(level, 0), n_features)
    coming = trace_by_width(np.clip(level + slope, 0, np.maximum(1, level)), n_features)
    n_activated = activations(steps, variances)
    n_inactive = int((variances[last_part(steps, 0.25)].mean(axis=0) >= SETTINGS.active_below).sum())
    # Not limited by the inactive latents of this model, because a wider model has more of them.
    n_activating = round(sum(n_activated))
    value = values[-1]
    lower, upper = SETTINGS.half_active
    surplus = np.sort(level)[value:]
    # Only latents beyond the answer count: those within it are already part of it.
    half_active = surplus[(surplus > lower) & (surplus < upper)]
    n_shared = int((1 - half_active).sum()) if n_features is None else 0
    return Forecast(
        value=value,
        low=min(*lows, *values),
        high=max(*highs, *values) + n_activating,
        n_active=variances.shape[1] - n_inactive,
        n_activating=n_activating,
        n_shared=n_shared,
        n_activated=n_activated,
        moves=max(moves) - min(moves),
        drift=float(max(drifts, key=abs)),
        is_sound=bool((level < SETTINGS.silent_above).any() and (level <= SETTINGS.unsettled_above).all()),
        traces=tuple(float(each) for each in traces),
        coming=tuple(float(each) for each in coming),
        steps=int(steps[-1]),
        noise_fell=noise_fell,
    )


def trace_by_width(
    variances: Float[np.ndarray, " latent"], n_features: int | None = None
) -> Float[np.ndarray, " width"]:
    """Predict Σ E[σ²] of models with 1, 2 … latents from the variances of a model with all of them.

    >>> trace_by_width(np.array([0.5, 0.1, 0.25])).round(2)
    array([0.1 , 0.35, 0.85])

    With learned γ, eigenvalues 8, 4, 1, 1, 1 and three latents, γ is 1 and the variances are 1/8, 1/4 and 1. With one
    latent γ is the mean of 4, 1, 1 and 1, and the variance is 1.75 / 8:

    >>> trace_by_width(np.array([0.125, 0.25, 1.0]), n_features=5).round(3)
    array([0.219, 0.375, 1.375])
    """
    ordered = np.sort(variances)
    sums = np.cumsum(ordered)
    # m − n in the denominator of r_n must be positive.
    if n_features is None or n_features <= len(ordered):
        return sums
    # A variance of 0 would make a single direction outweigh all others.
    inverse = 1 / np.maximum(ordered, 1e-12)
    widths = np.arange(1, len(ordered) + 1)
    # The sum over n < j ≤ W in r_n, for every n.
    beyond = inverse.sum() - np.cumsum(inverse)
    return sums * (n_features - len(ordered) + beyond) / (n_features - widths)


def activations(
    steps: Int[np.ndarray, " look"], variances: Float[np.ndarray, "look latent"]
) -> tuple[float, float]:
    """Return the numbers of latents that became active in the last doubling of the steps and in the one before.

    The number is the total fall in variance of the latents that were above one half at the start and are below three
    quarters at the end. A latent that changes from passive to fully active counts 1; one that only crosses one half
    counts little.

    >>> steps = np.array([100, 200, 400, 800, 1600])
    >>> variances = np.array([[1, 1, 1], [0.1, 1, 1], [0.1, 1, 0.51], [0.1, 0.1, 0.49], [0.1, 0.1, 0.49]])
    >>> np.round(activations(steps, variances), 2)
    array([0.  , 0.92])
    """
    passive = np.ones((1, variances.shape[1]))  # the state of all latents before the first measurement
    # The last state up to each step: passive, or the last measurement if there is one.
    quarter, half, now = (
        np.concatenate([passive, np.minimum(1, variances[steps <= steps[-1] * part])])[-1]
        for part in (0.25, 0.5, 1)
    )
    return _n_activated(half, now), _n_activated(quarter, half)


def _n_activated(before: Float[np.ndarray, " latent"], after: Float[np.ndarray, " latent"]) -> float:
    """Return the number of latents, with fractions, that became active; fluctuations of passive ones do not count."""
    is_activated = (before > SETTINGS.active_below) & (after < SETTINGS.half_active[1])
    return float(np.maximum(0, before - after)[is_activated].sum())
