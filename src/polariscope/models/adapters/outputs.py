"""What encoders and decoders of other libraries customarily return, read into posteriors and arrays.

An encoder may return

* a pair ``(mean, log_variance)`` or a triple ``(mean, log_variance, z)``;
* a mapping or an object that names its parts (:data:`MEANS`, :data:`SECONDS`), or holds a distribution under one of
  :data:`DISTRIBUTIONS`;
* a ``torch.distributions.Normal``, also inside ``Independent``.

Codes of shape (sample, channel, height, width) are flattened. A decoder may return a tensor, or an object or mapping
that holds one under :data:`RECONSTRUCTIONS`.
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
BEYOND_SCALE = 60.0
"""A log-variance above it is no log-variance."""
SURELY_APART = -80.0
"""Log-variances below it may be 0 in one form and not in another."""
SMALLEST_LOG_VARIANCE = -200.0
"""Stands for a variance that is 0 in float32."""


@dataclasses.dataclass(frozen=True, eq=False)
class Encoded:
    """A posterior, and the shape its codes had."""

    posterior: DiagonalGaussian
    code_shape: tuple[int, ...]
    """Of one code before it was flattened."""


def read_posterior(output: object, n_rows: int, second: Second = "log_variance") -> Encoded:
    """The posterior in what an encoder returned for a batch of ``n_rows`` observations.

    :param second: (default "log_variance") what the second array of a pair or triple is, where nothing names it.
    """
    mean, spread, kind = _parts(output, n_rows, second)
    _refuse_contradiction(output, spread, kind, n_rows)
    if mean.shape != spread.shape or mean.ndim < 2 or len(mean) != n_rows:
        raise InputError(
            "the encoder", _wanted(n_rows), got=f"shapes {tuple(mean.shape)} and {tuple(spread.shape)}"
        )
    if not (torch.is_floating_point(mean) and torch.is_floating_point(spread)):
        raise InputError(
            "the encoder", f"{_wanted(n_rows)}, of floating type", got=f"{mean.dtype} and {spread.dtype}"
        )
    for name, array in (("mean", mean), (kind, spread)):
        if not torch.isfinite(array).all():
            raise InputError(
                problem=f"the encoder returned a {name} that is not finite",
                remedy="the model may have diverged",
            )
    log_variance = _log_variance(spread, kind)
    return Encoded(DiagonalGaussian(mean.flatten(1), log_variance.flatten(1)), tuple(mean.shape[1:]))


def _parts(output: Any, n_rows: int, second: Second) -> tuple[Tensor, Tensor, Second]:
    """Mean, the second array, and what that is."""
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
            remedy="only normal posteriors with independent latents are understood",
        )
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
        has = ", ".join(sorted(named)) if named else "no names"
        raise InputError(
            "the encoder",
            f"{_wanted(n_rows)}, or name its parts ({', '.join(MEANS)}; {', '.join(SECONDS)})",
            got=f"a {type(output).__name__} with {has}",
            remedy="wrap it in a function that returns the pair",
        )
    _refuse_second(second, f"its parts, {second_name} among them")
    return _tensor(mean, n_rows), _tensor(named[second_name], n_rows), SECONDS[second_name]


def _refuse_second(second: Second, what: str) -> None:
    """Where the output says itself what its parts are, nobody else needs to."""
    if second != "log_variance":
        raise InputError(
            problem=(Argument("second", second), f" is for pairs and triples, and the encoder names {what}"),
            remedy="leave it out",
        )


def _refuse_contradiction(output: Any, spread: Tensor, kind: Second, n_rows: int) -> None:
    """Refuse a mapping or object that holds several of variance, its logarithm and its root, which do not agree."""
    if isinstance(output, (tuple, list, torch.distributions.Distribution)) and not hasattr(output, "_fields"):
        return
    named = _named(output)
    others = {name: value for name in SECONDS if (value := named.get(name)) is not None}
    if len(others) < 2 or any(named.get(name) is not None for name in DISTRIBUTIONS):
        return
    expected = _log_variance(spread, kind).clamp(min=SURELY_APART)
    for name, value in others.items():
        other = _tensor(value, n_rows)
        if other.shape != spread.shape or not torch.allclose(
            _log_variance(other, SECONDS[name]).clamp(min=SURELY_APART), expected, rtol=1e-3, atol=1e-3
        ):
            raise InputError(
                problem=f"the encoder names {', '.join(others)}, and they do not agree",
                remedy="wrap it in a function that returns the pair (mean, log_variance)",
            )


def _named(output: Any) -> dict[str, Any]:
    """The parts of a mapping, or those of the customary attributes that an object has."""
    if isinstance(output, Mapping):
        return {str(key): value for key, value in output.items()}
    if isinstance(output, (Tensor, np.ndarray)):
        return {}
    wanted = (*MEANS, *SECONDS, *DISTRIBUTIONS, *RECONSTRUCTIONS)
    return {
        name: value
        for name in wanted
        if not callable(value := getattr(output, name, None)) and value is not None
    }


def _log_variance(spread: Tensor, kind: Second) -> Tensor:
    """The logarithm of the variance; values that contradict what they are said to be are refused."""
    if kind == "log_variance":
        if spread.max() > BEYOND_SCALE:
            raise InputError(
                problem=(
                    f"the logarithm of the encoder's variance reaches {float(spread.max()):.3g}, a variance beyond all "
                    "scale"
                ),
                remedy=(
                    "return the logarithm of the variance, or say what it is: ",
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
    return (power * torch.log(spread)).clamp(min=SMALLEST_LOG_VARIANCE)


def read_outputs(output: object, n_rows: int) -> Float[Tensor, "sample ..."]:
    """The array in what a decoder returned for a batch of ``n_rows`` codes."""
    if not isinstance(output, (Tensor, np.ndarray)):
        named = _named(output)
        output = next((named[name] for name in RECONSTRUCTIONS if named.get(name) is not None), output)
    if isinstance(output, (tuple, list)) and output:
        output = output[0]
    tensor = torch.as_tensor(output) if isinstance(output, np.ndarray) else output
    if not isinstance(tensor, Tensor) or tensor.ndim < 2 or len(tensor) != n_rows:
        came = f"shape {tuple(tensor.shape)}" if isinstance(tensor, Tensor) else type(tensor).__name__
        raise InputError(
            "the decoder", f"return a tensor with a row of values for each of {n_rows} codes", got=came
        )
    return tensor


def _tensor(value: Any, n_rows: int) -> Tensor:
    refuse_masked(value, "what the encoder returns")
    try:
        return value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
    except (TypeError, ValueError, RuntimeError):
        raise InputError("the encoder", _wanted(n_rows), got=type(value).__name__) from None


def _wanted(n_rows: int) -> str:
    return f"return (mean, log_variance), two arrays of shape ({n_rows}, latent) for this batch"


def to_logits(probability: Float[Tensor, "sample ..."]) -> Float[Tensor, "sample ..."]:
    """Logits of probabilities, with logarithms no smaller than −100, as in PyTorch's binary cross-entropy."""
    return torch.log(probability).clamp(min=-100.0) - torch.log1p(-probability).clamp(min=-100.0)
