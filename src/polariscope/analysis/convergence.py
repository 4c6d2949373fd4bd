"""Training state, computed from the log: converged, still learning, overfitting, …"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from polariscope.core.records import AbstractRecord

if TYPE_CHECKING:
    from polariscope.numerics.trends import Trend

LogLine = Mapping[str, Any]
"""A line of a training log: values by name."""
StateCode = Literal["converged", "still-learning", "overfitting", "diverged", "stopped-early", "unknown"]
FEW_LINES = 20
"""Number of lines below which only a clear fall is judged, because a trend cannot be distinguished from noise."""
NATS, SHARE, CAP = 0.5, 0.01, 0.05
"""Minimum gain that counts: 0.5 nats, or 5 % of the loss gained so far if that is less, but at least 1 % of it."""
FULL_RATE = 0.5
"""Share of the largest learning rate below which the loss stops falling because of the schedule."""
SURE = 0.99
"""Confidence level of a rise of the held-out loss."""


@dataclasses.dataclass(frozen=True)
class TrainingState(AbstractRecord):
    """State of a training at its end, computed from the log."""

    code: StateCode = "unknown"
    step: int = 0
    """Last step of the log."""
    since: int | None = None
    """Overfitting: step of the lowest held-out loss. Stopped early: step of the model. Diverged: step at which the loss
    was not finite, or None if it only rises."""
    gain: float | None = None
    """Expected decrease of the loss, in nats, if the number of steps is doubled."""
    gain_limit: float | None = None
    """Upper 95 % limit of that gain."""
    tolerance: float | None = None
    """Gain in nats above which the training counts as still learning."""
    moves: tuple[int, ...] = ()
    """Latents whose information crosses the threshold of use if its trend continues."""
    judged_until: int | None = None
    """Last step that was judged, if the learning rate decays after it."""
    ramp_until: int | None = None
    """End of the objective's schedule, if training ended before it."""
    rate_weight: float | None = None
    """Weight of the rate (β) at the end; None if the objective has no rate or there is no log."""
    in_use_until: int | None = None
    """Last step at which the information of a latent exceeded the threshold of use; None if it never did."""
    lowest_at: int | None = None
    """Step of the lowest held-out loss, if that was not the last validation: longer training might overfit."""
    noise_share: float | None = None
    """Fixed variance of the decoder divided by the mean variance of the features; None if it is learned or unknown."""

    @property
    def allows_advice(self) -> bool:
        """If True, advice about the number of latents can be given: training is neither unfinished nor diverged.

        A model from another library, which has no log, gets advice. A model whose log is too short does not.
        """
        return self.code not in ("still-learning", "diverged") and not (self.code == "unknown" and self.step)

    @property
    def more_steps(self) -> int:
        """Number of further steps to try: as many again, or up to twice the length of the objective's schedule."""
        return max(self.step, 2 * (self.ramp_until or 0) - self.step)


