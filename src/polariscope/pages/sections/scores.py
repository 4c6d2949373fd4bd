"""Metrics and probes of a run, made ready for the page."""

from __future__ import annotations

import math
from typing import Any

from polariscope.analysis.metrics import Score, Scores
from polariscope.analysis.regime.regime import Regime
from polariscope.pages import words
from polariscope.pages.figures.scores import MOST_ROWS, draw_accuracy, draw_importance, draw_information


def scores_view(scores: Scores, regime: Regime, sampled: Scores | None = None) -> dict[str, Any]:
    """What the template shows of the scores, with those of the sampled representation beside them."""
    by_evidence = {score.evidence: score for score in reversed(scores.scores.values())}
    information, importance, accuracy = (
        by_evidence.get(kind) for kind in ("information", "importance", "accuracy")
    )
    names = scores.factor_names
    return {
        "scores": scores,
        "sampled": sampled,
        "rows": [
            _row(word, score, None if sampled is None else sampled.scores.get(word))
            for word, score in scores.scores.items()
        ],
        "information": None if information is None else draw_information(information, names, regime),
        "importance": None if importance is None else draw_importance(importance, names, regime),
        "shares": None if importance is None else importance.details,
        "accuracy": [] if accuracy is None else draw_accuracy(accuracy),
        "n_hidden": max(0, scores.n_latents - MOST_ROWS),
        "notes": [f"{', '.join(names)}: {note}" if names else note for names, note in scores.grouped_notes()],
    }


def is_no_better_than_chance(score: Score) -> bool:
    """Whether a score about factors has an interval that reaches what codes without knowledge get.

    >>> score = Score(0.1, (0.0, 0.2), 0.15, (0.0, 1.0), True, "locatello", needs=("codes", "factors"))
    >>> is_no_better_than_chance(score)
    True
    """
    if "factors" not in score.needs or score.chance is None:
        return False
    low, high = score.interval or (score.value, score.value)
    return low <= score.chance if score.higher_is_better else high >= score.chance


def _row(word: str, score: Score, sampled: Score | None) -> dict[str, Any]:
    low, high = score.bounds
    place = None if math.isinf(low) or math.isinf(high) or high <= low else 100 / (high - low)

    def percent_of(value: float | None) -> float | None:
        return (
            None if place is None or value is None else round(place * (min(max(value, low), high) - low), 1)
        )

    return {
        "name": word.partition(":")[0],
        "score": score,
        "value": _number(score.value),
        "interval": _interval(score),
        "sampled": "–" if sampled is None else f"{_number(sampled.value)} ({_interval(sampled)})",
        "bar": percent_of(score.value),
        "tick": percent_of(score.chance),
        "range": f"{_number(low)} to {_number(high)}",
        "meaning": score.summary,
        "doubt": is_no_better_than_chance(score),
    }


def _interval(score: Score) -> str:
    return "–" if score.interval is None else " to ".join(map(_number, score.interval))


def _number(value: float) -> str:
    """A whole number without decimals, as counts are read.

    >>> _number(6.0), _number(0.25), _number(math.inf)
    ('6', '0.250', '∞')
    """
    return f"{value:,.0f}" if value.is_integer() else words.number(value)
