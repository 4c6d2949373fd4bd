"""Numbers, sizes, plurals and lists read the same everywhere."""

from __future__ import annotations

import math

import pytest

from polariscope.core.text import (
    assigned,
    capitalised,
    duration,
    file_size,
    interval,
    joined,
    listed,
    noun,
    number,
    numbered,
    percent,
    plural,
    readable,
    shortened,
    span,
)


def test_numbers_keep_what_matters() -> None:
    assert [readable(value) for value in (0.0, 1e-9, -1e-9)] == ["0", "<\xa00.001", ">\xa0−0.001"]
    assert [percent(value) for value in (1.678, 0.0123, -0.6)] == ["168\xa0%", "1.2\xa0%", "−60\xa0%"]


def test_a_number_that_does_not_exist_is_a_dash() -> None:
    assert [number(value) for value in (None, math.nan)] == ["–", "–"]
    assert [readable(None), percent(None), interval(None, absent="–")] == ["–"] * 3


def test_whole_numbers_have_no_decimals_if_asked() -> None:
    assert [number(value, whole=True) for value in (7.0, 0.25, 123_456.0)] == ["7", "0.250", "123456"]
    assert [readable(value, whole=True) for value in (6.0, -6.0, 0.25, 1234.0)] == [
        "6",
        "−6",
        "0.250",
        "1,234",
    ]


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_only_one_thing_is_singular(count: int) -> None:
    assert (noun(count, "latent") == "latent") == (count == 1)
    assert plural(count, "study") == ("1 study" if count == 1 else f"{count:,} studies")
    assert noun(2, "day") == "days"


def test_a_list_is_cut_only_beyond_its_limit() -> None:
    assert listed("abc", 3) == "a, b, c"
    assert listed("abcd", 3) == "a, b, c and 1 more"
    assert listed(()) == ""
    assert numbered("factor", ["x"]) == "factor x"
    assert joined(["x"]) == "x"


def test_a_unit_is_the_largest_that_is_filled() -> None:
    assert [file_size(10**power) for power in range(0, 10, 3)] == ["1 byte", "1 kB", "1.0 MB", "1.0 GB"]
    assert [duration(seconds) for seconds in (59, 60, 3599, 3600)] == ["59 s", "1 min", "60 min", "1 h"]


def test_an_interval_of_one_number_is_that_number() -> None:
    assert span(2, 2) == "2"
    assert span(75, 1800, ",", " to ") == "75 to 1,800"


def test_texts_change_only_where_they_must() -> None:
    assert shortened("abc", 3) == "abc"
    assert len(shortened("abcd", 3)) == 3
    assert capitalised("latents of a VAE") == "Latents of a VAE"
    assert assigned({"beta": 4.0, "warm": True, "net": None}) == "beta=4, warm=yes, net="
