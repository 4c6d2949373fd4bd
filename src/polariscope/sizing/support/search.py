"""FONDUE: the largest number of latents of which none is surplus, by training a few models.

The searches of bonheme2023 chapter 8, over any statistic and any trainer: a function ``encode_with(n_latents)``
that gives a :class:`~polariscope.analysis.representation.Representation`, so models of any library can be sized.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from polariscope.analysis.representation import Representation
from polariscope.analysis.theory import first_stretch
from polariscope.core.errors import InputError, PolariscopeError, check_word, unknown
from polariscope.numerics.rounding import truncate
from polariscope.sizing import TRACE, Size, Trial, median_answer
from polariscope.storage.documents import read_document, write_document

Algorithm = Literal["grow", "binary"]
CAP = 1024
"""Most latents that are tried, unless said otherwise: a search that never finds a surplus must end."""


class CapError(PolariscopeError):
    """A search went up to its cap without finding a model that has too many latents."""


def grow_and_bisect(fits: Callable[[int], bool], n_init: int, cap: int = CAP) -> int:
    """Double from ``n_init`` until a model no longer fits, then bisect: the largest n that fits.

    bonheme2023 Algorithms 1, 3 and 5. ``fits`` is asked once for each n. 0 when not even one latent fits.

    Ours: a cap, since the published loop never ends when everything fits; hitting it raises :class:`CapError`.

    >>> tried = []
    >>> grow_and_bisect(lambda n: tried.append(n) or n <= 19, n_init=4)
    19
    >>> tried
    [4, 8, 16, 32, 24, 20, 18, 19]
    """
    _check_range(n_init, cap)
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
            low, n = n, int(min(2 * n, high, cap))
        else:
            high, n = n, (low + n) // 2
    return n


def bisect(fits: Callable[[int], bool], low: int = 1, high: int = 200) -> int:
    """Binary search between ``low`` and ``high``: the largest n that fits, as bonheme2023 Algorithms 7 and 8.

    ``high`` itself is never tried, so the answer is at most ``high`` − 1; that answer raises
    :class:`CapError`, since a larger one was never looked for.

    >>> tried = []
    >>> bisect(lambda n: tried.append(n) or n <= 19)
    19
    >>> tried
    [100, 50, 25, 13, 19, 22, 21, 20]
    """
    _check_range(low, high)
    cap = high
    while low < high:
        n = (low + high) // 2
        if fits(n):
            low = n + 1
        else:
            high = n
    if low == cap:
        raise CapError(f"{no_surplus(cap - 1)}, the most that were looked for; raise the cap.")
    return low - 1


Measured = Callable[[int], tuple[bool, float]]
"""Whether a model of so many latents fits, and its statistic."""


def search_guided(
    measured: Measured, predicted: Float[np.ndarray, " width"], threshold: float, cap: int = CAP
) -> int:
    """From a prediction of the statistic for every n, the largest n that fits, in few questions.

    An answer moves the prediction to what was measured, and two that fit also stretch it to the slope between them;
    the next question is where it then crosses the threshold, at most half as far again, or as many fewer as the
    statistic is above the threshold, since a latent takes at most 1 along. Beyond the predicted widths each further
    latent adds 1. Two questions when the prediction is right; if five have not sufficed, the rest is
    bisected. A search that reaches its cap raises :class:`CapError`.

    >>> def measured(n):  # fits up to 16
    ...     tried.append(n)
    ...     return n <= 16, n / 16
    >>> tried = []
    >>> search_guided(measured, np.arange(1, 33) / 11, 1.0), tried
    (16, [11, 14, 16, 17])
    """
    _check_range(1, cap)
    low, high, n = 0, cap + 1, _crossing(predicted, threshold)
    fitting: list[tuple[float, float]] = []
    for question in itertools.count(1):
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
        n = _crossing(predicted, expected + (threshold - value) / _slope(fitting))
        # A latent that is left out takes its variance along, at most 1.
        n = min(n, farthest) if fits else max(n, high - max(1, math.ceil(value - threshold)))
        if question >= MOST_GUIDED:
            n = (low + high) // 2 if high <= cap else farthest
    return low


def _slope(fitting: Sequence[tuple[float, float]]) -> float:
    """What was measured between the last two that fit, for each unit of the prediction; 1 where that is not known."""
    if len(fitting) < 2:
        return 1.0
    (expected, value), (next_expected, next_value) = fitting[-2:]
    step = next_expected - expected
    return float(np.clip((next_value - value) / step, LEAST_SLOPE, 1)) if step > 0 else 1.0


LEAST_SLOPE = 0.25
"""Of what was measured against the prediction: below it the next question would be anywhere."""
MOST_GUIDED = 5
"""Questions after which a search no longer follows the prediction."""


def _at(predicted: Float[np.ndarray, " width"], n: int) -> float:
    """The prediction for n latents; each beyond the last adds 1."""
    return float(predicted[min(n, len(predicted)) - 1]) + max(0, n - len(predicted))


def _crossing(predicted: Float[np.ndarray, " width"], threshold: float) -> int:
    """The last n before the prediction exceeds the threshold."""
    n = first_stretch(predicted, threshold)
    return n if n < len(predicted) else n + max(0, math.floor(threshold - predicted[-1]))


def trace(representation: Representation) -> float:
    r"""FONDUE's statistic in its noise-free form, Σ_j E[σ_j²].

    The published one is Tr Var[z] − Tr Var[μ] from one draw of z; by the law of total variance its expectation is
    exactly this sum, without the draw's noise. A passive latent adds 1, an active one almost nothing, a mixed one
    the share of inputs for which it is passive; of a prior with another variance, σ² is taken relative to it.
    """
    prior = 1.0 if representation.prior_variance is None else representation.prior_variance
    return float((representation.variance / prior).mean(axis=0, dtype=np.float64).sum())


def sampled_trace(representation: Representation) -> float:
    """The statistic as published: Tr Cov[z] − Tr Cov[μ] of one draw, each entry cut to 3 decimals before the traces.

    The cut takes up to 0.001 per latent from either trace, 0.0005 on average, so the two cuts cancel in the difference
    on average, except for latents whose mean varies by less than 0.001: their entry of Cov[μ] becomes 0.
    """
    drawn, means = (
        truncate(codes.var(axis=0, dtype=np.float64, ddof=1), 3).sum()
        for codes in (representation.sampled, representation.mean)
    )
    return float(drawn - means) / 1000


def dimension_gap(representation: Representation, k: int = 20) -> float:
    """FONDUE_IDE's statistic: intrinsic dimension of the sampled minus that of the mean representation."""
    from polariscope.analysis.dimension.mle import mle

    return mle(representation.sampled, k=k).value - mle(representation.mean, k=k).value


