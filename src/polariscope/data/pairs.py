"""Pairs of observations a small change of the factors apart."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Literal

import numpy as np
from annotated_types import Gt
from jaxtyping import Bool, Float, Int

from polariscope.core.errors import Argument, InputError
from polariscope.core.options import Advice, checked
from polariscope.data.dataset import AbstractDataset

TransitionKind = Literal["laplace", "uniform", "share"]


@checked
@dataclasses.dataclass(frozen=True)
class Transition:
    r"""Draws, for each observation, another whose factors differ in some and agree in others.

    * ``laplace``: every ordinal or cyclic factor of n values moves from i to k with a truncated Laplace probability,

      .. math:: P(i \to k) \propto e^{-\lambda\, d(i, k) / \log n}, \qquad k = 0 \dots n - 1,

      with d(i, k) the number of grid positions between them; categorical factors stay. Where nothing moved, one
      factor that can is made to.
    * ``uniform``: 1 to K − 1 of the K factors, chosen at random, get another value at random; the others stay.
    * ``share``: 1 to K − 1 of the factors, chosen at random, are kept; every other is drawn anew, and may by chance
      come out as it was.

    Partners are drawn from the whole grid: an observation held out from training can be the partner of one that is
    not.

    References: Klindt et al., Towards Nonlinear Disentanglement in Natural Data with Temporal Sparse Coding
    (klindt2021; laplace and uniform, as in the authors' code); Shu et al., Weakly Supervised
    Disentanglement with Guarantees (shu2020; share); zietlow2022 only names the
    methods. Ours: cyclic factors take the shorter way around, and how many factors are shared is
    uniform.
    """

    kind: TransitionKind = "laplace"
    """How the partner's factors are drawn."""
    rate: Annotated[float, Gt(0), Advice("larger means smaller steps")] = 1.0
    """Rate λ of the Laplace steps: the larger, the smaller they are."""

    @staticmethod
    def check(data: AbstractDataset) -> None:
        """Pairs are found by their factors, so these must form a full grid."""
        sizes = data.factor_sizes
        reason = None
        if not sizes:
            reason = "has no factors"
        elif 0 in sizes or len(data) != math.prod(sizes):
            reason = "has continuous factors or lacks some combinations"
        else:
            try:
                data.index_of(data.factors([0]))
            except InputError:
                reason = "does not find observations by their factors"
        if reason is not None:
            raise InputError(
                problem="pairs need a dataset whose discrete factors form a full grid, such as sprites",
                remedy=f"{data.name} {reason}",
            )

    def check_moves(self, data: AbstractDataset) -> None:
        """This kind of transition must leave something to change, and something to share."""
        n_varying = sum(size > 1 for size in data.factor_sizes)
        if self.kind == "laplace" and not any(self._moving(data)):
            raise InputError(
                problem=(
                    f"a laplace transition moves ordinal and cyclic factors, and {data.name} has none "
                    "with two values or more"
                ),
                remedy=("use ", Argument("transition_kind", "uniform")),
            )
        if self.kind != "laplace" and n_varying < 2:
            raise InputError(
                problem=(
                    f"a {self.kind} transition needs at least two factors that vary, and {data.name} has "
                    f"{n_varying}"
                )
            )

    def draw(
        self, data: AbstractDataset, indices: Int[np.ndarray, " sample"], generator: np.random.Generator
    ) -> tuple[Int[np.ndarray, " sample"], Bool[np.ndarray, "sample factor"]]:
        """Index of a partner for each index, and which factors the two share.

        For ``share`` these are the factors that were kept, whatever the others came out as; otherwise all that agree.
        """
        factors = data.factors(indices)
        n_factors = len(data.factor_sizes)
        if self.kind == "laplace":
            moved = self._laplace(factors, data, generator)
            return data.index_of(moved), moved == factors
        chosen = _random_sets(len(factors), n_factors, generator)
        sizes = np.array(data.factor_sizes)
        if self.kind == "uniform":
            # A shift by 1 … n − 1 gives every other value the same chance; a factor of one value stays.
            shift = generator.integers(1, np.maximum(sizes, 2), size=factors.shape)
            moved = np.where(chosen, (factors + shift) % sizes, factors)
            return data.index_of(moved), moved == factors
        fresh = generator.integers(0, sizes, size=factors.shape)
        return data.index_of(np.where(chosen, factors, fresh)), chosen

    def probabilities(self, size: int, is_cyclic: bool) -> Float[np.ndarray, "start end"]:
        """P(i → k) of a Laplace step of a factor with ``size`` ≥ 2 values; rows sum to 1."""
        distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
        if is_cyclic:
            distance = np.minimum(distance, size - distance)
        weights = np.exp(-self.rate * distance / math.log(size))
        return weights / weights.sum(axis=1, keepdims=True)

    @staticmethod
    def _moving(data: AbstractDataset) -> list[bool]:
        """Which factors a Laplace step can move."""
        return [
            kind in ("ordinal", "cyclic") and size > 1
            for size, kind in zip(data.factor_sizes, data.factor_kinds, strict=True)
        ]

    def _laplace(
        self, factors: Int[np.ndarray, "sample factor"], data: AbstractDataset, generator: np.random.Generator
    ) -> Int[np.ndarray, "sample factor"]:
        columns = np.flatnonzero(self._moving(data))
        tables = {
            column: self.probabilities(data.factor_sizes[column], data.factor_kinds[column] == "cyclic")
            for column in columns
        }
        moved = factors.copy()
        for column, table in tables.items():
            moved[:, column] = _choose(table[factors[:, column]], generator)
        still = (moved == factors).all(axis=1)
        forced = generator.choice(columns, size=len(factors))
        for column, table in tables.items():
            rows = np.flatnonzero(still & (forced == column))
            others = table * (1 - np.eye(len(table)))
            moved[rows, column] = _choose(others[factors[rows, column]], generator)
        return moved


def _random_sets(
    n_samples: int, n_factors: int, generator: np.random.Generator
) -> Bool[np.ndarray, "sample factor"]:
    """For each sample a set of 1 … K − 1 factors: its size uniform, then its members."""
    ranks = generator.random((n_samples, n_factors)).argsort(axis=1).argsort(axis=1)
    return ranks < generator.integers(1, max(2, n_factors), size=(n_samples, 1))


def _choose(
    weights: Float[np.ndarray, "sample value"], generator: np.random.Generator
) -> Int[np.ndarray, " sample"]:
    """One value for each row, with probability proportional to its weight."""
    cumulative = weights.cumsum(axis=1)
    # The draw lies in [0, total): a value of weight 0 is passed over, wherever it is.
    draws = generator.random((len(weights), 1)) * cumulative[:, -1:]
    return (cumulative <= draws).sum(axis=1)
