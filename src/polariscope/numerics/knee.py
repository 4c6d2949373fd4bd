"""Knee of a curve: the point at which two joined straight lines fit it best, with an interval."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.numerics.intervals import percentile_interval

MIN_POINTS = 5
"""Minimum number of points, because two lines that meet have four unknowns."""
MIN_SEEDS = 3
"""Minimum number of curves for an interval from resampled curves."""
LEVEL = 0.05
"""Significance level: maximum share of straight curves with noise that bend as clearly."""
N_DRAWS = 999
EPSILON = 64 * np.finfo(np.float64).eps
"""Relative size of rounding errors."""


@dataclasses.dataclass(frozen=True)
class Knee:
    """Position of a knee and its certainty."""

    value: float | None
    """Position of the knee on the x axis, not necessarily at a point; None if there is no knee."""
    interval: tuple[float, float] | None
    """Interval that contains 95 % of the knees of resampled curves."""
    slopes: tuple[float, float]
    """Slopes of the two lines, before and after the knee; equal for a straight line."""
    p_value: float
    """Share of straight curves with noise that bend as clearly."""
    reason: str
    """Method of the interval, or the reason why there is no knee."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Note that there is no knee; empty if there is one."""
        return () if self.value is not None else (f"There is no knee: {self.reason}.",)


@dataclasses.dataclass(frozen=True, eq=False)
class _Fit:
    """Best two joined lines of each curve."""

    positions: Float[np.ndarray, " curve"]
    slopes: Float[np.ndarray, "curve 2"]
    residuals: Float[np.ndarray, "curve point"]


def knee(
    x: Shaped[np.ndarray, " point"] | Sequence[float | int],
    y: Float[np.ndarray, "*seed value"] | Sequence[float | int],
    *,
    level: float = LEVEL,
    seed: int = 0,
) -> Knee:
    r"""Find the knee of a curve, where two joined straight lines fit it best and the second is flatter.

    .. math:: \min_{a, b, c, k} \sum_i (y_i - a - b x_i - c \max(0, x_i - k))^2

    over every k, also between points, that leaves at least two points on either side. The minimum is exact: for a break
    between two given points, the best lines are either two free ones that meet there, or joined at one of the points
    (Hudson, 1966). The knee is exact for curves that consist of two lines. It does not depend on units and offsets of
    the axes, nor on x ↦ −x or y ↦ −y, except for the side that must be flat. A smooth curve also has a knee, but its
    position depends on the range of x.

    There is no knee if the curve is constant or straight, if straight data with Gaussian noise would bend more clearly
    in more than ``level`` of all cases (the share of 999 such curves, because F tables do not apply to the best of many
    k), or if the curve becomes steeper at the bend.

    ``y`` is one curve, or one for each seed; the knee is that of their mean. The interval resamples the seeds if there
    are at least 3 curves, otherwise the residuals of the fit.

    >>> x = np.arange(1, 11)
    >>> round(knee(x, np.maximum(0.0, 6.0 - x)).value, 9)
    6.0
    >>> knee(x, 2.0 * x).reason
    'the curve is a straight line'
    """
    x, curves = _check(x, y)
    curve = curves.mean(axis=0)
    if np.ptp(curve) <= EPSILON * np.abs(curve).max():
        return Knee(None, None, (0.0, 0.0), 1.0, "the curve is constant")
    line = np.stack([np.ones_like(x), x], axis=1)
    slope = float((np.linalg.pinv(line) @ curve)[1])
    straight = _off_line(line, curve[None])[0]
    if np.abs(straight).max() <= EPSILON * np.abs(curve).max():
        return Knee(None, None, (slope, slope), 1.0, "the curve is a straight line")
    best = _two_lines(x, curve[None])
    knot, residuals = float(best.positions[0]), best.residuals[0]
    before, after = (float(value) for value in best.slopes[0])
    noise = _off_line(line, generator(seed, "knee", "straight").normal(size=(N_DRAWS, len(x))))
    # The relative reduction of the squared error by a bend depends neither on the line nor on the size of the noise.
    shares = (_two_lines(x, noise).residuals ** 2).sum(axis=1) / (noise**2).sum(axis=1)
    # The curve itself counts as one of the draws, so the share is never 0.
    p_value = float((1 + (shares <= residuals @ residuals / (straight @ straight)).sum()) / (1 + N_DRAWS))
    if p_value > level:
        reason = f"a straight line with noise would bend as clearly in {p_value:.0%} of cases"
        return Knee(None, None, (slope, slope), p_value, reason)
    if abs(after) >= abs(before):
        return Knee(
            None, None, (before, after), p_value, f"the curve becomes steeper at {knot:.3g}, not flatter"
        )
    rng = generator(seed, "knee", "interval")
    if len(curves) >= MIN_SEEDS:
        drawn = curves[rng.integers(len(curves), size=(N_DRAWS, len(curves)))].mean(axis=1)
        meaning = f"95 % of the knees when {len(curves)} seeds are resampled"
    else:
        # Four fitted unknowns make the residuals smaller than the noise.
        spread = residuals * np.sqrt(len(x) / (len(x) - 4))
        # The curve minus its residuals is the fit.
        drawn = curve - residuals + rng.choice(spread, size=(N_DRAWS, len(x)))
        meaning = "95 % of the knees when the residuals are resampled"
    interval = percentile_interval(knot, _two_lines(x, drawn).positions)
    return Knee(knot, interval, (before, after), p_value, meaning)


