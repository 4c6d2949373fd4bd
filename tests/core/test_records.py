"""Records come back from JSON as they were, and what is none is refused in words."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from jaxtyping import Bool, Float, Int, Shaped

from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.records import from_plain, to_plain


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    span: tuple[int, float]
    kind: Literal["a", "b", 3] = "a"

    def __post_init__(self) -> None:
        if self.name == "refused":
            raise InputError("name", "not be 'refused'")


@dataclasses.dataclass(frozen=True)
class Whole:
    value: float | int | None
    number: float
    count: int
    is_good: bool
    parts: tuple[Part, ...] = ()
    shares: dict[Literal["x", "y"], float] = dataclasses.field(default_factory=dict)
    by_size: dict[int, tuple[float, ...]] = dataclasses.field(default_factory=dict)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    names: list[str] = dataclasses.field(default_factory=list)
    either: Part | str | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Arrays:
    matrix: Float[np.ndarray, "row column"]
    places: Int[np.ndarray, " row"] | None = None
    flags: Bool[np.ndarray, "row _"] | None = None
    parts: Float[np.ndarray, "part row column"] | None = None
    open: Float[np.ndarray, "*shape"] | None = None


WHOLE = Whole(
    value=3,
    number=math.inf,
    count=4,
    is_good=True,
    parts=(Part("one", (1, 0.1 + 0.2)), Part("two", (2, -math.inf), 3)),
    shares={"x": 0.25, "y": 1.0},
    by_size={100: (0.5, math.inf), -1: ()},
    options={"a": [1, {"b": None}]},
    names=["u", "v"],
    either=Part("three", (3, 1.0), "b"),
)


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(to_plain(value), allow_nan=False))


def test_a_record_comes_back_as_it_was() -> None:
    back = from_plain(Whole, through_json(WHOLE))
    assert back == WHOLE
    assert through_json(back) == through_json(WHOLE)
    assert [type(back.parts), type(back.names), type(back.parts[0].span)] == [tuple, list, tuple]


@pytest.mark.parametrize("value", [3, 3.0, 2.5, math.inf, None, 2**60])
def test_an_integer_stays_one_and_a_number_too_where_both_may_stand(value: float | int | None) -> None:
    back = from_plain(Whole, through_json(dataclasses.replace(WHOLE, value=value, number=3.0)))
    assert (back.value, type(back.value)) == (value, type(value))
    assert (back.number, type(back.number)) == (3.0, float)


def test_a_whole_number_is_a_number_and_fields_with_defaults_may_be_missing() -> None:
    back = from_plain(Whole, {"value": None, "number": 2, "count": 2, "is_good": False})
    assert back == Whole(None, 2.0, 2, False)
    assert type(back.number) is float


def test_single_values_of_numpy_and_keys_that_are_numbers_become_json() -> None:
    settings = {1: (np.int64(2), {"a": (np.float32(0.5),)}), "b": [None, "c", np.True_], "c": np.arange(2)}
    assert to_plain(settings) == {"1": [2, {"a": [0.5]}], "b": [None, "c", True], "c": [0, 1]}


def test_arrays_come_back_with_their_type_and_what_is_undefined() -> None:
    arrays = Arrays(
        matrix=np.array([[0.1, math.inf], [math.nan, -math.inf]]),
        places=np.array([2**60, -1]),
        flags=np.array([[True], [False]]),
        parts=np.zeros((3, 2, 2)),
        open=np.float64(0.1 + 0.2) + np.zeros((1, 2, 3, 4)),
    )
    stored = through_json(arrays)
    assert stored["matrix"] == [[0.1, "Infinity"], [None, "-Infinity"]]
    back = from_plain(Arrays, stored)
    for field in dataclasses.fields(Arrays):
        found, expected = getattr(back, field.name), getattr(arrays, field.name)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_an_array_without_entries_gets_its_axes_from_the_others() -> None:
    stored = through_json(Arrays(np.zeros((2, 5)), parts=np.zeros((0, 2, 5))))
    assert stored["parts"] == []
    assert from_plain(Arrays, stored).parts.shape == (0, 2, 5)
    assert from_plain(Arrays, {"matrix": []}).matrix.shape == (0, 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"count": 2.0}, r"count must be an integer, got 2\.0"),
        ({"count": True}, "count must be an integer, got True"),
        ({"number": "3"}, "number must be a number, got '3'"),
        ({"number": None}, "number must be a number, got None"),
        ({"number": math.nan}, "number must be a number, got nan"),
        ({"is_good": 1}, "is_good must be true or false, got 1"),
        ({"value": "x"}, "value must be a number or an integer or null, got 'x'"),
        ({"parts": {}}, "parts must be a list, got a mapping of nothing"),
        ({"parts": [{"name": "n"}]}, r"parts\[0\] must have the field span"),
        ({"parts": ["n"]}, r"parts\[0\] must be a mapping with the fields name, span, kind, got 'n'"),
        ({"parts": [{"name": 1, "span": [1, 2]}]}, r"parts\[0\]\.name must be text, got 1"),
        (
            {"parts": [{"name": "n", "span": [1]}]},
            r"parts\[0\]\.span must be a list of length 2, got a list of",
        ),
        ({"parts": [{"name": "n", "span": [1, 2], "kind": True}]}, "kind must be one of a, b, 3, got True"),
        ({"parts": [{"name": "refused", "span": [1, 2]}]}, r"\(name must not be 'refused'\)"),
        ({"shares": {"z": 1}}, "a key of shares must be one of x, y, got 'z'"),
        ({"by_size": {"1.5": []}}, "by_size must have integers as keys, got '1.5'"),
        ({"options": 3}, "options must be a mapping, got 3"),
        ({"other": 3, "more": 4}, "it must not have the fields more, other"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(change: dict[str, Any], words: str) -> None:
    with pytest.raises(
        PolariscopeError, match=rf"this is not a stored Whole: .*{words}.*; count it again\.$"
    ):
        from_plain(Whole, {**through_json(WHOLE), **change}, "count it again")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"matrix": 3}, "matrix must be a list, got 3"),
        ({"matrix": [1, 2]}, "matrix must have 2 axes, got 1"),
        ({"matrix": [[1, 2], [3]]}, "matrix must have rows of equal length"),
        ({"matrix": [[1, "2"]]}, "matrix must contain numbers, got '2'"),
        ({"matrix": [[1, True]]}, "matrix must contain numbers, got True"),
        ({"places": [1, 2, 3]}, "places must have as many entries along row as other fields, 2, got 3"),
        ({"places": [1.5, 2]}, r"places must contain numbers, got 1\.5"),
        ({"places": [1, None]}, "places must contain numbers, got None"),
        ({"flags": [[1], [0]]}, "flags must contain truth values, got 1"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(PolariscopeError, match=rf"this is not a stored Arrays: {words}; make it again\.$"):
        from_plain(Arrays, {"matrix": [[1, 2], [3, 4]], **change})


@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_what_is_no_mapping_is_no_record(value: Any) -> None:
    with pytest.raises(PolariscopeError, match="it must be a mapping with the fields value, number"):
        from_plain(Whole, value)


def test_what_a_file_keeps_beside_a_record_is_left_out_on_request_only() -> None:
    stored = {**through_json(WHOLE), "digests": ["abc"]}
    assert from_plain(Whole, stored, with_others=True) == WHOLE
    with pytest.raises(PolariscopeError, match="it must not have the field digests"):
        from_plain(Whole, stored)


@dataclasses.dataclass(frozen=True)
class Unreadable:
    path: Path | None = None
    array: Shaped[np.ndarray, " n"] | None = None


@pytest.mark.parametrize("stored", [{"path": "a"}, {"array": [1]}])
def test_a_class_whose_fields_cannot_be_read_is_the_programmers_mistake(stored: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="cannot be read"):
        from_plain(Unreadable, stored)


@dataclasses.dataclass(frozen=True)
class Loose:
    content: object
    options: Mapping[str, object] = dataclasses.field(default_factory=dict)


@pytest.mark.parametrize("content", [None, 3, 0.5, "text", [1, [2]], {"a": {"b": True}}])
def test_a_field_of_any_kind_is_read_as_json_has_it(content: object) -> None:
    loose = Loose(content, {"given": content})
    assert from_plain(Loose, through_json(to_plain(loose)), "make it again") == loose
