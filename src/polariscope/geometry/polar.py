"""Test whether a pair of latents encodes factors in Cartesian or polar coordinates."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float, Int, Shaped

from polariscope.core.errors import InputError
from polariscope.core.records import AbstractRecord
from polariscope.core.seeds import generator
from polariscope.numerics.intervals import bounds_of_difference, recentred_interval

if TYPE_CHECKING:
    import pandas

Verdict = Literal["cartesian", "polar", "undecided"]
N_BINS = 20
CONSTANT = 1e-6  # range relative to the plane, below which a coordinate is constant
COORDINATES = ("first", "second", "radius", "angle")


@dataclasses.dataclass(frozen=True, eq=False)
class PolarTest(AbstractRecord):
    """Comparison of radius and angle with the two axes as explanations of the targets."""

    value: float
    """Polar minus Cartesian score: positive for polar coordinates, negative for Cartesian ones."""
    interval: tuple[float, float]
    """95 % bootstrap interval of ``value``."""
    verdict: Verdict
    """"undecided" if the interval contains 0."""
    cartesian: float
    """Mean share of the targets' variance explained, each by its own axis; at most 1."""
    polar: float
    """Mean share of the targets' variance explained by radius and angle."""
    explained: Float[np.ndarray, "target 4"]
    """Share of each target's variance explained by the first axis, the second, the radius and the angle."""
    cartesian_pairing: tuple[str, ...]
    """Axis that each target is paired with: "first" or "second"."""
    polar_pairing: tuple[str, ...]
    """Coordinate that each target is paired with: "radius" or "angle"."""

    def to_frame(self) -> pandas.DataFrame:
        """Return the table of :attr:`explained`, a row for each target and a column for each coordinate."""
        import pandas

        columns = ["first", "second", "radius", "angle"]
        return pandas.DataFrame(self.explained, columns=columns).rename_axis("target")


def polar_test(
    plane: Float[np.ndarray, "sample 2"],
    targets: Shaped[np.ndarray, "sample target"],
    *,
    periods: Sequence[float | None] | None = None,
    centre: tuple[float, float] | Literal["mean"] = (0.0, 0.0),
    n_bootstrap: int = 200,
    seed: int = 0,
) -> PolarTest:
    r"""Test whether one or two targets depend on the axes of a plane or on its radius and angle.

    ``plane`` is a pair of latents and ``targets`` the factors, as for a decoder whose hue changes around the centre; or
    ``plane`` is a position (x, y), with ``centre="mean"``, and ``targets`` a pair of latents, which can encode it as x
    and y or as distance and direction. For each coordinate c of the plane, the share of a target's variance that its
    bin means explain is

    .. math:: \eta^2 = 1 - \frac{n - 1}{n - K}\,
        \frac{\sum_i (t_i - \bar t_{\mathrm{bin}(c_i)})^2}{\sum_i (t_i - \bar t)^2}

    in K = 20 bins with equal numbers of samples, corrected for the number of bins, and at least 0. It assumes no form
    of the dependence and treats the four coordinates equally. A target with a ``period`` p is mapped to the circle,
    t = (cos, sin)(2π t/p). The Cartesian score is the mean over targets for the better of the two pairings of targets
    with axes; the polar score is that with radius and angle.

    Reference: zietlow2022 §4.3.6 distinguishes the two by eye; the test is ours. The reference's circular–linear
    correlation would detect an angle only if the target is a sinusoid of it.

    >>> t = np.linspace(0, 6.28, 1000, endpoint=False)
    >>> polar_test(np.stack([np.cos(t), np.sin(t)], axis=1), t[:, None], periods=[2 * np.pi]).verdict
    'polar'
    """
    plane, columns = _checked(plane, targets, periods)
    if n_bootstrap < 1:
        raise InputError("n_bootstrap", "be at least 1", got=n_bootstrap, remedy="200 is the default")
    middle = _middle(plane, centre)
    x, y = (plane - middle).T
    radius = np.hypot(x, y)
    reach = float(radius.max())
    # An angle is measured relative to π, the other coordinates relative to the largest radius.
    scales = zip((x, y, radius, np.arctan2(y, x)), (reach, reach, reach, np.pi), strict=True)
    bins = np.stack([_equal_bins(values, scale) for values, scale in scales], axis=1)
    explained = _explained(bins, columns)
    cartesian, axes = _best_pairing(explained[:, :2])
    polar, around = _best_pairing(explained[:, 2:])
    random = generator(seed, "polar")
    draws = []
    for _ in range(n_bootstrap):
        # The bins stay those of all samples, and only rows are resampled.
        rows = random.integers(len(plane), size=len(plane))
        again = _explained(bins[rows], [column[rows] for column in columns])
        draws.append(_best_pairing(again[:, 2:])[0] - _best_pairing(again[:, :2])[0])
    value = polar - cartesian
    # Use only the spread of the resamples, because resampled shares are too large.
    low, high = recentred_interval(value, np.array(draws), bounds_of_difference((0, 1)))
    return PolarTest(
        value=value,
        interval=(low, high),
        verdict="polar" if low > 0 else "cartesian" if high < 0 else "undecided",
        cartesian=cartesian,
        polar=polar,
        explained=explained,
        cartesian_pairing=tuple(COORDINATES[j] for j in axes),
        polar_pairing=tuple(COORDINATES[2 + j] for j in around),
    )


