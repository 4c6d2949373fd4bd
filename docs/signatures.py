"""Writes src/polariscope/_signatures.pyi, the signatures that type checkers cannot see: ``python docs/signatures.py``.

Members of families and functions whose options are fields of records get their signatures while they are imported. The
stub has them as :func:`inspect.signature` shows them, with arrays as named unions.
"""

from __future__ import annotations

import collections.abc
import contextlib
import inspect
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import polariscope as ps
from polariscope.core import files
from polariscope.core.registry import Family

TARGET = Path(ps.__file__).with_name("_signatures.pyi")
INTERNAL = "sizing"
"""Family whose members users call through functions, so their signatures are not part of the face."""
FUNCTIONS = ("size", "compare_sizes", "size_curve", "size_table")
NAMED_UNIONS = ("DataLike", "OptionValue", "FactorsLike", "ArrayInput", "Mapping")
"""Named unions, which are plain objects at run time, so their names are taken from the source."""
HEAD = '''"""Signatures for type checkers; written by ``make docs`` (docs/signatures.py)."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from polariscope.analysis.dimension import Dimension
from polariscope.analysis.metrics import Score
from polariscope.core.registry import Family
from polariscope.core.types import ArrayInput, OptionValue
from polariscope.data.data_like import DataLike
from polariscope.models.protocol import DeviceLike
from polariscope.sizing.compare import SizeComparison
from polariscope.sizing.curve_result import SizeCurve
from polariscope.sizing.result import Size
from polariscope.studies.size_table import SizeTable
'''


def text_of(annotation: Any, scope: dict[str, Any]) -> str:
    """Return an annotation as the stub writes it; arrays of every kind are ``ArrayInput``."""
    if isinstance(annotation, str):
        if any(name in annotation for name in NAMED_UNIONS):
            return annotation
        with contextlib.suppress(Exception):  # names that only type checkers import
            return text_of(eval(annotation, scope), scope)
        return annotation
    if annotation is None or annotation is type(None):
        return "None"
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return text_of(inner[0], scope)
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, inner))}]"
    if origin in (typing.Union, types.UnionType):
        parts = list(dict.fromkeys(text_of(part, scope) for part in inner))
        # The parts of NumPy's ArrayLike include texts and numbers, which are part of ArrayInput.
        if "ArrayInput" in parts:
            parts = ["ArrayInput", *(["None"] if "None" in parts else [])]
        return " | ".join(parts)
    if origin in (collections.abc.Sequence, list, tuple, collections.abc.Mapping):
        name = {collections.abc.Sequence: "Sequence", collections.abc.Mapping: "Mapping"}.get(
            origin, origin.__name__
        )
        return f"{name}[{', '.join('...' if part is ... else text_of(part, scope) for part in inner)}]"
    if origin is collections.abc.Callable:
        return "Callable[..., object]"
    module = getattr(annotation, "__module__", "") or getattr(origin, "__module__", "")
    if module.startswith(("numpy", "jaxtyping")) or hasattr(annotation, "array_type"):
        return "ArrayInput"
    return getattr(annotation, "__name__", "object")


def signature_of(name: str, function: Callable[..., Any]) -> str:
    """Return a function as a line of the stub."""
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    signature = inspect.signature(function)
    parts, has_star = [], False
    for parameter in signature.parameters.values():
        text = f"{parameter.name}: {text_of(parameter.annotation, scope)}"
        if parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{text}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            parts.append("*")
            has_star = True
        parts.append(text if parameter.default is parameter.empty else f"{text} = ...")
    return f"def {name}({', '.join(parts)}) -> {text_of(signature.return_annotation, scope)}: ..."


def stub() -> str:
    """Return the text of the stub."""
    lines = [HEAD]
    for name in FUNCTIONS:
        lines += [signature_of(name, getattr(ps, name))]
    imports = []
    for name in sorted(set(ps._FAMILIES) - {INTERNAL}):
        family: Family = getattr(ps, name)
        lines += ["", f"class _{name.capitalize()}(Family):"]
        for member in sorted(family.working()):
            concept, attribute = family[member], member.replace("-", "_")
            if inspect.isclass(concept):
                imports.append(f"from {concept.__module__} import {concept.__name__}")
                lines.append(f"    {attribute}: type[{concept.__name__}]")
            else:
                lines += ["    @staticmethod", f"    {signature_of(attribute, concept)}"]
        lines += ["", f"{name}: _{name.capitalize()}"]
    lines.insert(1, "\n".join(imports) + "\n")
    # Named unions of record fields are plain objects by the time that signatures show them.
    return "\n".join([*lines, ""]).replace("device: object", "device: DeviceLike")


if __name__ == "__main__":
    files.write_text(TARGET, stub())
    print(f"wrote {TARGET.name}")
