"""Local and global variance of the data by factor: the variance of small steps, and the variance overall."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from polariscope.core.errors import InputError
from polariscope.core.records import AbstractStoredRecord
from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset

if TYPE_CHECKING:
    import pandas

AT_ONCE = 512
"""Number of observations that are processed together."""


@dataclasses.dataclass(frozen=True, eq=False)
class VarianceShares(AbstractStoredRecord, remedy="measure the shares again"):
    """Variance of the data by factor, summed over the values of an observation."""

    factor_names: tuple[str, ...]
    local: Float[np.ndarray, " factor"]
    """Local variance E‖∂x/∂w‖² Var(w), from steps of one value of the factor."""
    overall: Float[np.ndarray, " factor"]
    """Global variance Var(E[x|w])."""
    total: float
    """Variance of the observations."""

    @property
    def local_share(self) -> Float[np.ndarray, " factor"]:
        """Shares of the factors in the local variance, which add up to 1."""
        return _shares(self.local)

    @property
    def global_share(self) -> Float[np.ndarray, " factor"]:
        """Shares of the factors in the global variance, which add up to 1."""
        return _shares(self.overall)

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each factor: local and global variance and their shares."""
        import pandas

        columns = {
            **{"local": self.local, "global": self.overall},
            **{"local_share": self.local_share, "global_share": self.global_share},
        }
        return pandas.DataFrame(columns, index=pandas.Index(self.factor_names, name="factor"))


def _shares(values: Float[np.ndarray, " factor"]) -> Float[np.ndarray, " factor"]:
    total = values.sum()
    return values / total if total > 0 else np.zeros_like(values)


def variance_shares(data: AbstractDataset, n_samples: int | None = 2000, seed: int = 0) -> VarianceShares:
    r"""Compute the local and global variance that belongs to each factor.

    With factors w, uniform on a full grid,

    .. math:: \mathrm{local}_k = \mathbb{E} \|x(w + e_k) - x(w)\|^2 \, \mathrm{Var}(w_k), \qquad
              \mathrm{global}_k = \mathrm{tr}\, \mathrm{Var}(\mathbb{E}[x | w_k])

    A step e_k changes factor k by one value. A cyclic factor moves from its last value to its first; other factors have
    no step from the last value. A categorical factor has no steps: its local variance is ½ E‖x(v) − x(v')‖² over
    independent values v, v' of it. If x is linear in the factors, in any unit, both equal the variance of each factor's
    part. A pattern that flips sign from value to value has much local variance and little global variance.

    In a sample, the global variance is estimated as the covariance of pairs that share only factor k. This estimate is
    unbiased and can be slightly negative if the true value is 0; it is then set to 0. With all observations
    (``n_samples=None``) the global variance is exact, from the mean at each value.

    Reference: zietlow2022 §4.2 and Fig. 4.1 introduce the idea. VAEs follow the local variance.

    :param data: a full grid of discrete factors, or a variant of one.
    :param n_samples: (default 2,000) number of observations drawn for each factor; None for the whole grid.
    :param seed: (default 0) seed of the draws.
    """
    sizes = np.array(data.factor_sizes, dtype=np.int64)
    if not len(sizes) or (sizes < 1).any():
        raise InputError(
            problem=f"{data.name} has no grid of discrete factors, so one factor cannot be changed alone",
            remedy="use a dataset whose factors are all known and discrete",
        )
    if n_samples is not None and (isinstance(n_samples, bool) or n_samples < 2):
        raise InputError("n_samples", "be an integer, at least 2, or None", got=f"{n_samples!r}")
    random = generator(seed, "variance shares")
    base = (
        data.factors(np.arange(len(data)))
        if n_samples is None
        else random.integers(sizes, size=(n_samples, len(sizes)))
    )
    data.index_of(base[:1])  # raises an error early if factors do not determine an index
    mean, total = _moments(data, base)
    local, overall = np.zeros(len(sizes)), np.zeros(len(sizes))
    for k, kind in enumerate(data.factor_kinds):
        if sizes[k] < 2:
            continue
        local[k] = _local(data, base, k, kind, random, everything=n_samples is None)
        overall[k] = (
            _between(data, base, k, mean) if n_samples is None else _shared(data, base, k, mean, random)
        )
    return VarianceShares(tuple(data.factor_names), local, np.maximum(overall, 0), total)


Factors = Int[np.ndarray, "sample factor"]


def _values(data: AbstractDataset, factors: Factors) -> Float[np.ndarray, "sample value"]:
    return data.values(data.index_of(factors)).reshape(len(factors), -1).astype(np.float64)


def _parts(n: int) -> list[slice]:
    return [slice(first, first + AT_ONCE) for first in range(0, n, AT_ONCE)]


def _moments(data: AbstractDataset, base: Factors) -> tuple[Float[np.ndarray, " value"], float]:
    """Return the mean of each value and the sum of their variances."""
    sums, squares = np.zeros(data.n_features), np.zeros(data.n_features)
    for rows in _parts(len(base)):
        x = _values(data, base[rows])
        sums += x.sum(axis=0)
        squares += (x**2).sum(axis=0)
    mean = sums / len(base)
    return mean, float((squares / len(base) - mean**2).sum())


def _local(
    data: AbstractDataset, base: Factors, k: int, kind: str, random: np.random.Generator, *, everything: bool
) -> float:
    size = data.factor_sizes[k]
    if kind == "categorical":
        # Independent values: on the whole grid, every value is compared with every other.
        steps = range(1, size) if everything else [random.integers(size, size=len(base))]
        chance = (
            (size - 1) / size if everything else 1.0
        )  # independent values are equal with probability 1 / size
        square = np.mean([_square(data, base, k, (base[:, k] + step) % size) for step in steps])
        return float(square * chance / 2)
    if kind != "cyclic":
        # The last value of such a factor has no next one.
        base = base[base[:, k] < size - 1]
    # A factor with n equally likely values has the variance (n² − 1)/12.
    return _square(data, base, k, (base[:, k] + 1) % size) * (size**2 - 1) / 12


def _square(data: AbstractDataset, base: Factors, k: int, values: Int[np.ndarray, " sample"]) -> float:
    """Return the mean squared distance to observations with other values of factor k."""
    other = base.copy()
    other[:, k] = values
    total = sum(
        float(((_values(data, base[rows]) - _values(data, other[rows])) ** 2).sum())
        for rows in _parts(len(base))
    )
    return total / len(base)


def _shared(
    data: AbstractDataset,
    base: Factors,
    k: int,
    mean: Float[np.ndarray, " value"],
    random: np.random.Generator,
) -> float:
    """Return the covariance of observations that share only factor k."""
    other = random.integers(data.factor_sizes, size=base.shape)
    other[:, k] = base[:, k]
    products = sum(
        float(((_values(data, base[rows]) - mean) * (_values(data, other[rows]) - mean)).sum())
        for rows in _parts(len(base))
    )
    return products / len(base)


def _between(data: AbstractDataset, base: Factors, k: int, mean: Float[np.ndarray, " value"]) -> float:
    """Return the variance of the means at each value, on a full grid."""
    sums = np.zeros((data.factor_sizes[k], data.n_features))
    for rows in _parts(len(base)):
        # add.at adds every row of a value; an assignment would add only one.
        np.add.at(sums, base[rows, k], _values(data, base[rows]))
    means = sums / (len(base) / data.factor_sizes[k])
    return float(((means - mean) ** 2).sum(axis=1).mean())
