"""A comparison in words and tables: plain text for a terminal, HTML for a notebook."""

from __future__ import annotations

import html

from polariscope.layers.comparison import (
    NOTHING_SHARED,
    Comparison,
    HeatMap,
    cell,
    has_matching,
    sentence,
    short,
    thinned,
)


def cells_of(found: HeatMap) -> list[list[str]]:
    """The heat map in numbers: a header, then a line for each row; all cells of a column are equally wide."""
    lines = [["", *map(short, found.columns)]]
    lines += [
        [layer, *map(cell, values)] for layer, values in zip(found.rows, found.values.tolist(), strict=True)
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return [
        [
            text.rjust(width + 2) if place else text.ljust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    ]


def heat_map_as_text(found: HeatMap) -> str:
    """The heat map in numbers."""
    return "\n".join([sentence(found), *map("".join, cells_of(found))])


def matching_as_text(found: HeatMap) -> str:
    """Each layer with the one of the same name."""
    rows = [
        f"{layer:<12}{value:7.3f}" + ("" if error is None else f" ± {error:.3f}")
        for layer, (value, error) in found.matching().items()
    ]
    how = "" if found.errors is None else f" (± standard error over {found.resampled})"
    return "\n".join([f"Layers of the same name{how}", *rows])


def as_text(comparison: Comparison) -> str:
    """The heat maps to show, layers of the same name, notes."""
    maps = comparison.maps()
    parts = [heat_map_as_text(thinned(found)) for found in maps]
    if has_matching(maps[0]):
        parts.append(matching_as_text(maps[0]))
    if notes := _notes(comparison, maps[0]):
        parts.append("\n".join(["Read with care", *(f"- {note}" for note in notes)]))
    return "\n\n".join(parts)


def _notes(comparison: Comparison, headline: HeatMap) -> tuple[str, ...]:
    return comparison.notes if headline.values.size else (*comparison.notes, NOTHING_SHARED)


def as_html(comparison: Comparison) -> str:
    """The heat maps to show as tables whose cells are shaded; names are escaped."""
    maps = comparison.maps()
    tables = "".join(heat_map_as_html(thinned(found)) for found in maps)
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in _notes(comparison, maps[0]))
    return tables + (f"<p>Read with care</p><ul>{notes}</ul>" if notes else "")


def heat_map_as_html(found: HeatMap) -> str:
    """A table whose cells are shaded."""
    head = "".join(f"<th>{html.escape(short(layer))}</th>" for layer in found.columns)
    body = "".join(
        f"<tr><th style='text-align:left'>{html.escape(layer)}</th>"
        + "".join(
            f'<td style="background:rgba(15,139,141,{max(0.0, value):.2f})">{cell(value)}</td>'
            for value in values
        )
        + "</tr>"
        for layer, values in zip(found.rows, found.values.tolist(), strict=True)
    )
    return (
        f"<p><strong>{html.escape(sentence(found))}</strong></p>"
        f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
