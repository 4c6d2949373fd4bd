"""Independent streams of randomness from one seed."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.core.seeds import (
    check_seed,
    derive,
    generator,
    random_bytes,
    random_integers,
    random_words,
    uniforms,
)


def test_streams_are_told_apart_by_seed_and_by_name() -> None:
    seeds = [
        derive(seed, *names) for seed in range(20) for names in [(), ("noise",), ("noise", 1), ("noise", 2)]
    ]
    assert len(set(seeds)) == len(seeds)


def test_a_derived_seed_fits_into_63_bits_and_is_spread_over_them() -> None:
    seeds = np.array([derive(0, "spread", number) for number in range(2000)])
    assert seeds.min() >= 0
    # Uniform on [0, 1): mean ½ ± 5 / sqrt(12 · 2000), the standard error of a uniform mean.
    assert abs((seeds / 2**63).mean() - 0.5) < 5 / np.sqrt(12 * 2000)


def test_the_same_stream_gives_the_same_numbers_in_another_process() -> None:
    code = (
        "from polariscope.core.seeds import *; "
        "print(derive(7, 'order', 3), generator(7, 'order', 3).integers(2**60))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={"PYTHONHASHSEED": "1"}
    )
    assert output.stdout.split() == [
        str(derive(7, "order", 3)),
        str(generator(7, "order", 3).integers(2**60)),
    ]


def test_streams_are_uncorrelated() -> None:
    streams = [generator(0, name).standard_normal(10_000) for name in ("a", "b", 0, 1)]
    for x, y in itertools.combinations(streams, 2):
        assert abs(np.corrcoef(x, y)[0, 1]) < 5 / np.sqrt(10_000)  # standard error of a null correlation


def test_what_an_index_draws_does_not_depend_on_the_others() -> None:
    indices = np.array([3, 10**9, 0, 3])
    for draw in (random_words, uniforms, random_bytes, random_integers):
        every = draw(0, "noise", indices=indices, width=21)
        assert every.shape == (4, 21)
        np.testing.assert_array_equal(every[0], every[3])
        np.testing.assert_array_equal(every[[1]], draw(0, "noise", indices=indices[1:2], width=21))
        assert (every[0] != every[2]).any()
        assert (every != draw(1, "noise", indices=indices, width=21)).any()


def test_wide_samples_have_counters_of_their_own() -> None:
    width = 2**20 + 5
    first, second = random_words(0, "wide", indices=np.array([0, 1]), width=width)
    assert not np.isin(first[-5:], second[:10]).any()


def test_bytes_and_integers_are_the_bits_of_the_words() -> None:
    bits = random_words(0, "noise", indices=np.arange(3), width=2)
    assert random_bytes(0, "noise", indices=np.arange(3), width=9)[1, 8] == bits[1, 1] & np.uint64(255)
    assert random_integers(0, "noise", indices=np.arange(3), width=4)[2, 1] == bits[2, 0] >> np.uint64(32)


def test_uniform_numbers_are_uniform() -> None:
    draws = np.sort(uniforms(0, "uniform", indices=np.arange(2000), width=5).ravel())
    # Kolmogorov–Smirnov: the gap exceeds 2 / √n with probability 0.0007.
    assert np.abs(draws - np.arange(1, 10_001) / 10_000).max() < 2 / np.sqrt(10_000)
    assert draws[0] > 0
    assert draws[-1] < 1


@pytest.mark.parametrize(
    ("seed", "words"),
    [(math.nan, "be an integer, got nan"), ("a", "be an integer, got 'a'"), (1.5, "be an integer, got 1.5"),
     (True, "be an integer, got True"), (-1, "not be negative, got -1")],
)  # fmt: skip
def test_a_seed_is_an_integer_of_at_least_0(seed: object, words: str) -> None:
    with pytest.raises(InputError, match=f"seed must {words}"):
        check_seed(seed)


def test_integers_of_numpy_and_of_any_size_are_seeds() -> None:
    check_seed(np.int64(3))
    assert derive(2**70, "noise") != derive(0, "noise")