def training_state(
    lines: Sequence[LogLine],
    *,
    threshold: float,
    ramp_until: int = 0,
    stopped_at: int | None = None,
    diverged_at: int | None = None,
    noise_share: float | None = None,
) -> TrainingState:
    r"""Return the state of a training from the lines of its log.

    The gain from doubling the steps is extrapolated from the last half of the log in log₂(step), in which learning
    curves are nearly straight, or slow down (:func:`polariscope.numerics.trends.doubling_gain`). The training is

    * *diverged* if a loss is not finite, or if it rises and exceeds that of the first line,
    * *overfitting* if the held-out loss and its excess over the training loss rise over the last half of the training,
      and the held-out loss is above its minimum by more than the tolerance below,
    * *still learning* if the upper 95 % limit of the gain exceeds max(1 % of G, min(0.5 nats, 5 % of G)), with G the
      decrease of the loss since the first line, if the trend of the information of a latent crosses the threshold of
      use within a doubling of the steps, or if the schedule of the objective has not ended,
    * *stopped early* if early stopping ended it,
    * *unknown* without a log, or with fewer than 20 lines that show no clear fall,
    * *converged* otherwise.

    If the learning rate decays to 0, the loss stops falling whether or not the model has converged, so the part with at
    least half of the largest rate is judged.

    :param lines: lines of a log: ``step``, ``loss``, ``learning_rate``, ``variance``, ``std``, perhaps ``validation``.
    :param threshold: information in nats, ½ log(1 + Var μ / E σ²), above which a latent is in use.
    :param ramp_until: (default 0) step at which the schedule of the objective ends.
    :param stopped_at: (default None) step at which early stopping ended the training.
    :param diverged_at: (default None) step at which training was aborted because the loss was not finite; the log has
        no line for it.
    :param noise_share: (default None) fixed variance of the decoder divided by the mean variance of the features.

    >>> fall = [{"step": 100 * i, "loss": 100 / i} for i in range(1, 41)]
    >>> training_state(fall, threshold=0.05).code
    'still-learning'
    >>> flat = [{"step": 100 * i, "loss": 50 * 0.5**i} for i in range(1, 41)]
    >>> training_state(flat, threshold=0.05).code
    'converged'
    """
    if diverged_at is not None:
        return TrainingState("diverged", int(lines[-1]["step"]) if lines else 0, since=diverged_at)
    if not lines:
        return TrainingState()
    weight = (lines[-1].get("weights") or {}).get("rate")
    # NaN, of a latent without variance, does not exceed any threshold.
    used = [line["step"] for line in lines if any(value > threshold for value in information(line))]
    return dataclasses.replace(
        _judged(lines, threshold, ramp_until, stopped_at),
        rate_weight=None if weight is None else float(weight),
        in_use_until=int(used[-1]) if used else None,
        noise_share=noise_share,
        lowest_at=_lowest_held_out(lines, ramp_until),
    )


def _lowest_held_out(lines: Sequence[LogLine], ramp_until: int) -> int | None:
    """Return the step of the lowest held-out loss, or None if it is that of the last validation."""
    losses = [(held_out_loss(line), int(line["step"])) for line in _validated(lines, ramp_until)]
    if not losses or not all(math.isfinite(loss) for loss, _ in losses):
        return None
    # In case of ties, the minimum of the pairs is the earliest step.
    best = min(losses)[1]
    return None if best == losses[-1][1] else best


def _validated(lines: Sequence[LogLine], ramp_until: int) -> list[LogLine]:
    """Return the lines with a validation after the schedule of the objective."""
    return [line for line in lines if line.get("validation") and line["step"] > ramp_until]


def _judged(
    lines: Sequence[LogLine], threshold: float, ramp_until: int, stopped_at: int | None
) -> TrainingState:
    """Return the state from the losses and the latents of a log."""
    from polariscope.numerics.trends import (
        doubling_gain,
    )  # scipy is slow to import, and opening data does not need it

    last = int(lines[-1]["step"])
    for line in lines:
        if not math.isfinite(line["loss"]):
            return TrainingState("diverged", last, since=int(line["step"]))
    if stopped_at is not None:
        return TrainingState("stopped-early", last, since=stopped_at)
    if last <= ramp_until:
        return TrainingState("still-learning", last, ramp_until=ramp_until)
    # During a ramp the objective changes, so its losses are not comparable.
    judged = _at_full_rate([line for line in lines if line["step"] > ramp_until])
    until = int(judged[-1]["step"])
    decayed = {} if until == last else {"judged_until": until}
    loss = _trend(judged, [line["loss"] for line in judged])
    if loss is None:
        return TrainingState("unknown", last)
    forecast = doubling_gain([line["step"] for line in judged], [line["loss"] for line in judged])
    # From the largest loss of all lines, also of those before and after the part that is judged.
    gained = max(0.0, max(line["loss"] for line in lines) - loss.level)
    tolerance = max(SHARE * gained, min(NATS, CAP * gained))
    # A ramp can raise the loss, so compare with the first line after it.
    if loss.limits()[0] > 0 and loss.level > judged[0]["loss"] + NATS:
        return TrainingState("diverged", last)
    if (best := overfitting_since(lines, ramp_until, tolerance)) is not None:
        return TrainingState("overfitting", last, since=best, tolerance=tolerance)
    moves = crossing(judged, threshold)
    facts: dict[str, Any] = {
        "gain": forecast.value,
        "gain_limit": forecast.limit if math.isfinite(forecast.limit) else None,
        "tolerance": tolerance,
        "moves": moves,
        **decayed,
    }
    if len(judged) < FEW_LINES:
        # With few lines, only a fall whose lower limit exceeds the tolerance is certain.
        falls = -loss.limits()[1] > tolerance
        return TrainingState("still-learning" if falls else "unknown", last, **facts)
    return TrainingState(
        "still-learning" if forecast.limit > tolerance or moves else "converged", last, **facts
    )


