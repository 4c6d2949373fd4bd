"""One reader of JSON and TOML."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polariscope.core import parsing
from polariscope.core.parsing import MAX_DEPTH, ParseError, parse_json, read_json, read_toml

HOSTILE = {
    "cut": ('{"a": [1, 2', "it is not JSON"),
    "empty": ("", "it is not JSON"),
    "not a number": ("[NaN]", "NaN is not a JSON value"),
    "too large": ("[1e400, 1.5]", "1e400 is too large"),
    "infinity": ("[-Infinity]", "-Infinity is not a JSON value"),
    "digits": ("[" + "9" * 5000 + "]", "4300"),
    "deep": ("[" * 5000 + "]" * 5000, "nested more than 100 deep"),
    "a little too deep": ("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), "nested more than 100 deep"),
    "half a pair": ('{"a": "\\ud800"}', "surrogate"),
    "half a pair in a key": ('{"\\udc00": 1}', "surrogate"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_text_that_is_not_json_is_refused_with_the_reason(tmp_path: Path, name: str) -> None:
    text, reason = HOSTILE[name]
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(ParseError, match=reason) as refusal:
        read_json(file)
    assert "a.json" in str(refusal.value)


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"a = ", b"a = " + b"[" * 3000 + b"]" * 3000, b"a = 1\na = 2"]
)
def test_text_that_is_not_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.toml"
    file.write_bytes(content)
    with pytest.raises(ParseError, match=r"a\.toml"):
        read_toml(file)


def test_pipes_and_large_files_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="must be a file, got the pipe"):
        read_json(pipe)
    monkeypatch.setattr(parsing, "MAX_JSON", 10)
    (tmp_path / "a.json").write_text('"' + "a" * 20 + '"')
    with pytest.raises(ParseError, match="more than the limit of"):
        read_json(tmp_path / "a.json")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_every_value_that_json_can_hold_is_read_back(value: object) -> None:
    assert parse_json(json.dumps(value), "a value") == value


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ParseError):
        parse_json(text, "a text")
