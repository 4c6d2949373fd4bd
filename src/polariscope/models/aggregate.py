"""Aggregate posterior of a model, compared with draws of its prior if it is not Gaussian."""

from __future__ import annotations

from polariscope.analysis.aggregate_posterior import AggregatePosterior, aggregate_posterior
from polariscope.analysis.representation import Representation
from polariscope.models.inference import draw_prior
from polariscope.models.protocol import AbstractModel

N_DRAWS = 1000
"""Number of draws of a prior that is not Gaussian."""


def aggregate_of_model(
    representation: Representation, model: AbstractModel | None, seed: int = 0
) -> AggregatePosterior:
    """Return the aggregate posterior of the codes of a model.

    See :func:`polariscope.analysis.aggregate_posterior.aggregate_posterior`.

    :param representation: codes of the model.
    :param model: the model; None for codes without one.
    :param seed: (default 0) seed of the comparison with the prior.
    """
    draws = None
    if model is not None and not model.n_auxiliary and model.prior.normal() is None:
        drawn = draw_prior(model, N_DRAWS, seed)
        draws = None if drawn is None else drawn[0]
    return aggregate_posterior(representation, draws, seed=seed)
