"""Writes docs/references.md, the works that docstrings and documentation cite, from the package's bibliography.

python docs/references.py
"""

from __future__ import annotations

from pathlib import Path

from polariscope.core import files
from polariscope.core.references import references

TARGET = Path(__file__).with_name("references.md")


def page() -> str:
    """The page as Markdown."""
    lines = [
        "# References",
        "",
        "Docstrings and these pages cite works by key, such as `kingma2014`: the first author and the year.",
        "`polariscope cite kingma2014` prints the BibTeX entry; without a key it lists them all. This page is written",
        "by `make docs` from `src/polariscope/core/references.bib`, the only place to add a work.",
        "",
    ]
    for key, reference in references().items():
        lines.append(f'- <a id="{key}"></a>`{key}`: {reference.full}')
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    files.write_text(TARGET, page())
    print(f"wrote {TARGET}")