STATISTICS: dict[str, tuple[str, Callable[[Representation], float]]] = {
    "trace": (TRACE, trace),
    "sampled-trace": ("Tr Var[z] − Tr Var[μ]", sampled_trace),
    "dimension": ("ID[z] − ID[μ]", dimension_gap),
}


def fondue(
    encode_with: Callable[..., Representation],
    statistic: str | Callable[[Representation], float] = "trace",
    *,
    threshold: float | int = 1.0,
    n_init: int = 10,
    algorithm: str = "grow",
    cap: int = CAP,
    seeds: int | Sequence[int] = (0,),
    memo: str | Path | None = None,
) -> Size:
    """Size a model of any library: the largest n whose statistic is at most ``threshold``.

    ``encode_with(n_latents)``, or ``encode_with(n_latents, seed)`` where it has a ``seed``, trains a model and
    returns its representation. ``statistic`` is ``trace`` (Σ E[σ²]), ``sampled-trace``, ``dimension`` or a
    function of a representation. ``algorithm`` doubles from ``n_init`` and bisects (``grow``), or searches
    1 … ``cap`` (``binary``). ``memo`` is a JSON file in which each measured value is kept, so an interrupted
    search continues; it belongs to one ``encode_with`` and statistic.

    Reference: bonheme2023 Algorithms 1–8 and Theorem 8.3.3.

    >>> def encode_with(n):  # 3 active latents, the rest passive
    ...     variance = np.where(np.arange(n) < 3, 0.01, 1.0) * np.ones((8, 1))
    ...     return Representation(np.zeros((8, n)), variance, np.zeros((8, n)))
    >>> fondue(encode_with).answer
    '3 latents (3)'
    """
    name, measure = _statistic(statistic)
    check_threshold(threshold, positive=measure in (trace, sampled_trace))
    check_word("algorithm", algorithm, get_args(Algorithm))
    if isinstance(seeds, int) or not len(seeds):
        raise InputError("seeds", "be one or more numbers", got=f"{seeds!r}", remedy="give (0, 1, 2), say")
    takes_seed = "seed" in inspect.signature(encode_with).parameters
    if len(seeds) > 1 and not takes_seed:
        raise InputError(
            "encode_with",
            "take a seed when there are several",
            got=f"{len(seeds)} seeds",
            remedy="write encode_with(n_latents, seed)",
        )
    if memo is not None and name == "<lambda>":
        raise InputError(
            problem="memo keeps values by the statistic's name, and a lambda has none",
            remedy="define it with def",
        )
    kept = Memo(memo, name)
    trials: list[Trial] = []

    def fits(n: int, seed: int) -> bool:
        value = kept.get(n, seed)
        if value is None:
            found = encode_with(n, seed=seed) if takes_seed else encode_with(n)
            check_width(found, n)
            value = kept.put(n, seed, measure(found))  # which refuses what is no finite number
        passes = value <= threshold
        trials.append(Trial(n, seed, value, "fits" if passes else "too many", steps=0))
        return passes

    answers = []
    for seed in seeds:
        if algorithm == "grow":
            answers.append(grow_and_bisect(lambda n, seed=seed: fits(n, seed), n_init, cap))  # type: ignore[misc]
        else:
            answers.append(bisect(lambda n, seed=seed: fits(n, seed), 1, cap))  # type: ignore[misc]
    return Size(
        value=median_answer(answers),
        interval=(min(answers), max(answers)),
        method="fondue",
        statistic=name,
        threshold=threshold,
        per_seed=tuple(answers),
        trials=tuple(trials),
        meaning_of_interval=seeds_in_words(len(answers)),
        notes=tuple(notes_on(trials, answers)),
    )


