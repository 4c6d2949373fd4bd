"""What a wide model says of narrow ones, now and after more training."""

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
    """How many latents would just pass, by a model that has some to spare."""

    value: int
    low: int
    """If those that rise go on rising."""
    high: int
    """If those that fall go on falling, and as many wake as did lately."""
    n_active: int
    """Latents with a posterior variance below one half."""
    n_activating: int
    """Latents that may still wake: as many as did in the last two doublings."""
    n_shared: int
    """Latents that half-awake ones beyond the answer would fill, brought together; 0 where γ is learned."""
    n_activated: tuple[float, float]
    """How many latents woke in the last doubling, and in the one before; one that half woke counts a half."""
    moves: int
    """By how many latents trends may change the answer: the range without the noise of training."""
    drift: float
    """Change per doubling of Σ E[σ²] up to the first latent that is too many, in thresholds."""
    is_sound: bool
    """Whether any latent says something, and no posterior is wider than the prior: otherwise it bounds nothing."""
    traces: tuple[float, ...]
    """Σ E[σ²] of a model of 1, 2 … latents."""
    coming: tuple[float, ...]
    """The same after twice the steps, if trends go on."""
    steps: int = SETTINGS.min_steps
    """After which it was made."""
    noise_fell: float = 0.0
    """Part of the decoder's variance γ that was lost in the last doubling: structure that was noise before."""
    held_out: float | None = None
    """Lowest loss on held-out observations so far, in nats, if the loss is −ELBO; None: it is not, or not measured."""
    best: Forecast | None = None
    """What was predicted when the loss on held-out observations was lowest, if that rises by now."""

    @property
    def has_settled(self) -> bool:
        """Whether it stands: no trend changes it by more than one, or a tenth, and next to nothing is waking.

        That is, fewer than so many woke in the last doubling, and at most a third in the last two: where latents wake
        in waves, a plateau of a doubling says nothing. Nor is it over while γ falls by more than a fifth in a doubling.
        A latent that only hovers about one half has hardly woken, so it does not matter on which side it is just now.
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
        """Σ E[σ²] of a model of 1, 2 … latents after so many further steps; as it is now, where it stands.

        :param steps: of a narrow model that begins with this one's latents.
        """
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

    A narrower model keeps the latents that say most, so of W latents, with variances sorted from the smallest,

    .. math:: \hat g(n) = r_n \sum_{j \le n} \mathbb{E}[\sigma_{(j)}^2], \qquad
        r_n = \frac{m - W + \sum_{n < j \le W} 1 / \mathbb{E}[\sigma_{(j)}^2]}{m - n}

    and the answer is the end of the first stretch of n with :math:`\hat g(n) \le t`. r is 1 where the decoder's
    variance γ is fixed. Where it is learned, from m values, a narrower model has a larger one: in the linear theory
    γ is the mean of the eigenvalues that are discarded, and a latent's variance is :math:`\gamma/\lambda_j`, so both
    follow from the wide model. For a linear VAE this is exact.

    What may change it makes its range: a latent that rises or falls by a line in log₂(step) over the last half or
    quarter of the training may go on for another doubling, and so may the fall of γ; latents that have not woken yet
    may still do so, as many as woke in the last two doublings of the steps; and the threshold is taken a
    tenth lower and higher, for the noise of training.

    Surplus latents that are half awake share between them what a narrower model trained afresh may keep in a few: the
    sum of :math:`1 - \mathbb{E}[\sigma_{(j)}^2]` over those between one quarter and three quarters, rounded down
    (``n_shared``). Where γ is learned it takes up what they lose, so there are none.

    >>> steps = np.arange(100, 3201, 100)
    >>> forecast(steps, np.tile([1.0, 0.1, 0.2, 0.9], (32, 1)), threshold=1.0).value
    2

    :param steps: at which the model was looked at
    :param variances: mean posterior variance of each latent, in units of the prior's
    :param threshold: most Σ E[σ²] that counts as no surplus
    :param n_features: (default None) values of an observation, where the decoder's variance is learned
    :param gammas: (default None) the decoder's variance at each look, where it is one number
    """
    values, lows, highs, drifts, moves = [], [], [], [], []
    half = steps <= steps[-1] / 2
    noise_fell = 0.0 if gammas is None else max(0.0, float(1 - gammas[-1] / gammas[half][-1]))
    for share in SETTINGS.trend_windows:
        level, slope, _ = lines(steps, variances, share)
        least, most = bounds(level, slope, SETTINGS.forecast_doublings)
        values.append(first_stretch(trace_by_width(np.maximum(level, 0), n_features), threshold))
        drifts.append(slope[np.argsort(level)][: values[-1] + 1].sum() / threshold)
        rising = trace_by_width(most, n_features)
        falling = trace_by_width(least * (1 - noise_fell), n_features)  # a variance is in proportion to γ
        lows.append(first_stretch(rising, (1 - SETTINGS.threshold_margin) * threshold))
        highs.append(first_stretch(falling, (1 + SETTINGS.threshold_margin) * threshold))
        moves += [values[-1], first_stretch(rising, threshold), first_stretch(falling, threshold)]
    traces = trace_by_width(np.maximum(level, 0), n_features)
    coming = trace_by_width(np.clip(level + slope, 0, np.maximum(1, level)), n_features)
    n_activated = activations(steps, variances)
    n_asleep = int((variances[last_part(steps, 0.25)].mean(axis=0) >= SETTINGS.active_below).sum())
    n_activating = round(
        sum(n_activated)
    )  # not only those that are asleep here: a wider model has more of them
    value = values[-1]
    least_held, most_held = SETTINGS.half_active
    surplus = np.sort(level)[value:]
    half_awake = surplus[(surplus > least_held) & (surplus < most_held)]
    n_shared = int((1 - half_awake).sum()) if n_features is None else 0
    return Forecast(
        value=value,
        low=min(*lows, *values),
        high=max(*highs, *values) + n_activating,
        n_active=variances.shape[1] - n_asleep,
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
    """Σ E[σ²] that models of 1, 2 … latents would have, by a model that has them all.

    >>> trace_by_width(np.array([0.5, 0.1, 0.25])).round(2)
    array([0.1 , 0.35, 0.85])

    With learned γ, eigenvalues 8, 4, 1, 1, 1 and three latents γ is 1: variances 1/8, 1/4 and 1. With one latent it
    is the mean of 4, 1, 1 and 1, and the variance 1.75 / 8:

    >>> trace_by_width(np.array([0.125, 0.25, 1.0]), n_features=5).round(3)
    array([0.219, 0.375, 1.375])
    """
    ordered = np.sort(variances)
    sums = np.cumsum(ordered)
    if n_features is None or n_features <= len(ordered):
        return sums
    inverse = 1 / np.maximum(ordered, 1e-12)
    widths = np.arange(1, len(ordered) + 1)
    beyond = inverse.sum() - np.cumsum(inverse)
    return sums * (n_features - len(ordered) + beyond) / (n_features - widths)


def activations(
    steps: Int[np.ndarray, " look"], variances: Float[np.ndarray, "look latent"]
) -> tuple[float, float]:
    """How many latents woke in the last doubling of the steps, and in the one before.

    It is the variance lost by those that were above one half at its start and are below three quarters at its end: 1
    for a latent that is known exactly at its end and was passive before, little for one that only crossed one half.

    >>> steps = np.array([100, 200, 400, 800, 1600])
    >>> woken = np.array([[1, 1, 1], [0.1, 1, 1], [0.1, 1, 0.51], [0.1, 0.1, 0.49], [0.1, 0.1, 0.49]])
    >>> np.round(activations(steps, woken), 2)
    array([0.  , 0.92])
    """
    asleep = np.ones((1, variances.shape[1]))  # as all are before the first look
    quarter, half, now = (
        np.concatenate([asleep, np.minimum(1, variances[steps <= steps[-1] * part])])[-1]
        for part in (0.25, 0.5, 1)
    )
    return _woken(half, now), _woken(quarter, half)


def _woken(before: Float[np.ndarray, " latent"], after: Float[np.ndarray, " latent"]) -> float:
    """How many latents, in parts of one, woke from one look to another; those that stay asleep only fluctuate."""
    woke = (before > SETTINGS.active_below) & (after < SETTINGS.half_active[1])
    return float(np.maximum(0, before - after)[woke].sum())
