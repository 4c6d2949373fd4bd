"""Pairs of observations that differ by a small change of the factors."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Literal

import numpy as np
from annotated_types import Gt
from jaxtyping import Bool, Float, Int

from polariscope.core import seeds
from polariscope.core.errors import Argument, InputError
from polariscope.core.option_values import Advice
from polariscope.core.options import checked
from polariscope.data.dataset import AbstractDataset, AbstractGridDataset, FactorKind
from polariscope.data.grid import TRIES, FactorGrid

TransitionKind = Literal["laplace", "uniform", "share", "share-one"]
ROUNDS = 8
"""Number of rounds in which missing partners are drawn again, before all existing combinations are enumerated."""
MAX_SHARE_OF_ITSELF = 0.5
"""Maximum share of draws in which an observation is its own partner, as on the smallest grid, 2 × 2."""
N_CHECKED = 1000
"""Number of draws from which that share is estimated."""


@checked
@dataclasses.dataclass(frozen=True)
class Transition:
    r"""A distribution of pairs: for each observation, a partner that differs in some factors and agrees in others.

    * ``laplace``: every ordinal or cyclic factor of n values moves from i to k with a truncated Laplace probability,

      .. math:: P(i \to k) \propto e^{-\lambda\, d(i, k) / \log n}, \qquad k = 0 \dots n - 1,

      with d(i, k) the number of grid positions between them; categorical factors do not change. If no factor moved,
      one that can move is forced to.
    * ``uniform``: 1 to K − 1 of the K factors, selected at random, get another value at random; the others do not
      change.
    * ``share``: 1 to K − 1 of the factors, selected at random, are shared. All others are drawn again, and can get
      the same value by chance.
    * ``share-one``: as ``share`` with exactly one factor, each of the K with the same probability.

    Partners are drawn from all of the data, so a held-out observation can be the partner of a training observation.

    If the data are not a full grid with every combination of factors exactly once, partners are existing observations.

    * ``laplace`` and ``uniform``: the probabilities above, restricted to combinations that occur and differ from that
      of the observation, and divided by their sum. Every observation must have such a partner.
    * ``share`` and ``share-one``: after the selection of the shared factors, one of the observations that agree in
      these, all with the same probability, including the observation itself. This is a draw from the data given
      those factors.

    If a combination occurs several times, each of its observations has the same probability. On a full grid both
    definitions agree.

    References: Klindt et al., Towards Nonlinear Disentanglement in Natural Data with Temporal Sparse Coding
    (klindt2021; laplace and uniform, as in the authors' code); Shu et al., Weakly Supervised
    Disentanglement with Guarantees (shu2020; share, and share-one as in the authors' code). zietlow2022 only names the
    methods. Differences: cyclic factors take the shorter way around, and the number of shared factors is uniform.
    """

    kind: TransitionKind = "laplace"
    """Distribution of the partner's factors."""
    rate: Annotated[float, Gt(0), Advice("larger means smaller steps")] = 1.0
    """Rate λ of the Laplace steps; larger rates mean smaller steps."""

    @staticmethod
    def check(data: AbstractDataset) -> None:
        """Raise an error unless all factors are discrete, since pairs are drawn by their factors."""
        reason = None
        if not data.factor_sizes:
            reason = "has no factors"
        elif 0 in data.factor_sizes:
            reason = "has continuous factors"
        if reason is not None:
            raise InputError(
                problem="pairs need a dataset with discrete factors, such as sprites",
                remedy=f"{data.name} {reason}",
            )

    def check_moves(self, data: AbstractDataset) -> None:
        """Raise an error unless this kind of transition can both change and share factors."""
        n_varying = sum(size > 1 for size in data.factor_sizes)
        if self.kind == "laplace" and not any(_moving(data.factor_sizes, data.factor_kinds)):
            raise InputError(
                problem=(
                    f"a laplace transition moves ordinal and cyclic factors, and {data.name} has no such factor "
                    "with two values or more"
                ),
                remedy=(
                    "declare the factors that have an order with ",
                    Argument("factor_kinds"),
                    ", or use ",
                    Argument("transition_kind", "uniform"),
                ),
            )
        if self.kind != "laplace" and n_varying < 2:
            raise InputError(
                problem=(
                    f"a {self.kind} transition requires at least two factors that vary, and {data.name} has "
                    f"{n_varying}"
                )
            )
        self.on(data).check_partners()

    def draw(
        self, data: AbstractDataset, indices: Int[np.ndarray, " sample"], generator: np.random.Generator
    ) -> tuple[Int[np.ndarray, " sample"], Bool[np.ndarray, "sample factor"]]:
        """Return the index of a partner for each index, and a mask of the factors that the two share.

        If the transition selects shared factors, only these are marked. Otherwise all factors that agree are.
        """
        return self.on(data).draw(indices, generator)

    def on(self, data: AbstractDataset) -> Pairing:
        """Bind the transition to a dataset; its grid of factors is computed once."""
        # A rendered grid computes indices from factors, so its combinations need not be listed.
        grid = None if isinstance(data, AbstractGridDataset) else FactorGrid.of(data)
        return Pairing(self, data, grid)

    @property
    def keeps(self) -> bool:
        """True if some factors are shared and all others are drawn again."""
        return self.kind in ("share", "share-one")

    def propose(
        self,
        codes: Int[np.ndarray, "sample factor"],
        sizes: tuple[int, ...],
        kinds: tuple[FactorKind, ...],
        generator: np.random.Generator,
    ) -> tuple[Int[np.ndarray, "sample factor"], Bool[np.ndarray, "sample factor"]]:
        """Draw the codes of a partner for each combination of a full grid, and a mask of the factors they share."""
        if self.kind == "laplace":
            moved = self._laplace(codes, sizes, kinds, generator)
            return moved, moved == codes
        selected = self.choose(len(codes), len(sizes), generator)
        if self.kind == "uniform":
            # A shift by 1 … n − 1 gives every other value the same chance; a factor of one value stays.
            shift = generator.integers(1, np.maximum(sizes, 2), size=codes.shape)
            moved = np.where(selected, (codes + shift) % sizes, codes)
            return moved, moved == codes
        redrawn = generator.integers(0, sizes, size=codes.shape)
        return np.where(selected, codes, redrawn), selected

    def choose(
        self, n_samples: int, n_factors: int, generator: np.random.Generator
    ) -> Bool[np.ndarray, "sample factor"]:
        """Select the factors of each sample that are shared or, in a ``uniform`` transition, get another value."""
        if self.kind == "share-one":
            return np.eye(n_factors, dtype=bool)[generator.integers(n_factors, size=n_samples)]
        return _random_sets(n_samples, n_factors, generator)

    def log_probability(
        self,
        code: Int[np.ndarray, " factor"],
        ends: Int[np.ndarray, "end factor"],
        sizes: tuple[int, ...],
        kinds: tuple[FactorKind, ...],
    ) -> Float[np.ndarray, " end"]:
        """Return log P(partner has the codes ``ends``) of a ``laplace`` or ``uniform`` transition on the full grid."""
        differs = ends != code
        if self.kind == "uniform":
            return _log_uniform(differs, sizes)
        moving = np.array(_moving(sizes, kinds))
        total, only = np.zeros(len(ends)), np.full(len(ends), -np.inf)
        stay = -math.log(moving.sum())
        for column in np.flatnonzero(moving):
            row = self._log_probabilities(sizes[column], kinds[column] == "cyclic")[code[column]]
            others = np.logaddexp.reduce(np.delete(row, code[column]))
            total += row[ends[:, column]]
            stay += row[code[column]]
            alone = differs[:, column] & (differs.sum(axis=1) == 1)
            only[alone] = row[ends[alone, column]] - others
        # Either the factors moved by themselves, or none did and the one that differs was forced to move.
        log_probability = np.logaddexp(total, stay + only)
        return np.where(differs[:, ~moving].any(axis=1) | ~differs.any(axis=1), -np.inf, log_probability)

    def probabilities(self, size: int, is_cyclic: bool) -> Float[np.ndarray, "start end"]:
        """Return P(i → k) of a Laplace step of a factor with ``size`` ≥ 2 values; rows sum to 1."""
        # If the rate is large, all weights except that of staying underflow to 0; see _log_probabilities.
        weights = np.exp(-self.rate * _distances(size, is_cyclic) / math.log(size))
        return weights / weights.sum(axis=1, keepdims=True)

    def _log_probabilities(self, size: int, is_cyclic: bool) -> Float[np.ndarray, "start end"]:
        """Return the logarithms of the probabilities, which stay finite if the rate is large."""
        logs = -self.rate * _distances(size, is_cyclic) / math.log(size)
        return logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)

    def _laplace(
        self,
        factors: Int[np.ndarray, "sample factor"],
        sizes: tuple[int, ...],
        kinds: tuple[FactorKind, ...],
        generator: np.random.Generator,
    ) -> Int[np.ndarray, "sample factor"]:
        columns = np.flatnonzero(_moving(sizes, kinds))
        tables = {column: self.probabilities(sizes[column], kinds[column] == "cyclic") for column in columns}
        moved = factors.copy()
        for column, table in tables.items():
            moved[:, column] = _choose(table[factors[:, column]], generator)
        # A pair must differ in at least one factor.
        still = (moved == factors).all(axis=1)
        forced = generator.choice(columns, size=len(factors))
        for column, table in tables.items():
            rows = np.flatnonzero(still & (forced == column))
            others = table * (1 - np.eye(len(table)))
            if not others.any(axis=1).all():  # the rate is so large that all other probabilities are 0
                others = (_distances(len(table), kinds[column] == "cyclic") == 1).astype(float)
            moved[rows, column] = _choose(others[factors[rows, column]], generator)
        return moved


@dataclasses.dataclass(frozen=True, eq=False)
class Pairing:
    """A transition on one dataset."""

    transition: Transition
    data: AbstractDataset
    grid: FactorGrid | None
    """Combinations that occur; None if all do, in the order of the dataset."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.data.factor_sizes if self.grid is None else self.grid.sizes

    def draw(
        self, indices: Int[np.ndarray, " sample"], generator: np.random.Generator
    ) -> tuple[Int[np.ndarray, " sample"], Bool[np.ndarray, "sample factor"]]:
        """Draw partners as :meth:`Transition.draw` does."""
        if self.grid is None:
            moved, shared = self._propose(self.data.factors(indices), generator)
            return self.data.index_of(moved), shared
        codes = self.grid.codes[indices]
        if self.grid.is_full:
            moved, shared = self._propose(codes, generator)
            return self.grid.order[self.grid.cells(moved)], shared
        if self.transition.keeps:
            shared = self.transition.choose(len(codes), codes.shape[1], generator)
            return self.grid.sample_matching(codes, shared, generator), shared
        cells = self._existing(codes, generator)
        return self.grid.sample_from(cells, generator), self.grid.cell_codes[cells] == codes

    def _propose(
        self, codes: Int[np.ndarray, "sample factor"], generator: np.random.Generator
    ) -> tuple[Int[np.ndarray, "sample factor"], Bool[np.ndarray, "sample factor"]]:
        return self.transition.propose(codes, self.sizes, self.data.factor_kinds, generator)

    def _existing(
        self, codes: Int[np.ndarray, "sample factor"], generator: np.random.Generator
    ) -> Int[np.ndarray, " sample"]:
        """Draw a cell for each row from the proposals, given that the cell exists and differs from the row.

        Proposals are drawn again until one exists. Rows without a partner after all rounds draw from the list of all
        cells with its probabilities. Both have the same distribution, so their mixture has it too.
        """
        assert self.grid is not None
        cells, kinds = np.full(len(codes), -1), self.data.factor_kinds
        waiting = np.arange(len(codes))
        for _ in range(ROUNDS):
            moved, same = self._propose(np.repeat(codes[waiting], TRIES, axis=0), generator)
            candidates = np.where(same.all(axis=1), -1, self.grid.cells(moved)).reshape(-1, TRIES)
            # argmax is the first proposal that exists.
            cells[waiting] = candidates[np.arange(len(waiting)), (candidates >= 0).argmax(axis=1)]
            waiting = waiting[(candidates < 0).all(axis=1)]
            if not len(waiting):
                break
        for row in waiting:
            # Only the combinations that exist, with their exact probabilities.
            logs = self.transition.log_probability(codes[row], self.grid.cell_codes, self.sizes, kinds)
            cells[row] = _choose(np.exp(logs - logs.max())[np.newaxis], generator)[0]
        return cells

    def check_partners(self) -> None:
        """Raise an error unless every observation has a partner."""
        if self.grid is None or self.grid.is_full:
            return
        n_alone = 0 if self.transition.keeps else self._n_alone()
        if n_alone:
            requirement = {
                "laplace": "that agrees in the categorical factors and differs in another",
                "uniform": "that agrees in one factor and differs in another",
            }[self.transition.kind]
            raise InputError(
                problem=(
                    f"a {self.transition.kind} transition requires, for every observation of {self.data.name}, another "
                    f"{requirement}"
                ),
                got=f"{n_alone} of {len(self.grid.order)} without",
                remedy=("leave them out, or use ", Argument("transition_kind", "share")),
            )
        if self.transition.keeps and (share := self._share_of_itself()) > MAX_SHARE_OF_ITSELF:
            raise InputError(
                problem=(
                    f"a {self.transition.kind} transition requires observations of {self.data.name} that agree in some "
                    f"factors; for {share:.0%} of the draws only the observation itself does"
                ),
                remedy="pass factors with fewer values, or more data",
            )

    def _n_alone(self) -> int:
        """Count the observations without a partner in a laplace or uniform transition."""
        assert self.grid is not None
        if self.transition.kind == "laplace":
            alone = self.grid.cells_sharing(~np.array(_moving(self.sizes, self.data.factor_kinds))) == 1
        else:
            sharing = [self.grid.cells_sharing(each) for each in np.eye(len(self.sizes), dtype=bool)]
            # A cell without a partner is alone in every single factor.
            alone = np.max(sharing, axis=0) == 1
        return int(np.diff(self.grid.starts)[alone].sum())

    def _share_of_itself(self) -> float:
        """Estimate how often an observation is its own partner."""
        generator = seeds.generator(0, "pairs", "check")
        indices = generator.integers(len(self.data), size=N_CHECKED)
        partners, _ = self.draw(indices, generator)
        return float((partners == indices).mean())


def _moving(sizes: tuple[int, ...], kinds: tuple[FactorKind, ...]) -> list[bool]:
    """Return, for each factor, whether a Laplace step can move it."""
    return [kind in ("ordinal", "cyclic") and size > 1 for size, kind in zip(sizes, kinds, strict=True)]


def _log_uniform(
    differs: Bool[np.ndarray, "end factor"], sizes: tuple[int, ...]
) -> Float[np.ndarray, " end"]:
    """Return the log-probabilities of a ``uniform`` transition.

    A factor with a single value can be selected to change, and then keeps its value.
    """
    n_factors, n_constant = len(sizes), sum(size == 1 for size in sizes)
    chance = np.zeros(n_factors + 1)
    for n_changed in range(1, n_factors + 1):
        for n_constant_selected in range(n_constant + 1):
            n_selected = n_changed + n_constant_selected
            if n_selected < n_factors:
                ways = math.comb(n_constant, n_constant_selected) / math.comb(n_factors, n_selected)
                chance[n_changed] += ways / (n_factors - 1)
    with np.errstate(divide="ignore"):
        log_chance = np.log(chance)
    # A factor with a single value never differs, so any number serves for it.
    others = np.log(np.maximum(np.array(sizes) - 1, 1))
    return log_chance[differs.sum(axis=1)] - differs @ others


def _distances(size: int, is_cyclic: bool) -> Int[np.ndarray, "start end"]:
    """Return the number of positions between the values of a factor; on a circle, along the shorter way."""
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return np.minimum(distance, size - distance) if is_cyclic else distance


def _random_sets(
    n_samples: int, n_factors: int, generator: np.random.Generator
) -> Bool[np.ndarray, "sample factor"]:
    """Draw a set of 1 … K − 1 factors for each sample: its size is uniform, then its members are."""
    # Sorting twice gives ranks; those below a random size form the set.
    ranks = generator.random((n_samples, n_factors)).argsort(axis=1).argsort(axis=1)
    return ranks < generator.integers(1, max(2, n_factors), size=(n_samples, 1))


def _choose(
    weights: Float[np.ndarray, "sample value"], generator: np.random.Generator
) -> Int[np.ndarray, " sample"]:
    """Draw one value for each row, with probability proportional to its weight."""
    cumulative = weights.cumsum(axis=1)
    # The draw lies in [0, total), so a value of weight 0 is never selected.
    draws = generator.random((len(weights), 1)) * cumulative[:, -1:]
    return (cumulative <= draws).sum(axis=1)
