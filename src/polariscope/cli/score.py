"""``polariscope score``: disentanglement metrics and probes of a run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polariscope.errors import InputError, PolariscopeError

if TYPE_CHECKING:
    from polariscope.metrics import Score
    from polariscope.metrics._scoring import Scores
    from polariscope.metrics._shared import FactorKind
    from polariscope.representations import Representation

SAMPLES = 10_000


def score(
    target: Annotated[Path, typer.Argument(metavar="RUN|FILE.npz", help="A finished run, or codes.")],
    metrics: Annotated[
        str, typer.Option(help="all, or names joined by commas; a variant follows a colon: mig,dci:lasso.")
    ] = "all",
    samples: Annotated[
        int | None, typer.Option(help=f"Observations to encode, for a run. [{SAMPLES}]", min=2)
    ] = None,
    source: Annotated[str, typer.Option(help="Which codes to score: mean or sampled.")] = "mean",
    continuous: Annotated[
        str, typer.Option(help="Factors of a file that are measured, not counted: names joined by commas.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Which observations, and every random choice.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Also write everything here.", metavar="FILE")] = None,
) -> None:
    """Score how well the codes separate and keep the factors.

    Of a run, some observations are encoded and scores.json is written beside it. A FILE.npz from any library holds
    mean and variance (or log_variance), both (sample, latent), and factors, (sample, factor), for the metrics that
    need them; names in factor_names.
    """
    from polariscope import files
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.metrics._scoring import score as score_codes

    if json is not None and json.is_dir():
        raise InputError(f"--json must be a file, got the folder {json}.")
    representation, kinds = _open(target, samples, continuous, seed)
    scores = score_codes(
        representation,
        metrics,
        seed,
        source=source,
        factor_kinds=kinds,
        progress=lambda name, number, total: say(f"{number + 1}/{total} {name}", errors=True),
    )
    print_scores(scores)
    for file in [json] if json else []:
        files.write_json(file, scores.to_dict())
        say(f"Everything is in {file}")
    if not scores.scores:
        raise PolariscopeError("nothing was scored, so that nothing is written; the reasons are above.")
    if target.is_dir():
        tell_replaced(target / "scores.json", scores)
        files.write_json(target / "scores.json", scores.to_dict())
        say(f"Written: {target / 'scores.json'}")
        say_next((f"polariscope report {quoted(target)}", "all of it on one page"))


def tell_replaced(file: Path, scores: Scores) -> None:
    """Say which scores of an earlier call are not among the new ones."""
    from polariscope import files
    from polariscope.cli.console import say

    if file.exists():
        gone = [name for name in files.read_json(file).get("scores", {}) if name not in scores.scores]
        if gone:
            say(f"No longer in scores.json, which holds the last call only: {', '.join(gone)}.")


def _open(
    target: Path, samples: int | None, continuous: str, seed: int
) -> tuple[Representation, list[FactorKind] | None]:
    """The codes of a run or of a file, and which of its factors are measured."""
    from polariscope.cli.console import quoted

    names = [name.strip() for name in continuous.split(",") if name.strip()]
    if target.is_dir():
        from polariscope.report.record import open_run
        from polariscope.representations.encode import encode

        if names:
            raise InputError("--continuous is for files; a run's dataset says which factors are measured.")
        model, dataset = open_run(target)
        kinds: list[FactorKind] = [
            "continuous" if kind == "continuous" else "categorical" for kind in dataset.factor_kinds
        ]
        return encode(model, dataset, samples or SAMPLES, seed), kinds or None
    if not target.exists():
        raise InputError(
            f"there is no run and no file at {target}; "
            f"train a model with 'polariscope train DATA --out {quoted(target)}'."
        )
    if samples is not None:
        raise InputError(f"--samples is for runs; of a file like {target} every row is used. Leave it out.")
    from polariscope.representations.store import load_codes

    codes = load_codes(target, seed)
    return codes, _kinds(codes, names) if names else None


def _kinds(codes: Representation, measured: list[str]) -> list[FactorKind]:
    from polariscope.errors import unknown

    count = 0 if codes.factors is None else codes.factors.shape[1]
    names = codes.factor_names or tuple(map(str, range(count)))
    for name in measured:
        if name not in names:
            raise InputError(unknown("factor", name, names))
    return ["continuous" if name in measured else "categorical" for name in names]


def print_scores(scores: Scores) -> None:
    """A row for each metric, then what does not apply and what to read with care."""
    from polariscope.cli.console import plural, printer, say, table

    what = f"{plural(scores.n_latents, 'latent')}, {plural(scores.n_samples, 'sample')}"
    factors = ", ".join(scores.factor_names) or "none"
    say(f"The {scores.source} representation: {what}; factors: {factors}.")
    headers = ("metric", "variant", "value", "95 %", "chance", "better", "range")
    shown = table(*headers, numbers=("value", "95 %", "chance"))
    for word, found in scores.scores.items():
        shown.add_row(word.partition(":")[0], found.variant, *_cells(found))
    if scores.scores:
        printer().print(shown)
    notes: dict[str, list[str]] = {}
    for word, found in scores.scores.items():
        for note in found.notes:
            notes.setdefault(note, []).append(word)
    for note in scores.notes:
        say(f"Note: {note}")
    for note, words in notes.items():
        say(f"Note ({', '.join(words)}): {note}")
    for word, reason in scores.not_applicable.items():
        say(f"Not scored, {word}: {reason}")


def _cells(found: Score) -> tuple[str, ...]:
    interval = (
        "" if found.interval is None else f"{_number(found.interval[0])} to {_number(found.interval[1])}"
    )
    chance = "" if found.chance is None else _number(found.chance)
    low, high = (_number(bound) for bound in found.bounds)
    return (
        _number(found.value),
        interval,
        chance,
        "higher" if found.higher_is_better else "lower",
        f"{low} to {high}",
    )


def _number(value: float) -> str:
    """Three digits after the point; whole numbers as they are.

    >>> _number(0.12345), _number(1.0), _number(math.inf)
    ('0.123', '1', '∞')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.0f}" if value == round(value) else f"{value:.3f}"
