"""Representation of a dataset by a model: mean, variance and sampled arrays.

The mean, the variance and the sampled representation behave differently, so the arrays are never just called "z". All
analyses use the arrays alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.analysis.code_view import CodeView, Per, Unit
from polariscope.analysis.convergence import TrainingState
from polariscope.analysis.likelihood_fit import LikelihoodFit
from polariscope.core.arrays import as_array
from polariscope.core.errors import InputError, check_word, unknown
from polariscope.core.records import AbstractRecord
from polariscope.core.seeds import generator

if TYPE_CHECKING:
    import pandas

FactorKind = Literal["categorical", "ordinal", "cyclic", "continuous"]
"""Kinds of factors: unordered classes, ordered classes, classes on a circle, and measured values."""
ARRAYS = (
    *("mean", "variance", "sampled", "factors", "indices"),
    *("prior_mean", "prior_variance", "rate", "covariance", "effect", "effect_error"),
)
METADATA = (
    *("factor_names", "factor_kinds", "notes", "meaning_of_passive", "prior_is_factorised"),
    "variance_is_exact",
)


@dataclasses.dataclass(frozen=True, eq=False)
class Representation(AbstractRecord):
    """Codes of n samples. Arrays are float, ``(sample, latent)``."""

    mean: Float[np.ndarray, "sample latent"]
    """Posterior mean μ(x)."""
    variance: Float[np.ndarray, "sample latent"]
    """Posterior variance σ²(x), not its logarithm."""
    sampled: Float[np.ndarray, "sample latent"]
    """One draw z ~ q(z|x) per sample."""
    factors: Shaped[np.ndarray, "sample factor"] | None = None
    """Ground-truth factors of each sample; None if they are not known."""
    factor_names: tuple[str, ...] = ()
    """Name of each factor."""
    factor_kinds: tuple[FactorKind, ...] = ()
    """Kind of each factor; if it is empty, integers are classes."""
    ids: Shaped[np.ndarray, " sample"] | None = None
    """Identifier of each sample: its number in the dataset, or the name of its row or file. Samples with equal ids are
    the same."""
    indices: Shaped[np.ndarray, " sample"] | None = None
    """Indices of the observations in the dataset."""
    prior_mean: Float[np.ndarray, "..."] | None = None
    """Mean of the prior, ``(latent,)``, or ``(sample, latent)`` if it is conditional; None means 0."""
    prior_variance: Float[np.ndarray, "..."] | None = None
    """Variance of the prior, shaped like ``prior_mean``; None means 1."""
    rate: Float[np.ndarray, "sample latent"] | None = None
    """KL(q(z_j|x) ‖ p(z_j)) in nats for the model's prior; if None, it is computed from the Gaussian moments above."""
    covariance: Float[np.ndarray, "sample latent latent"] | None = None
    """Posterior covariance Σ(x); None if latents are independent given x."""
    effect: Float[np.ndarray, " unit"] | None = None
    """Decoder effect of each latent or channel, in nats: rise of −log p(x|z) if it is taken from another observation
    (:func:`polariscope.models.effect.decoder_effect`); None without a decoder."""
    effect_error: Float[np.ndarray, " unit"] | None = None
    """Standard error of the decoder effect."""
    prior_is_factorised: bool = False
    """If True, the latents are known to be independent under the prior; under a Gaussian prior they always are."""
    sampled_was_drawn: bool = False
    """If True, ``sampled`` was drawn by :func:`draw_sampled`."""
    variance_is_exact: bool = False
    """If True, ``variance`` comes from a model of this package, so it is σ² and not its logarithm or root."""
    training: TrainingState = dataclasses.field(default_factory=TrainingState)
    """State of the training of the model; unknown without a log."""
    fit: LikelihoodFit = dataclasses.field(default_factory=LikelihoodFit)
    """Fit of the model's likelihood to the residuals; empty without a decoder."""
    notes: tuple[str, ...] = ()
    """Notes about the encoding."""
    meaning_of_passive: str = "its posterior is close to the prior N(0, 1) for every input"
    """Description of a passive latent under the prior."""
    code_shape: tuple[int, ...] = ()
    """Shape of one code, with the channel first: (channel, height, width) for a convolutional encoder, otherwise
    (latent,), the default. Arrays contain the codes flattened in this order."""
    per: Per = CodeView.per
    """Unit of a diagnosis of codes with several axes: "channel" pools the positions of each channel, "value" treats
    each value as a latent."""

    def __post_init__(self) -> None:
        for name in ARRAYS:
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_array(value, name))
        for name in ("mean", "variance", "sampled"):
            if getattr(self, name) is None:
                raise InputError(
                    name,
                    "be an array of shape (sample, latent)",
                    got=None,
                    remedy="pass mean and variance to diagnose, which draws sampled codes",
                )
        shape = np.shape(self.mean)
        if len(shape) != 2 or 0 in shape:
            raise InputError("mean", "have shape (sample, latent) with at least one of each", got=shape)
        object.__setattr__(self, "code_shape", self._checked_code_shape(shape[1]))
        for name in ("variance", "sampled", "rate"):
            array = getattr(self, name)
            if array is not None and np.shape(array) != shape:
                raise InputError(
                    f"mean and {name}",
                    "have the same shape",
                    got=f"{shape} and {np.shape(array)}",
                    remedy="encode both with the same model",
                )
        if self.covariance is not None and np.shape(self.covariance) != (*shape, shape[1]):
            raise InputError(
                "covariance",
                f"have shape (sample, latent, latent), that is {(*shape, shape[1])}",
                got=np.shape(self.covariance),
            )
        for name in ("effect", "effect_error"):
            array = getattr(self, name)
            if array is not None and np.shape(array) != (self.n_units,):
                raise InputError(
                    name, f"have a value for each of {self.n_units} {self.unit}s", got=np.shape(array)
                )
        for name in ("prior_mean", "prior_variance"):
            array = getattr(self, name)
            if array is not None and np.shape(array) not in (shape, shape[1:]):
                raise InputError(
                    name,
                    f"have shape (latent,) or (sample, latent), that is {shape[1:]} or {shape}",
                    got=np.shape(array),
                )
        for name in ("mean", "variance", "sampled", "prior_mean", "prior_variance", "rate", "covariance"):
            array = getattr(self, name)
            if array is not None and not np.isfinite(array).all():
                count = int(np.size(array) - np.isfinite(array).sum())
                raise InputError(
                    name,
                    "be finite",
                    got=f"{count} NaN or infinite of {np.size(array)} values",
                    remedy="the model might have diverged",
                )
        if self.covariance is not None and not np.allclose(
            np.diagonal(self.covariance, axis1=1, axis2=2), self.variance, rtol=1e-3, atol=0
        ):
            raise InputError(
                "variance", "be the diagonal of covariance", remedy="encode both with the same model"
            )
        if self.variance.min() < 0:
            raise InputError(
                "variance",
                "not be negative",
                got=f"a minimum of {self.variance.min():.3g}",
                remedy="this looks like a log-variance: pass np.exp(log_variance)",
            )
        if self.prior_variance is not None and np.min(self.prior_variance) <= 0:
            raise InputError(
                "prior_variance", "be positive", got=f"a minimum of {np.min(self.prior_variance):.3g}"
            )
        if self.factors is not None and len(self.factors) != shape[0]:
            raise InputError(
                "factors", f"have a row for each of the {shape[0]} samples", got=len(self.factors)
            )
        if self.factors is not None and self.factor_names and self.factors.shape[1] != len(self.factor_names):
            raise InputError(
                "factor_names",
                f"have a name for each of the {self.factors.shape[1]} factors",
                got=len(self.factor_names),
            )
        if self.factor_kinds and (self.factors is None or self.factors.shape[1] != len(self.factor_kinds)):
            raise InputError(
                "factor_kinds",
                "have a kind for each factor",
                got=(
                    f"{len(self.factor_kinds)} kinds for "
                    f"{(0 if self.factors is None else self.factors.shape[1])} factors"
                ),
            )
        for kind in self.factor_kinds:
            if kind not in get_args(FactorKind):
                raise unknown("kind of factor", str(kind), get_args(FactorKind))
        if self.ids is not None and np.shape(self.ids) != shape[:1]:
            raise InputError(
                "ids",
                f"have an id for each of the {shape[0]} samples",
                got=f"an array of shape {np.shape(self.ids)}",
            )

    def _checked_code_shape(self, n_latents: int) -> tuple[int, ...]:
        check_word("per", self.per, get_args(Per))
        code_shape = tuple(int(size) for size in self.code_shape)
        if len(code_shape) < 2:  # one axis has the length of the arrays, also if columns were selected
            return (n_latents,)
        if math.prod(code_shape) != n_latents or min(code_shape) < 1:
            raise InputError(
                "code_shape",
                f"have {n_latents} values, the number of columns of mean",
                got=" × ".join(map(str, code_shape)),
            )
        return code_shape

    @property
    def n_samples(self) -> int:
        return self.mean.shape[0]

    @property
    def n_latents(self) -> int:
        return self.mean.shape[1]

    @property
    def unit(self) -> Unit:
        """Unit of a diagnosis: "channel" for codes with several axes, unless ``per`` is "value"; otherwise "latent"."""
        return "channel" if len(self.code_shape) > 1 and self.per == "channel" else "latent"

    @property
    def n_positions(self) -> int:
        """Number of values in each unit: the positions of a channel, or 1 for a latent."""
        return math.prod(self.code_shape[1:]) if self.unit == "channel" else 1

    @property
    def n_units(self) -> int:
        """Number of channels or latents."""
        return self.n_latents // self.n_positions

    def viewed(self, per: Per) -> Representation:
        """Return the same codes with another unit of a diagnosis.

        The decoder effect is that of the previous unit, so it is left out if the unit changes. Encode the model with
        this ``per`` to measure it again.

        :param per: "channel" or "value".
        """
        check_word("per", per, get_args(Per))
        # Without several axes both views are the same.
        if per == self.per or len(self.code_shape) == 1:
            return self
        return dataclasses.replace(self, per=per, effect=None, effect_error=None)

    def by_channel(self, name: str = "mean") -> Float[np.ndarray, "sample channel position"]:
        """Return an array as (sample, channel, position); latents without positions have one position each.

        :param name: (default "mean") "mean", "variance", "sampled" or "rate".
        """
        check_word("array", name, ("mean", "variance", "sampled", "rate"))
        array = getattr(self, name)
        if array is None:
            raise InputError(problem=f"this representation has no {name}")
        return array.reshape(self.n_samples, self.n_units, self.n_positions)

    def columns_of(self, units: Sequence[int]) -> list[int]:
        """Return the columns of the arrays that belong to some channels or latents.

        :param units: numbers of the channels or latents.
        """
        size = self.n_positions
        return [column for unit in units for column in range(unit * size, (unit + 1) * size)]

    def averaged(self) -> Representation:
        r"""Return codes with one value for each channel: the mean over its positions.

        Positions are independent given x, so the variance of the mean of P positions is :math:`\sum_p \sigma_p^2 /
        P^2`; with a ``covariance``, the sum of all its entries divided by P². The prior is averaged alike: the mean of
        P independent values with prior N(0, 1) has the prior N(0, 1/P). KL and decoder effect are left out.
        """
        size = self.n_positions
        if size == 1:
            return self
        covariance = None
        variance = self.by_channel("variance").sum(axis=2) / size**2
        if self.covariance is not None:
            blocks = self.covariance.reshape(self.n_samples, self.n_units, size, self.n_units, size)
            covariance = blocks.sum(axis=(2, 4)) / size**2
            variance = np.diagonal(covariance, axis1=1, axis2=2).copy()
        prior_mean = None if self.prior_mean is None else self._by_unit(self.prior_mean).mean(axis=-1)
        prior_variance = np.ones(self.n_latents) if self.prior_variance is None else self.prior_variance
        return dataclasses.replace(
            self,
            mean=self.by_channel("mean").mean(axis=2),
            variance=variance,
            sampled=self.by_channel("sampled").mean(axis=2),
            covariance=covariance,
            prior_mean=prior_mean,
            prior_variance=self._by_unit(prior_variance).sum(axis=-1) / size**2,
            code_shape=(),
            rate=None,
            effect=None,
            effect_error=None,
        )

    def _by_unit(self, array: Float[np.ndarray, "*_ latent"]) -> Float[np.ndarray, "*_ unit position"]:
        return array.reshape(*array.shape[:-1], self.n_units, self.n_positions)

    def _summary(self) -> list[tuple[str, str]]:
        """Return labels and texts that describe the arrays."""
        span = f"{self.variance.min():.3g} to {self.variance.max():.3g}, mean {self.variance.mean():.3g}"
        kinds = self.factor_kinds or ("",) * len(self.factor_names)
        factors = ", ".join(
            f"{name} ({kind})" if kind else name for name, kind in zip(self.factor_names, kinds, strict=True)
        )
        known = "not known" if self.factors is None else f"{self.factors.shape[1]} without names"
        moments = [array for array in (self.prior_mean, self.prior_variance) if array is not None]
        prior = "conditional" if any(array.ndim == 2 for array in moments) else "the same for all samples"
        return [
            ("representation", f"{self.n_samples:,} samples, {self.n_latents} latents, {self.mean.dtype}"),
            *(
                [("codes", f"{shape_in_words(self.code_shape)}, per {self.per}")]
                if self.code_shape[1:]
                else []
            ),
            ("variance", span),
            ("sampled", "drawn from N(mean, variance)" if self.sampled_was_drawn else "passed"),
            ("factors", factors or known),
            ("prior", prior if moments else "N(0, 1)"),
            *(("note", note) for note in self.notes),
        ]

    def __repr__(self) -> str:
        return "\n".join(f"{label:<16}{text}" for label, text in self._summary())

    def _repr_html_(self) -> str:
        from polariscope.core.text import summary_as_html

        return summary_as_html(self._summary())

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each sample: mean, variance and sampled code of each latent, and factors.

        Columns are named ``mean.0``, ``variance.0``, ``sampled.0`` and, for factors, ``factor.NAME``. Rows are
        indexed by the ids of the samples, if they are known.
        """
        import pandas

        columns = {
            f"{name}.{latent}": column
            for name in ("mean", "variance", "sampled")
            for latent, column in enumerate(getattr(self, name).T)
        }
        if self.factors is not None:
            names = self.factor_names or tuple(map(str, range(self.factors.shape[1])))
            columns |= {f"factor.{name}": column for name, column in zip(names, self.factors.T, strict=True)}
        return pandas.DataFrame(
            columns,
            index=pandas.Index(np.arange(self.n_samples) if self.ids is None else self.ids, name="sample"),
        )

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return named arrays and metadata, for a file."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        metadata = {name: getattr(self, name) for name in METADATA}
        if len(self.code_shape) > 1:
            metadata |= {"code_shape": list(self.code_shape), "per": self.per}
        # The array files cannot contain text, so names are stored as metadata.
        if self.ids is not None and self.ids.dtype.kind in "iu":
            arrays["ids"] = self.ids.copy()  # files reject two names of the same array
        elif self.ids is not None:
            metadata["ids"] = [str(name) for name in self.ids]
        return {name: array for name, array in arrays.items() if array is not None}, metadata

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], words: Mapping[str, Any]) -> Representation:
        """Return the representation from the results of :meth:`to_arrays`.

        :param arrays: arrays by name.
        :param words: metadata by name.
        """
        # JSON has lists instead of tuples.
        tuples = {
            name: tuple(words[name])
            for name in ("factor_names", "factor_kinds", "notes", "code_shape")
            if name in words  # only codes with several axes have a code_shape
        }
        ids = {"ids": np.array(words["ids"])} if "ids" in words else {}
        return cls(**{**arrays, **words, **tuples, **ids})


def shape_in_words(code_shape: tuple[int, ...]) -> str:
    """Return the shape of a code as text.

    >>> shape_in_words((4, 16, 16))
    '4 × 16 × 16'
    """
    return " × ".join(map(str, code_shape))


def flatten_codes(arrays: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Return arrays of codes with their axes after the first flattened, and the shape of one code.

    Moments of a prior can have the shape of one code, or one value for each channel.

    :param arrays: ``mean``, ``variance``, ``sampled`` and ``rate``, each (sample, channel, …), ``prior_mean`` and
        ``prior_variance``; other arrays are not changed.
    """
    code_shape = tuple(np.shape(arrays["mean"])[1:])
    if len(code_shape) < 2 or 0 in np.shape(arrays["mean"]):
        return dict(arrays), ()
    flat = dict(arrays)
    for name in ("mean", "variance", "log_variance", "sampled", "rate", "prior_mean", "prior_variance"):
        array = flat.get(name)
        if array is None:
            continue
        if np.shape(array)[1:] == code_shape:
            flat[name] = np.reshape(array, (len(array), -1))
        elif name.startswith("prior") and np.shape(array) == code_shape:
            flat[name] = np.reshape(array, -1)
        elif name.startswith("prior") and np.shape(array) == code_shape[:1]:
            flat[name] = np.repeat(array, math.prod(code_shape[1:]))
        else:
            raise InputError(
                f"mean and {name}",
                "have the same shape",
                got=f"{np.shape(arrays['mean'])} and {np.shape(array)}",
                remedy="encode both with the same model",
            )
    return flat, code_shape


