"""FONDUE for models of any library.

The searches of bonheme2023 chapter 8 for any statistic and any trainer. A trainer is a function
``encode_with(n_latents)`` that returns a :class:`~polariscope.analysis.representation.Representation`.
``polariscope.size(data, trainer=…)`` accepts trainers that return models
(:func:`~polariscope.sizing.size_with.size_with`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError, check_word
from polariscope.sizing.bisection import (
    CAP,
    CapError,
    bisect,
    check_range,
    check_threshold,
    grow_and_bisect,
    no_surplus,
    notes_on,
    search_guided,
)
from polariscope.sizing.result import Size, median_answer
from polariscope.sizing.surplus import relative_variances, resolve_statistic, sampled_trace, trace
from polariscope.sizing.trial import Trial
from polariscope.storage.documents import read_document, write_document

Algorithm = Literal["guided", "grow", "binary"]


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
    """Size a model of any library: find the largest n whose statistic is at most ``threshold``.

    ``encode_with(n_latents)``, or ``encode_with(n_latents, seed)`` if it has an argument ``seed``, trains a model and
    returns its representation. ``statistic`` is ``trace`` (Σ E[σ²]), ``sampled-trace``, ``dimension`` or a
    function of a representation.

    ``algorithm`` is ``grow`` (double from ``n_init``, then bisect), ``binary`` (search 1 … ``cap``) or ``guided``:
    widen from ``n_init`` until a model has surplus latents, which predicts the answer, and verify the prediction. The
    last one requires the statistic ``trace`` and calls ``encode_with`` twice for the wide model.

    ``memo`` is a JSON file in which measured values are cached, so an interrupted search can be resumed; use one file
    for each ``encode_with`` and statistic.

    Reference: bonheme2023 Algorithms 1–8 and Theorem 8.3.3.

    >>> def encode_with(n):  # 3 active latents, the rest passive
    ...     variance = np.where(np.arange(n) < 3, 0.01, 1.0) * np.ones((8, 1))
    ...     return Representation(np.zeros((8, n)), variance, np.zeros((8, n)))
    >>> fondue(encode_with).answer
    '3 latents (3)'
    """
    name, measure = resolve_statistic(statistic)
    check_threshold(threshold, positive=measure in (trace, sampled_trace))
    check_word("algorithm", algorithm, get_args(Algorithm))
    if algorithm == "guided" and measure is not trace:
        raise InputError(
            problem="algorithm 'guided' predicts Σ E[σ²] of smaller models, so it requires statistic 'trace'",
            got=name,
            remedy="use algorithm 'grow'",
        )
    if isinstance(seeds, int) or not len(seeds):
        raise InputError("seeds", "be one or more numbers", got=f"{seeds!r}", remedy="for example (0, 1, 2)")
    takes_seed = "seed" in inspect.signature(encode_with).parameters
    if len(seeds) > 1 and not takes_seed:
        raise InputError(
            "encode_with",
            "have an argument seed if there are several seeds",
            got=f"{len(seeds)} seeds",
            remedy="write encode_with(n_latents, seed)",
        )
    if memo is not None and name == "<lambda>":
        raise InputError(
            problem="memo stores values by the name of the statistic, and a lambda has no name",
            remedy="define it with def",
        )
    cache = Memo(memo, name)
    trials: list[Trial] = []

    def fits(n: int, seed: int) -> bool:
        # A guided search returns to its wide model.
        known = next((trial for trial in trials if (trial.n_latents, trial.seed) == (n, seed)), None)
        if known is not None:
            return known.decision == "fits"
        value = cache.get(n, seed)
        if value is None:
            representation = encode_with(n, seed=seed) if takes_seed else encode_with(n)
            check_width(representation, n)
            value = cache.put(n, seed, measure(representation))  # rejects values that are not finite
        passes = value <= threshold
        trials.append(Trial(n, seed, value, "fits" if passes else "too many", steps=0))
        return passes

    def spectrum(n: int, seed: int) -> Float[np.ndarray, " latent"]:
        return relative_variances(encode_with(n, seed=seed) if takes_seed else encode_with(n))

    answers = []
    for seed in seeds:
        if algorithm == "guided":
            answers.append(_guided(fits, trials, spectrum, seed, threshold, n_init, cap))
        elif algorithm == "grow":
            # The default argument binds the seed of this pass; a closure would use that of the last one.
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


def _guided(
    fits: Callable[[int, int], bool],
    trials: Sequence[Trial],
    spectrum: Callable[[int, int], Float[np.ndarray, " latent"]],
    seed: int,
    threshold: float,
    n_init: int,
    cap: int,
) -> int:
    """Widen a model until it has surplus latents, predict smaller models from it, and verify the prediction.

    A smaller model is expected to keep the latents with the smallest posterior variances, which is exact for linear
    VAEs with a fixed decoder variance, so its Σ E[σ²] is their sum.
    """
    check_range(n_init, cap)
    width = n_init
    while fits(width, seed):
        if width >= cap:
            raise CapError(f"{no_surplus(width)}, and cap is {cap}; raise the cap, or check the threshold.")
        width = min(2 * width, cap)

    def measured(n: int) -> tuple[bool, float]:
        passes = fits(n, seed)
        return passes, next(t.statistic for t in trials if (t.n_latents, t.seed) == (n, seed))

    # The widest model is known to have too many latents, so the search never reaches it as its cap.
    return search_guided(measured, np.cumsum(np.sort(spectrum(width, seed))), threshold, width)


def seeds_in_words(count: int) -> str:
    """Return the meaning of an interval over ``count`` seeds."""
    return "one seed: no interval over seeds" if count == 1 else f"lowest and highest of {count} seeds"


class Memo:
    """Measured values by number of latents and seed (or another number), stored in a file if one is set."""

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


def check_width(representation: object, n_latents: int, function: str = "encode_with") -> None:
    """Check that a trainer returned a representation with the requested number of latents."""
    if not isinstance(representation, Representation):
        raise InputError(function, "return a Representation", got=type(representation).__name__)
    if representation.n_latents != n_latents:
        raise InputError(
            f"{function}({n_latents})",
            f"return {n_latents} latents",
            got=representation.n_latents,
            remedy="build the model with n_latents latents",
        )
