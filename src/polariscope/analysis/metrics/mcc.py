"""Mean correlation coefficient."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from polariscope.analysis.code_table import Table, correlations
from polariscope.analysis.metrics import Score, metric
from polariscope.numerics.assignment import assign
from polariscope.numerics.intervals import recentred_interval


@metric(
    "mcc",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("codes", "factors"),
    invariant_to={"order", "shift", "scale", "sign"},
)
def mcc(
    table: Table,
    *,
    variant: Literal["pearson", "spearman"] = "pearson",
) -> Score:
    r"""Mean correlation of each factor with a matched latent of its own.

    .. math:: \mathrm{MCC} = \frac1K \max_{\pi} \sum_k | \rho(z_{\pi(k)}, w_k) |

    over assignments π of different latents to the K factors, found by linear assignment. It is 1 if each factor is a
    linear function of its own latent (``pearson``), or a monotone one (``spearman``, on ranks), and 0 if no latent is
    correlated with any factor. If there are fewer latents than factors, unmatched factors count as 0. A constant latent
    has correlation 0. The values of the factors are used as numbers, which is not meaningful for unordered classes.

    Assignment and correlation use the same samples, as in the in-sample score of the papers. Resamples for the interval
    of ``spearman`` use the ranks of all samples.

    Reference: Hyvärinen & Morioka, Unsupervised Feature Extraction by Time-Contrastive Learning and Nonlinear ICA
    (hyvarinen2016); Khemakhem et al. (khemakhem2020).

    :param variant: (default "pearson") correlation of the values, or of their ranks.

    >>> factors = np.array([[a, b] for a in range(3) for b in range(3)])
    >>> round(mcc(1 - 2.0 * factors[:, ::-1], factors).value, 6)
    1.0
    """
    from scipy.stats import rankdata

    x, y = table.codes, table.factors
    if variant == "spearman":
        x, y = rankdata(x, axis=0), rankdata(y, axis=0)
    # A weight of 1 for each sample uses the same function for the value and for the resamples.
    once = np.ones((1, table.n_samples), dtype=np.uint8)
    strengths = np.abs(correlations(x, y, once)[0])
    matched, per_factor = _assign(strengths)
    value = float(per_factor.mean())
    replicates = [_assign(np.abs(part))[1].mean() for part in correlations(x, y, table.resamples)]
    chances = [_assign(np.abs(correlations(x[order], y, once)[0]))[1].mean() for order in table.permutations]
    unordered = [
        name
        for name, kind, n in zip(table.factor_names, table.factor_kinds, table.n_classes, strict=True)
        if kind in ("categorical", "cyclic") and n > 2
    ]
    note = (
        f"Classes are treated as ordered numbers (factor {', '.join(unordered)}); omit factors without order."
    )
    return Score.of(
        "mcc",
        value,
        interval=recentred_interval(value, np.array(replicates), (0, 1)),
        chance=float(np.mean(chances)),
        variant=variant,
        per_factor=per_factor,
        matrix=strengths,
        details={"matched_latent": matched, "factor_names": table.factor_names},
        notes=(*table.grid_notes, note) if unordered else table.grid_notes,
    )


def _assign(
    strengths: Float[np.ndarray, "latent factor"],
) -> tuple[Int[np.ndarray, " factor"], Float[np.ndarray, " factor"]]:
    """Return the latent of each factor (−1 if none is left) and its strength."""
    latents, factors = assign(strengths)
    matched, strength = np.full(strengths.shape[1], -1), np.zeros(strengths.shape[1])
    matched[factors], strength[factors] = latents, strengths[latents, factors]
    return matched, strength
