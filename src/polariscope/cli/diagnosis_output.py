"""A diagnosis on the terminal: the latents in colour, the rest in short."""

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
REST = 68  # those of a line without it


def print_latents(regime: Regime, *, verdict: bool = True) -> None:
    """Print the verdict and the table of latents, the most informative first.

    :param regime: the diagnosis.
    :param verdict: (default True) print the verdict too; False if it was printed just before.
    """
    if verdict:
        printer().print(Text("\n".join(regime.verdict.lines), style="bold"))
    measure = "effect" if regime.verdict.evidence == "decoder" else "info"
    headers = ("latent", "in use", measure, "type", "KL", "", "E[σ²]", "std μ")
    numbers = ("latent", measure, "KL", "E[σ²]", "std μ")
    # The kind of a mixed latent may go to a second line.
    shown = TextTable(*headers, numbers=numbers, prose=("type",))
    width = min(BAR, max(3, printer().width - REST))
    # At least a nat, or the noise of a model without any active latent would look like a landscape.
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
    """Where the diagnosis should be read with care."""
    for note in regime.notes:
        say(f"Note: {note}")


def print_regime(regime: Regime, *, details: bool = False) -> None:
    """Print the verdict, the latents and the notes; with details all the evidence instead.

    :param regime: the diagnosis.
    :param details: (default False) print all the evidence.
    """
    print_latents(regime)
    if details:
        say(all_details(regime))
    else:
        print_notes(regime)


def bar(value: float, largest: float, width: int = BAR) -> str:
    """A number as a length; the longest bar is the largest finite number.

    :param value: the number
    :param largest: that of the longest bar
    :param width: (default 16) characters of the longest bar

    >>> bar(1.0, 2.0), bar(-0.1, 2.0), bar(math.inf, 2.0)
    ('████████', '', '████████████████')
    """
    return "█" * round(width * min(1.0, max(0.0, value) / largest))
