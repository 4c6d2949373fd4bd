"""The rule that names the types of latents: one record with its defaults, for every entry point."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from annotated_types import Ge, Gt, Lt

from polariscope.core.option_values import Advice
from polariscope.core.options import checked

ALPHA_LIMIT = 0.5
"""Upper limit of α: from here on, "at most α" and "within α of 1" overlap."""

Alpha = Annotated[
    float,
    Gt(0),
    Lt(ALPHA_LIMIT),
    Advice(f"from {ALPHA_LIMIT} on a latent could be both active and passive. The published value is 0.1"),
]


@checked
@dataclasses.dataclass(frozen=True)
class TypeRule:
    """Options of the rule by which a latent is active, mixed or passive (bonheme2023 §6.4.1)."""

    alpha: Alpha = 0.1
    """Tolerance α of the rule that names the types; 0.1 as published."""
    n_bootstrap: Annotated[int, Ge(1)] = 200
    """Number of bootstrap resamples behind each confidence."""
