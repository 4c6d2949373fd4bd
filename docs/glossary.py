"""Writes docs/glossary.md, the words a newcomer meets, from the package's glossary: ``python docs/glossary.py``."""

from __future__ import annotations

from pathlib import Path

from polariscope.core import files
from polariscope.pages.glossary import glossary

TARGET = Path(__file__).with_name("glossary.md")


def page() -> str:
    """The page as Markdown."""
    lines = [
        "# Glossary",
        "",
        "The words a newcomer meets, in the order in which they build on each other. Reports show the same sentences",
        "as tooltips. This page is written by `make docs` from `src/polariscope/pages/templates/glossary.toml`.",
        "",
    ]
    lines += [f"- **{term.name}**: {term.meaning}" for term in glossary()]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    files.write_text(TARGET, page())
    print(f"wrote {TARGET}")
