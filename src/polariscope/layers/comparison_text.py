"""Text and tables of a comparison: plain text for a terminal, HTML for a notebook."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from polariscope.core.tables import TextTable
from polariscope.layers.labels import NOTHING_SHARED, cell, has_matching, sentence, short, thinned

if TYPE_CHECKING:
    from polariscope.layers.comparison import Comparison, HeatMap


def table_of(heat_map: HeatMap) -> TextTable:
    """Return the heat map as a table of numbers.

    :param heat_map: similarity of layers.
    """
    columns = list(map(short, heat_map.columns))
    rows = (
        [layer, *map(cell, values)]
        for layer, values in zip(heat_map.rows, heat_map.values.tolist(), strict=True)
    )
    return TextTable("", *columns, rows=rows, numbers=columns, title=sentence(heat_map))


def matching_as_text(heat_map: HeatMap) -> str:
    """List the scores of layers with the same name."""
    rows = [
        f"{layer:<12}{value:7.3f}" + ("" if error is None else f" ± {error:.3f}")
        for layer, (value, error) in heat_map.matching().items()
    ]
    how = "" if heat_map.errors is None else f" (± standard error over {heat_map.resampled})"
    return "\n".join([f"Layers of the same name{how}", *rows])


def as_text(comparison: Comparison) -> str:
    """Return the heat maps, the scores of layers with the same name, and the notes as text."""
    maps = comparison.maps()
    parts = [str(table_of(thinned(heat_map))) for heat_map in maps]
    if has_matching(maps[0]):
        parts.append(matching_as_text(maps[0]))
    if notes := _notes(comparison, maps[0]):
        parts.append("\n".join(["Notes", *(f"- {note}" for note in notes)]))
    return "\n\n".join(parts)


def _notes(comparison: Comparison, headline: HeatMap) -> tuple[str, ...]:
    return comparison.notes if headline.values.size else (*comparison.notes, NOTHING_SHARED)


def as_html(comparison: Comparison) -> str:
    """Return the heat maps as HTML tables with shaded cells; names are escaped."""
    maps = comparison.maps()
    tables = "".join(heat_map_as_html(thinned(heat_map)) for heat_map in maps)
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in _notes(comparison, maps[0]))
    return tables + (f"<p>Notes</p><ul>{notes}</ul>" if notes else "")


def heat_map_as_html(heat_map: HeatMap) -> str:
    """Return a heat map as an HTML table with shaded cells."""
    head = "".join(f"<th>{html.escape(short(layer))}</th>" for layer in heat_map.columns)
    body = "".join(
        f"<tr><th style='text-align:left'>{html.escape(layer)}</th>"
        + "".join(
            # Negative scores have no shade.
            f'<td style="background:rgba(15,139,141,{max(0.0, value):.2f})">{cell(value)}</td>'
            for value in values
        )
        + "</tr>"
        for layer, values in zip(heat_map.rows, heat_map.values.tolist(), strict=True)
    )
    return (
        f"<p><strong>{html.escape(sentence(heat_map))}</strong></p>"
        f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
