"""Helpers of contracts: their cases, checks of every member, and numerical oracles."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, get_args, get_origin

import numpy as np
import torch

from polariscope.core.options import build, options_of, to_record
from polariscope.core.registry import Family

STANDARD_ERRORS = 5.0


def variants(family: Family, names: Iterable[str] | None = None) -> list[Any]:
    """Return members with their defaults, and with each other choice of the options that are Literals.

    :param family: the family.
    :param names: (default all) names of the members.
    """
    made = []
    for name in family if names is None else names:
        made.append(build(family, name))
        for option in options_of(family[name]).values():
            if get_origin(option.annotation) is Literal:
                others = [choice for choice in get_args(option.annotation) if choice != option.default]
                made += [build(family, name, {option.name: choice}) for choice in others]
    return made


def real_line(n_points: int = 40_001) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights for ∫ f(z) dz over the real line, z = sinh u: fine near 0, reaching ±3·10⁷."""
    u = np.linspace(-18.0, 18.0, n_points)
    # dz = cosh u du.
    return np.sinh(u), np.cosh(u) * (u[1] - u[0])


def assert_mean_is(draws: np.ndarray, expected: np.ndarray | float | int) -> None:
    """Check that the mean of the rows is ``expected`` within ``STANDARD_ERRORS``, estimated from the rows."""
    error = draws.std(axis=0, ddof=1) / math.sqrt(len(draws))
    gap = np.abs(draws.mean(axis=0) - expected)
    assert (gap <= STANDARD_ERRORS * error).all(), f"off by {(gap / error).max():.1f} standard errors"


def directional_derivatives(
    loss: Callable[[], torch.Tensor], parameters: Sequence[torch.Tensor], seed: int, step: float = 1e-6
) -> tuple[float, float]:
    """Differentiate ``loss`` along a random direction of the parameters, by backpropagation and by difference."""
    draw = torch.Generator().manual_seed(seed)
    direction = [torch.randn(p.shape, generator=draw, dtype=p.dtype) for p in parameters]
    gradients = torch.autograd.grad(loss(), parameters, allow_unused=True)
    analytic = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True) if g is not None)

    def shifted(sign: float) -> float:
        with torch.no_grad():
            for p, d in zip(parameters, direction, strict=True):
                p.add_(d, alpha=sign * step)
            value = float(loss())
            for p, d in zip(parameters, direction, strict=True):
                p.sub_(d, alpha=sign * step)
        return value

    return analytic, (shifted(1.0) - shifted(-1.0)) / (2 * step)


def label(concept: Any) -> str:
    """Return the name of a variant in the list of tests."""
    return re.sub(r"[^\w=.,-]+", "", repr(concept))


def assert_is_a_good_member(family: Family, name: str) -> None:
    """Check a member of any family: it is documented, frozen, built by name and stored as JSON."""
    member = family[name]
    text = inspect.getdoc(member) or ""
    assert text, f"{name} has no docstring"
    source = r"\.\. math::|https?://|[A-Za-z]+ ?(et al\.|& \w+)?,? ?\(?(19|20)\d\d"
    assert re.search(source, text), f"{name} must state its equation or its reference"
    for option in options_of(member).values():
        assert option.help, f"option {option.name} of {name} has no docstring under it"
        assert not option.required, f"option {option.name} of {name} has no default"
    made = build(family, name)
    assert dataclasses.is_dataclass(made)
    # typeshed does not declare the attributes that dataclasses adds to each class.
    assert getattr(made, "__dataclass_params__").frozen, f"{name} can be changed after construction"  # noqa: B009
    record = json.loads(json.dumps(to_record(made, family), allow_nan=False))
    assert build(family, record) == made
    assert hash(made) == hash(build(family, record))
