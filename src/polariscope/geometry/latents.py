"""Which latents an analysis looks at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polariscope.analysis.regime.variable_types import TYPES, VariableType
from polariscope.core.errors import InputError, unknown


def kept_latents(
    n_latents: int,
    types: Sequence[VariableType] | None = None,
    keep: Sequence[int] | None = None,
    name: str = "keep",
) -> tuple[int, ...]:
    """Numbers of the latents that are not passive by ``types``, or those in ``keep``; all when both are None.

    ``name`` is what the caller calls ``keep``.

    >>> kept_latents(3, types=["active", "passive", "mixed"])
    (0, 2)
    """
    if types is not None and keep is not None:
        raise InputError(
            "give types or keep, not both; types drops the passive latents, keep names the others."
        )
    if types is not None:
        if len(types) != n_latents:
            raise InputError(f"types must name each of the {n_latents} latents, got {len(types)} names.")
        for name in types:
            if name not in TYPES:
                raise InputError(unknown("variable type", str(name), TYPES))
        kept = [j for j, name in enumerate(types) if name != "passive"]
        if not kept:
            raise InputError(
                f"all {n_latents} latents are passive, so the decoder has no direction to look along; "
                "train with a smaller beta."
            )
        return tuple(kept)
    if keep is None:
        return tuple(range(n_latents))
    kept = [int(j) for j in np.asarray(keep).ravel()]
    if not kept or len(set(kept)) != len(kept) or min(kept) < 0 or max(kept) >= n_latents:
        raise InputError(
            f"{name} must name different latents from 0 to {n_latents - 1}, at least one, got {kept}."
        )
    return tuple(kept)
