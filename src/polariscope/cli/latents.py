"""A diagnosis on the terminal: the latents in colour, the rest in short."""

from __future__ import annotations

import math

from rich.text import Text

from polariscope.analysis.regime.printing import evidence
from polariscope.analysis.regime.regime import Regime, alphas, number
from polariscope.cli.console import printer, say, table

COLOURS = {"active": "bold green", "mixed": "yellow", "passive": "bright_black"}
BAR = 16  # characters of the longest bar
REST = 81  # those of a line without it


def print_latents(regime: Regime) -> None:
    """The verdict and the table of latents, the most informative first."""
    printer().print(Text(regime.verdict, style="bold"))
    headers = ("latent", "type", "confidence", "holds for α", "KL", "", "E[σ²]", "std μ")
    numbers = ("latent", "confidence", "holds for α", "KL", "E[σ²]", "std μ")
    # The kind of a mixed latent may go to a second line.
    shown = table(*headers, numbers=numbers, prose=("type",))
    width = min(BAR, max(3, printer().width - REST))
    # At least a nat, or the noise of a model without any active latent would look like a landscape.
    largest = max([1.0, *(latent.kl for latent in regime.latents if math.isfinite(latent.kl))])
    for index in regime.order:
        latent = regime.latents[index]
        shown.add_row(
            str(latent.index),
            f"{latent.type} {latent.mixedness or ''}".rstrip(),
            f"{latent.confidence:.0%}",
            alphas(latent),
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


def print_regime(regime: Regime) -> None:
    """The latents, and all the evidence."""
    print_latents(regime)
    say(evidence(regime))


def bar(value: float, largest: float, width: int = BAR) -> str:
    """A number as a length; the longest bar is the largest finite number.

    :param value: the number
    :param largest: that of the longest bar
    :param width: (default 16) characters of the longest bar

    >>> bar(1.0, 2.0), bar(-0.1, 2.0), bar(math.inf, 2.0)
    ('████████', '', '████████████████')
    """
    return "█" * round(width * min(1.0, max(0.0, value) / largest))
