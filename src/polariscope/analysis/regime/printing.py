"""A diagnosis in words and tables: plain text for a terminal, HTML for a notebook."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from polariscope.analysis.regime.polarisation import POLARISED
from polariscope.analysis.regime.stability import CONFIDENT
from polariscope.analysis.regime.tables import Table, number, tables

if TYPE_CHECKING:
    from polariscope.analysis.regime.regime import Regime


def verdict(regime: Regime) -> str:
    """How many latents of each type, where the KL goes, how sure it is."""
    counts = ", ".join(f"{count} {name}" for name, count in regime.counts.items())
    noun = "latent" if regime.n_latents == 1 else "latents"
    sentences = [f"{regime.n_latents} {noun}: {counts}."]
    if math.isinf(regime.kl):
        sentences.append("The KL is infinite.")
    elif regime.kl > 0:
        share = sum(latent.kl for latent in regime.latents if latent.type == "active") / regime.kl
        sentences.append(f"KL {regime.kl:.2f} nats, {share:.0%} of it in active latents.")
    else:
        sentences.append("The KL is 0: the latents say nothing about the input.")
    unsure = [latent.index for latent in regime.latents if latent.confidence < CONFIDENT]
    if unsure:
        sentences.append(f"Unsure about {name_latents(unsure)}: see the confidence.")
    else:
        sentences.append(f"Every type holds in at least {CONFIDENT:.0%} of {regime.n_bootstrap} resamples.")
    return " ".join(sentences)


def remarks(regime: Regime) -> list[str]:
    """Lines under the tables."""
    polarisation = regime.polarisation
    if polarisation.delta is None:
        delta = "Δ_KL is not defined: the KL is infinite."
    else:
        comparison = "polarised" if polarisation.delta < POLARISED else "not fully polarised"
        delta = f"Δ_KL {polarisation.delta:.1%} ({comparison}; the limit is {POLARISED:.0%})."
    return [
        delta,
        f"Σ E[σ²] {number(regime.trace)}.",
        f"Passive: {regime.meaning_of_passive}. Known: σ² < {regime.alpha:g} of the prior's; "
        f"unknown: σ² > {1 - regime.alpha:g} of it.",
    ]


def as_text(regime: Regime) -> str:
    """Verdict, tables, notes, aligned."""
    first, *_ = tables(regime)
    return "\n\n".join([verdict(regime), _text(first), evidence(regime)])


def evidence(regime: Regime) -> str:
    """What stands behind the table of latents."""
    parts = [_text(table) for table in tables(regime)[1:]]
    parts.append("\n".join(remarks(regime)))
    if regime.notes:
        parts.append("\n".join(["Read with care", *(f"- {note}" for note in regime.notes)]))
    return "\n\n".join(parts)


def as_html(regime: Regime) -> str:
    """The same as HTML; everything that could hold markup is escaped."""
    parts = [f"<p><strong>{html.escape(verdict(regime))}</strong></p>"]
    for place, table in enumerate(tables(regime)):
        opened = " open" if place == 0 else ""
        parts.append(
            f"<details{opened}><summary>{html.escape(table.title)}</summary>{_html(table)}</details>"
        )
    parts += [f"<p>{html.escape(remark)}</p>" for remark in remarks(regime)]
    if regime.notes:
        items = "".join(f"<li>{html.escape(note)}</li>" for note in regime.notes)
        parts.append(f"<p>Read with care</p><ul>{items}</ul>")
    return "".join(parts)


def name_latents(indices: Sequence[int]) -> str:
    """Latents in words.

    >>> name_latents([3]), name_latents([0, 2])
    ('latent 3', 'latents 0, 2')
    """
    return f"latent{'s' if len(indices) > 1 else ''} {', '.join(map(str, indices))}"


def _text(table: Table) -> str:
    lines = [table.header, *table.rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.header))]
    shown = [
        "  ".join(
            cell.ljust(width) if column < table.n_words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([table.title, *shown])


def _html(table: Table) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        sides = ["left" if column < table.n_words else "right" for column in range(len(cells))]
        return "".join(
            f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in table.rows)
    return f"<table><thead><tr>{line(table.header, 'th')}</tr></thead><tbody>{body}</tbody></table>"
