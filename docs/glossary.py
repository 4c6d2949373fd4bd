"""Write docs/glossary.md from the glossary of the package: ``python docs/glossary.py``."""

from __future__ import annotations

from pathlib import Path

from polariscope.core import files
from polariscope.pages.glossary import glossary

TARGET = Path(__file__).with_name("glossary.md")


def page() -> str:
    """Return the page as Markdown."""
    lines = [
        "# Glossary",
        "",
        "Terms of the reports and of this documentation. Most definitions use only terms defined above them.",
        "Reports show the same texts as tooltips. `make docs` writes this page from",
        "`src/polariscope/pages/templates/glossary.toml`.",
        "",
    ]
    lines += [f"- **{term.name}**: {term.meaning}" for term in glossary()]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    files.write_text(TARGET, page())
    print(f"wrote {TARGET}")
