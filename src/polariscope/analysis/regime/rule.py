"""Options of the rule that classifies latents, with their defaults."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from annotated_types import Ge, Gt, Lt

from polariscope.core.option_values import Advice
from polariscope.core.options import checked

ALPHA_LIMIT = 0.5
"""Upper limit of α. At larger values "at most α" and "within α of 1" overlap."""

Alpha = Annotated[
    float,
    Gt(0),
    Lt(ALPHA_LIMIT),
    Advice(f"at {ALPHA_LIMIT} or more a latent could be both active and passive. The published value is 0.1"),
]

POLARISED = 0.03
"""Δ_KL below which a model is polarised (zietlow2022 Table 3.2)."""


@checked
@dataclasses.dataclass(frozen=True)
class TypeRule:
    """Options of the rule that calls a latent active, mixed or passive (bonheme2023 §6.4.1)."""

    alpha: Alpha = 0.1
    """Tolerance α of the rule for types; the published value is 0.1 (bonheme2023)."""
    n_bootstrap: Annotated[int, Ge(1)] = 200
    """Number of bootstrap resamples from which the confidence of each type is estimated."""
