"""Is a model's Σ E[σ²] below the threshold to stay? Decided while it trains, from level and trend per latent."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Bool, Float, Shaped

from polariscope.core.errors import InputError
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.trial import Decision


@dataclasses.dataclass(frozen=True, eq=False)
class Verdict:
    """What a look at the curves says."""

    decision: Decision
    level: float
    """The statistic now: the lines of the last quarter at the last look, summed over latents."""
    projected: tuple[float, float]
    """Lowest and highest it may be between now and the horizon."""
    keeps: int
    """How many latents, smallest variance first, are within the threshold together where it is highest."""
    has_begun: bool
    """Whether any latent says anything about the input yet."""
    has_settled: bool
    """Whether no posterior is still wider than the prior."""


def judge(
    steps: Shaped[np.ndarray, " look"],
    variances: Float[np.ndarray, "look latent"],
    threshold: float | int,
    horizon: float | int = 0,
    n_active: int | None = None,
    has_descended: bool = False,
) -> Verdict:
    r"""Decide whether the statistic :math:`g = \sum_j \mathbb{E}[\sigma_j^2]` will be below ``threshold``.

    ``horizon`` is the step at which it is asked for; at least half a doubling is looked ahead.

    While a VAE trains, g starts near n, falls steeply as latents become active, and then rises slowly as surplus
    ones are pruned, each on its own: the first crossing of the threshold means nothing. So over the second half
    of the training so far, steps (t/2, t], a line in log₂(step) is fitted to every latent's variance: its value at
    t is the latent's level :math:`v_j`, its slope :math:`b_j` the change to be expected when the steps are doubled.
    With trends beyond 2.5 standard errors only, of a latent or of their sum, and
    :math:`d = \max(\tfrac{1}{2}, \log_2(horizon / t))` doublings ahead,

    .. math:: g_{low} = \sum_j \max\left(0, v_j + \begin{cases} d\,b_j & b_j < 0 \\
        \tfrac{1}{4} \min(1, d)\,b_j & b_j > 0\end{cases}\right) - 2s, \qquad
        g_{high} = \sum_j \min(\max(1, v_j), v_j + 2d \max(0, b_j)) + 2s

    where s is the standard error of the summed levels: a latent that rises is being pruned and will do at least a
    quarter of what it did (g_low), but it may do so twice as fast (g_high: pruning starts slowly); one that falls may
    go on (g_low) or stop (g_high). Where g falls as a whole, it may go on twice as fast as well (g_low). The same is
    done over the last quarter, (3t/4, t], which has turned already where the curve has: the lowest g_low and the
    highest g_high count. The model
    *fits* when g_high ≤ threshold and the first descent is over (g falls by less than a fifth of the threshold per
    doubling: while it falls as a whole, which latents will be pruned is not to be seen), or was made by another model,
    whose latents it began with (``has_descended``); it has *too many* latents when g_low > threshold; otherwise it is
    undecided and needs more training, as it does while no latent has begun to learn.
    Looking at the end only makes the steep descent leave the windows by itself.

    Latents wake one after another, sometimes long after the others, and a latent that waits looks like a passive
    one. What tells them apart is a history: a latent that was lower and rose again was given up, and counts; one that
    never fell counts 0 in g_low until four times the steps have passed that the last latent took to wake, or until as
    many are active as ever will be, if another model has shown it (``n_active``). So does one whose posterior is wider
    than the prior: it has not settled.

    >>> steps = np.arange(50, 1001, 50)
    >>> judge(steps, np.full((20, 4), 0.1), threshold=1.0).decision
    'fits'
    >>> judge(steps, np.tile([0.1, 0.1, 0.95, 0.96], (20, 1)), threshold=1.0).decision
    'too many'
    """
    waits = steps[-1] < SETTINGS.activation_patience * _last_activation(steps, variances)
    if n_active is not None and (variances[-1] < SETTINGS.active_below).sum() >= n_active:
        waits = False
    ahead = max(SETTINGS.min_doublings, float(np.log2(max(1, horizon) / steps[-1])))
    lows, highs, falls, within = [], [], [], []
    for share in SETTINGS.trend_windows:
        level, slope, noise = lines(steps, variances, share)
        may_wake = (
            waits & (level > SETTINGS.active_below) & (level - variances.min(axis=0) < SETTINGS.pruned_rise)
        )
        least, most = bounds(level, slope, ahead)
        lows.append(np.where(may_wake | (level > SETTINGS.unsettled_above), 0.0, least).sum() - 2 * noise)
        if slope.sum() < 0:  # whose latents' fall it is changes while they learn: as a whole it may go on
            lows.append(level.sum() + SETTINGS.max_acceleration * ahead * slope.sum() - 2 * noise)
        highs.append(most.sum() + 2 * noise)
        falls.append(-slope.sum())
        within.append(count_within(most, threshold))
    low, high = float(max(0, min(lows))), float(max(highs))
    has_begun = bool((level < SETTINGS.silent_above).any())
    decision: Decision = "undecided"
    is_past_descent = has_descended or max(falls) < SETTINGS.steep_fall * threshold
    if has_begun and high <= threshold and is_past_descent:
        decision = "fits"
    elif has_begun and low > threshold:
        decision = "too many"
    now = float(level.sum())
    has_settled = bool((level <= SETTINGS.unsettled_above).all())
    return Verdict(decision, now, (min(low, now), max(high, now)), min(within), has_begun, has_settled)


def bounds(
    level: Float[np.ndarray, " latent"], slope: Float[np.ndarray, " latent"], ahead: float
) -> tuple[Float[np.ndarray, " latent"], Float[np.ndarray, " latent"]]:
    """Lowest and highest variance of each latent so many doublings from now; see :func:`judge`."""
    ceiling = np.maximum(1, level)
    fall, rise = np.minimum(slope, 0), np.maximum(slope, 0)
    least = np.clip(level + ahead * fall + SETTINGS.min_carry * min(1, ahead) * rise, 0, ceiling)
    return least, np.minimum(level + SETTINGS.max_acceleration * ahead * rise, ceiling)


def _last_activation(
    steps: Shaped[np.ndarray, " look"], variances: Float[np.ndarray, "look latent"]
) -> float:
    """The last step at which a latent was first seen below one half; infinite before any is."""
    awake = variances < SETTINGS.active_below
    return float(steps[awake.argmax(axis=0)[awake.any(axis=0)]].max()) if awake.any() else np.inf


def count_within(variances: Float[np.ndarray, " latent"], threshold: float | int) -> int:
    """How many latents, smallest posterior variance first, stay within the threshold together.

    >>> count_within(np.array([0.9, 0.05, 0.1]), 1.0)
    2
    """
    return int((np.cumsum(np.sort(variances)) <= threshold).sum())


def last_part(steps: Shaped[np.ndarray, " look"], share: float) -> Bool[np.ndarray, " look"]:
    """Which looks are in the last ``share`` of the steps."""
    return steps > (1 - share) * steps[-1]


def lines(
    steps: Shaped[np.ndarray, " look"], variances: Float[np.ndarray, "look latent"], share: float
) -> tuple[Float[np.ndarray, " latent"], Float[np.ndarray, " latent"], float]:
    """Level of each latent now, its slope per doubling where that is real, and the standard error of their sum.

    Least squares in log₂(step / last step), over the last ``share`` of the steps. A slope is real beyond 2.5 standard
    errors; where that of the sum is, so are all that have its sign: many latents may move together, each too little to
    be seen alone.
    """
    window = last_part(steps, share)
    count = int(window.sum())
    if count < SETTINGS.min_looks:
        raise InputError(
            "steps",
            f"hold at least {SETTINGS.min_looks} looks in the last {share:.0%} of the training",
            got=count,
            remedy="look more often",
        )
    x = np.log2(steps[window] / steps[-1])
    y = variances[window].astype(np.float64)
    centred = x - x.mean()
    spread = float((centred**2).sum())
    slope = centred @ y / spread
    level = y.mean(axis=0) - slope * x.mean()
    residual = y - level - np.outer(x, slope)
    scatter = np.sqrt((residual**2).sum(axis=0) / (count - 2))
    real = np.abs(slope) > SETTINGS.trend_errors * scatter / np.sqrt(spread)
    # Of the sum itself: latents fluctuate together, as the weights do that they share.
    together = np.sqrt((residual.sum(axis=1) ** 2).sum() / (count - 2))
    if abs(slope.sum()) > SETTINGS.trend_errors * together / np.sqrt(spread):
        real |= np.sign(slope) == np.sign(slope.sum())
    noise = together * np.sqrt(1 / count + x.mean() ** 2 / spread)
    return level, np.where(real, slope, 0.0), float(noise)
