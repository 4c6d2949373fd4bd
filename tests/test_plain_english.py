"""Prose of the package and the docs: a net for patterns that read as translated, for dead paths and for wrong commands.

The rules are in CONTRIBUTING.md, "Style". Passing these tests does not make a sentence good.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from plain_english_counts import FOLK_VERBS, GENERATED, PAGES, PATTERNS, ROOT, SOURCES, matches_of, uses
from polariscope.cli.app import COMMANDS, GROUPS, flags_of

TEXTS = [*PAGES, *SOURCES]
MAX_SEMICOLON_CHAINS = 25
"""Limit of sentences with two semicolons or more; most of the matches are lists and cells of tables."""
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


@pytest.mark.parametrize("name", [name for name, pattern in PATTERNS.items() if pattern.is_held])
def test_patterns_of_translated_prose_do_not_return(name: str) -> None:
    assert matches_of(name, TEXTS) == [], f"write instead: {PATTERNS[name].remedy}"


def test_chains_of_semicolons_do_not_spread() -> None:
    chains = matches_of("sentences with two semicolons or more", TEXTS)
    assert len(chains) <= MAX_SEMICOLON_CHAINS, chains


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


def test_the_patterns_match_messages(tmp_path: Path) -> None:
    file = tmp_path / "text.py"
    file.write_text("raise ValueError(f'Of several {x} the model knows one, else.')\n", encoding="utf-8")
    assert {name for name in PATTERNS if matches_of(name, [file])} == {
        "fronted Of, who gave",
        "things that say, tell, know, ask or answer",
        "trailing else",
    }


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
