"""One reader of JSON and TOML: damaged, hostile or unsuitable text raises an error that names the file and the reason.

Python's parsers accept more than the formats allow, or fail with exceptions of their own: numbers with thousands of
digits, NaN, nesting that exhausts the stack, and halves of surrogate pairs, which no file can store.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from polariscope.core.errors import PolariscopeError
from polariscope.core.paths import check_regular
from polariscope.core.text import file_size

MAX_DEPTH = 100
"""Maximum nesting of lists and mappings."""
MAX_JSON, MAX_TOML = 10**9, 10**7
"""Maximum size of a file in bytes."""
_LARGE_EXPONENT = re.compile(r"[eE]\+?[0-9]{3}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class ParseError(PolariscopeError, ValueError):
    """Error about text that is not valid JSON or TOML."""


def read_text(path: Path, limit: int) -> str:
    """Read a text file in UTF-8; a pipe or a file above the limit raises an error.

    :param path: the file.
    :param limit: maximum size in bytes.
    """
    size = check_regular(path).stat().st_size
    if size > limit:
        raise ParseError(f"{path} has {file_size(size)}, more than the limit of {file_size(limit)}.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is damaged: it is not text in UTF-8 ({error}).") from None


def read_json(path: Path) -> Any:
    """Read a JSON file.

    :param path: the file.
    """
    return parse_json(read_text(path, MAX_JSON), str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    :param path: the file.
    """
    return _parsed(tomllib.loads, read_text(path, MAX_TOML), str(path), "TOML")


def parse_json(text: str, where: str) -> Any:
    """Parse JSON text.

    >>> parse_json("[1, NaN]", "a.json")
    Traceback (most recent call last):
    polariscope.core.parsing.ParseError: a.json is damaged: it is not JSON (NaN is not a JSON value).

    :param text: the text.
    :param where: name of its file, for the message.
    """
    return _parsed(_load_json, text, where, "JSON")


def _load_json(text: str) -> Any:
    # Reading each number by a function of our own is slow, and only exponents of three digits can exceed the range.
    parse_float = _finite if _LARGE_EXPONENT.search(text) else None
    return json.loads(text, parse_constant=_refuse_constant, parse_float=parse_float)


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"{number} is too large")
    return value


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON value")


def _parsed(parse: Callable[[str], Any], text: str, where: str, format: str) -> Any:
    try:
        value = parse(text)
        is_deep = _is_deep(value)
    except ValueError as error:
        raise ParseError(f"{where} is damaged: it is not {format} ({error}).") from None
    except RecursionError:
        is_deep = True
    if is_deep:
        raise ParseError(f"{where} is damaged: its values are nested more than {MAX_DEPTH} deep.")
    # Decoded UTF-8 contains no surrogates, so only an escape can produce one. The search for escapes is fast;
    # most files are not dumped again.
    if _ESCAPED_SURROGATE.search(text) and _SURROGATE.search(
        json.dumps(value, ensure_ascii=False, default=str)
    ):
        raise ParseError(
            f"{where} is damaged: it contains half of a surrogate pair, which is not a character."
        )
    return value


def _is_deep(value: Any) -> bool:
    """Return True if lists and mappings are nested more than MAX_DEPTH deep, without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        containers = [each for each in level if isinstance(each, dict | list)]
        if not containers:
            return False
        level = [
            item
            for each in containers
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, dict | list)
        ]
    return bool(level)
