"""The text of a page as it was before words were explained."""

from __future__ import annotations

import re


def without_tooltips(page: str) -> str:
    """A page whose explained words are plain text again, so a sentence can be looked for in one piece."""
    return re.sub(r'<a class="term"[^>]*>([^<]*)</a>', r"\1", page)
