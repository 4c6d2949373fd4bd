"""Checked arrays of one model, and intermediate results that several metrics share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped, UInt

from polariscope.analysis.code_checks import (
    DECLARE,
    GIVE_VARIANCE,
    check_codes,
    check_factors,
    check_kinds,
    check_names,
    check_types,
    check_variance,
    is_integral,
)
from polariscope.analysis.regime.latent_types import VariableType, classify
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.core.types import ArrayInput, FactorsLike
from polariscope.numerics.information import N_BINS, discretise, entropy, information

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
N_BOOTSTRAP = 200
N_PERMUTATIONS = 10


def _cached(
    method: Callable[Concatenate[Any, Arguments], Result],
) -> Callable[Concatenate[Any, Arguments], Result]:
    """Cache a method's results on the object, for each combination of arguments."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def lookup(self: Any, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        # With defaults filled in, a call that passes a default and one that omits it share an entry. The
        # first argument is self.
        bound = signature.bind(self, *arguments, **options)
        bound.apply_defaults()
        key = (method.__name__, *list(bound.arguments.values())[1:])
        if key not in self._cache:
            self._cache[key] = method(self, *arguments, **options)
        return self._cache[key]

    return lookup


class Table:
    """Codes, factors and variances with a row for each sample, and cached results derived from them.

    Each random choice has its own stream derived from ``seed``, so a score does not depend on earlier computations.

    :param codes: real numbers, ``(sample, latent)``.
    :param factors: (default None) classes as integers, or measured values, ``(sample, factor)``.
    :param variance: (default None) posterior variances σ², shaped like the codes.
    :param types: (default None) type of each latent: active, mixed or passive.
    :param factor_names: (default: their numbers) a name for each factor.
    :param factor_kinds: (default: all categorical) kind of each factor; measured factors must be declared.
    :param seed: (default 0) seed of every random choice.
    :param source: (default "mean") origin of the codes, "mean" or "sampled".
    :param prior_is_standard: (default True) True if the model's prior is N(0, I).
    """

    def __init__(
        self,
        codes: ArrayInput,
        factors: FactorsLike | None = None,
        variance: ArrayInput | None = None,
        types: Sequence[str] | None = None,
        factor_names: Sequence[str] = (),
        factor_kinds: Sequence[str] | None = None,
        seed: int = 0,
        source: str = "mean",
        prior_is_standard: bool = True,
    ) -> None:
        self.seed, self.source, self.prior_is_standard = seed, source, prior_is_standard
        self._cache: dict[Any, Any] = {}
        self.codes: Float[np.ndarray, "sample latent"] = check_codes(codes, "codes")
        self._variance = None if variance is None else check_variance(variance, self.codes)
        self._types = None if types is None else check_types(types, self.n_latents)
        self._factors = None if factors is None else check_factors(factors, len(self.codes))
        n_factors = 0 if self._factors is None else self._factors.shape[1]
        self.factor_names = check_names(factor_names, n_factors)
        self.factor_kinds = check_kinds(factor_kinds, n_factors)
        self._are_kinds_declared = factor_kinds is not None
        if self._factors is not None:
            self._check_classes(self._factors)

    @property
    def n_samples(self) -> int:
        return self.codes.shape[0]

    @property
    def n_latents(self) -> int:
        return self.codes.shape[1]

    @property
    def n_factors(self) -> int:
        return len(self.factor_kinds)

    @property
    def factors(self) -> Float[np.ndarray, "sample factor"]:
        """Values of the factors as floats."""
        if self._factors is None:
            raise InputError(
                problem="this metric requires factors", remedy="pass an array (sample, factor) of classes"
            )
        return self._factors

    @property
    def variance(self) -> Float[np.ndarray, "sample latent"]:
        """Posterior variance of each code."""
        if self._variance is None:
            raise InputError(problem="this variant requires posterior variances", remedy=GIVE_VARIANCE)
        return self._variance

    @functools.cached_property
    def types(self) -> tuple[VariableType, ...] | None:
        """Type of each latent, as passed or from the variances for a prior N(0, 1); None without either."""
        if self._types is not None or self._variance is None:
            return self._types
        return tuple(classify(self._variance.mean(axis=0), self._variance.var(axis=0)))

    @functools.cached_property
    def constant(self) -> Bool[np.ndarray, " latent"]:
        """True for latents that are constant."""
        return np.ptp(self.codes, axis=0) == 0

    @functools.cached_property
    def standardised(self) -> Float[np.ndarray, "sample latent"]:
        """Codes with mean 0 and (population) standard deviation 1; constant latents are 0."""
        # Any divisor but 0 serves for a constant latent, which is set to 0 below.
        spread = np.where(self.constant, 1.0, self.codes.std(axis=0))
        return np.where(self.constant, 0.0, (self.codes - self.codes.mean(axis=0)) / spread)

    @functools.cached_property
    def classes(self) -> Int[np.ndarray, "sample factor"]:
        """Factors as classes 0, 1, …, with measured ones in 20 equal-width bins. All classes occur."""
        columns = [
            # Integers are classes even of a factor declared continuous; only fractions are binned.
            _numbered(column if is_integral(column) else discretise(column[:, None])[:, 0])
            for column in self.factors.T
        ]
        return np.stack(columns, axis=1)

    @_cached
    def angles(self, factor: int) -> Float[np.ndarray, " sample"]:
        """Return a cyclic factor as angles 2πw/n, with w counted from the smallest observed value and n the range."""
        steps = self.factors[:, factor] - self.factors[:, factor].min()
        return 2 * np.pi * steps / (steps.max() + 1)

    @functools.cached_property
    def n_classes(self) -> tuple[int, ...]:
        """Number of observed classes of each factor."""
        return tuple((self.classes.max(axis=0) + 1).tolist())

    @_cached
    def discretised(self, bins: int = N_BINS) -> Int[np.ndarray, "sample latent"]:
        """Return the bin of each code, with equal-width bins over the range of each latent."""
        return discretise(self.codes, bins)

    @functools.cached_property
    def factor_entropies(self) -> Float[np.ndarray, " factor"]:
        """H(w_k) in nats."""
        return np.array([entropy(np.bincount(column)) for column in self.classes.T])

    @_cached
    def mi_table(self, bins: int = N_BINS) -> Float[np.ndarray, "latent factor"]:
        """Return the plug-in mutual information I(z_j, w_k) of the binned codes with the factors, in nats."""
        return information(self.discretised(bins), self.classes)[0]

    @_cached
    def mi_replicates(
        self, bins: int = N_BINS
    ) -> tuple[Float[np.ndarray, "replicate latent factor"], Float[np.ndarray, "replicate factor"]]:
        """Return :meth:`mi_table` and the factors' entropies in each bootstrap resample."""
        tables, entropies = information(self.discretised(bins), self.classes, self.resamples)
        return tables.reshape(-1, self.n_latents, self.n_factors), entropies.reshape(-1, self.n_factors)

    @_cached
    def mi_permuted(self, bins: int = N_BINS) -> Float[np.ndarray, "permutation latent factor"]:
        """Return :meth:`mi_table` of shuffled codes, which carry no information about the factors."""
        binned = self.discretised(bins)
        return np.stack([information(binned[order], self.classes)[0] for order in self.permutations])

    @functools.cached_property
    def resamples(self) -> UInt[np.ndarray, "replicate sample"]:
        """Count of each sample in each bootstrap resample."""
        draw = generator(self.seed, "metrics", "bootstrap")
        n = self.n_samples
        counts = [np.bincount(draw.integers(n, size=n), minlength=n) for _ in range(N_BOOTSTRAP)]
        return np.stack(counts).astype(np.uint8)  # a count of 256 has a probability of about 1/256!

    @functools.cached_property
    def permutations(self) -> Int[np.ndarray, "permutation sample"]:
        """Permutations of the samples, which make codes independent of the factors."""
        draw = generator(self.seed, "metrics", "permutation")
        return np.stack([draw.permutation(self.n_samples) for _ in range(N_PERMUTATIONS)])

    @_cached
    def permuted(self, index: int = 0) -> Table:
        """Return a table with the rows of the codes shuffled; its score is the chance level."""
        order = self.permutations[index]
        variance = None if self._variance is None else self._variance[order]
        # The permuted table keeps its own cache, so metrics share its results too.
        return self._like(self.codes[order], self.factors, variance)

    def at(self, rows: Int[np.ndarray, " row"]) -> Table:
        """Return a table of some of the samples."""
        variance = None if self._variance is None else self._variance[rows]
        return self._like(self.codes[rows], self.factors[rows], variance)

    def _like(self, codes: Any, factors: Any, variance: Any) -> Table:
        return Table(
            codes,
            factors,
            variance,
            factor_names=self.factor_names,
            factor_kinds=self.factor_kinds,
            seed=self.seed,
        )

    @_cached
    def split(self, fraction: float = 2 / 3) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]:
        """Split the samples at random into training (this fraction) and test samples, at least one of each."""
        order = generator(self.seed, "metrics", "split").permutation(self.n_samples)
        # Both parts must have a sample, also with a fraction near 0 or 1.
        n_train = min(max(1, round(fraction * self.n_samples)), self.n_samples - 1)
        return np.sort(order[:n_train]), np.sort(order[n_train:])

    @functools.cached_property
    def grid_notes(self) -> tuple[str, ...]:
        """Notes about measured factors, unobserved combinations and dependence between factors."""
        return tuple(self._grid_notes())

    def _grid_notes(self) -> Iterable[str]:
        measured = [
            name
            for name, column in zip(self.factor_names, self.factors.T, strict=True)
            if not is_integral(column)
        ]
        if measured:
            yield f"Metrics of classes put measured factors in {N_BINS} equal-width bins: {', '.join(measured)}."
        # In floats, because the product of many numbers of classes overflows integers.
        n_cells = float(np.prod(np.array(self.n_classes, dtype=np.float64)))
        draw = generator(self.seed, "metrics", "grid")
        # Shuffled columns show how many combinations independent factors would have with as many samples.
        independent = np.stack([draw.permutation(column) for column in self.classes.T], axis=1)
        observed, expected = (len(np.unique(rows, axis=0)) for rows in (self.classes, independent))
        if observed < 0.9 * expected:
            yield (
                f"Only {observed} of the {n_cells:.0f} combinations of factors occur; about {expected} would if the "
                "factors were independent. The score describes the observed combinations."
            )
        pairs = self._dependent_pairs()
        if pairs:
            yield (
                f"Factors depend on each other in these samples ({', '.join(pairs)}): a latent that encodes one is "
                "informative about the other, which lowers gaps and ratios of mutual information."
            )

    def _dependent_pairs(self) -> list[str]:
        """Return the pairs of factors whose normalised information exceeds 5 % and the chance level."""
        from scipy.special import chdtri

        table, _ = information(self.classes, self.classes)
        pairs = []
        for i in range(self.n_factors):
            for j in range(i):
                freedom = (self.n_classes[i] - 1) * (self.n_classes[j] - 1)
                # 2n I is χ² distributed if the factors are independent (the G test).
                beyond = 2 * self.n_samples * table[i, j] > chdtri(freedom, 0.001)
                # The second term is the bias of the plug-in estimate for independent factors.
                excess = table[i, j] - freedom / (2 * self.n_samples)
                if beyond and excess > 0.05 * min(self.factor_entropies[i], self.factor_entropies[j]):
                    pairs.append(f"{self.factor_names[j]} and {self.factor_names[i]}")
        return pairs

    def _check_classes(self, factors: Float[np.ndarray, "sample factor"]) -> None:
        for name, kind, column in zip(self.factor_names, self.factor_kinds, factors.T, strict=True):
            values = np.unique(column)
            if len(values) == 1:
                raise InputError(
                    problem=(
                        f"factor {name!r} has a single value in these {len(column)} samples, so its entropy "
                        "is 0"
                    ),
                    remedy="draw more samples or drop it",
                )
            if kind == "continuous":
                continue
            if not is_integral(column):
                raise InputError(
                    f"factor {name!r}",
                    "contain integers (classes)",
                    got=f"{column[column % 1 != 0][0]:g}",
                    remedy=f"it is declared {kind}, which is for classes; a measured factor is 'continuous'"
                    if self._are_kinds_declared
                    else ("if it is measured, ", DECLARE),
                )
            # A factor with nearly as many values as samples is probably measured, not a class.
            if 2 * len(values) > len(column):
                raise InputError(
                    problem=f"factor {name!r} has {len(values)} classes in {len(column)} samples",
                    remedy="at least 2 samples per class are required: draw more"
                    if self._are_kinds_declared
                    else ("at least 2 samples per class are required: draw more, or ", DECLARE),
                )


