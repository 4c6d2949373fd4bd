"""Writes the page of all concepts from the registries: what there is, its equation and its options.

    python docs/concepts.py [build/docs/concepts.md]

The page is generated and not kept in git; `make docs` writes it.
"""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path

import polariscope as ps
from polariscope.core import files
from polariscope.core.option_values import describe
from polariscope.core.options import options_of
from polariscope.core.references import KEY

REFERENCES = Path(__file__).with_name("references.md")


def page(references: str = REFERENCES.name) -> str:
    """The page as Markdown; citation keys link to the page of references, found at ``references``."""
    lines = ["# Concepts", "", "Found in the families' folders; each member is one file.", ""]
    for name, package in ps._FAMILIES.items():
        family = getattr(ps, name)
        lines += [f"## {name}", "", (inspect.getdoc(family) or "").split("\n\n")[0], ""]
        if not len(family):
            lines += ["None yet.", ""]
        for member in family:
            concept = family[member]
            lines += [f"### `{member}`", "", linked(inspect.getdoc(concept) or "", references), ""]
            lines += [f"From `{concept.__module__}` in `{package}`.", ""]
            for option in options_of(concept).values():
                default = "" if option.required else f", by default `{option.default}`"
                lines.append(f"- `{option.name}`: {describe(option.annotation)}{default}. {option.help}")
            lines.append("")
    return "\n".join(lines)


def linked(text: str, references: str) -> str:
    """A text whose citation keys are links."""
    return KEY.sub(lambda key: f"[{key[0]}]({references}#{key[0]})", text)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/docs/concepts.md")
    files.write_text(target, page(os.path.relpath(REFERENCES, target.parent)))
    print(f"wrote {target}")
