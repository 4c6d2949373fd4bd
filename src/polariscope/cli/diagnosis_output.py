"""Terminal output of a diagnosis: verdict, coloured table of latents, notes."""

from __future__ import annotations

import math

from rich.text import Text

from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.regime.regime_text import details as all_details
from polariscope.cli.console import printer, say
from polariscope.core.tables import TextTable
from polariscope.core.text import number

COLOURS = {"active": "bold green", "mixed": "yellow", "passive": "bright_black"}
BAR = 16  # characters of the longest bar
REST = 68  # characters of a line without the bar


def print_latents(regime: Regime, *, verdict: bool = True) -> None:
    """Print the verdict and the table of latents, the most informative first.

    :param regime: the diagnosis.
    :param verdict: (default True) if True, print the verdict above the table.
    """
    if verdict:
        printer().print(Text("\n".join(regime.verdict.lines), style="bold"))
    measure = "effect" if regime.verdict.evidence == "decoder" else "info"
    headers = (regime.unit, "in use", measure, "type", "KL", "", "E[σ²]", "std μ")
    numbers = (regime.unit, measure, "KL", "E[σ²]", "std μ")
    # The type column can wrap: the kind of a mixed latent then goes to a second line.
    shown = TextTable(*headers, numbers=numbers, prose=("type",))
    width = min(BAR, max(3, printer().width - REST))
    # At least 1 nat: otherwise noise would look like information in a model without active latents.
    largest = max([1.0, *(latent.kl for latent in regime.latents if math.isfinite(latent.kl))])
    for index in regime.order:
        latent, use = regime.latents[index], regime.uses[index]
        shown.add_row(
            str(latent.index),
            "yes" if use.in_use else "no",
            number(use.value),
            f"{latent.type} {latent.mixedness or ''}".rstrip(),
            number(latent.kl),
            bar(latent.kl, largest, width),
            number(latent.mean_of_variance),
            number(latent.std_of_mean),
            style=COLOURS[latent.type],
        )
    printer().print(shown)


def print_notes(regime: Regime) -> None:
    """Print the notes of a diagnosis."""
    for note in regime.notes:
        say(f"Note: {note}")


def print_regime(regime: Regime, *, details: bool = False) -> None:
    """Print the verdict, the table of latents and the notes.

    :param regime: the diagnosis.
    :param details: (default False) if True, print all the evidence instead of the notes.
    """
    print_latents(regime)
    if details:
        say(all_details(regime))
    else:
        print_notes(regime)


def bar(value: float, largest: float, width: int = BAR) -> str:
    """Return a bar whose length is proportional to a number; infinite values get the longest bar.

    :param value: the number.
    :param largest: the number of the longest bar.
    :param width: (default 16) characters of the longest bar.

    >>> bar(1.0, 2.0), bar(-0.1, 2.0), bar(math.inf, 2.0)
    ('████████', '', '████████████████')
    """
    return "█" * round(width * min(1.0, max(0.0, value) / largest))