def correlations(
    x: Float[np.ndarray, "sample latent"],
    y: Float[np.ndarray, "sample factor"],
    weights: UInt[np.ndarray, "replicate sample"],
) -> Float[np.ndarray, "replicate latent factor"]:
    """Return the Pearson correlation of each column of ``x`` with each of ``y``, for each row of sample weights.

    A constant column has correlation 0 with every other.
    """
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    shares = weights / weights.sum(axis=1, keepdims=True, dtype=np.float64)
    # One matrix product with the weights then gives the products of all pairs, in all resamples.
    products = (x[:, :, None] * y[:, None, :]).reshape(len(x), -1)
    # Both were centred over all samples, so the differences below lose no digits.
    mean_x, mean_y = shares @ x, shares @ y
    covariance = (shares @ products).reshape(-1, x.shape[1], y.shape[1])
    covariance -= mean_x[:, :, None] * mean_y[:, None, :]
    of_x, of_y = (shares @ (z * z) - (shares @ z) ** 2 for z in (x, y))
    # A resample of few samples can contain a single value of a column; its variance is then only rounding error.
    varies_x, varies_y = (v > 1e-12 * (z * z).mean(axis=0) for v, z in ((of_x, x), (of_y, y)))
    scale = np.sqrt(np.maximum(of_x, 0)[:, :, None] * np.maximum(of_y, 0)[:, None, :])
    defined = varies_x[:, :, None] & varies_y[:, None, :]
    return np.clip(np.divide(covariance, scale, out=np.zeros_like(scale), where=defined), -1.0, 1.0)


def gap(scores: Float[np.ndarray, "*replicate latent factor"]) -> Float[np.ndarray, "*replicate factor"]:
    """Return the difference between the best and the second-best latent of each factor.

    >>> gap(np.array([[0.9, 0.1], [0.2, 0.5], [0.4, 0.5]]))
    array([0.5, 0. ])
    """
    if scores.shape[-2] < 2:
        raise InputError(problem="a gap between latents requires at least 2 latents", got="1")
    ordered = np.sort(scores, axis=-2)
    return ordered[..., -1, :] - ordered[..., -2, :]


def _numbered(column: Shaped[np.ndarray, " sample"]) -> Int[np.ndarray, " sample"]:
    """Number the values that occur from 0 in increasing order."""
    # bincount needs memory in proportion to the range of values.
    if np.ptp(column) > 10 * len(column):
        return np.unique(column, return_inverse=True)[1]
    offsets = (column - column.min()).astype(np.int64)
    return (np.cumsum(np.bincount(offsets) > 0) - 1)[
        offsets
    ]  # faster than sorting, because the range is small
