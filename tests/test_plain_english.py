"""Prose of the package and the docs: a net for patterns that read as translated, for dead paths and for wrong commands.

The rules are in CONTRIBUTING.md, "Style". Passing these tests does not make a sentence good.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import shlex
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from polariscope.cli.app import COMMANDS, GROUPS, flags_of

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "polariscope"
PAGES = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ]
)
GENERATED = {"references.md"}
"""Pages whose words are titles of published works."""
TEXTS = [*PAGES, *sorted(file for file in PACKAGE.rglob("*") if file.suffix in (".py", ".j2", ".toml"))]
QUESTIONS = ("What", "How", "Whether", "Where")
MAX_QUESTIONS = 10

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
AMERICAN = {
    r"colou?r(?<!colour)\w*": "colour",
    r"behavior\w*": "behaviour",
    r"neighbor\w*": "neighbour",
    r"favor\w*": "favour",
    r"centered|centering": "centred",
    r"gr[a]y\w*": "grey",
    r"\w+(?:al|yl|tim|orm|ard|ial|mar|ual)i[z](?:e[sd]?|ing|ation\w*)": "-ise, -isation",
    r"analy[z]e[sd]?": "analyse",
    r"artifacts?": "artefact",
    r"(?:label|model|travel)ed|(?:label|model|travel)ing": "labelled, modelled",
}
"""American spellings, and British ones."""


@functools.cache
def prose(file: Path) -> str:
    """Return the sentences of a file, without code, addresses and mathematics."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        text = "\n".join([*docstrings(file), *comments(text)])
        text = re.sub(r"^ *(?:>>>|\.\.\. ).*$", "", text, flags=re.MULTILINE)
        text = re.sub(r"^ *References?:.*?(?:\n\s*\n|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)  # titles
    elif file.suffix == ".md":
        text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    elif file.suffix == ".j2":
        text = re.sub(r"\{[{%#].*?[}%#]\}|<[^>]+>", " ", text, flags=re.DOTALL)
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
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT]


def uses(pattern: str, files: list[Path]) -> list[str]:
    """Return each match with the words around it."""
    matches = []
    for file in files:
        text = prose(file)
        for match in re.finditer(rf"\b(?:{pattern})\b", text, flags=re.IGNORECASE):
            around = text[max(0, match.start() - 30) : match.end() + 20]
            matches.append(f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name}: {around}")
    return matches


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    questions = [
        f"{file.relative_to(PACKAGE)}: {text[:60]}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for text in docstrings(file)
        if text.split()[:1] and text.split()[0] in QUESTIONS
    ]
    assert len(questions) <= MAX_QUESTIONS, questions


@pytest.mark.parametrize("pattern", FOLK_VERBS)
def test_a_technical_state_has_its_technical_word(pattern: str) -> None:
    assert uses(pattern, TEXTS) == [], f"write instead: {FOLK_VERBS[pattern]}"


@pytest.mark.parametrize("pattern", AMERICAN)
def test_spelling_is_british(pattern: str) -> None:
    texts = [file for file in TEXTS if file.name not in GENERATED]
    assert uses(pattern, texts) == [], f"write instead: {AMERICAN[pattern]}"


def test_the_patterns_match_prose_and_not_code(tmp_path: Path) -> None:
    file = tmp_path / "text.py"
    file.write_text(
        '"""It wakes, in `color` "by heart"."""\n# behavior stands\nx = "afresh"\n', encoding="utf-8"
    )
    assert [pattern for pattern in FOLK_VERBS if uses(pattern, [file])] == [
        r"w[ao]kes?\b|\bwoken|awake",
        r"stands?(?! for| out|-alone| alone|-in)",
    ]
    assert [pattern for pattern in AMERICAN if uses(pattern, [file])] == [r"behavior\w*"]


EXAMPLES = ("free_bits", "free-bits", "moons", "best-share", "NAME")
"""Members that a page adds as an example."""
OF_USERS = (
    "runs/",
    "mine/",
    "out/",
    "tables/",
    "PATH/",
    "FOLDER/",
    "RUN/",
    "NAME",
    "checkpoints/",
    "arrays/",
    "digests/",
)
"""Beginnings of paths in examples, which are not in the repository."""


def test_every_path_named_in_the_docs_exists() -> None:
    files = {file.relative_to(ROOT).as_posix() for part in ("src", "tests", "docs", "benchmarks", "examples")
             for file in (ROOT / part).rglob("*.*")}  # fmt: skip
    missing = []
    for page in PAGES:
        if page.name == "CHANGELOG.md":
            continue
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"`((?:[\w.-]+/)+[\w-]+\.(?:py|md|toml|csv|j2|bib|png))`", text)
        named += re.findall(
            r"(?<![\w/`])((?:docs|benchmarks|examples|tests|src)/[\w/.-]+\.(?:py|md|csv|toml))", text
        )
        for name in named:
            is_there = any(file == name or file.endswith(f"/{name}") for file in files)
            is_example = name.startswith(OF_USERS) or any(example in name for example in EXAMPLES)
            if not is_there and not is_example:
                missing.append(f"{page.name}: {name}")
        outside_code = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", outside_code)
        missing += [f"{page.name}: link to {link}" for link in links if not (page.parent / link).exists()]
    assert missing == []


def commands_in(page: Path) -> Iterator[list[str]]:
    """Yield the arguments of each ``polariscope`` command of a page, without comments and continued columns."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:\w*)\n(.*?)^```|((?:^ {4}.*\n)+)", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line.strip() for pair in blocks for part in pair for line in part.splitlines()]
    lines += re.findall(r"`(polariscope [^`]+)`", text.replace("\n", " "))
    for line in lines:
        if line.startswith("polariscope "):
            yield shlex.split(re.split(r"\s{2,}|\s#", line.removeprefix("polariscope "))[0].rstrip("\\ "))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name
)
def test_every_command_of_a_page_exists_with_its_flags(page: Path) -> None:
    wrong = []
    for tokens in commands_in(page):
        name, *rest = (word for word in tokens if not word.startswith("-"))
        if not re.fullmatch(r"[a-z-]+", name) or set(EXAMPLES) & set(tokens):
            continue  # a placeholder
        command = [name, *rest[:1]] if name in GROUPS else [name]
        known = set(GROUPS[name][1]) if name in GROUPS else set(COMMANDS)
        if command[-1] not in known:
            wrong.append(f"polariscope {' '.join(tokens)}: no such command")
            continue
        flags = {word.split("=")[0] for word in tokens if word.startswith("--")}
        wrong += [f"polariscope {' '.join(tokens)}: {flag}" for flag in flags - flags_of(command)]
    assert wrong == []
