"""Codes that no metric can take are refused at the door."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.analysis.code_checks import (
    check_codes,
    check_factors,
    check_kinds,
    check_names,
    check_types,
    check_variance,
    is_integral,
)
from polariscope.core.errors import InputError


def test_codes_whose_squares_are_no_numbers_are_refused_and_small_or_constant_ones_taken():
    codes = np.array([[0.25, -0.5], [0.5, 0.125]])
    np.testing.assert_array_equal(check_codes(codes, "codes"), codes)
    np.testing.assert_array_equal(check_codes(0 * codes, "codes"), 0 * codes)
    for size in (1e101, 1e-101):
        with pytest.raises(InputError, match="codes must have values whose squares neither overflow"):
            check_codes(size * codes, "codes")
    for size in (1e100, 1 / 1e100):  # as far as that
        assert np.abs(check_codes(size * np.ones((2, 1)), "codes")).max() == size
    with pytest.raises(InputError, match=r"neither overflow nor underflow .* got values up to 1e"):
        check_codes(np.array([[1.0, 1e101], [1.0, 1.0]]), "codes")


@pytest.mark.parametrize("shape", [(5,), (5, 0), (5, 2, 2)])
def test_codes_have_rows_and_columns(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"codes must have shape \(sample, latent\), got \(5"):
        check_codes(np.ones(shape), "codes")


@pytest.mark.parametrize("shape", [(5, 0), (5, 2, 2)])
def test_factors_have_rows_and_columns(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"factors must have shape \(sample, factor\), got \(5"):
        check_factors(np.ones(shape, dtype=int), 5)


def test_an_array_with_one_axis_is_one_factor() -> None:
    assert check_factors(np.arange(5), 5).tolist() == [[0.0], [1.0], [2.0], [3.0], [4.0]]


def test_one_column_and_two_rows_are_enough() -> None:
    assert check_codes([[0], [1]], "codes").tolist() == [[0.0], [1.0]]
    assert check_factors([[3], [1]], 2).tolist() == [[3.0], [1.0]]
    assert check_codes(np.zeros((3, 2)), "codes").shape == (3, 2)
    with pytest.raises(InputError, match="codes must have at least 2 samples, got 1"):
        check_codes([[0.0]], "codes")
    with pytest.raises(InputError, match="a row for each sample, got 3 and 2 rows"):
        check_factors([[3], [1]], 3)


def test_variances_may_be_0_and_not_negative() -> None:
    codes = np.ones((3, 2))
    np.testing.assert_array_equal(check_variance(0 * codes, codes), 0 * codes)
    with pytest.raises(InputError, match=r"variance must not be negative, got a minimum of -0\.5"):
        check_variance([[1, 1], [1, -0.5], [1, 1]], codes)
    with pytest.raises(InputError, match=r"same shape, got \(3, 2\) and \(3, 1\)"):
        check_variance(codes[:, :1], codes)


def test_whole_numbers_that_floats_cannot_tell_apart_are_refused_and_floats_taken() -> None:
    small = 2**53 - 1
    assert check_factors([[small], [-small]], 2).tolist() == [[small], [-small]]
    for large in (2**53, -(2**53)):
        with pytest.raises(InputError, match="below 2⁵³, because larger integers are not exact"):
            check_factors([[0], [large]], 2)
    assert check_factors([[2.0**60], [0.5]], 2)[0, 0] == 2.0**60


def test_what_is_not_finite_is_counted() -> None:
    with pytest.raises(InputError, match="codes must be finite, got 2 NaN or infinite of 6 values"):
        check_codes([[np.nan, 1.0], [np.inf, 0.0], [1.0, 2.0]], "codes")


def test_types_names_and_kinds_are_one_for_each() -> None:
    assert check_types(["active", "passive"], 2) == ("active", "passive")
    with pytest.raises(InputError, match="types must have one entry for each of the 3 latents, got 2"):
        check_types(["active", "passive"], 3)
    assert check_names((), 2) == ("0", "1")
    assert check_names(["a", "b"], 2) == ("a", "b")
    with pytest.raises(InputError, match="must have a name for each of the 2 factors, got 1 names"):
        check_names(["a"], 2)
    assert check_kinds(None, 2) == ("categorical", "categorical")
    every = ("categorical", "ordinal", "cyclic", "continuous")
    assert check_kinds(every, 4) == every
    for kinds in (every[:3], (*every[:3], "other")):
        with pytest.raises(InputError, match=r"factor_kinds must be .* for each of the 4 factors"):
            check_kinds(kinds, 4)


def test_whole_numbers_are_recognised() -> None:
    assert is_integral(np.array([-3.0, 0.0, 7.0]))
    assert not is_integral(np.array([-3.0, 0.5, 7.0]))
