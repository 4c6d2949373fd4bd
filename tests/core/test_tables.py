"""One record of a table is shown as text, in a terminal, as Markdown, LaTeX and HTML."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from polariscope.core.tables import Strong, TextTable

HEADS = ("model", ("sprites", "mig"), ("sprites", "sap"), ("digits", "mig"))


def paper() -> TextTable:
    table = TextTable(*HEADS, numbers=HEADS[1:], notes=["A note."])
    table.add_row("β-VAE", Strong("−0.25 ± 0.10", "†"), "0.50", "")
    return table


def test_columns_are_as_wide_as_their_widest_cell_and_numbers_end_together() -> None:
    table = TextTable(
        "run", "steps", "why", numbers=("steps",), rows=[("a", "5", "x"), ("long", "1,000", "")]
    )
    assert str(table).splitlines() == ["run   steps  why", "a         5  x", "long  1,000"]
    assert {len(line[1]) for line in table.padded()} == {5}


def test_title_and_notes_surround_the_text() -> None:
    lines = str(TextTable("a", title="Title", notes=["Note."])).splitlines()
    assert lines == ["Title", "a", "Note."]


def test_levels_of_a_heading_are_merged_in_latex_and_joined_elsewhere() -> None:
    text = paper().to_latex()
    assert r" & \multicolumn{2}{c}{sprites} & digits \\" in text
    assert r"model & mig & sap & mig \\" in text
    assert paper().names == ("model", "sprites, mig", "sprites, sap", "digits, mig")
    assert paper().to_markdown().startswith("| model | sprites, mig | sprites, sap | digits, mig |\n")


def test_what_is_strong_is_so_in_every_form() -> None:
    assert r"$\beta$-VAE & \textbf{$-$0.25 $\pm$ 0.10}$^\dagger$ & 0.50 &  \\" in paper().to_latex()
    assert "| β-VAE | **−0.25 ± 0.10**† | 0.50 |  |\n" in paper().to_markdown()
    assert "<strong>−0.25 ± 0.10</strong>†" in paper().to_html()
    assert "−0.25 ± 0.10†" in str(paper())


def test_numbers_are_on_the_right_in_every_form() -> None:
    assert "| --- | ---: | ---: | ---: |" in paper().to_markdown()
    assert r"\begin{tabular}{lrrr}" in paper().to_latex()
    assert '<td style="text-align:left">β-VAE</td><td style="text-align:right">' in paper().to_html()


def test_signs_of_each_language_are_escaped() -> None:
    table = TextTable("a|b", rows=[("<i>",), ("x_1|y",)])
    assert "| a\\|b |" in table.to_markdown()
    assert "x\\_1" in table.to_latex()
    assert "&lt;i&gt;" in table.to_html()


def test_a_terminal_shows_every_cell() -> None:
    file = io.StringIO()
    Console(file=file, width=100, markup=False).print(paper())
    for cell in ("sprites, sap", "β-VAE", "−0.25 ± 0.10†", "A note."):
        assert cell in file.getvalue()


def test_a_narrow_terminal_folds_prose_and_keeps_names() -> None:
    table = TextTable("run", "why", prose=("why",), rows=[("a-long-name", "many words " * 10)])
    file = io.StringIO()
    Console(file=file, width=40).print(table)
    assert "a-long-name" in file.getvalue()
    assert max(map(len, file.getvalue().splitlines())) <= 40


def test_a_row_must_fit_the_heading() -> None:
    with pytest.raises(ValueError, match="a row of 1 cells does not fit 2 columns"):
        TextTable("a", "b").add_row("1")
