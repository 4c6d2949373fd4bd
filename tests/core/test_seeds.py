"""Independent streams of randomness from one seed."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np

from polariscope.core.seeds import derive, generator


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
