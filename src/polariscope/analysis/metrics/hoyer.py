"""Hoyer's sparsity of the codes."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics import Score, metric
from polariscope.core.errors import InputError
from polariscope.numerics.intervals import mean_with_interval


@metric(
    "hoyer",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("codes",),
    invariant_to={"order", "scale", "sign"},
)
def hoyer(
    table: Table,
    *,
    variant: Literal["normalised", "raw"] = "normalised",
) -> Score:
    r"""Sparsity of the codes: 1 if each sample uses a single latent.

    .. math:: \frac1n \sum_i \frac{\sqrt d - \|z_i\|_1 / \|z_i\|_2}{\sqrt d - 1}

    for d latents. It is 1 if every sample has a single latent that is not 0, and 0 if all latents have the same
    absolute value. ``normalised``, the default, first divides each latent by its standard deviation over the samples
    (without centring), because latents near 0 would make any code look sparse; constant latents have no scale and are
    left out. ``raw`` uses the codes unchanged. Samples whose codes are all exactly 0 are left out.

    No factors are required: ``chance`` is the score of d independent standard normals, for which the mean of ‖z‖₁/‖z‖₂
    is d Γ(d/2) / (√π Γ((d+1)/2)). The interval is that of a mean.

    Reference: Mathieu et al., Disentangling Disentanglement in Variational Autoencoders
    (mathieu2019; mean encodings); hoyer2004.

    :param variant: (default "normalised") latents divided by their standard deviation, or unchanged ("raw").

    >>> hoyer(np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, -2.0]])).value
    1.0
    """
    varying = np.full(table.n_latents, True) if variant == "raw" else ~table.constant
    z = table.codes[:, varying] / (1.0 if variant == "raw" else table.codes[:, varying].std(axis=0))
    d = z.shape[1]
    if d < 2:
        raise InputError(
            problem="sparsity requires at least 2 latents that vary",
            got=f"{d} of {table.n_latents}",
        )
    length = np.linalg.norm(z, axis=1)
    used = length > 0
    if used.sum() < 2:
        raise InputError("codes", "not all be 0", remedy="their sparsity is not defined")
    ratio = np.abs(z[used]).sum(axis=1) / length[used]
    per_sample = np.clip((math.sqrt(d) - ratio) / (math.sqrt(d) - 1), 0, 1)
    value, interval = mean_with_interval(per_sample[:, None], at_least=0.0)
    # Logarithms, because Γ overflows for many latents.
    log_ratio = math.log(d) + math.lgamma(d / 2) - math.lgamma((d + 1) / 2) - math.log(math.pi) / 2
    sizes = np.zeros(table.n_latents)
    sizes[varying] = np.abs(z).mean(axis=0)
    notes = []
    if d < table.n_latents:
        notes.append(f"Constant latents are left out: {table.n_latents - d}.")
    if not used.all():
        notes.append(f"Samples whose codes are all 0 are left out: {int((~used).sum())}.")
    return Score.of(
        "hoyer",
        float(value[0]),
        interval=(float(interval[0, 0]), min(1.0, float(interval[0, 1]))),
        chance=(math.sqrt(d) - math.exp(log_ratio)) / (math.sqrt(d) - 1),
        variant=variant,
        per_latent=sizes,
        details={"n_latents": d},
        notes=tuple(notes),
    )