def check_same_samples(ids: Mapping[str, Shaped[np.ndarray, " sample"] | None]) -> None:
    """Raise an error if representations are of different samples; those without ids are not checked.

    :param ids: ids of each representation by its name; None if they are not known.
    """
    known = [(name, np.asarray(array)) for name, array in ids.items() if array is not None]
    for name, array in known[1:]:
        first_name, first = known[0]
        remedy = "encode the same samples, in the same order, with each model."
        if len(array) != len(first):
            raise InputError(
                f"{first_name} and {name}",
                "be of the same samples",
                got=f"{len(first)} and {len(array)}",
                remedy=f"{remedy}",
            )
        # Up to version 0.2, names of rows that are integers were stored as numbers.
        differs = first.astype(str) != array.astype(str)
        if differs.any():
            row = int(differs.argmax())
            raise InputError(
                f"{first_name} and {name}",
                (
                    f"be of the same samples, but {int(differs.sum())} of {len(first)} ids differ, first "
                    f"in row {row}: {first[row]} and {array[row]}"
                ),
                remedy=f"{remedy}",
            )


BLOCK = 50_000
"""Number of samples that are drawn at once."""


def draw_sampled(
    mean: Float[np.ndarray, "sample latent"], variance: Float[np.ndarray, "sample latent"], seed: int
) -> Float[np.ndarray, "sample latent"]:
    """Draw z ~ N(mean, variance) once per sample, for codes without sampled arrays."""
    draw = generator(seed, "sampled")
    sampled = np.empty_like(mean)
    for begin in range(
        0, len(mean), BLOCK
    ):  # the noise of all samples in float64 would be twice as large as the codes
        rows = slice(begin, begin + BLOCK)
        sampled[rows] = mean[rows] + np.sqrt(variance[rows]) * draw.standard_normal(mean[rows].shape)
    return sampled
