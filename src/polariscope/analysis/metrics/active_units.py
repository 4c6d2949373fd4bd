"""Number of latents in use."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal, get_args

import numpy as np
from annotated_types import Ge
from jaxtyping import Int

from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics import Score, metric
from polariscope.analysis.regime.criteria import CRITERIA
from polariscope.analysis.regime.posterior import RelativePosterior, relative_posterior
from polariscope.analysis.representation import Representation
from polariscope.core.options import options_of
from polariscope.numerics.intervals import percentile_interval

Rule = Literal[
    "active-units",
    "std-of-mean",
    "std-pruning",
    "mean-variance",
    "kl-tail",
    "kl-threshold",
    "kl-udr",
    "mixture",
]
FROM_THE_MEAN = ("active-units", "std-of-mean", "std-pruning")
"""Criteria that do not use the posterior's variance."""


@metric(
    "active-units",
    bounds=(0, np.inf),
    higher_is_better=True,
    needs=("codes",),
    invariant_to={"order", "shift", "sign"},
    uses=("variance",),
    posterior_variants=get_args(Rule),
    standard_prior=True,
)
def active_units(
    table: Table,
    *,
    variant: Rule = "active-units",
    threshold: Annotated[float, Ge(0)] | None = None,
) -> Score:
    r"""Number of latents that carry information about the input.

    .. math:: \mathrm{AU} = \# \{ j : \mathrm{Var}_x[\mu_j(x)] > 0.01 \}

    ``codes`` are the posterior means. The score lies between 0 and the number of latents and does not depend on which
    factors they encode. Besides this rule, ``active-units``, the variants are those of
    :mod:`polariscope.analysis.regime.criteria`: ``std-of-mean`` and ``std-pruning``; and, with ``variance`` and a
    standard normal prior, ``mean-variance``, ``kl-tail``, ``kl-threshold``, ``kl-udr`` and ``mixture``. ``threshold``
    replaces the source's value. The interval contains 95 % of the counts in resamples; a count has no chance level.
    ``per_latent`` is 1 for latents in use.

    Reference: Burda et al., Importance Weighted Autoencoders (burda2016), §5.1.1;
    the other rules are in :mod:`polariscope.analysis.regime.criteria`.

    :param variant: (default "active-units") rule that defines latents in use.
    :param threshold: (default: the source's) threshold of the rule.

    >>> active_units(np.array([[1.0, 0.01], [-1.0, -0.01]])).value
    1.0
    """
    # These criteria do not read the variance, so any value serves.
    variances = np.ones_like(table.codes) if variant in FROM_THE_MEAN else table.variance
    posterior = relative_posterior(Representation(table.codes, variances, table.codes))
    criterion = CRITERIA[variant]
    # A criterion has a single option, its threshold, under a name of its own.
    options = {} if threshold is None else dict.fromkeys(options_of(criterion), threshold)
    in_use = criterion(posterior, **options)
    rows = np.arange(table.n_samples)
    counts = [criterion(_at(posterior, np.repeat(rows, times)), **options).sum() for times in table.resamples]
    value = float(in_use.sum())
    return Score.of(
        "active-units",
        value,
        interval=percentile_interval(value, np.array(counts), interpolate=False),
        chance=None,
        variant=variant,
        bounds=(0, table.n_latents),
        per_latent=in_use.astype(np.float64),
        details={"variance_of_mean": table.codes.var(axis=0), "threshold": threshold},
    )


def _at(posterior: RelativePosterior, rows: Int[np.ndarray, " row"]) -> RelativePosterior:
    """Return the posteriors of these samples."""
    table = {name: value for name, value in vars(posterior).items() if isinstance(value, np.ndarray)}
    return dataclasses.replace(posterior, **{name: value[rows] for name, value in table.items()})
