"""Count the patterns of translated prose: ``python tests/plain_english_counts.py [--show PATTERN]`` prints the table.

The texts are docstrings, comments, messages, templates and the documentation, without code, quotations and formulas.
A pattern can match a good sentence, so a count above 0 is not an error. ``tests/test_plain_english.py`` holds those
marked "held" at 0.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "polariscope"
PAGES = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ]
)
SOURCES = sorted(file for file in PACKAGE.rglob("*") if file.suffix in (".py", ".j2", ".toml"))
GENERATED = {"references.md"}
"""Pages whose words are titles of published works."""
FOLK_VERBS = {
    r"by heart": "overfits",
    r"w[ao]kes?\b|\bwoken|awake": "becomes active",
    r"(?:goes|went|gone|going) on": "resumes or continues",
    r"(?:gives?|gave|given) up": "stops, or is pruned",
    r"(?:takes?|took) in": "includes",
    r"afresh": "from scratch",
    r"foretells?|foretold": "predicts",
    r"still open": "undecided",
    r"stands?(?! for| out|-alone| alone|-in)": "has converged, is stable, or is",
}
"""Verbs for technical states, and technical words for them."""
QUESTIONS = r"(?:What|How|Whether|Where)\b"
THINGS = (
    "models?|tables?|thresholds?|folders?|files?|runs?|pages?|verdicts?|rules?|notes?|lines?|records?|reports?|metrics?"
    "|scores?|columns?|docstrings?|logs?|latents?|curves?|intervals?|names?|decorators?|methods?|settings"
)
MIN_WORDS = 4
"""Minimum number of words of a text in the code that counts as a message."""


@dataclasses.dataclass(frozen=True)
class Pattern:
    """A pattern of translated prose."""

    expression: str
    remedy: str
    is_held: bool = False
    """If True, a test holds the count at 0."""
    begins_docstring: bool = False
    """If True, the pattern is matched at the beginning of docstrings only."""


PATTERNS = {
    "docstrings that begin with What, How, Whether, Where": Pattern(
        QUESTIONS, "begin with a verb or a noun", is_held=True, begins_docstring=True
    ),
    "headless what": Pattern(
        r"what (?:is|was|are|were|has|had|it|they|the|a|an|each|one|this|that|there|remains|follows)\b",
        "name the thing",
    ),
    "where for if or when": Pattern(
        r"where (?:there|none|no|nothing|it|they|one|this|these|that|possible|needed|necessary|available|several)\b"
        r"|(?:except|only|unless|even|and|or|but) where\b",
        "if, when",
    ),
    "may for can or might": Pattern(r"may(?! \d)\b", "can, might"),
    "beside": Pattern(r"beside\b", "next to, besides, compared with", is_held=True),
    "trailing else": Pattern(r"(?<!something )else(?=[.;:)])", "otherwise", is_held=True),
    "things that say, tell, know, ask or answer": Pattern(
        rf"(?:{THINGS}) (?:says?|said|tells?|told|knows?|knew|asks?|asked|answers|speaks?)\b",
        "show, contain, equal",
    ),
    "fronted Of, who gave": Pattern(
        r"(?-i:(?:(?<=[.:;] )|^)Of) (?:several|the|all|two|each|its|a|these|those|many)\b|who gave\b",
        "subject first",
        is_held=True,
    ),
    "is no, is none": Pattern(
        r"(?<!there )(?:is|are|was|were) (?-i:no|none)\b(?! (?:longer|larger|more|better))",
        "is not a",
        is_held=True,
    ),
    "folk verbs": Pattern("|".join(FOLK_VERBS), "the technical word", is_held=True),
    "sentences with two semicolons or more": Pattern(
        r"[^.;:!?|*]+;[^.;!?|*-]{12,};[^.;!?|*-]{12,}", "one idea per sentence"
    ),
    "diary": Pattern(
        r"(?:today|yesterday|(?:this|last|two) sessions?|when (?:the|this) page was written|had been seen|at that time"
        r"|as a check,)",
        "the result, the command, the limits",
        is_held=True,
    ),
}


@functools.cache
def prose(file: Path) -> str:
    """Return the sentences of a file, without code, quotations, addresses and mathematics."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        text = "\n".join([*docstrings(file), *comments(text)])
        text = re.sub(r"^ *(?:>>>|\.\.\. ).*$", "", text, flags=re.MULTILINE)
        text = re.sub(r"^ *\.\. math::.*?(?:\n\s*\n|\Z)", "\n", text, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"^ *References?:.*?(?:\n\s*\n|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)  # titles
    elif file.suffix == ".md":
        text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    elif file.suffix == ".j2":
        text = re.sub(r"\{[{%#].*?[}%#]\}|<[^>]+>", " ", text, flags=re.DOTALL)
    return plain(text)


def plain(text: str) -> str:
    """Return a text in one line, without code, addresses and quotations."""
    text = re.sub(r"``.*?``|`[^`]*`|https?://\S+|\"[^\"\n]*\"|“[^”]*”|‘[^’]*’", "", text, flags=re.DOTALL)
    return re.sub(r"\s+(?:# )?", " ", text)


def docstrings(file: Path) -> Iterator[str]:
    """Yield the docstrings of modules, classes, functions, fields and constants."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.value


def comments(text: str) -> list[str]:
    """Return the comments of a Python file."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT]


@functools.cache
def messages(file: Path) -> str:
    """Return the texts in the code of a Python file that have several words; values in them are replaced by X."""
    if file.suffix != ".py":
        return ""
    known = set(docstrings(file))
    tree = ast.parse(file.read_text(encoding="utf-8"))
    inner = {
        part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)
    } - {None}
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
            texts.append("".join(str(part) for part in parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner:
            texts.append(node.value)
    return "\n".join(plain(text) for text in texts if len(text.split()) >= MIN_WORDS and text not in known)


def uses(pattern: str, files: list[Path], *, with_messages: bool = False) -> list[str]:
    """Return each match with the words around it."""
    matches = []
    for file in files:
        for text in (prose(file), *(messages(file).splitlines() if with_messages else ())):
            for match in re.finditer(rf"(?<!\w)(?:{pattern})(?!\w)", text, flags=re.IGNORECASE):
                around = text[max(0, match.start() - 30) : match.end() + 20]
                matches.append(
                    f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name}: {around}"
                )
    return matches


def matches_of(name: str, files: list[Path]) -> list[str]:
    """Return the matches of a pattern of :data:`PATTERNS` in some files."""
    pattern = PATTERNS[name]
    files = [file for file in files if file.name not in GENERATED]
    if pattern.begins_docstring:
        return [
            f"{file.relative_to(PACKAGE)}: {text.strip()[:60]}"
            for file in files
            if file.suffix == ".py"
            for text in docstrings(file)
            if re.match(pattern.expression, text.strip())
        ]
    return uses(pattern.expression, files, with_messages=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--show", metavar="PATTERN", help="print the matches of the patterns whose name contains this"
    )
    show = parser.parse_args().show
    print(f"{'pattern':55} {'src':>5} {'docs':>5}  held")
    for name, pattern in PATTERNS.items():
        source, docs = matches_of(name, SOURCES), matches_of(name, PAGES)
        print(f"{name:55} {len(source):5} {len(docs):5}  {'yes' if pattern.is_held else ''}")
        if show and show in name:
            print("\n".join(f"    {match}" for match in [*source, *docs]))
