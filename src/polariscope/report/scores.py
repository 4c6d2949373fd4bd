"""What scores.json says: metrics and probes of a run, read back and made ready for the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from polariscope import files
from polariscope.errors import PolariscopeError
from polariscope.metrics import Score, family
from polariscope.metrics._scoring import Scores
from polariscope.regime.regime import Regime
from polariscope.report import words
from polariscope.report.score_figures import MOST_ROWS, draw_importance, draw_information, draw_probe


def read_scores(file: str | Path, n_latents: int | None = None) -> Scores:
    """The scores in a file that ``polariscope score`` wrote; one that is damaged or of another model is named.

    ``n_latents`` are those of the model the scores should be about.
    """
    stored = files.read_json(Path(file))
    try:
        scores = {word: _read_score(word, record) for word, record in stored["scores"].items()}
        found = Scores(
            scores=scores,
            not_applicable={str(word): str(reason) for word, reason in stored["not_applicable"].items()},
            source=str(stored["source"]),
            n_samples=int(stored["n_samples"]),
            n_latents=int(stored["n_latents"]),
            factor_names=tuple(map(str, stored["factor_names"])),
            seed=int(stored["seed"]),
            notes=tuple(map(str, stored["notes"])),
        )
        _check_shapes(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PolariscopeError(
            f"{file} is damaged or was written by another version ({type(error).__name__}: {error}); "
            "score the run again."
        ) from None
    if n_latents is not None and found.n_latents != n_latents:
        raise PolariscopeError(
            f"{file} has scores of {found.n_latents} latents, but the model has {n_latents}: "
            "they are of another model; score the run again."
        )
    return found


def scores_view(scores: Scores, regime: Regime) -> dict[str, Any]:
    """What the template shows of the scores."""
    by_metric = {score.metric: score for score in reversed(scores.scores.values())}
    names, probe = scores.factor_names, by_metric.get("probe")
    return {
        "scores": scores,
        "rows": [_row(word, score) for word, score in scores.scores.items()],
        "information": draw_information(by_metric["mig"], names, regime) if "mig" in by_metric else None,
        "importance": draw_importance(by_metric["dci"], names, regime) if "dci" in by_metric else None,
        "dci": by_metric.get("dci"),
        "probe": [] if probe is None else draw_probe(probe),
        "n_hidden": max(0, scores.n_latents - MOST_ROWS),
        "notes": _notes(scores),
    }


def is_no_better_than_chance(score: Score) -> bool:
    """Whether a score about factors has an interval that reaches what codes without knowledge get.

    >>> score = Score(0.1, (0.0, 0.2), 0.15, (0.0, 1.0), True, "locatello", metric="mig")
    >>> is_no_better_than_chance(score)
    True
    """
    if "factors" not in family.traits(score.metric)["needs"] or score.chance is None:
        return False
    low, high = score.interval or (score.value, score.value)
    return low <= score.chance if score.higher_is_better else high >= score.chance


def _row(word: str, score: Score) -> dict[str, Any]:
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
        "interval": "–" if score.interval is None else " to ".join(map(_number, score.interval)),
        "bar": percent_of(score.value),
        "tick": percent_of(score.chance),
        "range": f"{_number(low)} to {_number(high)}",
        "meaning": family.summary(score.metric),
        "doubt": is_no_better_than_chance(score),
    }


def _number(value: float) -> str:
    """A whole number without decimals, as counts are read.

    >>> _number(6.0), _number(0.25), _number(math.inf)
    ('6', '0.250', '∞')
    """
    return f"{value:,.0f}" if value.is_integer() else words.number(value)


def _notes(scores: Scores) -> list[str]:
    """Notes of all metrics; one that several share is said once, with their names."""
    found: dict[str, list[str]] = {}
    for word, score in scores.scores.items():
        for note in score.notes:
            found.setdefault(note, []).append(word)
    return [*scores.notes, *(f"{', '.join(names)}: {note}" for note, names in found.items())]


def _read_score(word: str, record: Mapping[str, Any]) -> Score:
    name = str(record["metric"])
    if name not in family or word.partition(":")[0] != name:
        raise ValueError(f"{word!r} is no metric that this version knows")
    interval, chance = record["interval"], record["chance"]
    low, high = map(float, record["bounds"])
    value = float(record["value"])
    if math.isnan(value):
        raise ValueError(f"the value of {word} is not a number")
    return Score(
        value=value,
        interval=None if interval is None else (float(interval[0]), float(interval[1])),
        chance=None if chance is None else float(chance),
        bounds=(low, high),
        higher_is_better=bool(record["higher_is_better"]),
        variant=str(record["variant"]),
        per_factor=_array(record["per_factor"]),
        per_latent=_array(record["per_latent"]),
        matrix=_array(record["matrix"]),
        details=dict(record["details"]),
        notes=tuple(map(str, record["notes"])),
        metric=name,
    )


def _array(values: Any) -> np.ndarray | None:
    """Numbers as they were; those that were undefined are stored as null."""
    return None if values is None else np.array(values, dtype=np.float64)


def _check_shapes(scores: Scores) -> None:
    """The figures need a row for each latent and a column for each factor."""
    wanted = scores.n_latents, len(scores.factor_names)
    for word, score in scores.scores.items():
        if score.metric in ("mig", "dci"):
            found = None if score.matrix is None else score.matrix.shape
            if found != wanted:
                raise ValueError(f"the matrix of {word} must have shape {wanted}, got {found}")
