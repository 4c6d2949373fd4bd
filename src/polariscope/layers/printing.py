"""A comparison in words and tables: plain text for a terminal, HTML for a notebook."""

from __future__ import annotations

import dataclasses
import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polariscope.layers.comparison import Comparison, HeatMap

MOST_STEPS = 12  # rows of a table or figure; similarity.json has all
NOTHING_SHARED = (
    "No layer has the same name in all models, so no mean over all of them can be shown; give layers that match "
    "the same name, or look at two models with average(one, other)."
)


def short(layer: str) -> str:
    """A layer's name in three characters or so, or a step's number, for the head of a column.

    >>> [short(name) for name in ("input", "encoder/1", "mean", "variance", "sampled", "decoder/12", "step 400")]
    ['in', 'e1', 'μ', 'σ²', 'z', 'd12', '400']
    """
    known = {"input": "in", "mean": "μ", "variance": "σ²", "sampled": "z"}
    part, slash, number = layer.partition("/")
    plain = layer.removeprefix("step ")
    return known.get(layer, f"{part[0]}{number}" if slash and number.isdigit() else plain)


def cell(value: float) -> str:
    """A score in as few characters as two digits need.

    >>> cell(0.934), cell(1.0), cell(0.9999), cell(-0.05), cell(-0.001)
    ('.93', '1.0', '1.0', '-.05', '.00')
    """
    text = f"{value:.2f}"
    if text == "-0.00":
        text = "0.00"
    return "1.0" if text == "1.00" else text.replace("0.", ".", 1)


def sentence(found: HeatMap) -> str:
    """What is compared, on what."""
    who = found.about or (
        f"{found.row_label} (rows) with {found.column_label} (columns)"
        if found.row_label != found.column_label
        else f"{found.row_label}, layers with each other"
    )
    pairs = f", mean of {found.n_pairs} {mean_of(found)}" if found.n_pairs > 1 else ""
    return f"{found.measure}: {who}{pairs}, {found.n_samples:,} samples"


def mean_of(found: HeatMap) -> str:
    """What a heat map is a mean of."""
    return "runs" if found.about else "pairs of models"


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
    how = "" if found.errors is None else " (± standard error over samples)"
    return "\n".join([f"Layers of the same name{how}", *rows])


def has_matching(found: HeatMap) -> bool:
    """Whether there are layers of the same name worth a list: not of one model with itself, nor of steps."""
    several = found.row_label != found.column_label or found.n_pairs > 1
    return not found.about and several and bool(found.matching())


def thinned(found: HeatMap) -> HeatMap:
    """The heat map with at most a dozen steps, evenly spread from the first to the last, and its title saying so."""
    n = len(found.rows)
    if not found.about or n <= MOST_STEPS:
        return found
    chosen = [round(place * (n - 1) / (MOST_STEPS - 1)) for place in range(MOST_STEPS)]
    both = found.rows == found.columns

    def cut(table: Any) -> Any:
        return None if table is None else table[chosen][:, chosen] if both else table[chosen]

    return dataclasses.replace(
        found,
        values=cut(found.values),
        errors=cut(found.errors),
        spread=cut(found.spread),
        rows=tuple(found.rows[place] for place in chosen),
        columns=tuple(found.columns[place] for place in chosen) if both else found.columns,
        about=f"{found.about} ({MOST_STEPS} of {n} steps)",
    )


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
