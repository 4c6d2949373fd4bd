"""Hash of a function, to notice that results in a folder come from another one."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable


def function_digest(function: Callable[..., object]) -> str:
    """Return a hash of the source code of a function and of the plain values that it encloses.

    Without source code, such as in a notebook, its compiled code is used, and for built-in functions the name. Two
    functions with equal digests can still differ in other functions and objects that they use.

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
    # Two functions with the same source can differ in the values that they enclose.
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    plain = repr([value for value in cells if isinstance(value, int | float | str)])
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        if code is None:
            return getattr(function, "__qualname__", type(function).__name__)
        # Constants that are functions contain an address, which differs in every process.
        constants = [value for value in code.co_consts if not inspect.iscode(value)]
        source = f"{code.co_code.hex()} {code.co_names} {constants}"
    return hashlib.sha256((source + plain).encode()).hexdigest()
