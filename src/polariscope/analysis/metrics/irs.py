"""Interventional robustness score."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Gt, Le
from jaxtyping import Float, Int

from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics import Score, metric
from polariscope.core.errors import InputError
from polariscope.numerics.intervals import recentred_interval

REPLICATES = 50


@metric(
    "irs",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("codes", "factors"),
    invariant_to={"order", "shift", "sign"},
)
def irs(
    table: Table,
    *,
    variant: Literal["locatello", "matched"] = "locatello",
    quantile: Annotated[float, Gt(0), Le(1)] = 0.99,
) -> Score:
    r"""Robustness of each latent to changes of all factors but one.

    With :math:`D_j` the largest deviation of latent j from its mean, and :math:`d_{jk}` the largest deviation among
    samples with :math:`w_k = v` from their mean, averaged over the values v of factor k,

    .. math:: \mathrm{IRS} = \frac{\sum_j D_j \max_k (1 - d_{jk} / D_j)}{\sum_j D_j}

    It is 1 if every latent is a function of one factor, and 0 if fixing any factor does not reduce the deviations.
    Latents are weighted by their largest deviation, so the score depends on their scale. Constant latents have no
    weight, and codes that are all constant raise an error. The score does not measure whether factors are encoded:
    several latents can encode the same factor.

    The "largest" deviation within a value is the 0.99 ``quantile`` (1: the maximum, as in the definition).
    ``locatello``, the default, divides it by the maximum over all samples, so a latent of Gaussian noise scores 0.3
    instead of 0; compare with ``chance``. ``matched`` uses the same quantile in both places. Negative values, which can
    occur with few samples per value, are set to 0.

    The score is interventional only if factors are independent in the samples; fixing a factor also fixes those that
    depend on it. The interval is computed from 50 resamples. It covers the spread, but not the bias from extremes that
    are missing in few samples.

    Reference: Suter et al., Robustly Disentangled Causal Mechanisms (suter2019); the
    quantile is disentanglement_lib's.

    :param variant: (default "locatello") divisor of the deviations: their maximum, or the same quantile ("matched").
    :param quantile: (default 0.99) quantile of the deviations within a value; 1 is the maximum.

    >>> factors = np.array([[a, b] for a in range(3) for b in range(3)] * 2)
    >>> irs(factors.astype(float), factors).value
    1.0
    """
    if table.constant.all():
        raise InputError(
            problem="all codes are constant, so no robustness can be measured",
            remedy="check whether the model has collapsed",
        )
    normaliser = quantile if variant == "matched" else 1.0
    robustness, reach = _robustness(table.codes, table.classes, quantile, normaliser)
    value = _average(robustness, reach)
    rows = np.arange(table.n_samples)
    replicates = []
    for times in table.resamples[:REPLICATES]:
        drawn = np.repeat(rows, times)
        replicates.append(
            _average(*_robustness(table.codes[drawn], table.classes[drawn], quantile, normaliser))
        )
    shuffled = [
        _average(*_robustness(table.codes[order], table.classes, quantile, normaliser))
        for order in table.permutations
    ]
    return Score.of(
        "irs",
        value,
        interval=recentred_interval(value, np.array(replicates), (0, 1)),
        chance=float(np.mean(shuffled)),
        variant=variant,
        per_latent=robustness.max(axis=1),
        matrix=robustness,
        details={
            "factor": robustness.argmax(axis=1),
            "weights": reach / reach.sum(),
            "quantile": quantile,
            "factor_names": table.factor_names,
        },
        notes=table.grid_notes,
    )


def _robustness(
    codes: Float[np.ndarray, "sample latent"],
    classes: Int[np.ndarray, "sample factor"],
    quantile: float,
    normaliser: float,
) -> tuple[Float[np.ndarray, "latent factor"], Float[np.ndarray, " latent"]]:
    """Return 1 − d/D, at least 0, and D; 0 for constant latents."""
    reach = np.quantile(np.abs(codes - codes.mean(axis=0)), normaliser, axis=0)
    moves = np.stack([_moves(codes, column, quantile) for column in classes.T], axis=1)
    # A constant latent has no deviation to divide by.
    moving = (reach > 0)[:, None]
    return np.where(moving, np.maximum(0, 1 - moves / np.where(moving, reach[:, None], 1)), 0.0), reach


def _moves(
    codes: Float[np.ndarray, "sample latent"], classes: Int[np.ndarray, " sample"], quantile: float
) -> Float[np.ndarray, " latent"]:
    """Return the quantile of |z − mean| within each class, averaged over the classes that occur."""
    _, classes, counts = np.unique(classes, return_inverse=True, return_counts=True)
    starts = np.cumsum(counts) - counts
    ordered, group = codes[np.argsort(classes, kind="stable")], np.repeat(np.arange(len(counts)), counts)
    # Rows are sorted by class, so reduceat sums each class in one pass.
    means = np.add.reduceat(ordered, starts, axis=0) / counts[:, None]
    deviations = np.abs(ordered - means[group])
    # Values of class c are mapped to [c, c + ½], so one sort serves all classes. Interpolate as NumPy's quantile does.
    scale = 2 * np.maximum(deviations.max(axis=0), np.finfo(float).tiny)
    within = np.sort(group[:, None] + deviations / scale, axis=0) - group[:, None]
    position = quantile * (counts - 1)
    below = np.floor(position).astype(int)
    above = np.minimum(below + 1, counts - 1)
    share = (position - below)[:, None]
    quantiles = within[starts + below] * (1 - share) + within[starts + above] * share
    return quantiles.mean(axis=0) * scale


def _average(robustness: Float[np.ndarray, "latent factor"], reach: Float[np.ndarray, " latent"]) -> float:
    total = reach.sum()
    return float(robustness.max(axis=1) @ reach / total) if total > 0 else 0.0
