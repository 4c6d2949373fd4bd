"""Distance to orthogonality: the linear assignment against the integer program it replaces, side by side.

Both find the signed permutation closest to the same random rotations: ours by linear assignment, the published way
(zietlow2022 Eq. 3.29) as a mixed-integer program with scipy's solver. They must agree on every one. Then the whole
measure on the conv decoder: forward Jacobians, d passes for a whole batch, against backward ones, a pass for each
output (measured on 64 of them and multiplied). What is measured is processor time.

Target: assignment at least 50x faster than the integer program.

    python benchmarks/geometry.py [--rotations 10] [--image-size 64] [--codes 8]
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy.optimize import Bounds, LinearConstraint, milp

from polariscope.geometry.jacobian import decoder_jacobian
from polariscope.geometry.orthogonality import decoder_orthogonality, haar_rotations
from polariscope.models.likelihoods.bernoulli import BernoulliLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.conv import ConvNet
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.numerics.assignment import closest_signed_permutation

TARGET = 50.0
N_ROWS = 64


def integer_program(V: np.ndarray) -> np.ndarray:
    """The signed permutation that minimises Σ|V − P|, with P = P⁺ − P⁻ binary and Σ D bounding the differences."""
    d = len(V)
    n, eye = d * d, np.eye(d * d)
    sums = np.vstack([np.kron(np.eye(d), np.ones(d)), np.kron(np.ones(d), np.eye(d))])
    found = milp(
        np.concatenate([np.zeros(2 * n), np.ones(n)]),
        integrality=np.concatenate([np.ones(2 * n), np.zeros(n)]),
        bounds=Bounds(0, np.concatenate([np.ones(2 * n), np.full(n, np.inf)])),
        constraints=[
            LinearConstraint(np.hstack([eye, -eye, -eye]), -np.inf, V.ravel()),
            LinearConstraint(np.hstack([-eye, eye, -eye]), -np.inf, -V.ravel()),
            LinearConstraint(np.hstack([sums, sums, np.zeros((2 * d, n))]), 1, 1),
        ],
    )
    return (found.x[:n] - found.x[n : 2 * n]).round().reshape(d, d)


def seconds(call: Callable[[], Any], repeats: int = 1) -> float:
    """Processor time of one call."""
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats


def assignment_table(n_rotations: int) -> Table:
    table = Table(title=f"Closest signed permutation, median of {n_rotations} random rotations")
    for column in ("latents", "integer program", "assignment", "faster", "agree", f"target {TARGET:.0f}x"):
        table.add_column(column, justify="right")
    for d in (2, 5, 10):
        rotations = haar_rotations(n_rotations, d, np.random.default_rng(d))
        agree, ratios, programs, ours = 0, [], [], []
        closest_signed_permutation(rotations[0])  # imports scipy
        for V in rotations:
            programs.append(seconds(functools.partial(integer_program, V)))
            ours.append(seconds(functools.partial(closest_signed_permutation, V), repeats=100))
            ratios.append(programs[-1] / ours[-1])
            agree += int(np.array_equal(integer_program(V), closest_signed_permutation(V)))
        ratio = statistics.median(ratios)
        table.add_row(
            str(d),
            f"{statistics.median(programs) * 1e3:.2f} ms",
            f"{statistics.median(ours) * 1e6:.0f} µs",
            f"{ratio:.0f}x",
            f"{agree}/{n_rotations}",
            "met" if ratio >= TARGET else "missed",
        )
    return table


def backward_jacobian(model: Model, code: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Rows of the Jacobian at one code, a backward pass for each of ``outputs``."""
    z = torch.from_numpy(code[None]).requires_grad_()
    values = model.decode(z).mean.flatten()
    return torch.stack([torch.autograd.grad(values[o], z, retain_graph=True)[0][0] for o in outputs]).numpy()


def jacobian_table(image_size: int, n_codes: int) -> Table:
    blueprint = Blueprint(
        ConvNet(),
        DiagonalPosterior(),
        IsotropicPrior(),
        BernoulliLikelihood(),
        10,
        (1, image_size, image_size),
    )
    model = blueprint.build(0).to_device("cpu")
    codes = np.random.default_rng(0).standard_normal((n_codes, 10)).astype(np.float32)
    decoder_jacobian(model, codes[:1])  # loads torch's forward mode
    forward = seconds(lambda: decoder_jacobian(model, codes)) / n_codes
    some = np.arange(0, image_size**2, image_size**2 // N_ROWS)
    backward = seconds(lambda: backward_jacobian(model, codes[0], some)) / len(some) * image_size**2
    whole = seconds(lambda: decoder_orthogonality(model, codes)) / n_codes
    gap = np.abs(backward_jacobian(model, codes[0], some) - decoder_jacobian(model, codes[:1])[0, some]).max()
    table = Table(title=f"Jacobian of the conv decoder, {image_size}×{image_size}, 10 latents, per code")
    for column in ("backward", "forward", "faster", "largest difference", "whole measure"):
        table.add_column(column, justify="right")
    table.add_row(
        f"{backward * 1e3:.0f} ms",
        f"{forward * 1e3:.1f} ms",
        f"{backward / forward:.0f}x",
        f"{gap:.1e}",
        f"{whole * 1e3:.1f} ms",
    )
    return table


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rotations", type=int, default=10)
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--codes", type=int, default=8)
    arguments = parser.parse_args()
    Console().print(assignment_table(arguments.rotations))
    Console().print(jacobian_table(arguments.image_size, arguments.codes))


if __name__ == "__main__":
    main()
