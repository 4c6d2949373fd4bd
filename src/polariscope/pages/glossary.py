"""Glossary of the pages: terms are explained at their first use and listed at the end."""

from __future__ import annotations

import dataclasses
import functools
import re
import tomllib
from importlib import resources

from markupsafe import escape


@dataclasses.dataclass(frozen=True)
class Term:
    """A term and its meaning."""

    name: str
    """The term, as the glossary lists it."""
    meaning: str
    """Its meaning, in one or two plain sentences."""
    pattern: str = ""
    """Regular expression that matches the term in a text. If empty, the name is matched, singular or plural, in upper
    or lower case."""

    @property
    def slug(self) -> str:
        """The name as part of a link."""
        return re.sub(r"\W+", "-", self.name.lower()).strip("-")

    @functools.cached_property
    def spelled(self) -> re.Pattern[str]:
        """Regular expression that matches the term in a text."""
        return re.compile(self.pattern or rf"(?i)(?<![\w-]){re.escape(self.name)}s?(?![\w-])")


@functools.cache
def glossary() -> tuple[Term, ...]:
    """Return the terms of the glossary, in the order of the file."""
    text = (
        resources.files("polariscope.pages").joinpath("templates/glossary.toml").read_text(encoding="utf-8")
    )
    return tuple(Term(**fields) for fields in tomllib.loads(text)["term"])


@functools.cache
def _longest_first() -> list[Term]:
    """Return the terms in the order in which they are matched: "mean representation" before its parts."""
    return sorted(glossary(), key=lambda term: -len(term.name))


SILENT = ("head", "svg", "a", "code", "pre", "summary", "nav", "footer", "h1", "h2", "h3", "sub", "button")
"""Elements in which terms are not explained: those without text, links, clickable elements and headings."""


def add_glossary(page: str) -> str:
    """Explain the terms of an HTML page at their first use, in column headers, and in a list at the end.

    A term becomes a link to its entry in the list, with the meaning as its tooltip. This works with mouse, keyboard
    and touch screen, and without JavaScript.

    :param page: a whole page; the list is added at the end of its ``main`` element.

    >>> print(add_glossary("<main><p>Two latents.</p></main>"))
    <main><p>Two <a class="term" href="#word-latent" title="One of the numbers with which the model represents an
    observation. Short for latent variable.">latents</a>.</p><section class="words"...
    """
    silent: list[str] = []
    in_head = False
    used: set[str] = set()
    # Tags become parts of their own, and only the text between them changes.
    parts = re.split(r"(<[^>]*>)", page)
    for index, part in enumerate(parts):
        if not part.startswith("<"):
            if not silent:
                parts[index] = _explain(part, used, in_head)
            continue
        name = part.strip("</>").split(maxsplit=1)[0].lower()
        # A self-closing element has no end tag.
        if name in SILENT and not part.endswith("/>"):
            if not part.startswith("</"):
                silent.append(name)
            elif name in silent:
                silent.remove(name)
        elif name == "th":
            # In column headers a term is explained every time.
            in_head = 'scope="col"' in part
    listed = "".join(
        f'<div><dt id="word-{term.slug}">{escape(term.name)}</dt><dd>{escape(term.meaning)}</dd></div>\n'
        for term in glossary()
        if term.name in used
    )
    if not listed:
        return page
    section = f'<section class="words"><h3>Terms on this page</h3>\n<dl>\n{listed}</dl></section>'
    before, end, after = "".join(parts).rpartition("</main>")
    return f"{before}{section}\n{end}{after}"


def _explain(text: str, used: set[str], again: bool) -> str:
    """Mark the terms of a text that were not used before; if ``again`` is True, mark all terms."""
    matches: list[tuple[int, int, Term]] = []
    for term in _longest_first():
        match = None if term.name in used and not again else term.spelled.search(text)
        # A term inside a longer one is not marked.
        if match and all(match.end() <= start or match.start() >= end for start, end, _ in matches):
            matches.append((*match.span(), term))
            used.add(term.name)
    # From the end, so the positions of earlier terms stay valid.
    for start, end, term in sorted(matches, key=lambda span: -span[0]):
        link = (
            f'<a class="term" href="#word-{term.slug}" title="{escape(term.meaning)}">{text[start:end]}</a>'
        )
        text = text[:start] + link + text[end:]
    return text
