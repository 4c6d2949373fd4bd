"""The text of a page without tooltips."""

from __future__ import annotations

import re


def without_tooltips(page: str) -> str:
    """Return a page without the markup of explained words, so a sentence can be searched for in one piece."""
    return re.sub(r'<a class="term"[^>]*>([^<]*)</a>', r"\1", page)