def seeds_in_words(count: int) -> str:
    """What an interval from so many seeds means."""
    return "one seed: no interval over seeds" if count == 1 else f"lowest and highest of {count} seeds"


class Memo:
    """Measured values by number of latents and seed (or another number), on disk when a file is given."""

    def __init__(self, file: str | Path | None, statistic: str) -> None:
        self.file = None if file is None else Path(file)
        self.values: dict[str, float] = {}
        self.statistic = statistic
        if self.file is not None and self.file.exists():
            record = read_document(self.file, "memo").content
            if record["statistic"] != statistic:
                raise InputError(
                    "memo",
                    f"be a file of the statistic {statistic!r}",
                    got=self.file,
                    remedy="use another file",
                )
            self.values = dict(record["values"])

    def get(self, n: int, seed: int) -> float | None:
        return self.values.get(f"{n}/{seed}")

    def put(self, n: int, seed: int, value: object) -> float:
        if not isinstance(value, int | float | np.number) or not math.isfinite(value):
            raise InputError(
                "the statistic", "be finite", got=f"{value} for {n} latents", remedy="check encode_with"
            )
        self.values[f"{n}/{seed}"] = float(value)
        if self.file is not None:
            write_document(self.file, "memo", {"statistic": self.statistic, "values": self.values})
        return float(value)


def check_width(representation: object, n_latents: int) -> None:
    """Refuse what a trainer returned for another number of latents."""
    if not isinstance(representation, Representation):
        raise InputError("encode_with", "return a Representation", got=type(representation).__name__)
    if representation.n_latents != n_latents:
        raise InputError(
            f"encode_with({n_latents})",
            f"return {n_latents} latents",
            got=representation.n_latents,
            remedy="build the model with the number it is given",
        )


def no_surplus(n: int) -> str:
    """What is said of a model at the cap.

    >>> no_surplus(1), no_surplus(8)
    ('even 1 latent has no surplus', 'even 8 latents have no surplus')
    """
    return f"even {n} latent{' has' if n == 1 else 's have'} no surplus"


def check_threshold(threshold: object, *, positive: bool) -> None:
    """Refuse what is no number, and where the statistic is a sum of variances, what no model can pass."""
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
    """Where the search's assumption, a statistic that rises with n and crosses the threshold once, is in doubt."""
    notes = []
    for seed in sorted({trial.seed for trial in trials}):
        own = sorted((t for t in trials if t.seed == seed), key=lambda trial: trial.n_latents)
        for before, after in pairwise(own):
            if (
                before.n_latents < after.n_latents
                and before.decision == "too many"
                and after.decision == "fits"
            ):
                notes.append(
                    f"seed {seed}: {before.n_latents} latents are too many but {after.n_latents} fit: the statistic "
                    "does not rise with n, and another start could end elsewhere. Train longer or use more seeds."
                )
            elif after.statistic < before.statistic - max(0.1, 0.1 * abs(before.statistic)):
                notes.append(
                    f"seed {seed}: the statistic falls from {before.statistic:.2f} at {before.n_latents} latents to "
                    f"{after.statistic:.2f} at {after.n_latents}: it is not monotone, so the models may not be "
                    "trained long enough."
                )
    if any(answer == 0 for answer in answers):
        notes.append(
            "Not even one latent fits: the models learned nothing (train longer, or lower β), or the data are noise, "
            "or, where the likelihood is Gaussian, small in the units of its variance (standardise them)."
        )
    return notes


def _statistic(
    statistic: str | Callable[[Representation], float],
) -> tuple[str, Callable[[Representation], float]]:
    if callable(statistic):
        return getattr(statistic, "__name__", "statistic"), statistic
    if statistic not in STATISTICS:
        raise unknown("statistic", str(statistic), STATISTICS)
    return STATISTICS[statistic]


def _check_range(low: int, high: int) -> None:
    for name, value in (("n_init", low), ("cap", high)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InputError(name, "be an integer from 1", got=f"{value!r}")
    if low > high:
        raise InputError("n_init", "be at most cap", got=f"{low} and {high}")
