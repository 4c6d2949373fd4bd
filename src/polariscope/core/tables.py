"""Tables that can be shown as aligned text, in a terminal, as Markdown, LaTeX or HTML."""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.table import Table as RichTable

GAP = "  "
"""Separator of columns of aligned text."""
SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "−": "$-$",
    "±": r"$\pm$",
    "†": r"$^\dagger$",
    "‖": r"$\|$",
    "<": "$<$",
    ">": "$>$",
}
"""Characters that are commands in LaTeX, or that it lacks, with their LaTeX code."""
GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "λ": "lambda",
    "σ": "sigma",
    "Σ": "Sigma",
    "Δ": "Delta",
    "μ": "mu",
}


@dataclasses.dataclass(frozen=True)
class Strong:
    """A cell whose first part is emphasised, such as the best number of a column."""

    text: str
    rest: str = ""
    """Remaining text, in the ordinary weight."""

    def __str__(self) -> str:
        return f"{self.text}{self.rest}"


TextCell: TypeAlias = str | Strong


class TextTable:
    """A heading and rows of text; numbers are aligned to the right and texts to the left.

    A heading with several levels is a tuple, from top to bottom. LaTeX merges equal neighbours of the upper levels;
    other formats join the levels by commas.

    ``str(table)`` is aligned text. A rich console prints the table in colour and wraps long texts.

    >>> table = TextTable("latent", "KL", numbers=("KL",))
    >>> table.add_row("0", "12.5")
    >>> table.add_row("passive", "0.1")
    >>> print(table)
    latent     KL
    0        12.5
    passive   0.1
    """

    def __init__(
        self,
        *header: str | tuple[str, ...],
        rows: Iterable[Sequence[TextCell]] = (),
        numbers: Collection[str | tuple[str, ...]] = (),
        prose: Collection[str] = (),
        title: str = "",
        notes: Iterable[str] = (),
    ) -> None:
        """Create a table.

        :param header: names of the columns.
        :param rows: (default none) cells row by row; :meth:`add_row` adds more.
        :param numbers: (default none) columns that are aligned to the right.
        :param prose: (default none) columns that a narrow terminal wraps; names and numbers are never wrapped.
        :param title: (default none) line above the heading.
        :param notes: (default none) paragraphs below the table.
        """
        self.header = header
        self.is_number = tuple(name in numbers for name in header)
        self.folds = tuple(name in prose for name in header)
        self.title, self.notes = title, [*notes]
        self.rows: list[tuple[TextCell, ...]] = []
        self.styles: list[str] = []
        for row in rows:
            self.add_row(*row)

    def add_row(self, *cells: TextCell, style: str = "") -> None:
        """Append a row.

        :param cells: one cell for each column.
        :param style: (default none) colour in a terminal.
        """
        if len(cells) != len(self.header):
            raise ValueError(f"a row of {len(cells)} cells does not fit {len(self.header)} columns")
        self.rows.append(cells)
        self.styles.append(style)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, one text each."""
        return tuple(name if isinstance(name, str) else ", ".join(filter(None, name)) for name in self.header)

    @property
    def lines(self) -> list[tuple[str, ...]]:
        """The heading and the rows as plain texts."""
        return [self.names, *(tuple(map(str, row)) for row in self.rows)]

    def padded(self) -> list[list[str]]:
        """Return the heading and the rows, with cells padded to the width of their column."""
        widths = [max(map(len, column)) for column in zip(*self.lines, strict=True)]
        return [
            [
                cell.rjust(width) if is_number else cell.ljust(width)
                for cell, width, is_number in zip(line, widths, self.is_number, strict=True)
            ]
            for line in self.lines
        ]

    def __str__(self) -> str:
        lines = [GAP.join(cells).rstrip() for cells in self.padded()]
        return "\n".join([*([self.title] if self.title else []), *lines, *self.notes])

    def __rich__(self) -> RichTable:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(
            title=self.title or None,
            caption="\n".join(self.notes) or None,
            box=box.SIMPLE_HEAD,
            title_justify="left",
            title_style="bold",
            pad_edge=False,
        )
        for name, is_number, folds in zip(self.names, self.is_number, self.folds, strict=True):
            table.add_column(
                name, no_wrap=not folds, justify="right" if is_number else "left", overflow="fold"
            )
        for row, style in zip(self.rows, self.styles, strict=True):
            cells = [
                Text.assemble((cell.text, "bold"), cell.rest) if isinstance(cell, Strong) else cell
                for cell in row
            ]
            table.add_row(*cells, style=style or None)
        return table

    def to_markdown(self) -> str:
        """Return a Markdown table with the notes below."""
        rows = [[_markdown(cell) for cell in row] for row in self.rows]
        rule = ["---:" if is_number else "---" for is_number in self.is_number]
        lines = [list(map(_markdown, self.names)), rule, *rows]
        text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
        return text + "".join(f"\n{note}\n" for note in self.notes)

    def to_latex(self) -> str:
        """Return a LaTeX ``tabular`` with rules of the package booktabs and the notes as comments."""
        sides = "".join("r" if is_number else "l" for is_number in self.is_number)
        levels = [name if isinstance(name, tuple) else (name,) for name in self.header]
        depth = max(map(len, levels))
        # Shorter headings are filled at the top, so names of columns are on the last line.
        levels = [(*[""] * (depth - len(level)), *level) for level in levels]
        lines = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule"]
        lines += [" & ".join(_latex_heading(levels, level)) + r" \\" for level in range(depth)]
        lines += [r"\midrule", *(" & ".join(map(_latex_cell, row)) + r" \\" for row in self.rows)]
        comments = [f"% {note}" for note in self.notes]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *comments]) + "\n"

    def to_html(self) -> str:
        """Return an HTML table without title and notes; all texts are escaped."""
        sides = ["right" if is_number else "left" for is_number in self.is_number]

        def line(cells: Sequence[TextCell], tag: str) -> str:
            return "".join(
                f'<{tag} style="text-align:{side}">{_html(cell)}</{tag}>'
                for side, cell in zip(sides, cells, strict=True)
            )

        body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in self.rows)
        return f"<table><thead><tr>{line(self.names, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def latex(text: str) -> str:
    r"""Escape a text for LaTeX.

    >>> print(latex("n_latents = 10 & 5 %"))
    n\_latents = 10 \& 5 \%
    >>> print(latex("β-VAE"))
    $\beta$-VAE

    :param text: the text.
    """
    signs = {**SPECIAL, **{letter: f"$\\{name}$" for letter, name in GREEK.items()}}
    # One pass, because the codes contain characters that are replaced themselves.
    return re.sub("|".join(map(re.escape, signs)), lambda match: signs[match[0]], text)


def _latex_cell(cell: TextCell) -> str:
    return rf"\textbf{{{latex(cell.text)}}}{latex(cell.rest)}" if isinstance(cell, Strong) else latex(cell)


def _latex_heading(names: Sequence[tuple[str, ...]], level: int) -> list[str]:
    """Return one line of the heading; above the last line, equal neighbours are merged into one cell."""
    is_last = level == len(names[0]) - 1
    heads: list[tuple[tuple[str, ...], int]] = []
    for name in names:
        key = name[: level + 1]
        # Columns without a name at this level are not merged: their names are in a lower line.
        if not is_last and key[-1] and heads and heads[-1][0] == key:
            heads[-1] = (key, heads[-1][1] + 1)
        else:
            heads.append((key, 1))
    return [
        latex(key[-1]) if count == 1 else rf"\multicolumn{{{count}}}{{c}}{{{latex(key[-1])}}}"
        for key, count in heads
    ]


def _markdown(cell: TextCell) -> str:
    text = f"**{cell.text}**{cell.rest}" if isinstance(cell, Strong) else cell
    return text.replace("|", "\\|")


def _html(cell: TextCell) -> str:
    if isinstance(cell, Strong):
        return f"<strong>{html.escape(cell.text)}</strong>{html.escape(cell.rest)}"
    return html.escape(cell)