def information(line: LogLine) -> list[float]:
    """Return ½ log(1 + Var μ / E σ²) of each latent, in nats, from a line of a log; empty if it has no moments.

    :param line: a line with ``variance``, the mean posterior variances, and ``std``, the standard deviations of the
        means.
    """
    spreads, variances = line.get("std") or [], line.get("variance") or []
    return [
        0.5 * math.log1p(spread**2 / variance) if spread is not None and variance > 0 else math.nan
        for spread, variance in zip(spreads, variances, strict=True)
    ]


def crossing(lines: Sequence[LogLine], threshold: float) -> tuple[int, ...]:
    """Return the latents whose information crosses a threshold if its trend continues over a doubling of the steps.

    Only trends that are significant at the 95 % level count. Latents with a posterior variance of 0 are left out.

    :param lines: lines of a log.
    :param threshold: information in nats above which a latent is in use.
    """
    from polariscope.numerics.trends import (
        MIN_VALUES,
    )  # scipy is slow to import, and opening data does not need it

    table = np.array([values for line in lines if (values := information(line))])
    # A gap in the moments would shift latents against steps.
    if len(table) < max(MIN_VALUES, len(lines)):
        return ()
    crossings = []
    for latent, values in enumerate(table.T):
        if not np.isfinite(values).all():
            continue
        line = _trend(lines, values.tolist())
        if line is None or line.limits()[0] <= 0 <= line.limits()[1]:
            continue
        # The slope is per doubling, so level + slope is the value after one.
        if (line.level > threshold) != (line.level + line.slope > threshold):
            crossings.append(latent)
    return tuple(crossings)


def overfitting_since(lines: Sequence[LogLine], ramp_until: int = 0, tolerance: float = 0.0) -> int | None:
    """Return the step of the lowest held-out loss if the model overfits now; None otherwise.

    The model overfits if the held-out loss and its excess over the training loss both rise over the last half of the
    training. (If both losses rise alike, the objective itself has changed.) With fewer than four validations in that
    half, both must rise from each of the last four validations to the next.

    :param lines: lines of a log, some of them with ``validation`` and ``weights``.
    :param ramp_until: (default 0) step at which the schedule of the objective ends.
    :param tolerance: (default 0) minimum rise above the lowest loss, in nats.
    """
    losses = [(line["step"], held_out_loss(line), line["loss"]) for line in _validated(lines, ramp_until)]
    return best_step(losses, tolerance, for_state=True)


def held_out_loss(line: LogLine) -> float:
    """Return the held-out loss of a line with ``validation``: its terms, weighted as in the objective.

    :param line: a line of a log.
    """
    # fsum does not depend on the order of the terms.
    return math.fsum(line["weights"].get(name, 1.0) * value for name, value in line["validation"].items())


