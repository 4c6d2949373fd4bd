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
    r"""How little a latent moves when its factor is held and all others change.

    With :math:`D_j` the largest deviation of latent j from its mean and :math:`d_{jk}` the average over the values v
    of factor k of its largest deviation, among samples with :math:`w_k = v`, from their mean,

    .. math:: \mathrm{IRS} = \frac{\sum_j D_j \max_k (1 - d_{jk} / D_j)}{\sum_j D_j}

    1 when every latent is a function of one factor; 0 when holding any factor leaves as much movement as before.
    Latents count by how far they move, so the score depends on their scale; constant ones do not count, and
    codes that are all constant are refused. It does not ask whether anything is coded: several latents may share a
    factor.

    "Largest" within a value is the 0.99 ``quantile`` (1: the maximum of the definition). ``locatello``, the default,
    divides it by the maximum over all samples, so a latent of Gaussian noise gets 0.3 rather than 0: see
    ``chance``. ``matched`` takes the same quantile in both places. Values below 0, which few samples a value can give,
    are cut off.

    It is interventional only where factors are independent in the samples; a factor that depends on another is
    held with it. The interval comes from 50 resamples: it speaks of the spread, not of how few samples miss extremes.

    Reference: Suter et al., Robustly Disentangled Causal Mechanisms (suter2019); the
    quantile is disentanglement_lib's.

    :param variant: (default "locatello") whether movements are divided by the largest of all, or by the same quantile.
    :param quantile: (default 0.99) which of the movements within a value counts as the largest; 1 is the maximum.

    >>> factors = np.array([[a, b] for a in range(3) for b in range(3)] * 2)
    >>> irs(factors.astype(float), factors).value
    1.0
    """
    if table.constant.all():
        raise InputError(
            problem="all codes are constant, so no robustness can be measured",
            remedy="has the model collapsed?",
        )
    normaliser = quantile if variant == "matched" else 1.0
    robustness, reach = _robustness(table.codes, table.classes, quantile, normaliser)
    value = _average(robustness, reach)
    rows = np.arange(table.n_samples)
    replicates = []
    for times in table.resamples[:REPLICATES]:
        chosen = np.repeat(rows, times)
        replicates.append(
            _average(*_robustness(table.codes[chosen], table.classes[chosen], quantile, normaliser))
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
    """1 − d/D, cut off at 0, and D; 0 for latents that never move."""
    reach = np.quantile(np.abs(codes - codes.mean(axis=0)), normaliser, axis=0)
    moves = np.stack([_moves(codes, column, quantile) for column in classes.T], axis=1)
    moving = (reach > 0)[:, None]
    return np.where(moving, np.maximum(0, 1 - moves / np.where(moving, reach[:, None], 1)), 0.0), reach


def _moves(
    codes: Float[np.ndarray, "sample latent"], classes: Int[np.ndarray, " sample"], quantile: float
) -> Float[np.ndarray, " latent"]:
    """Quantile of |z − mean| within each class, averaged over the classes that occur."""
    _, classes, counts = np.unique(classes, return_inverse=True, return_counts=True)
    starts = np.cumsum(counts) - counts
    ordered, group = codes[np.argsort(classes, kind="stable")], np.repeat(np.arange(len(counts)), counts)
    means = np.add.reduceat(ordered, starts, axis=0) / counts[:, None]
    deviations = np.abs(ordered - means[group])
    # One sort for all classes: numbers in [c, c + ½] for class c. The quantile interpolates, as NumPy's does.
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
