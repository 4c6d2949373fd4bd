"""Conversion of the common outputs of encoders and decoders of other libraries to posteriors and arrays.

An encoder can return

* a pair ``(mean, log_variance)`` or a triple ``(mean, log_variance, z)``;
* a mapping or an object that names its parts (:data:`MEANS`, :data:`SECONDS`), or contains a distribution under one of
  :data:`DISTRIBUTIONS`;
* a ``torch.distributions.Normal``, also inside ``Independent``.

Codes of shape (sample, channel, height, width) are flattened. A decoder can return a tensor, or an object or mapping
that contains one under :data:`RECONSTRUCTIONS`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.core.arrays import refuse_masked
from polariscope.core.errors import Argument, InputError
from polariscope.models.posteriors.diagonal import DiagonalGaussian

Second = Literal["log_variance", "variance", "std"]
MEANS = ("mean", "mu", "embedding", "loc")
SECONDS: dict[str, Second] = {
    "log_variance": "log_variance",
    "logvar": "log_variance",
    "log_var": "log_variance",
    "log_covariance": "log_variance",
    "variance": "variance",
    "var": "variance",
    "std": "std",
    "stddev": "std",
    "scale": "std",
    "sigma": "std",
}
DISTRIBUTIONS = ("latent_dist", "qz", "posterior")
RECONSTRUCTIONS = ("reconstruction", "sample", "recon_x", "x_hat", "mean")
MAX_LOG_VARIANCE = 60.0
"""Largest plausible log-variance; a larger value is something else."""
COMPARABLE_LOG_VARIANCE = -80.0
"""Log-variance below which the variance, its root and its logarithm are not compared, because some underflow to 0."""
SMALLEST_LOG_VARIANCE = -200.0
"""Log-variance that represents a variance of 0 in float32."""


@dataclasses.dataclass(frozen=True, eq=False)
class Encoded:
    """A posterior and the shape of its codes."""

    posterior: DiagonalGaussian
    code_shape: tuple[int, ...]
    """Shape of one code before it was flattened."""


def read_posterior(output: object, n_rows: int, second: Second = "log_variance") -> Encoded:
    """Read the posterior from the output of an encoder for a batch of ``n_rows`` observations.

    :param second: (default "log_variance") meaning of the second array of a pair or triple, which has no name.
    """
    mean, spread, kind = _parts(output, n_rows, second)
    _refuse_contradiction(output, spread, kind, n_rows)
    if mean.shape != spread.shape or mean.ndim < 2 or len(mean) != n_rows or not mean.numel():
        raise InputError(
            "the encoder", _wanted(n_rows), got=f"shapes {tuple(mean.shape)} and {tuple(spread.shape)}"
        )
    if not (torch.is_floating_point(mean) and torch.is_floating_point(spread)):
        raise InputError(
            "the encoder", f"{_wanted(n_rows)}, of floating type", got=f"{mean.dtype} and {spread.dtype}"
        )
    if mean.is_meta or spread.is_meta:
        raise InputError(
            problem="the encoder returned a tensor on the meta device, which contains no numbers",
            remedy="load its weights on a device such as cpu",
        )
    for name, array in (("mean", mean), (kind, spread)):
        if not torch.isfinite(array).all():
            raise InputError(
                problem=f"the encoder returned a {name} that is not finite",
                remedy="the model might have diverged",
            )
    log_variance = _log_variance(spread, kind)
    return Encoded(DiagonalGaussian(mean.flatten(1), log_variance.flatten(1)), tuple(mean.shape[1:]))


def _parts(output: Any, n_rows: int, second: Second) -> tuple[Tensor, Tensor, Second]:
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
            remedy="only normal posteriors with independent latents are supported",
        )
    # A named tuple names its parts, so it is read as an object.
    if isinstance(output, (tuple, list)) and not hasattr(output, "_fields"):
        if len(output) not in (2, 3):
            raise InputError(
                "the encoder",
                _wanted(n_rows),
                got=f"a {type(output).__name__} of {len(output)}",
                remedy="wrap it in a function that returns the pair",
            )
        return _tensor(output[0], n_rows), _tensor(output[1], n_rows), second
    named = _named(output)
    for name in DISTRIBUTIONS:
        if named.get(name) is not None:
            return _parts(named[name], n_rows, second)
    mean = next((named[name] for name in MEANS if named.get(name) is not None), None)
    second_name = next((name for name in SECONDS if named.get(name) is not None), None)
    if mean is None or second_name is None:
        has = f"the parts {', '.join(sorted(named))}" if named else "no named parts"
        raise InputError(
            "the encoder",
            f"{_wanted(n_rows)}, or name its parts ({', '.join(MEANS)}; {', '.join(SECONDS)})",
            got=f"an object of type {type(output).__name__} with {has}",
            remedy="wrap it in a function that returns the pair",
        )
    _refuse_second(second, f"its parts, {second_name} among them")
    return _tensor(mean, n_rows), _tensor(named[second_name], n_rows), SECONDS[second_name]


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
    if isinstance(output, (tuple, list, torch.distributions.Distribution)) and not hasattr(output, "_fields"):
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


def _named(output: Any) -> dict[str, Any]:
    """Return the entries of a mapping, or the common attributes that an object has."""
    if isinstance(output, Mapping):
        return {str(key): value for key, value in output.items()}
    if isinstance(output, (Tensor, np.ndarray)):
        return {}
    wanted = (*MEANS, *SECONDS, *DISTRIBUTIONS, *RECONSTRUCTIONS)
    return {
        name: value
        for name in wanted
        # A method, such as the mean of a tensor, is not a part of the output.
        if not callable(value := getattr(output, name, None)) and value is not None
    }


def _log_variance(spread: Tensor, kind: Second) -> Tensor:
    """Return the logarithm of the variance; raise an error if the values contradict their meaning."""
    if kind == "log_variance":
        if spread.max() > MAX_LOG_VARIANCE:
            raise InputError(
                problem=(
                    f"the logarithm of the encoder's variance reaches {float(spread.max()):.3g}, an implausibly large "
                    "variance"
                ),
                remedy=(
                    "return the logarithm of the variance, or declare what it is: ",
                    Argument("second", "variance"),
                    " or ",
                    Argument("second", "std"),
                ),
            )
        return spread
    if spread.min() < 0:
        raise InputError(
            f"the encoder's {kind}",
            "not be negative",
            got=f"a minimum of {float(spread.min()):.3g}",
            remedy="this looks like a log-variance",
        )
    power = 2.0 if kind == "std" else 1.0
    # The logarithm of 0 is −∞, with which no KL can be computed.
    return (power * torch.log(spread)).clamp(min=SMALLEST_LOG_VARIANCE)


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
