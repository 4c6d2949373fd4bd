"""Words that make a text hard to read, and their plain replacements."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXTS = sorted(
    [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "src").rglob("*.j2"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "benchmarks" / "originals").glob("*.py"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    ]
)
INSTEAD = {
    r"refuse_nothing": "check_not_degenerate",
    r"could_be_otherwise": "may_still_cross_threshold",
    r"heeded": "supported_options",
    r"gallops?|galloping": "search_outward, or searches outward",
    r"def settle|[.]settle[(]": "to_device",
    r"nearest_to_the_whole": "passive_gaussian",
    r"middling": "intermediate",
    r"uniformly noisy": "intermediate variance for every input",
    r"gone on with": "resumed",
    r"still open after": "undecided after",
    r"taken as (?:below|above)": "counted as fitting because it is below",
    r"(?:has|have) to say much": "must be informative",
    r"no better than a constant is": "predicted no better than by a constant",
    r"if it (?:is trained|trains) on": "with more training",
    r"other seeds are not in it": "for this seed only",
    r"[,;:)] so that": "so, therefore, or two sentences",
}
"""Words to avoid, with their replacements."""


@functools.cache
def readable(file: Path) -> str:
    """Return a file as one line without its ``raise`` statements, since messages have separate tests."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        lines = text.split("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Raise):
                for line in range(node.lineno - 1, node.end_lineno or node.lineno):
                    lines[line] = ""
        text = "\n".join(lines)
    return re.sub(r"\s+(?:# )?", " ", text)


def uses(word: str, file: Path) -> list[str]:
    """Return the positions of a hard word in a file, with the surrounding text."""
    text = readable(file)
    return [
        text[max(0, match.start() - 30) : match.end() + 10]
        for match in re.finditer(word, text, flags=re.IGNORECASE)
    ]


@pytest.mark.parametrize("word", INSTEAD)
def test_a_hard_word_is_not_written(word: str) -> None:
    found = {str(file.relative_to(ROOT)): places for file in TEXTS if (places := uses(word, file))}
    assert not found, f"write instead: {INSTEAD[word]}"


def test_a_hard_word_would_be_found(tmp_path: Path) -> None:
    file = tmp_path / "text.py"
    file.write_text('"""One, so\n    that Middling."""\nraise ValueError("heeded")\n', encoding="utf-8")
    assert [word for word in INSTEAD if uses(word, file)] == ["middling", "[,;:)] so that"]
