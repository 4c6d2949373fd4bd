"""Decision whether a model's Σ E[σ²] stays below the threshold, from levels and trends of its latents in training."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Bool, Float, Shaped

from polariscope.core.errors import InputError
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.trial import Decision


@dataclasses.dataclass(frozen=True, eq=False)
class Verdict:
    """Decision about a model, with the evidence from its training curves."""

    decision: Decision
    level: float
    """The statistic now: the lines fitted to the last quarter, at the last measurement, summed over latents."""
    projected: tuple[float, float]
    """Lowest and highest value expected between now and the horizon."""
    keeps: int
    """Number of latents, smallest variance first, whose sum is within the threshold in the worst case."""
    has_begun: bool
    """If True, at least one latent carries information about the input."""
    has_settled: bool
    """If True, no posterior is wider than the prior."""


def judge(
    steps: Shaped[np.ndarray, " look"],
    variances: Float[np.ndarray, "look latent"],
    threshold: float | int,
    horizon: float | int = 0,
    n_active: int | None = None,
    has_descended: bool = False,
) -> Verdict:
    r"""Decide whether the statistic :math:`g = \sum_j \mathbb{E}[\sigma_j^2]` will be below ``threshold``.

    ``horizon`` is the step for which the decision is made; trends are extrapolated over at least half a doubling.

    While a VAE trains, g starts near n, falls steeply as latents become active, and then rises slowly as surplus
    latents are pruned one by one. The first crossing of the threshold is therefore not informative. Instead, a line in
    log₂(step) is fitted to every latent's variance over the second half of the training so far, steps (t/2, t]. Its
    value at t is the latent's level :math:`v_j`; its slope :math:`b_j` is the expected change when the steps are
    doubled. Only trends beyond 2.5 standard errors, of a latent or of the sum, are used. With
    :math:`d = \max(\tfrac{1}{2}, \log_2(horizon / t))` doublings ahead,

    .. math:: g_{low} = \sum_j \max\left(0, v_j + \begin{cases} d\,b_j & b_j < 0 \\
        \tfrac{1}{4} \min(1, d)\,b_j & b_j > 0\end{cases}\right) - 2s, \qquad
        g_{high} = \sum_j \min(\max(1, v_j), v_j + 2d \max(0, b_j)) + 2s

    where s is the standard error of the summed levels. A rising latent is being pruned: its rise continues by at least
    a quarter (g_low), and at most twice as fast (g_high), because pruning starts slowly. A falling latent can continue
    to fall (g_low) or stop (g_high). If g falls as a whole, it can also continue twice as fast (g_low). The same is
    computed over the last quarter, (3t/4, t], which shows a change of direction sooner; the lowest g_low and the
    highest g_high count. Because only the end of the curve is used, the steep descent leaves the windows by itself.

    * The model *fits* if g_high ≤ threshold and the initial descent is over: g falls by less than a fifth of the
      threshold per doubling, or the model was initialised from one that has descended (``has_descended``). While g
      falls as a whole, it is unknown which latents will be pruned.
    * It has *too many* latents if g_low > threshold.
    * Otherwise it is *undecided* and must be trained longer, as must a model in which no latent has begun to learn.

    Latents become active one after another, some of them late, and a latent that is not active yet looks like a passive
    one. Their histories differ. A latent whose variance was lower and rose again was pruned, and counts. One that never
    fell counts 0 in g_low until four times the steps of the last activation have passed, or until ``n_active`` latents
    are active, if another model has shown this number. A latent whose posterior is wider than the prior also counts 0.

    >>> steps = np.arange(50, 1001, 50)
    >>> judge(steps, np.full((20, 4), 0.1), threshold=1.0).decision
    'fits'
    >>> judge(steps, np.tile([0.1, 0.1, 0.95, 0.96], (20, 1)), threshold=1.0).decision
    'too many'
    """
    # Without an active latent the last activation is infinite, so the model has to wait.
    waits = steps[-1] < SETTINGS.activation_patience * _last_activation(steps, variances)
    if n_active is not None and (variances[-1] < SETTINGS.active_below).sum() >= n_active:
        waits = False
    ahead = max(SETTINGS.min_doublings, float(np.log2(max(1, horizon) / steps[-1])))
    lows, highs, falls, within = [], [], [], []
    for share in SETTINGS.trend_windows:
        level, slope, noise = lines(steps, variances, share)
        can_activate = (
            waits & (level > SETTINGS.active_below) & (level - variances.min(axis=0) < SETTINGS.pruned_rise)
        )
        lowest, highest = bounds(level, slope, ahead)
        lows.append(
            np.where(can_activate | (level > SETTINGS.unsettled_above), 0.0, lowest).sum() - 2 * noise
        )
        # Different latents fall in turn while they learn, so the sum can continue to fall when each of them stops.
        if slope.sum() < 0:
            lows.append(level.sum() + SETTINGS.max_acceleration * ahead * slope.sum() - 2 * noise)
        highs.append(highest.sum() + 2 * noise)
        falls.append(-slope.sum())
        within.append(count_within(highest, threshold))
    low, high = float(max(0, min(lows))), float(max(highs))
    # Level and slope are now those of the last quarter, the second window.
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
    """Return the lowest and highest expected variance of each latent after ``ahead`` doublings; see :func:`judge`."""
    ceiling = np.maximum(1, level)
    fall, rise = np.minimum(slope, 0), np.maximum(slope, 0)
    lowest = np.clip(level + ahead * fall + SETTINGS.min_carry * min(1, ahead) * rise, 0, ceiling)
    return lowest, np.minimum(level + SETTINGS.max_acceleration * ahead * rise, ceiling)


def _last_activation(
    steps: Shaped[np.ndarray, " look"], variances: Float[np.ndarray, "look latent"]
) -> float:
    """Return the last step at which a latent first became active; infinite if none has."""
    active = variances < SETTINGS.active_below
    # argmax returns the first True of each column; columns without one are left out.
    return float(steps[active.argmax(axis=0)[active.any(axis=0)]].max()) if active.any() else np.inf


def count_within(variances: Float[np.ndarray, " latent"], threshold: float | int) -> int:
    """Return the number of latents, smallest posterior variance first, whose sum is within the threshold.

    >>> count_within(np.array([0.9, 0.05, 0.1]), 1.0)
    2
    """
    return int((np.cumsum(np.sort(variances)) <= threshold).sum())


def last_part(steps: Shaped[np.ndarray, " look"], share: float) -> Bool[np.ndarray, " look"]:
    """Return a mask of the measurements in the last ``share`` of the steps."""
    return steps > (1 - share) * steps[-1]


def lines(
    steps: Shaped[np.ndarray, " look"], variances: Float[np.ndarray, "look latent"], share: float
) -> tuple[Float[np.ndarray, " latent"], Float[np.ndarray, " latent"], float]:
    """Fit lines: return the level of each latent, its slope per doubling and the standard error of the summed levels.

    Lines are fitted by least squares in log₂(step / last step) over the last ``share`` of the steps. A slope counts if
    it exceeds 2.5 standard errors; other slopes are set to 0. If the slope of the sum counts, so do all slopes of the
    same sign: many latents can move together, each by too little to be detected alone.
    """
    window = last_part(steps, share)
    count = int(window.sum())
    if count < SETTINGS.min_looks:
        raise InputError(
            "steps",
            f"contain at least {SETTINGS.min_looks} measurements in the last {share:.0%} of the training",
            got=count,
            remedy="log more often",
        )
    # x is 0 at the last measurement, so the intercept of a line is the present level.
    x = np.log2(steps[window] / steps[-1])
    y = variances[window].astype(np.float64)
    centred = x - x.mean()
    spread = float((centred**2).sum())
    slope = centred @ y / spread
    level = y.mean(axis=0) - slope * x.mean()
    residual = y - level - np.outer(x, slope)
    scatter = np.sqrt((residual**2).sum(axis=0) / (count - 2))
    is_significant = np.abs(slope) > SETTINGS.trend_errors * scatter / np.sqrt(spread)
    # The error is that of the sum: latents share weights, so their fluctuations are correlated and do not average out.
    together = np.sqrt((residual.sum(axis=1) ** 2).sum() / (count - 2))
    if abs(slope.sum()) > SETTINGS.trend_errors * together / np.sqrt(spread):
        is_significant |= np.sign(slope) == np.sign(slope.sum())
    # The standard error of the sum of the lines at x = 0, the last measurement.
    noise = together * np.sqrt(1 / count + x.mean() ** 2 / spread)
    return level, np.where(is_significant, slope, 0.0), float(noise)
