"""Hash of a function, to notice that results in a folder come from another one."""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Callable
from typing import Any


def function_digest(function: Callable[..., object]) -> str:
    """Return a hash of the compiled code of a function and of the numbers, texts and arrays that it encloses.

    For built-in functions it is the name. Two functions with equal digests can still differ in other functions and
    objects that they use.

    >>> def scaled(factor):
    ...     return lambda x: factor * x
    >>> function_digest(scaled(1)) == function_digest(scaled(2))
    False
    >>> function_digest(len)
    'len'

    :param function: the function.
    """
    if isinstance(function, functools.partial):
        arguments = [function.args, sorted(function.keywords.items())]
        return hashlib.sha256(f"{function_digest(function.func)} {arguments}".encode()).hexdigest()
    # The code of an object that is called is in its class.
    if not (inspect.isroutine(function) or inspect.isclass(function)):
        function = type(function).__call__
    code = getattr(function, "__code__", None)
    if code is None:
        return getattr(function, "__qualname__", type(function).__name__)
    # Two functions with the same code can differ in the values that they enclose.
    cells = [_digest_value(cell.cell_contents) for cell in getattr(function, "__closure__", None) or ()]
    return hashlib.sha256(f"{_code_text(code)} {cells}".encode()).hexdigest()


def _code_text(code: types.CodeType) -> str:
    """Return the instructions, names and constants of compiled code, without line numbers and addresses."""
    constants = [_code_text(value) if inspect.iscode(value) else repr(value) for value in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _digest_value(value: Any) -> str:
    """Return a text that differs for different numbers, texts and arrays, and for modules with different weights."""
    if hasattr(value, "state_dict"):
        return str([(name, _digest_value(each)) for name, each in value.state_dict().items()])
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if hasattr(value, "tobytes") and hasattr(value, "shape"):
        return hashlib.sha256(value.tobytes()).hexdigest() + str(value.shape)
    return repr(value) if isinstance(value, int | float | str) else type(value).__name__
