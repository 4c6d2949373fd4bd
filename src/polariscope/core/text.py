"""Words on a screen: what objects look like in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable


def summary_as_html(rows: Iterable[tuple[str, str]]) -> str:
    """Labels and words as an HTML table; everything that could hold markup is escaped.

    >>> summary_as_html([("data", "a < b")])
    "<table><tr><th style='text-align:left'>data</th><td style='text-align:left'>a &lt; b</td></tr></table>"

    :param rows: a label and what it says, row by row.
    """
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(label)}</th>"
        f"<td style='text-align:left'>{html.escape(words)}</td></tr>"
        for label, words in rows
    )
    return f"<table>{cells}</table>"
