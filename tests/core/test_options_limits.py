"""Ranges and choices: declared beside the option, checked by whoever makes the thing."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Ge, Gt, Le, Lt

from polariscope.core.errors import Argument, InputError
from polariscope.core.option_values import Advice, violation
from polariscope.core.options import check_values, checked


@checked
@dataclasses.dataclass(frozen=True)
class Thing:
    rate: Annotated[float, Gt(0), Advice(("use ", Argument("mode", "pad")))] = 1.0
    share: Annotated[float, Gt(0), Lt(1)] = 0.5
    count: Annotated[int, Ge(2)] | None = None
    mode: Literal["pad", "crop"] = "pad"
    widths: tuple[Annotated[int, Ge(1)], ...] = (3,)
    most: float = math.inf
    anything: Any = None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0}, "rate must be positive, got 0; use mode='pad'."),
        ({"rate": "1"}, "rate must be a number, got '1'; use mode='pad'."),
        ({"rate": True}, "rate must be a number, got True; use mode='pad'."),
        ({"share": 1.0}, "share must lie between 0 and 1, got 1.0."),
        ({"count": 1}, "count must be at least 2, got 1."),
        ({"count": 2.5}, "count must be an integer, got 2.5."),
        ({"mode": "crp"}, "mode must be 'pad' or 'crop', got 'crp'; did you mean 'crop'?"),
        ({"widths": (1, 0)}, "widths must be a list of integers, each at least 1, got (1, 0)."),
        ({"most": math.nan}, "most must be finite, got nan."),
    ],
)
def test_values_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        Thing(**options)
    assert str(refused.value) == message
    with pytest.raises(InputError):
        dataclasses.replace(Thing(), **options)


def test_values_within_are_taken() -> None:
    made = Thing(0.1, 0.9, 2, "crop", (1, 2), math.inf, object())
    assert (made.count, made.mode, made.widths) == (2, "crop", (1, 2))
    assert Thing(count=None) == Thing()


def test_what_python_refuses_python_words() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'rte'"):
        Thing(rte=1)  # type: ignore[call-arg]


def test_one_that_inherits_speaks_for_itself() -> None:
    @checked
    @dataclasses.dataclass(frozen=True)
    class Other(Thing):
        rate: Annotated[float, Gt(-2)] = 1.0  # type: ignore[assignment]

    assert Other(rate=-1).rate == -1
    with pytest.raises(InputError, match="rate must be above -2, got -3"):
        Other(rate=-3)


def test_functions_have_limits_too() -> None:
    def measure(x: Any, *, share: Annotated[float, Ge(0), Le(1)] = 0.5) -> None: ...

    check_values(measure, {"share": 1, "x": None, "unknown": 3})
    with pytest.raises(InputError, match=r"got -1 \(measure 'a'\)"):
        check_values(measure, {"share": -1}, "measure 'a'")
    with pytest.raises(InputError, match=r"share must lie between 0 and 1, got 1\.5"):
        check_values(measure, {"share": 1.5})


@pytest.mark.parametrize(
    ("annotation", "inside", "outside", "words"),
    [
        (Annotated[float, Ge(1), Lt(3)], 1, 3, "be at least 1 and below 3"),
        (Annotated[float, Gt(1)], np.float32(1.1), 1, "be above 1"),
        (Annotated[float, Le(3)], 3, 4, "be at most 3"),
        (int | str, "a", 2.5, "be an integer or a word"),
        (bool, np.bool_(True), 1, "be True or False"),
        (str, "a", 1, "be a word"),
    ],
)
def test_limits(annotation: Any, inside: Any, outside: Any, words: str) -> None:
    assert violation(annotation, inside) is None
    assert violation(annotation, outside) == words
