"""The works that docstrings and documentation cite by key, such as ``kingma2014``.

They are stored in ``references.bib`` next to this file; add new ones there. ``polariscope cite KEY`` prints an entry,
and ``docs/references.md`` lists all of them.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from importlib.resources import files

from polariscope.core.errors import InputError, unknown
from polariscope.core.text import joined

# The characters around a key exclude parts of addresses, paths and longer words.
KEY = re.compile(r"(?<![\w/.-])[a-z]{3,}(?:19|20)\d\d[a-z]?(?![\w-])")
"""Pattern of a citation key: the first author in lower case and the year."""


@dataclasses.dataclass(frozen=True)
class Reference:
    """One cited work."""

    key: str
    """Citation key: first author and year, ``kingma2014``."""
    kind: str
    """Type of the BibTeX entry: ``article``, ``inproceedings``, ``phdthesis``, ``mastersthesis`` or ``misc``."""
    fields: Mapping[str, str]
    """BibTeX fields, in order."""

    @property
    def authors(self) -> list[str]:
        """Full names of the authors."""
        return self.fields["author"].split(" and ")

    @property
    def short(self) -> str:
        """Authors, year and title on one line.

        >>> references()["kingma2014"].short
        'Kingma and Welling (2014), Auto-Encoding Variational Bayes'
        """
        surnames = [_surname(name) for name in self.authors]
        few = " and ".join(surnames) if len(surnames) < 3 else f"{surnames[0]} et al."
        return f"{few} ({self.fields['year']}), {self.fields['title']}"

    @property
    def full(self) -> str:
        """The reference as in a bibliography, with its link at the end if there is one.

        >>> references()["bonheme2023"].full
        'Lisa Bonheme. The Polarised Regime of Variational Autoencoders. PhD thesis, School of Computing, University of
        Kent, 2023.'
        """
        names = joined(self.authors)
        title = self.fields["title"]
        link = f" {self.fields['url']}" if "url" in self.fields else ""
        stop = "" if title.endswith("?") else "."
        return f"{names.rstrip('.')}. {title}{stop} {self._where}, {self.fields['year']}.{link}"

    @property
    def _where(self) -> str:
        fields = self.fields
        if self.kind in THESES:
            return f"{THESES[self.kind]}, {fields['school']}"
        if self.kind == "article":
            volume = f" {fields['volume']}" if "volume" in fields else ""
            number = f"({fields['number']})" if "number" in fields else ""
            pages = f":{fields['pages'].replace('--', '–')}" if "pages" in fields else ""
            return f"{fields['journal']}{volume}{number}{pages}"
        pages = f", pages {fields['pages'].replace('--', '–')}" if "pages" in fields else ""
        return (fields.get("booktitle") or fields["howpublished"]) + pages

    @property
    def bibtex(self) -> str:
        """The BibTeX entry."""
        lines = [f"  {name} = {{{value}}}," for name, value in self.fields.items()]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])


THESES = {"phdthesis": "PhD thesis", "mastersthesis": "Master's thesis"}


def _surname(name: str) -> str:
    """Return the last word of a name, without "Jr."."""
    return name.removesuffix(" Jr.").split()[-1]


def read_bibtex(text: str) -> dict[str, Reference]:
    """Parse a BibTeX text and return its entries by key, in order.

    :param text: entries with one field per line and values in braces; lines that start with ``%`` are comments.

    >>> read_bibtex("@misc{a2020,\\n  author = {A},\\n  title = {On $a$},\\n}")["a2020"].fields["title"]
    'On $a$'
    """
    references: dict[str, Reference] = {}
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("%")]
    kind = key = ""
    fields: dict[str, str] = {}
    for line in lines:
        head = re.fullmatch(r"@(\w+)\{(\w+),", line)
        field = re.fullmatch(r"\s+(\w+) = \{(.*)\},", line)
        if head and not key:
            kind, key, fields = head[1], head[2], {}
        elif field and key and field[1] not in fields:
            fields[field[1]] = field[2]
        elif line == "}" and key and key not in references:
            references[key] = Reference(key, kind, fields)
            key = ""
        else:
            raise InputError("a BibTeX entry", "have one field per line, name = {value}", got=f"{line!r}")
    if key:
        raise InputError(f"the BibTeX entry {key}", "end with a line }", remedy="the text ends before it")
    return references


@functools.cache
def references() -> Mapping[str, Reference]:
    """Return all works that the package cites, by key."""
    return read_bibtex(files("polariscope.core").joinpath("references.bib").read_text(encoding="utf-8"))


def cite(key: str) -> Reference:
    """Return the work with a citation key; the error about an unknown key suggests the most similar one.

    :param key: first author and year, as in the docstrings: ``kingma2014``.
    """
    known = references()
    if key not in known:
        raise unknown("citation key", key, known)
    return known[key]


def keys_in(text: str) -> list[str]:
    """Return the citation keys in a text, each once, in the order of their first use.

    :param text: the text, for example a docstring.

    >>> keys_in("Reference: kingma2014, https://example.org/x2013; bonheme2023 Eq. 3.5; kingma2014.")
    ['kingma2014', 'bonheme2023']
    """
    return list(dict.fromkeys(KEY.findall(text)))
