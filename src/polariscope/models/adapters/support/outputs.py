"""Conversion of the common outputs of encoders and decoders of other libraries to posteriors and arrays.

An encoder can return

* a pair ``(mean, log_variance)``;
* several arrays that contain such a pair, in an order that :func:`name_parts` determines from their values, or that the
  caller declares: ``outputs=("z", "mean", "log_variance")``;
* a mapping or an object that names its parts (:data:`MEANS`, :data:`SECONDS`), or contains a distribution under one of
  :data:`DISTRIBUTIONS`;
* a ``torch.distributions.Normal``, also inside ``Independent``, or a ``MultivariateNormal``.

Codes of shape (sample, channel, height, width) are flattened. A decoder can return a tensor, or an object or mapping
that contains one under :data:`RECONSTRUCTIONS`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.analysis.code_names import KINDS, MEANS, SECONDS, Second
from polariscope.core.arrays import refuse_masked
from polariscope.core.errors import Argument, InputError, check_word
from polariscope.models.adapters import declaration
from polariscope.models.posteriors import AbstractPosteriorDistribution
from polariscope.models.posteriors.deterministic import PointMass
from polariscope.models.posteriors.diagonal import DiagonalGaussian
from polariscope.models.posteriors.full import FullGaussian

POINTS = ("latents", "latent", "code", "codes", "z")
"""Names of codes of deterministic encoders, which have no second array."""
DISTRIBUTIONS = ("latent_dist", "qz", "posterior")
RECONSTRUCTIONS = ("reconstruction", "sample", "recon_x", "x_hat", "mean")
ROLES = ("mean", *KINDS, "z", "reconstruction", "other")
"""Names that ``outputs`` can give to the arrays that an encoder returns."""
EXAMPLE = ("z", "mean", "log_variance")
WITH_RECONSTRUCTION = ("reconstruction", "mean", "log_variance")
MIN_VALUES = 200
"""Minimum number of values of a draw from which the order of unnamed arrays is inferred."""
N_ERRORS = 4.0
"""Maximum distance of the variance of the standardised residual from 1, in standard errors."""
MAX_LOG_VARIANCE = 60.0
"""Largest plausible log-variance; a larger value is something else."""
COMPARABLE_LOG_VARIANCE = -80.0
"""Log-variance below which the variance, its root and its logarithm are not compared, because some underflow to 0."""
SMALLEST_LOG_VARIANCE = -200.0
"""Log-variance that represents a variance of 0 in float32."""


class UndecidedError(InputError):
    """Error raised if the values of unnamed arrays do not determine their meaning."""


@dataclasses.dataclass(frozen=True, eq=False)
class Encoded:
    """A posterior and the shape of its codes."""

    posterior: AbstractPosteriorDistribution
    code_shape: tuple[int, ...]
    """Shape of one code before it was flattened."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """Meaning of each array that an encoder returns."""

    roles: tuple[str, ...]
    """A member of :data:`ROLES` for each array."""
    reason: str = ""
    """Evidence for the reading; empty if it is a convention or was declared."""
    is_certain: bool = False
    """True if the values or the caller determine the meaning of the variance."""

    @property
    def note(self) -> str:
        """Sentence that states the reading."""
        reason = f": {self.reason}" if self.reason else ""
        return f"The encoder's outputs are read as ({', '.join(self.roles)}){reason}."


def check_outputs(outputs: object) -> tuple[str, ...]:
    """Return the names of an encoder's outputs, after checking that they contain a mean and at most one variance.

    :param outputs: names, members of :data:`ROLES`, one for each array.
    """
    if isinstance(outputs, str) or not isinstance(outputs, Sequence):
        raise InputError(
            "outputs",
            f"be a tuple of names, as in {EXAMPLE}",
            got=f"an object of type {type(outputs).__name__}",
        )
    for name in outputs:
        check_word("output of an encoder", name, ROLES)
    roles = tuple(map(str, outputs))
    if roles.count("mean") != 1 or sum(role in KINDS for role in roles) > 1:
        raise InputError(
            "outputs",
            f"contain 'mean' once and at most one of {', '.join(KINDS)}",
            got=f"{roles!r}",
            remedy="without a variance the encoder is deterministic",
        )
    return roles


def is_unnamed(output: object) -> bool:
    """Return True for a tuple or list of arrays; a named tuple names its parts, so it is read as an object."""
    return isinstance(output, (tuple, list)) and not hasattr(output, "_fields")


def read_posterior(
    output: object,
    n_rows: int,
    second: Second = "log_variance",
    reading: Reading | None = None,
    *,
    x: Tensor | None = None,
    is_point: bool = False,
    is_channels_last: bool = False,
    is_first: bool = False,
) -> Encoded:
    """Read the posterior from the output of an encoder for a batch of ``n_rows`` observations.

    :param output: the output.
    :param n_rows: number of observations.
    :param second: (default "log_variance") meaning of the second array of a pair, which has no name.
    :param reading: (default: determined) meaning of each of several unnamed arrays.
    :param x: (default None) the observations, by which reconstructions are recognised.
    :param is_point: (default False) if True, an output without a variance is the code of a deterministic encoder;
        otherwise it raises an error.
    :param is_channels_last: (default False) if True, the last axis of codes with several axes is moved to the front.
    :param is_first: (default False) if True, a log-variance that is positive everywhere is refused.
    """
    normal = _distribution_of(output)
    if isinstance(normal, torch.distributions.MultivariateNormal):
        _refuse_second(second, "a normal distribution")
        return _full(normal, n_rows)
    mean, spread, kind = _parts(output, n_rows, second, reading, x, is_point)
    if spread is None:
        _check_array(mean, n_rows, "code")
        mean = mean.movedim(-1, 1) if is_channels_last else mean
        return Encoded(PointMass(mean.flatten(1)), tuple(mean.shape[1:]))
    _refuse_contradiction(output, spread, kind, n_rows)
    if mean.shape != spread.shape or mean.ndim < 2 or len(mean) != n_rows or not mean.numel():
        raise InputError(
            "the encoder", _wanted(n_rows), got=f"shapes {tuple(mean.shape)} and {tuple(spread.shape)}"
        )
    for name, array in (("mean", mean), (kind, spread)):
        _check_array(array, n_rows, name)
    log_variance = _log_variance(spread, kind)
    if is_first and kind == "log_variance" and not (reading is not None and reading.is_certain):
        _refuse_positive(output, log_variance, ("mean", "log_variance") if reading is None else reading.roles)
    if is_channels_last:
        mean, log_variance = mean.movedim(-1, 1), log_variance.movedim(-1, 1)
    return Encoded(DiagonalGaussian(mean.flatten(1), log_variance.flatten(1)), tuple(mean.shape[1:]))


def _check_array(array: Tensor, n_rows: int, name: str) -> None:
    """Raise an error unless an array has a row of finite floating numbers for each observation."""
    if array.ndim < 2 or len(array) != n_rows or not array.numel():
        raise InputError("the encoder", _wanted(n_rows), got=f"a {name} of shape {tuple(array.shape)}")
    if not torch.is_floating_point(array):
        raise InputError("the encoder", f"{_wanted(n_rows)}, of floating type", got=f"{array.dtype}")
    _check_device(array)
    if not torch.isfinite(array).all():
        count = int((~torch.isfinite(array)).sum())
        raise InputError(
            problem=f"the encoder returned a {name} that is not finite ({count} of {array.numel()} values)",
            remedy="the model might have diverged, or the data might contain values that it was not trained on",
        )


def _check_device(array: Tensor) -> None:
    if array.is_meta:
        raise InputError(
            problem="the encoder returned a tensor on the meta device, which contains no numbers",
            remedy="load its weights on a device such as cpu",
        )


def _is_like(array: Tensor, x: Tensor) -> bool:
    """Return True if an array has the shape of the observations, or that of flattened observations."""
    return tuple(array.shape) in (tuple(x.shape), (len(x), x[0].numel()))


def _distribution_of(output: object) -> object:
    """Return an output, or the distribution that a mapping or an object contains under a common name."""
    if is_unnamed(output) or isinstance(output, torch.distributions.Distribution):
        return output
    named = _named(output)
    return next((named[name] for name in DISTRIBUTIONS if named.get(name) is not None), output)


def _full(normal: torch.distributions.MultivariateNormal, n_rows: int) -> Encoded:
    """Return the posterior with the covariance of a multivariate normal distribution."""
    mean, factor = normal.loc, normal.scale_tril
    if mean.ndim != 2:
        raise InputError(
            "the encoder", _wanted(n_rows), got=f"a normal distribution of shape {tuple(mean.shape)}"
        )
    _check_array(mean, n_rows, "mean")
    factor = factor.expand(*mean.shape, mean.shape[1])
    _check_array(factor, n_rows, "covariance")
    below = torch.tril(factor, diagonal=-1)
    log_conditional = 2 * torch.log(torch.diagonal(factor, dim1=1, dim2=2))
    return Encoded(FullGaussian(mean, log_conditional, below), tuple(mean.shape[1:]))


def _parts(
    output: Any,
    n_rows: int,
    second: Second,
    reading: Reading | None,
    x: Tensor | None,
    is_point: bool,
) -> tuple[Tensor, Tensor | None, Second]:
    """Return the mean, the second array, and the meaning of the second array."""
    if isinstance(output, torch.distributions.Independent):
        output = output.base_dist
    if isinstance(output, torch.distributions.Normal):
        _refuse_second(second, "a normal distribution")
        return output.loc, output.scale, "std"
    if isinstance(output, torch.distributions.Distribution):
        raise InputError(
            "the encoder",
            _wanted(n_rows),
            got=f"a {type(output).__name__} distribution",
            remedy="only normal posteriors, Normal and MultivariateNormal, are supported",
        )
    if is_unnamed(output):
        return _by_position(output, n_rows, second, reading, x, is_point)
    if reading is not None and len(reading.roles) == 1 and isinstance(output, (Tensor, np.ndarray)):
        return _tensor(output, n_rows), None, second
    if reading is not None and not reading.reason and len(reading.roles) > 1:
        raise InputError(
            problem=(
                Argument("outputs"),
                f" is for tuples, but the encoder returns a {type(output).__name__}",
            ),
            remedy="leave it out",
        )
    if is_point and isinstance(output, (Tensor, np.ndarray)):
        return _tensor(output, n_rows), None, second
    named = _named(output)
    for name in DISTRIBUTIONS:
        if named.get(name) is not None:
            return _parts(named[name], n_rows, second, None, x, is_point)
    mean = _only_mean(named, n_rows)
    second_name = next((name for name in SECONDS if named.get(name) is not None), None)
    if second_name is None and is_point:
        code = mean
        if code is None:
            code = next((named[name] for name in POINTS if named.get(name) is not None), None)
        if code is not None:
            return _tensor(code, n_rows), None, second
    if mean is None or second_name is None:
        raise _unknown_parts(output, named, n_rows)
    _refuse_second(second, f"its parts, {second_name} among them")
    return _tensor(mean, n_rows), _tensor(named[second_name], n_rows), SECONDS[second_name]


def _only_mean(named: Mapping[str, Any], n_rows: int) -> Any:
    """Return the mean; None if there is none. Raise an error if several parts are named as means and differ."""
    means = {name: named[name] for name in MEANS if named.get(name) is not None}
    first, *others = means.values() or (None,)
    for other in others:
        one, two = _tensor(first, n_rows), _tensor(other, n_rows)
        if one.shape != two.shape or not torch.equal(one, two.to(one)):
            raise InputError(
                problem=f"the encoder returns {', '.join(means)}, which do not agree",
                remedy="wrap it in a function that returns the pair (mean, log_variance)",
            )
    return first


def _unknown_parts(output: Any, named: Mapping[str, Any], n_rows: int) -> InputError:
    has = f"the parts {', '.join(sorted(named))}" if named else "no named parts"
    kind = type(output).__name__
    is_array = isinstance(output, (Tensor, np.ndarray))
    got = f"one array of shape {tuple(output.shape)}" if is_array else f"an object of type {kind} with {has}"
    return InputError(
        "the encoder",
        f"{_wanted(n_rows)}, or name its parts ({', '.join(MEANS)}; {', '.join(SECONDS)})",
        got=got,
        remedy=(
            ("use ", declaration("outputs", ("mean",)), " if this is the code of a deterministic encoder")
            if is_array
            else "wrap it in a function that returns the pair"
        ),
    )


def _by_position(
    output: Sequence[Any],
    n_rows: int,
    second: Second,
    reading: Reading | None,
    x: Tensor | None,
    is_point: bool,
) -> tuple[Tensor, Tensor | None, Second]:
    """Return the mean and the second array of unnamed arrays, with the meaning of the second array."""
    parts = flat_parts(output)
    # A distribution or an object with names inside a tuple, as diffusers returns without return_dict.
    if len(parts) == 1 and not isinstance(parts[0], (Tensor, np.ndarray)):
        return _parts(parts[0], n_rows, second, reading, x, is_point)
    reading = reading or name_parts(parts, n_rows, second, x)
    if len(reading.roles) != len(parts):
        raise InputError(
            "outputs",
            "name each output of the encoder",
            got=f"{len(reading.roles)} names for {len(parts)} outputs",
        )
    by_role = dict(zip(reading.roles, parts, strict=True))
    kind = next((kind for kind in KINDS if kind in by_role), None)
    mean = _tensor(by_role["mean"], n_rows)
    if kind is not None:
        return mean, _tensor(by_role[kind], n_rows), kind
    if not is_point and reading.reason:
        raise _unknown_parts(mean, {}, n_rows)
    return mean, None, second


def flat_parts(output: Sequence[object]) -> list[Any]:
    """Return the parts of an output, with those of inner tuples: (reconstruction, (mean, log_variance)).

    :param output: a tuple or list.
    """
    parts: list[Any] = []
    for part in output:
        parts += part if isinstance(part, tuple | list) and is_unnamed(part) else [part]
    return parts


def name_parts(
    parts: Sequence[object],
    n_rows: int,
    second: Second,
    x: Tensor | None,
    again: Sequence[object] | None = None,
) -> Reading:
    """Determine the meaning of unnamed arrays from their shapes and values.

    A pair is ``(mean, log_variance)``. A copy of the observations, and an array of their shape if the others have
    another shape, is not part of the posterior: it is a reconstruction. If two of the three remaining arrays are equal,
    they are the mean. Otherwise one is a draw z, and (z, mean, variance) and (mean, variance, z) are tried, with the
    variance in the four notations of :data:`KINDS`. A reading is accepted if under it alone the standardised residual
    (z − μ)/σ has variance 1 within 4 standard errors, √(2/n) each, over n ≥ 200 values.

    If only one array changes when the same batch is encoded again, it is the draw, so (mean, z, variance) is tried as
    well. If all arrays have the shape of an observation, a reconstruction is the first or the last one, and must have
    a smaller squared error than the mean observation.

    :param parts: the parts.
    :param n_rows: number of observations.
    :param second: meaning of the second array of a pair; if it is not "log_variance", no other meaning is tried.
    :param x: the observations, or None.
    :param again: (default None) the parts of a second call with the same observations.
    """
    arrays = {
        number: tensor.detach()
        for number, part in enumerate(parts)
        if (tensor := _array_of(part)) is not None and tensor.ndim > 1 and len(tensor) == n_rows
    }
    shapes = [tuple(part.shape) for part in parts if hasattr(part, "shape")]
    if len(parts) == 2 and (len(shapes) < 2 or shapes[0] == shapes[1]):
        return Reading(("mean", second))
    for array in arrays.values():
        _check_device(array)
    alike = [number for number, array in arrays.items() if x is not None and _is_like(array, x)]
    copies = [
        number
        for number in alike
        if x is not None and torch.equal(arrays[number].to(x), x.reshape(arrays[number].shape))
    ]
    alike = [number for number in alike if number not in copies]
    codes = [number for number in arrays if number not in alike and number not in copies]
    changing = _changing(arrays, again)
    roles, reason = ["other"] * len(parts), ""
    if codes and alike:
        reason = "an array has the shape of an observation"
        for number in alike:
            roles[number] = "reconstruction"
    elif not codes:
        codes = alike
        # All codes have the shape of an observation, so only the values can show a reconstruction.
        if x is not None and (
            len(codes) > 3 or (len(codes) == 3 and _has_reconstruction(arrays, codes, second, changing))
        ):
            number = _only_reconstruction(arrays, codes, x, changing)
            reason = "only this array is close to the observations, and it is neither a code nor a draw"
            roles[number] = "reconstruction"
            codes = [code for code in codes if code != number]
    if len(codes) == 1:
        roles[codes[0]] = "mean"
        return Reading(tuple(roles), reason or "there is only one array of codes")
    if len(codes) == 2:
        roles[codes[0]], roles[codes[1]] = "mean", second
        return Reading(tuple(roles), "" if len(parts) == 2 else reason or "the other parts are not codes")
    if len(codes) != 3 or len({arrays[number].shape for number in codes}) > 1:
        raise InputError(
            "the encoder",
            _wanted(n_rows),
            got=f"{len(parts)} outputs, {len(codes)} of which could be codes",
            remedy=("name them with ", declaration("outputs", EXAMPLE)),
        )
    equal = _equal_pair(arrays, codes)
    if equal is not None:
        (mean, draw), other = equal
        roles[mean], roles[draw], roles[other] = "mean", "z", second
        return Reading(tuple(roles), "two arrays are equal, so they are the mean")
    names, variance = _only_fitting(arrays, codes, second, changing)
    for number, name in zip(codes, names, strict=True):
        roles[number] = name
    return Reading(
        tuple(roles),
        f"only then the standardised residual of the draw has variance 1 ({variance:.3g} measured)",
        is_certain=True,
    )


def _changing(arrays: Mapping[int, Tensor], again: Sequence[object] | None) -> frozenset[int]:
    """Return the numbers of the arrays that differ in a second call; empty if there was none, or if all differ.

    Equal codes of a deterministic encoder differ by rounding at most, those of dropout all differ.
    """
    if again is None:
        return frozenset()
    changing = set()
    for number, array in arrays.items():
        other = _array_of(again[number]) if number < len(again) else None
        if (
            other is None
            or other.shape != array.shape
            or not torch.allclose(array, other.to(array), 1e-3, 1e-5)
        ):
            changing.add(number)
    return frozenset(changing) if len(changing) < len(arrays) else frozenset()


def _has_reconstruction(
    arrays: Mapping[int, Tensor], numbers: Sequence[int], second: Second, changing: frozenset[int]
) -> bool:
    """Return True if none of three arrays of the shape of observations is a draw or a copy of the others."""
    if _equal_pair(arrays, numbers) is not None:
        return False
    three = [arrays[number].double() for number in numbers]
    if three[0].numel() < MIN_VALUES:
        raise _undecided(3, 0, three[0].numel())
    return not _fitting(three, second, _draw_among(numbers, changing))


def _only_reconstruction(
    arrays: Mapping[int, Tensor], numbers: Sequence[int], x: Tensor, changing: frozenset[int]
) -> int:
    """Return the number of the first or last array, the only one that is closer to x than the mean observation."""
    observations = x.flatten(1).double()
    limit = float(((observations - observations.mean(0)) ** 2).mean())
    close = [
        number
        for number in (numbers[0], numbers[-1])
        if float(((arrays[number].flatten(1).double() - observations) ** 2).mean()) < limit
        # Only the reconstruction of a draw changes if the draw itself is not returned.
        and (len(numbers) > 3 or not changing or number in changing)
    ]
    if len(close) != 1:
        quantity = (
            "both the first and the last array are" if close else "neither the first nor the last array is"
        )
        raise UndecidedError(
            problem=(
                f"the encoder returns {len(arrays)} arrays without names that have the shape of an observation, and "
                f"{quantity} close to the observations"
            ),
            remedy=("name them in their order, for example ", declaration("outputs", WITH_RECONSTRUCTION)),
        )
    return close[0]


def _draw_among(numbers: Sequence[int], changing: frozenset[int]) -> int | None:
    """Return the position of the only code that changes, which is the draw; None if there is not exactly one."""
    positions = [position for position, number in enumerate(numbers) if number in changing]
    return positions[0] if len(positions) == 1 else None


def _only_fitting(
    arrays: Mapping[int, Tensor], numbers: Sequence[int], second: Second, changing: frozenset[int]
) -> tuple[tuple[str, str, str], float]:
    """Return the only reading that agrees with the values, and the variance of its residual."""
    three = [arrays[number].double() for number in numbers]
    n_values = three[0].numel()
    fitting = _fitting(three, second, _draw_among(numbers, changing)) if n_values >= MIN_VALUES else []
    if len(fitting) != 1:
        raise _undecided(len(three), len(fitting), n_values)
    return fitting[0]


def _equal_pair(arrays: Mapping[int, Tensor], numbers: Sequence[int]) -> tuple[tuple[int, int], int] | None:
    """Return the two equal arrays of three and the other one; None if there are none, or if all are equal."""
    pairs = [
        ((first, second), other)
        for first, second, other in ((0, 1, 2), (0, 2, 1), (1, 2, 0))
        if torch.equal(arrays[numbers[first]], arrays[numbers[second]])
    ]
    if len(pairs) != 1:
        return None
    (first, second), other = pairs[0]
    return (numbers[first], numbers[second]), numbers[other]


def _fitting(
    arrays: Sequence[Tensor], second: Second, draw: int | None = None
) -> list[tuple[tuple[str, str, str], float]]:
    """Return the readings under which the residual of the draw has variance 1, without those that agree.

    :param arrays: three arrays of float64.
    :param second: meaning of the variance; if it is not "log_variance", no other meaning is tried.
    :param draw: (default None) position of the draw, if it is known.
    """
    fitting: list[tuple[tuple[str, str, str], float, Tensor, Tensor]] = []
    kinds = KINDS if second == "log_variance" else (second,)
    for names, variance, mean, spread in _readings(arrays, kinds, draw):
        if abs(variance - 1) > N_ERRORS * math.sqrt(2 / mean.numel()):
            continue
        # A log-variance of 0 is also a log-SD of 0: the posterior is the same.
        is_new = not any(
            known is mean and torch.allclose(log_variance, spread, rtol=1e-3, atol=1e-3)
            for _, _, known, log_variance in fitting
        )
        if is_new:
            fitting.append((names, variance, mean, spread))
    return [(names, variance) for names, variance, _, _ in fitting]


def _readings(
    arrays: Sequence[Tensor], kinds: Sequence[Second], position: int | None
) -> Iterator[tuple[tuple[str, str, str], float, Tensor, Tensor]]:
    """Yield every reading, the mean square of its residual, its mean and its log-variance."""
    first, middle, last = arrays
    for kind in kinds:
        for names, draw, mean, spread in (
            (("z", "mean", kind), first, middle, last),
            (("mean", kind, "z"), last, first, middle),
            (("mean", "z", kind), middle, first, last),
        ):
            # If the draw repeats exactly, (mean, z, variance) has the same residual as (z, mean, variance).
            if position != names.index("z") and (position is not None or names[1] == "z"):
                continue
            if kind in ("variance", "std") and spread.min() <= 0:
                continue
            log_variance = _as_log_variance(spread, kind)
            square = ((draw - mean) ** 2 * torch.exp(-log_variance)).mean()
            if torch.isfinite(square):
                yield names, float(square), mean, log_variance


def _undecided(n_parts: int, n_fitting: int, n_values: int) -> UndecidedError:
    if n_values < MIN_VALUES:
        reason = f"and {n_values} values are too few to tell a draw from its mean ({MIN_VALUES} are needed)"
    elif n_fitting:
        reason = f"and {n_fitting} readings of them as draw, mean and variance agree with the values"
    else:
        reason = "and no reading of them as draw, mean and variance agrees with the values"
    return UndecidedError(
        problem=f"the encoder returns {n_parts} arrays without names, {reason}",
        remedy=("name them in their order, for example ", declaration("outputs", EXAMPLE)),
    )


def _array_of(part: Any) -> Tensor | None:
    """Return a part as a tensor; None if it does not contain floating numbers."""
    if isinstance(part, Tensor):
        return part if part.is_floating_point() else None
    if isinstance(part, (np.ndarray, list)) or hasattr(part, "__array__"):
        array = np.asarray(part)
        return torch.as_tensor(array) if array.dtype.kind == "f" else None
    return None


def _refuse_second(second: Second, what: str) -> None:
    """Raise an error if ``second`` is passed although the output names its parts."""
    if second != "log_variance":
        raise InputError(
            problem=(
                Argument("second", second),
                f" is for pairs and triples, but the encoder returns {what}",
            ),
            remedy="leave it out",
        )


def _refuse_contradiction(output: Any, spread: Tensor, kind: Second, n_rows: int) -> None:
    """Raise an error if an output contains variance, log-variance or standard deviation that do not agree."""
    if isinstance(output, torch.distributions.Distribution) or is_unnamed(output):
        return
    named = _named(output)
    named_seconds = {name: value for name in SECONDS if (value := named.get(name)) is not None}
    if len(named_seconds) < 2 or any(named.get(name) is not None for name in DISTRIBUTIONS):
        return
    # Below this limit a variance of 0 and its logarithm could not agree.
    expected = _log_variance(spread, kind).clamp(min=COMPARABLE_LOG_VARIANCE)
    for name, value in named_seconds.items():
        tensor = _tensor(value, n_rows)
        if tensor.shape != spread.shape or not torch.allclose(
            _log_variance(tensor, SECONDS[name]).clamp(min=COMPARABLE_LOG_VARIANCE),
            expected,
            rtol=1e-3,
            atol=1e-3,
        ):
            raise InputError(
                problem=f"the encoder returns {', '.join(named_seconds)}, which do not agree",
                remedy="wrap it in a function that returns the pair (mean, log_variance)",
            )


def _refuse_positive(output: Any, log_variance: Tensor, roles: tuple[str, ...]) -> None:
    """Raise an error if a log-variance is positive everywhere: every posterior would be wider than the prior."""
    if log_variance.min() <= 0:
        return
    names = [] if is_unnamed(output) else [name for name in SECONDS if _named(output).get(name) is not None]
    # Several names that agree determine the meaning.
    if len(names) > 1:
        return
    raise InputError(
        problem=(
            f"the log-variance of the encoder is positive everywhere, {float(log_variance.min()):.3g} to "
            f"{float(log_variance.max()):.3g}, as a variance or a standard deviation would be"
        ),
        remedy=(
            (f"return it as 'variance' or 'std', not as {names[0]!r}, or return a pair and declare it with ",)
            if names
            else (
                "use ",
                declaration("second", "variance"),
                " or ",
                Argument("second", "std"),
                ", or declare a log-variance with ",
            )
        )
        + (declaration("outputs", roles),),
    )


def _named(output: Any) -> dict[str, Any]:
    """Return the entries of a mapping, or the common attributes that an object has."""
    if isinstance(output, Mapping):
        return {str(key): value for key, value in output.items()}
    if isinstance(output, (Tensor, np.ndarray)):
        return {}
    wanted = (*MEANS, *SECONDS, *DISTRIBUTIONS, *RECONSTRUCTIONS, *POINTS)
    return {
        name: value
        for name in wanted
        # A method, such as the mean of a tensor, is not a part of the output.
        if not callable(value := getattr(output, name, None)) and value is not None
    }


def _as_log_variance(spread: Tensor, kind: Second) -> Tensor:
    """Return the logarithm of the variance, without checks."""
    if kind == "log_variance":
        return spread
    if kind == "log_std":
        return 2 * spread
    return (2.0 if kind == "std" else 1.0) * torch.log(spread)


def _log_variance(spread: Tensor, kind: Second) -> Tensor:
    """Return the logarithm of the variance; raise an error if the values contradict their meaning."""
    if kind in ("log_variance", "log_std"):
        log_variance = _as_log_variance(spread, kind)
        if log_variance.max() > MAX_LOG_VARIANCE:
            raise InputError(
                problem=(
                    f"the logarithm of the encoder's variance reaches {float(log_variance.max()):.3g}, an implausibly "
                    "large variance"
                ),
                remedy=(
                    "return the logarithm of the variance, or declare what it is: ",
                    declaration("second", "variance"),
                    " or ",
                    Argument("second", "std"),
                ),
            )
        return log_variance
    if spread.min() < 0:
        raise InputError(
            f"the encoder's {kind}",
            "not be negative",
            got=f"a minimum of {float(spread.min()):.3g}",
            remedy="this looks like a log-variance",
        )
    # The logarithm of 0 is −∞, with which no KL can be computed.
    return _as_log_variance(spread, kind).clamp(min=SMALLEST_LOG_VARIANCE)


def read_outputs(output: object, n_rows: int) -> Float[Tensor, "sample ..."]:
    """Read the array from the output of a decoder for a batch of ``n_rows`` codes."""
    if not isinstance(output, (Tensor, np.ndarray)):
        named = _named(output)
        output = next((named[name] for name in RECONSTRUCTIONS if named.get(name) is not None), output)
    if isinstance(output, (tuple, list)) and output:
        output = output[0]
    tensor = torch.as_tensor(output) if isinstance(output, np.ndarray) else output
    if not isinstance(tensor, Tensor) or tensor.ndim < 2 or len(tensor) != n_rows:
        received = f"shape {tuple(tensor.shape)}" if isinstance(tensor, Tensor) else type(tensor).__name__
        raise InputError(
            "the decoder", f"return a tensor with a row of values for each of {n_rows} codes", got=received
        )
    return tensor


def _tensor(value: Any, n_rows: int) -> Tensor:
    refuse_masked(value, "the output of the encoder")
    try:
        # Lists and arrays of other libraries become NumPy arrays first.
        return value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
    except (TypeError, ValueError, RuntimeError):
        raise InputError("the encoder", _wanted(n_rows), got=type(value).__name__) from None


def _wanted(n_rows: int) -> str:
    return f"return (mean, log_variance), two arrays of shape ({n_rows}, latent) for this batch"


def to_logits(probability: Float[Tensor, "sample ..."]) -> Float[Tensor, "sample ..."]:
    """Return logits of probabilities, with logarithms of at least −100, as in PyTorch's binary cross-entropy."""
    return torch.log(probability).clamp(min=-100.0) - torch.log1p(-probability).clamp(min=-100.0)
