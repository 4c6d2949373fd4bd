"""Calls of functions of other libraries, with errors that name the function and its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from polariscope.core.errors import InputError

MAX_LENGTH = 200
"""Maximum length of a message of another library that is quoted."""


class ForeignError(InputError):
    """Error raised inside a function of another library; its cause is the original error."""


def type_name(thing: object) -> str:
    """Return the type of an object of another library for messages.

    The ``repr`` is not used: it can be long, and that of some libraries prints.

    :param thing: the object, a function, a method or a class.
    """
    owner = getattr(thing, "__self__", None)
    name = getattr(thing, "__name__", None)
    if owner is not None and name and name != type(owner).__name__:
        return f"{type(owner).__name__}.{name}"
    return str(name) if name else type(thing).__name__


def quoted(error: BaseException) -> str:
    """Return class and first line of an error of another library for messages.

    :param error: the error.
    """
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:MAX_LENGTH] if text else 'no message'}"


def call_foreign(part: str, function: Callable[..., object], values: Tensor, noun: str) -> Any:
    """Call the encoder or decoder of another library; errors name its class and the shape of the batch.

    A remedy is added if the batch is the likely cause.

    :param part: "encoder" or "decoder".
    :param function: the function or module.
    :param values: a batch of observations or codes.
    :param noun: noun for one row of the batch, with an article.
    """
    try:
        return function(values)
    # An exhausted memory is handled by smaller batches.
    except (InputError, torch.OutOfMemoryError):
        raise
    # Code of other libraries can raise any error.
    except Exception as error:
        remedy = _remedy(part, error, values, noun)
        name, shape = type_name(function), tuple(values.shape)
        if remedy is None:
            problem = f"the {part} {name} raised {quoted(error)} for a batch of shape {shape}"
        else:
            kind = str(values.dtype).removeprefix("torch.")
            problem = (
                f"the {part} {name} does not accept a batch of shape {shape} and type {kind}: {quoted(error)}"
            )
        raise ForeignError(problem=problem, remedy=remedy) from error


def _remedy(part: str, error: Exception, values: Tensor, noun: str) -> str | None:
    """Return the likely remedy for an error of an encoder or decoder; None if its cause is not the batch."""
    text = str(error).lower()
    if "device" in text:
        return "move all its weights to one device, for example with .to('cpu')"
    if "dtype" in text or "expected scalar type" in text or "same type" in text:
        return "convert all its weights to one type, for example with .float()"
    if isinstance(error, (KeyError, TypeError, IndexError, AttributeError)):
        return (
            f"it might take more than a batch of numbers; pass polariscope.wrap a function of a batch that calls it"
            f"{' and returns (mean, log_variance)' if part == 'encoder' else ''}"
        )
    if not any(word in text for word in ("shape", "size", "dimension")):
        return None
    shape = " × ".join(map(str, values.shape[1:]))
    return (
        f"{noun} has shape {shape} here; pass data of the shape that the model was trained on, or pass "
        "polariscope.wrap a function that reshapes them first"
    )