def best_step(
    losses: Sequence[tuple[int, float, float]], tolerance: float = 0.0, *, for_state: bool = False
) -> int | None:
    """Return the step of the lowest held-out loss, if it and its excess over the training loss have risen since.

    None otherwise.

    >>> steps = range(1000, 9000, 1000)
    >>> training = [13.5, 12.9, 12.6, 12.2, 11.9, 11.7, 11.6, 11.4]
    >>> best_step(list(zip(steps, [13.8, 13.3, 13.6, 13.9, 14.2, 14.6, 14.8, 15.1], training, strict=True)))
    2000
    >>> best_step(list(zip(steps, [13.8, 13.3, 13.1, 13.0, 13.0, 12.9, 12.9, 12.8], training, strict=True)))

    :param losses: (step, held-out loss, training loss) in nats per observation.
    :param tolerance: (default 0) minimum rise of the held-out loss above its lowest value, in nats.
    :param for_state: (default False) if True, judge as the state of a training does: with fewer than four losses in the
        last half of the steps, four ascending ones count as a rise, and losses that rose early and stay high also
        count.
    """
    from polariscope.numerics.trends import (
        MIN_VALUES,
        trend,
    )  # scipy is slow to import, and opening data does not need it

    steps = [step for step, _, _ in losses]
    if len(steps) < MIN_VALUES:
        return None
    values = np.array([both for _, *both in losses], dtype=np.float64)
    if not np.isfinite(values).all():
        return None
    held_out, training = values.T
    curves, level = (held_out, held_out - training), held_out[-1]
    has_few = sum(step > steps[-1] / 2 for step in steps) < MIN_VALUES
    if has_few and not for_state:
        return None
    if has_few:
        # Four values of pure noise are in ascending order with probability 1/24.
        rises = all((np.diff(curve[-MIN_VALUES:]) > 0).all() for curve in curves)
    else:
        fits = [trend(steps, curve.tolist()) for curve in curves]
        level = fits[0].level
        rises = all(fit.limits(SURE)[0] > 0 for fit in fits)
        if for_state and not rises and _stays_above(steps, curves, int(held_out.argmin()), tolerance):
            rises, level = True, float(held_out[np.array(steps) > steps[-1] / 2].mean())
    return int(steps[int(held_out.argmin())]) if rises and level - held_out.min() > tolerance else None


def _stays_above(
    steps: Sequence[int], curves: Sequence[Float[np.ndarray, " step"]], best: int, tolerance: float
) -> bool:
    """Return True if the curves are higher in the last half of the steps than next to their lowest value.

    The lowest value itself was selected for being low, so its two neighbours are used instead. The means are compared
    with 99 % confidence, given the spread within the last half, and must differ by more than the tolerance.

    :param curves: held-out loss, and its excess over the training loss.
    :param best: index of the lowest held-out loss.
    """
    from scipy.special import stdtrit

    late = np.array(steps) > steps[-1] / 2
    if late[best] or not 0 < best < len(steps) - 1:
        return False
    n_late = int(late.sum())
    # The difference of a mean of two and a mean of n values has the variance σ² (1/2 + 1/n).
    factor = float(stdtrit(n_late - 1, SURE)) * math.sqrt(1 / 2 + 1 / n_late)
    for curve in curves:
        difference = curve[late].mean() - curve[[best - 1, best + 1]].mean()
        if difference <= max(tolerance, factor * curve[late].std(ddof=1)):
            return False
    return True


def _at_full_rate(lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the lines up to the last with at least half of the largest learning rate."""
    rates = [line.get("learning_rate", 1.0) for line in lines]
    # The last such line, because a warm-up begins with a low rate too.
    last = max(index for index, rate in enumerate(rates) if rate >= FULL_RATE * max(rates))
    return lines[: last + 1]


def _trend(lines: Sequence[LogLine], values: Sequence[float]) -> Trend | None:
    """Return the trend over the last half of the steps; None if there are too few lines."""
    from polariscope.numerics.trends import (
        MIN_VALUES,
        trend,
    )  # scipy is slow to import, and opening data does not need it

    steps = [line["step"] for line in lines]
    if sum(step > steps[-1] / 2 for step in steps) < MIN_VALUES:
        return None
    return trend(steps, values)
