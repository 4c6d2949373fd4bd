"""Pairs of observations a small change of the factors apart."""

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
"""How often partners that do not exist are drawn again, so many at once, before all that exist are looked at."""
MAX_SHARE_OF_ITSELF = 0.5
"""Share of draws that may give an observation itself, as on the smallest grid, 2 × 2."""
N_CHECKED = 1000
"""Draws from which that share is taken."""


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
    * ``share-one``: as ``share`` with exactly one factor, each of the K with the same chance.

    Partners are drawn from all of the data: an observation held out from training can be the partner of one that is
    not.

    Where not every combination of the factors is there exactly once, partners are among the observations that exist.

    * ``laplace`` and ``uniform``: the probabilities above, restricted to combinations that occur and differ from the
      observation's, and divided by their sum. Every observation must have such a partner.
    * ``share`` and ``share-one``: after the choice of the factors that are kept, one of the observations that agree in
      these, each with the same chance, itself included: a draw from the data given those factors.

    Of a combination that occurs several times, each observation has the same chance. On a full grid all this is as
    above.

    References: Klindt et al., Towards Nonlinear Disentanglement in Natural Data with Temporal Sparse Coding
    (klindt2021; laplace and uniform, as in the authors' code); Shu et al., Weakly Supervised
    Disentanglement with Guarantees (shu2020; share, and share-one as in the authors' code); zietlow2022 only names the
    methods. Ours: cyclic factors take the shorter way around, and how many factors are shared is
    uniform.
    """

    kind: TransitionKind = "laplace"
    """How the partner's factors are drawn."""
    rate: Annotated[float, Gt(0), Advice("larger means smaller steps")] = 1.0
    """Rate λ of the Laplace steps: the larger, the smaller they are."""

    @staticmethod
    def check(data: AbstractDataset) -> None:
        """Pairs are drawn by their factors, so these must be discrete."""
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
        """This kind of transition must leave something to change, and something to share."""
        n_varying = sum(size > 1 for size in data.factor_sizes)
        if self.kind == "laplace" and not any(_moving(data.factor_sizes, data.factor_kinds)):
            raise InputError(
                problem=(
                    f"a laplace transition moves ordinal and cyclic factors, and {data.name} has none "
                    "with two values or more"
                ),
                remedy=(
                    "say which factors have an order with ",
                    Argument("factor_kinds"),
                    ", or use ",
                    Argument("transition_kind", "uniform"),
                ),
            )
        if self.kind != "laplace" and n_varying < 2:
            raise InputError(
                problem=(
                    f"a {self.kind} transition needs at least two factors that vary, and {data.name} has "
                    f"{n_varying}"
                )
            )
        self.on(data).check_partners()

    def draw(
        self, data: AbstractDataset, indices: Int[np.ndarray, " sample"], generator: np.random.Generator
    ) -> tuple[Int[np.ndarray, " sample"], Bool[np.ndarray, "sample factor"]]:
        """Index of a partner for each index, and which factors the two share.

        Where some stay, these are the shared ones, whatever the others came out as; otherwise all that agree.
        """
        return self.on(data).draw(indices, generator)

    def on(self, data: AbstractDataset) -> Pairing:
        """The same for one dataset, whose grid of factors is looked at once."""
        grid = None if isinstance(data, AbstractGridDataset) else FactorGrid.of(data)
        return Pairing(self, data, grid)

    @property
    def keeps(self) -> bool:
        """Whether some factors stay and all others drawn anew."""
        return self.kind in ("share", "share-one")

    def propose(
        self,
        codes: Int[np.ndarray, "sample factor"],
        sizes: tuple[int, ...],
        kinds: tuple[FactorKind, ...],
        generator: np.random.Generator,
    ) -> tuple[Int[np.ndarray, "sample factor"], Bool[np.ndarray, "sample factor"]]:
        """Codes of a partner for each combination of a full grid, and which factors the two share."""
        if self.kind == "laplace":
            moved = self._laplace(codes, sizes, kinds, generator)
            return moved, moved == codes
        selected = self.choose(len(codes), len(sizes), generator)
        if self.kind == "uniform":
            # A shift by 1 … n − 1 gives every other value the same chance; a factor of one value stays.
            shift = generator.integers(1, np.maximum(sizes, 2), size=codes.shape)
            moved = np.where(selected, (codes + shift) % sizes, codes)
            return moved, moved == codes
        fresh = generator.integers(0, sizes, size=codes.shape)
        return np.where(selected, codes, fresh), selected

    def choose(
        self, n_samples: int, n_factors: int, generator: np.random.Generator
    ) -> Bool[np.ndarray, "sample factor"]:
        """Which factors of each sample stay, or in a ``uniform`` transition get another value."""
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
        """log P(partner has the codes ``ends``) of a ``laplace`` or ``uniform`` transition on the full grid."""
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
        # Either the factors moved by themselves, or none did and the one that differs was made to.
        log_probability = np.logaddexp(total, stay + only)
        return np.where(differs[:, ~moving].any(axis=1) | ~differs.any(axis=1), -np.inf, log_probability)

    def probabilities(self, size: int, is_cyclic: bool) -> Float[np.ndarray, "start end"]:
        """P(i → k) of a Laplace step of a factor with ``size`` ≥ 2 values; rows sum to 1."""
        weights = np.exp(-self.rate * _distances(size, is_cyclic) / math.log(size))
        return weights / weights.sum(axis=1, keepdims=True)

    def _log_probabilities(self, size: int, is_cyclic: bool) -> Float[np.ndarray, "start end"]:
        """Their logarithms, which a large rate does not make 0."""
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
        still = (moved == factors).all(axis=1)
        forced = generator.choice(columns, size=len(factors))
        for column, table in tables.items():
            rows = np.flatnonzero(still & (forced == column))
            others = table * (1 - np.eye(len(table)))
            if not others.any(axis=1).all():  # a rate so large that only the nearest count
                others = (_distances(len(table), kinds[column] == "cyclic") == 1).astype(float)
            moved[rows, column] = _choose(others[factors[rows, column]], generator)
        return moved


@dataclasses.dataclass(frozen=True, eq=False)
class Pairing:
    """A transition on one dataset."""

    transition: Transition
    data: AbstractDataset
    grid: FactorGrid | None
    """What combinations occur; None: all, as the dataset itself numbers them."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.data.factor_sizes if self.grid is None else self.grid.sizes

    def draw(
        self, indices: Int[np.ndarray, " sample"], generator: np.random.Generator
    ) -> tuple[Int[np.ndarray, " sample"], Bool[np.ndarray, "sample factor"]]:
        """As :meth:`Transition.draw`."""
        if self.grid is None:
            moved, shared = self._propose(self.data.factors(indices), generator)
            return self.data.index_of(moved), shared
        codes = self.grid.codes[indices]
        if self.grid.is_full:
            moved, shared = self._propose(codes, generator)
            return self.grid.order[self.grid.cells(moved)], shared
        if self.transition.keeps:
            shared = self.transition.choose(len(codes), codes.shape[1], generator)
            return self.grid.one_agreeing(codes, shared, generator), shared
        cells = self._existing(codes, generator)
        return self.grid.one_of(cells, generator), self.grid.cell_codes[cells] == codes

    def _propose(
        self, codes: Int[np.ndarray, "sample factor"], generator: np.random.Generator
    ) -> tuple[Int[np.ndarray, "sample factor"], Bool[np.ndarray, "sample factor"]]:
        return self.transition.propose(codes, self.sizes, self.data.factor_kinds, generator)

    def _existing(
        self, codes: Int[np.ndarray, "sample factor"], generator: np.random.Generator
    ) -> Int[np.ndarray, " sample"]:
        """A cell for each row, from the proposals given that they exist and differ from the row.

        Proposals are drawn again until one exists; rows that are still without after so many rounds get theirs from the
        list of all cells with its probabilities. Both have the same distribution, so the whole has it.
        """
        assert self.grid is not None
        cells, kinds = np.full(len(codes), -1), self.data.factor_kinds
        waiting = np.arange(len(codes))
        for _ in range(ROUNDS):
            moved, same = self._propose(np.repeat(codes[waiting], TRIES, axis=0), generator)
            candidates = np.where(same.all(axis=1), -1, self.grid.cells(moved)).reshape(-1, TRIES)
            cells[waiting] = candidates[
                np.arange(len(waiting)), (candidates >= 0).argmax(axis=1)
            ]  # the first that exists
            waiting = waiting[(candidates < 0).all(axis=1)]
            if not len(waiting):
                break
        for row in waiting:
            logs = self.transition.log_probability(codes[row], self.grid.cell_codes, self.sizes, kinds)
            cells[row] = _choose(np.exp(logs - logs.max())[np.newaxis], generator)[0]
        return cells

    def check_partners(self) -> None:
        """Every observation needs a partner that exists."""
        if self.grid is None or self.grid.is_full:
            return
        n_alone = 0 if self.transition.keeps else self._n_alone()
        if n_alone:
            what = {
                "laplace": "that agrees in the categorical factors and differs in another",
                "uniform": "that agrees in one factor and differs in another",
            }[self.transition.kind]
            raise InputError(
                problem=(
                    f"a {self.transition.kind} transition needs, for every observation of {self.data.name}, another "
                    f"{what}"
                ),
                got=f"{n_alone} of {len(self.grid.order)} without",
                remedy=("leave them out, or use ", Argument("transition_kind", "share")),
            )
        if self.transition.keeps and (share := self._share_of_itself()) > MAX_SHARE_OF_ITSELF:
            raise InputError(
                problem=(
                    f"a {self.transition.kind} transition needs observations of {self.data.name} that agree in some "
                    f"factors; for {share:.0%} of the draws there is none but the observation itself"
                ),
                remedy="give factors of fewer values, or more data",
            )

    def _n_alone(self) -> int:
        """How many observations have no partner in a laplace or uniform transition."""
        assert self.grid is not None
        if self.transition.kind == "laplace":
            alone = self.grid.cells_sharing(~np.array(_moving(self.sizes, self.data.factor_kinds))) == 1
        else:
            sharing = [self.grid.cells_sharing(each) for each in np.eye(len(self.sizes), dtype=bool)]
            alone = np.max(sharing, axis=0) == 1
        return int(np.diff(self.grid.starts)[alone].sum())

    def _share_of_itself(self) -> float:
        """How often an observation is its own partner, from some draws."""
        generator = seeds.generator(0, "pairs", "check")
        indices = generator.integers(len(self.data), size=N_CHECKED)
        partners, _ = self.draw(indices, generator)
        return float((partners == indices).mean())


def _moving(sizes: tuple[int, ...], kinds: tuple[FactorKind, ...]) -> list[bool]:
    """Which factors a Laplace step can move."""
    return [kind in ("ordinal", "cyclic") and size > 1 for size, kind in zip(sizes, kinds, strict=True)]


def _log_uniform(
    differs: Bool[np.ndarray, "end factor"], sizes: tuple[int, ...]
) -> Float[np.ndarray, " end"]:
    """Factors of one value may be among those chosen to change, and stay."""
    n_factors, n_constant = len(sizes), sum(size == 1 for size in sizes)
    chance = np.zeros(n_factors + 1)
    for n_changed in range(1, n_factors + 1):
        for beside in range(n_constant + 1):
            if n_changed + beside < n_factors:
                ways = math.comb(n_constant, beside) / math.comb(n_factors, n_changed + beside)
                chance[n_changed] += ways / (n_factors - 1)
    with np.errstate(divide="ignore"):
        log_chance = np.log(chance)
    others = np.log(np.maximum(np.array(sizes) - 1, 1))
    return log_chance[differs.sum(axis=1)] - differs @ others


def _distances(size: int, is_cyclic: bool) -> Int[np.ndarray, "start end"]:
    """Positions between the values of a factor; around the circle, the shorter way."""
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return np.minimum(distance, size - distance) if is_cyclic else distance


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
