"""Fenced blocks of the README and the docs: those that a test runs, and those that are marked with a reason not to.

A block is marked by an HTML comment in the line above it::

    <!-- not run: needs a Ray cluster -->

``python tests/doc_blocks.py`` prints the number of blocks that are run, and of marked ones by reason.
"""

from __future__ import annotations

import collections
import dataclasses
import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARK = re.compile(r"<!-- not run: (?P<reason>\S.*?) -->")
SHELL, PYTHON, TOML = "", "python", "toml"
COMMANDS = r"^ *(?:\$ )?(?:polariscope|python|make|pip) "
"""Beginning of a line with a command, in a block without a language."""


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of code of a page."""

    page: str
    """The page, relative to the root of the repository."""
    line: int
    language: str
    code: str
    reason: str | None
    """The reason of a mark; None if the block has to run."""

    def commands(self) -> list[list[str]]:
        """Return the arguments of each command of a shell block, without comments."""
        joined = re.sub(r"\\\n\s*", "", self.code)
        return [tokens for line in joined.splitlines() if (tokens := shlex.split(line, comments=True))]


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    fences = [index for index, line in enumerate(lines) if line.startswith("```")]
    found = []
    for start, end in zip(fences[::2], fences[1::2], strict=True):
        mark = MARK.fullmatch(lines[start - 1].strip())
        found.append(
            Block(
                page.relative_to(ROOT).as_posix(),
                start + 1,
                lines[start].removeprefix("```").strip(),
                "\n".join([*lines[start + 1 : end], ""]),
                mark["reason"] if mark else None,
            )
        )
    return found


def unfenced_commands(page: Path) -> list[str]:
    """Return commands in indented blocks, which would be neither run nor marked."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(rf"^ {{4}}{COMMANDS[1:]}.*$", text, flags=re.MULTILINE)


def counts() -> dict[str, int]:
    """Return the number of blocks that are run, and of marked ones by reason."""
    return collections.Counter(block.reason or "run" for page in PAGES for block in blocks(page))


if __name__ == "__main__":
    for name, count in sorted(counts().items(), key=lambda item: -item[1]):
        print(f"{count:4}  {name}")