def _checked(
    plane: Float[np.ndarray, "sample 2"],
    targets: Shaped[np.ndarray, "sample target"],
    periods: Sequence[float | None] | None,
) -> tuple[Float[np.ndarray, "sample 2"], list[Float[np.ndarray, "sample _"]]]:
    if plane.ndim != 2 or plane.shape[1] != 2 or plane.dtype.kind not in "fiub":
        raise InputError(
            "plane",
            "be numbers in two columns",
            got=f"{plane.dtype} of shape {plane.shape}",
            remedy="select two latents, as in rep.mean[:, [0, 3]]",
        )
    if targets.dtype.kind not in "fiub":
        raise InputError("targets", "be numbers", got=targets.dtype, remedy="number the categories")
    if len(plane) != len(targets) or targets.ndim != 2 or targets.shape[1] not in (1, 2):
        raise InputError(
            "targets",
            f"be one or two columns with a row for each of the {len(plane)} samples",
            got=f"shape {targets.shape}",
        )
    if len(plane) < 10 * N_BINS:
        raise InputError(problem=f"{N_BINS} bins require at least {10 * N_BINS} samples", got=len(plane))
    periods = [None] * targets.shape[1] if periods is None else periods
    if len(periods) != targets.shape[1] or any(p is not None and not p > 0 for p in periods):
        raise InputError("periods", "be a positive number or None for each target", got=list(periods))
    plane, numbers = plane.astype(np.float64), targets.astype(np.float64)
    if not (np.isfinite(plane).all() and np.isfinite(numbers).all()):
        raise InputError("plane and targets", "be finite", got="NaN or infinite values")
    columns = [_on_circle(column, period) for column, period in zip(numbers.T, periods, strict=True)]
    for number, column in enumerate(columns):
        if not np.ptp(column, axis=0).any():
            raise InputError(
                problem=f"target {number} has a single value in these samples",
                remedy="use targets that vary",
            )
    if (np.ptp(plane, axis=0) == 0).any():
        raise InputError(
            problem="an axis of the plane has a single value in these samples", remedy="select latents in use"
        )
    return plane, columns


def _middle(plane: Float[np.ndarray, "sample 2"], centre: Any) -> Float[np.ndarray, " 2"]:
    if isinstance(centre, str) and centre == "mean":
        return plane.mean(axis=0)
    middle = np.asarray(centre)
    if middle.shape != (2,) or middle.dtype.kind not in "fiu" or not np.isfinite(middle).all():
        raise InputError("centre", "be 'mean' or two finite numbers", got=f"{centre!r}")
    return middle.astype(np.float64)


def _on_circle(column: Float[np.ndarray, " sample"], period: float | None) -> Float[np.ndarray, "sample _"]:
    if period is None:
        return column[:, None]
    phase = 2 * np.pi * column / period
    return np.stack([np.cos(phase), np.sin(phase)], axis=1)


def _equal_bins(values: Float[np.ndarray, " sample"], scale: float) -> Int[np.ndarray, " sample"]:
    """Return bins with equal numbers of samples; equal values share a bin."""
    if np.ptp(values) <= CONSTANT * scale:  # quantiles would turn rounding errors into bins
        return np.zeros(len(values), dtype=np.int64)
    edges = np.quantile(values, np.linspace(0, 1, N_BINS + 1)[1:-1])
    return np.searchsorted(edges, values, side="right")


def _explained(
    bins: Int[np.ndarray, "sample coordinate"], columns: list[Float[np.ndarray, "sample _"]]
) -> Float[np.ndarray, "target coordinate"]:
    table = np.zeros((len(columns), bins.shape[1]))
    n = len(bins)
    for j, bin_of in enumerate(bins.T):
        counts = np.bincount(bin_of, minlength=N_BINS)
        used = counts > 0
        for i, column in enumerate(columns):
            centred = column - column.mean(axis=0)
            sums = np.stack([np.bincount(bin_of, part, minlength=N_BINS) for part in centred.T])
            total = (centred**2).sum()
            # Sum of squares between bins; the rest of the total is within them.
            between = (sums[:, used] ** 2 / counts[used]).sum()
            # A resample can consist of a single value.
            left = (total - between) / total if total > 0 else 1.0
            table[i, j] = max(0.0, 1 - (n - 1) / (n - used.sum()) * left)
    return table


def _best_pairing(explained: Float[np.ndarray, "target 2"]) -> tuple[float, tuple[int, ...]]:
    pairings = list(itertools.permutations(range(2), len(explained)))
    scores = [float(explained[range(len(explained)), pairing].mean()) for pairing in pairings]
    best = int(np.argmax(scores))
    return scores[best], pairings[best]
