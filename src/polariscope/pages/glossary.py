"""Glossary of the pages: the terms a newcomer meets, explained where they are used and listed at the end."""

from __future__ import annotations

import dataclasses
import functools
import re
import tomllib
from importlib import resources

from markupsafe import escape


@dataclasses.dataclass(frozen=True)
class Term:
    """A word and what it means."""

    name: str
    """The word, as the glossary lists it."""
    meaning: str
    """What it means, in one or two plain sentences."""
    pattern: str = ""
    """How the word occurs in a text; empty: as it is named, one or several of it, in small or capital letters."""

    @property
    def slug(self) -> str:
        """The name as part of a link."""
        return re.sub(r"\W+", "-", self.name.lower()).strip("-")

    @functools.cached_property
    def spelled(self) -> re.Pattern[str]:
        """What finds the word in a text."""
        return re.compile(self.pattern or rf"(?i)(?<![\w-]){re.escape(self.name)}s?(?![\w-])")


@functools.cache
def glossary() -> tuple[Term, ...]:
    """The twenty words a newcomer meets, in the order in which they build on each other."""
    text = (
        resources.files("polariscope.pages").joinpath("templates/glossary.toml").read_text(encoding="utf-8")
    )
    return tuple(Term(**fields) for fields in tomllib.loads(text)["term"])


@functools.cache
def _longest_first() -> list[Term]:
    """The words in the order in which they are looked for: "mean representation" before its parts."""
    return sorted(glossary(), key=lambda term: -len(term.name))


SILENT = ("head", "svg", "a", "code", "pre", "summary", "nav", "footer", "h1", "h2", "h3", "sub", "button")
"""Elements in which no word is explained: what is not text, what is a link or can be clicked, and headings."""


def add_glossary(page: str) -> str:
    """Explain the words of an HTML page: at their first use and in heads of columns, and in a list at the end.

    A word becomes a link to its line in the list, with the meaning as its tooltip. It works with the mouse, the
    keyboard and a touch screen, and without JavaScript.

    :param page: a whole page; the list is put at the end of its ``main`` element.

    >>> print(add_glossary("<main><p>Two latents.</p></main>"))
    <main><p>Two <a class="term" href="#word-latent" title="One of the numbers in which the model describes an
    observation. Short for latent variable.">latents</a>.</p><section class="words"...
    """
    silent: list[str] = []
    in_head = False
    used: set[str] = set()
    parts = re.split(r"(<[^>]*>)", page)
    for index, part in enumerate(parts):
        if not part.startswith("<"):
            if not silent:
                parts[index] = _explain(part, used, in_head)
            continue
        name = part.strip("</>").split(maxsplit=1)[0].lower()
        if name in SILENT and not part.endswith("/>"):
            if not part.startswith("</"):
                silent.append(name)
            elif name in silent:
                silent.remove(name)
        elif name == "th":
            in_head = 'scope="col"' in part
    listed = "".join(
        f'<div><dt id="word-{term.slug}">{escape(term.name)}</dt><dd>{escape(term.meaning)}</dd></div>\n'
        for term in glossary()
        if term.name in used
    )
    if not listed:
        return page
    section = f'<section class="words"><h3>Words on this page</h3>\n<dl>\n{listed}</dl></section>'
    before, end, after = "".join(parts).rpartition("</main>")
    return f"{before}{section}\n{end}{after}"


def _explain(text: str, used: set[str], again: bool) -> str:
    """A text of a page with the words marked that were not used before; all of them where ``again`` is true."""
    matches: list[tuple[int, int, Term]] = []
    for term in _longest_first():
        match = None if term.name in used and not again else term.spelled.search(text)
        if match and all(match.end() <= start or match.start() >= end for start, end, _ in matches):
            matches.append((*match.span(), term))
            used.add(term.name)
    for start, end, term in sorted(matches, key=lambda span: -span[0]):
        link = (
            f'<a class="term" href="#word-{term.slug}" title="{escape(term.meaning)}">{text[start:end]}</a>'
        )
        text = text[:start] + link + text[end:]
    return text