def _two_lines(x: Float[np.ndarray, " point"], curves: Float[np.ndarray, "curve point"]) -> _Fit:
    """Fit lines joined at each inner point (three unknowns), and free lines with a gap (four); return the best."""
    ones, positions = np.ones_like(x), np.arange(len(x))
    best: _Fit | None = None
    for k in range(1, len(x) - 1):
        joined = np.stack([ones, x, np.maximum(0, x - x[k])], axis=1)
        best = _better(best, _fit(joined, curves, np.full(len(curves), x[k])))
        # The gap after the last inner point has only one point on its right side.
        if k == len(x) - 2:
            continue
        after = (positions > k).astype(np.float64)
        free = np.stack([ones, x, after, after * x], axis=1)
        # Columns 2 and 3 are the differences of intercept and slope, so the lines meet where step + change ·
        # x = 0.
        step, change = (curves @ np.linalg.pinv(free).T)[:, 2:].T
        meeting = np.divide(-step, change, out=np.full(len(curves), np.nan), where=change != 0)
        # If free lines do not meet in the gap, the best joined lines meet at one of its ends.
        meets = (x[k] < meeting) & (meeting < x[k + 1])
        best = _better(best, _fit(free, curves, np.where(meets, meeting, np.nan)))
    assert best is not None
    return best


def _fit(
    design: Float[np.ndarray, "point coefficient"],
    curves: Float[np.ndarray, "curve point"],
    positions: Float[np.ndarray, " curve"],
) -> _Fit:
    # One pseudo-inverse serves all curves, of which there can be a thousand.
    coefficients = curves @ np.linalg.pinv(design).T
    before = coefficients[:, 1]
    slopes = np.stack([before, before + coefficients[:, -1]], axis=1)
    return _Fit(positions, slopes, curves - coefficients @ design.T)


def _better(first: _Fit | None, second: _Fit) -> _Fit:
    """Return, for each curve, the fit with the smaller error; a fit without a position does not count."""
    if first is None:
        return second
    errors = [(fit.residuals**2).sum(axis=1) for fit in (first, second)]
    wins = (errors[1] < errors[0]) & ~np.isnan(second.positions)
    return _Fit(
        np.where(wins, second.positions, first.positions),
        np.where(wins[:, None], second.slopes, first.slopes),
        np.where(wins[:, None], second.residuals, first.residuals),
    )


def _off_line(
    line: Float[np.ndarray, "point 2"], curves: Float[np.ndarray, "curve point"]
) -> Float[np.ndarray, "curve point"]:
    return curves - curves @ np.linalg.pinv(line).T @ line.T


def _check(
    x: Shaped[np.ndarray, " point"] | Sequence[float | int],
    y: Float[np.ndarray, "*seed value"] | Sequence[float | int],
) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "seed point"]]:
    """Return sorted points and a table of curves."""
    x, curves = np.array(x, dtype=np.float64), np.atleast_2d(np.array(y, dtype=np.float64))
    if curves.ndim != 2 or not len(curves) or curves.shape[1] != len(x):
        raise InputError(
            "y",
            f"be a curve of {len(x)} points, like x, or a table (seed, point)",
            got=f"the shape {np.shape(y)}",
        )
    if not (np.isfinite(x).all() and np.isfinite(curves).all()):
        raise InputError("x and y", "be finite", got="NaN or infinity", remedy="omit failed runs")
    if len(np.unique(x)) < max(MIN_POINTS, len(x)):
        raise InputError(
            "x",
            f"have at least {MIN_POINTS} different values, each once",
            got=f"{len(np.unique(x))} in {len(x)}",
            remedy="fewer points do not determine a knee",
        )
    order = np.argsort(x)
    return x[order], curves[:, order]
