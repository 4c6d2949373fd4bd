"""Terminal output of sizing answers: a table of the trained models, and the statistic as bars."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from polariscope.cli.console import printer, say
from polariscope.core.tables import TextTable
from polariscope.core.text import plural
from polariscope.pages.sections.size import candidate_value, has_path, latest
from polariscope.pages.size import disagreements, verdict
from polariscope.sizing.result import Size, path_table

COLOURS = {"fits": "green", "too many": "red", "undecided": "yellow"}
WIDTH = 36  # characters of the longest bar
MAX_THRESHOLDS = 3  # longest bar, in multiples of the threshold


def print_size(size: Size) -> None:
    """Print the state of the training, the three numbers, the trained models and the notes."""
    if size.state:
        say(size.state)
    for label, text in size.numbers:
        printer().print(Text(f"{label.capitalize()}: {text}", style="bold" if label == "answer" else ""))
    if size.differs:
        say(size.about_differences)
    if size.in_words:
        say(size.in_words)
    if size.noise is not None:
        say(f"{size.noise.in_words}.")
    if size.trials:
        print_path(size)
    if bars := bars_of(size):
        say(f"{size.statistic} against {'β' if size.target == 'beta' else 'the number of latents'}:")
        for line in bars:
            say(line)
    models = len({(trial.seed, trial.n_latents, trial.beta) for trial in size.trials})
    spent = f"{plural(size.n_steps, 'gradient step')}, {plural(models, 'model')}"
    say(f"By {size.method}: {spent if size.trains else 'no training'}.")
    if size.meaning_of_interval:
        say(f"Interval: {size.meaning_of_interval}.")
    for note in size.notes:
        say(f"Note: {note}")


def print_path(size: Size) -> None:
    """Print a row for each model, in the order of training."""
    shown = path_table(size)
    shown.styles = [COLOURS[trial.decision] for trial in size.trials]
    printer().print(shown)


def bars_of(size: Size) -> list[Text]:
    """Return bars of the last statistic of each candidate, with a mark at the threshold; none for negative values."""
    trials = latest(size)
    if not has_path(size) or any(trial.statistic < 0 for trial in trials):
        return []
    threshold = size.threshold if size.threshold is not None and size.threshold > 0 else None
    largest = max(trial.statistic for trial in trials) or 1.0
    # Very large values are cut, so models near the threshold can still be distinguished.
    top = largest if threshold is None else min(MAX_THRESHOLDS * threshold, max(largest, 1.5 * threshold))
    lines = []
    for trial in trials:
        bar = ("█" * round(WIDTH * min(1.0, trial.statistic / top))).ljust(WIDTH)
        if threshold is not None:
            mark = min(WIDTH - 1, round(WIDTH * threshold / top))
            bar = f"{bar[:mark]}│{bar[mark + 1 :]}"
        cut = "…" if trial.statistic > top else " "
        line = f"{candidate_value(size, trial):>7.4g}  {bar}{cut} {trial.statistic:.3g}"
        lines.append(Text(line, style=COLOURS[trial.decision]))
    return lines


def print_comparison(sizes: Sequence[Size]) -> None:
    """Print a table of the methods: answer, interval, cost, and difference from the first method."""
    printer().print(Text(verdict(sizes), style="bold"))
    compared = f"compared with {sizes[0].method}"
    gamma = ("γ",) if any(size.noise is not None for size in sizes) else ()
    numbers = ("answer", "interval", "steps", *gamma)
    shown = TextTable("method", *numbers, compared, numbers=numbers)
    for row in disagreements(sizes):
        size = row.size
        ends = "–".join(f"{end:g}" for end in dict.fromkeys(size.interval or ())) or "–"
        answer = "none" if size.value is None else f"{size.value:g}"
        difference = "" if size is sizes[0] else row.in_words
        noise = ("" if size.noise is None else f"{size.noise.gamma:.3g}",) if gamma else ()
        shown.add_row(size.method, answer, ends, f"{size.n_steps:,}", *noise, difference)
    printer().print(shown)
    if gamma:
        say(
            "γ is the variance of the decoder. Directions of the data with a smaller variance count as noise."
        )
    for size in sizes:
        for note in size.notes:
            say(f"Note: {size.method}: {note}")
