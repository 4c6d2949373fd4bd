"""Choice and check of the likelihood, and the three numbers of ``size``, on tables whose nature is known.

    python benchmarks/likelihoods.py [--seeds 3] [--sizes]

Each simulated table has three factors behind 30 columns. It is trained with the likelihood that is chosen for it and
with wrong ones. Each row shows the choice, the number of latents in use of 10, the dispersion of held-out residuals,
and how many seeds have the note that another likelihood fits better. The right likelihood should have none, a wrong one
all. The constants of the check were set before this file existed, so every row is a test. Two tables are real: digits
in black and white (1,797 × 64, 0 and 1), and the keywords in each file of Python's standard library (counts).

``--sizes`` prints instead what ``size`` answers for curved data: its answer, the latents in use and the intrinsic
dimension. About six minutes of one core each.
"""

from __future__ import annotations

import argparse
import io
import keyword
import sysconfig
import tempfile
import tokenize
from collections import Counter
from pathlib import Path

import numpy as np
from jaxtyping import Float
from sklearn.datasets import load_digits

import polariscope as ps
from polariscope.training.likelihood import likelihood_of

N_SAMPLES, N_COLUMNS, N_FACTORS = 1000, 30, 3
DISPERSION = 2.0
"""θ of the negative-binomial tables: the variance is m + m²/θ."""
MIN_KEYWORDS = 20
"""Keywords of a file below which it is left out."""
Table = Float[np.ndarray, "sample feature"]


def signal(seed: int) -> Table:
    """Return the noiseless part of a table, with variance 1 in each column."""
    draw = np.random.default_rng(seed)
    loadings = draw.normal(size=(N_FACTORS, N_COLUMNS)) / np.sqrt(N_FACTORS)
    return draw.normal(size=(N_SAMPLES, N_FACTORS)) @ loadings


def simulated(kind: str, seed: int) -> Table:
    """Return a table of one kind: counts have a mean of about 5."""
    draw, logits = np.random.default_rng(seed + 1000), signal(seed)
    means = 4 * np.exp(0.6 * logits)
    if kind == "negative-binomial":
        return draw.poisson(draw.gamma(DISPERSION, means / DISPERSION)).astype(np.float32)
    if kind == "poisson":
        return draw.poisson(means).astype(np.float32)
    if kind == "bernoulli":
        return (draw.random(logits.shape) < 1 / (1 + np.exp(-2 * logits))).astype(np.float32)
    return (logits + 0.5 * draw.normal(size=logits.shape)).astype(np.float32)


def keywords() -> Table:
    """Return the number of each keyword of Python in each file of its standard library."""
    rows = []
    for file in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" in file.parts or "test" in file.parts:
            continue
        try:
            tokens = tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline)
            counts = Counter(token.string for token in tokens if token.type == tokenize.NAME)
        except (UnicodeDecodeError, SyntaxError, tokenize.TokenError):
            continue  # files that are meant to be broken
        row = [counts[name] for name in keyword.kwlist]
        if sum(row) >= MIN_KEYWORDS:
            rows.append(row)
    table = np.array(rows, dtype=np.float32)
    return table[:, table.std(axis=0) > 0]


def checked(table: Table, likelihood: str, seed: int) -> tuple[int, float, str]:
    """Return the latents in use, the dispersion of held-out residuals and the code of the misfit."""
    with tempfile.TemporaryDirectory() as folder:
        data = ps.from_arrays(table)
        ps.train(data, n_latents=10, likelihood=likelihood, seed=seed, out=folder, threads=1)
        regime = ps.open_run(folder, data).regime()
        return regime.verdict.n_in_use, regime.fit.dispersion, regime.fit.misfit


def print_checks(n_seeds: int) -> None:
    """Print a row for each table and likelihood."""
    rivals = {
        "negative-binomial": ("negative-binomial", "poisson", "gaussian"),
        "poisson": ("poisson", "negative-binomial", "gaussian"),
        "bernoulli": ("bernoulli", "gaussian"),
        "gaussian": ("gaussian",),
    }
    tables = {(kind, kind): [simulated(kind, seed) for seed in range(n_seeds)] for kind in rivals}
    tables["digits in black and white", "bernoulli"] = [(load_digits().data > 7).astype(np.float32)]
    tables["keywords of the standard library", "negative-binomial"] = [keywords()]
    print("| table | chosen | trained with | in use of 10 | dispersion | notes |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (name, kind), members in tables.items():
        chosen = ", ".join(sorted({likelihood_of(ps.from_arrays(table)).name for table in members}))
        for likelihood in rivals[kind]:
            results = [checked(table, likelihood, seed) for seed, table in enumerate(members)]
            in_use = ", ".join(str(n) for n, _, _ in results)
            dispersion = ", ".join(f"{value:.2f}" for _, value, _ in results)
            notes = sum(bool(misfit) for _, _, misfit in results)
            shape = " × ".join(f"{n:,}" for n in members[0].shape)
            print(
                f"| {name} ({shape}) | {chosen} | {likelihood} | {in_use} | {dispersion} | {notes} of {len(members)} |",
                flush=True,
            )


def waves(n_samples: int, seed: int) -> Table:
    """Return waves with amplitude, frequency, phase and slope, at 30 times, with noise."""
    draw, times = np.random.default_rng(seed), np.linspace(0, 1, 30)
    low, high = np.array([[0.5, 1, 0, -1], [1.5, 2, np.pi, 1]])
    amplitude, frequency, phase, slope = draw.uniform(low, high, (n_samples, 4)).T[:, :, None]
    values = amplitude * np.sin(2 * np.pi * frequency * times + phase) + slope * times
    return (values + 0.05 * draw.standard_normal(values.shape)).astype(np.float32)


def bent(n_samples: int, seed: int) -> Table:
    """Return a curved surface of six dimensions in eight directions of 20 columns."""
    draw = np.random.default_rng(seed)
    z = draw.uniform(-1, 1, (n_samples, 6))
    x = np.hstack([z, z[:, :1] ** 2, np.sin(2 * z[:, 1:2])]) @ draw.standard_normal((8, 20))
    return (x + 0.01 * draw.standard_normal(x.shape)).astype(np.float32)


def print_sizes(n_seeds: int) -> None:
    """Print the three numbers of ``size`` for curved data."""
    print("| data | coordinates | seed | answer | in use in the fit | intrinsic dimension |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, make, coordinates in (("waves", waves, 4), ("curved surface", bent, 6)):
        for seed in range(n_seeds):
            size = ps.size(make(3000, seed), seed=seed, threads=1)
            cells = [size.answer, *(text for _, text in size.numbers[1:])]
            print(f"| {name} | {coordinates} | {seed} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sizes", action="store_true")
    arguments = parser.parse_args()
    print_sizes(arguments.seeds) if arguments.sizes else print_checks(arguments.seeds)


if __name__ == "__main__":
    main()
