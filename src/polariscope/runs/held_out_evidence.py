"""Evidence from held-out observations that a diagnosis requires besides the codes of a model."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from polariscope.analysis.representation import Representation
from polariscope.runs.results import CachedResults
from polariscope.storage.artefacts import Key

if TYPE_CHECKING:
    from polariscope.analysis.likelihood_fit import LikelihoodFit, Source
    from polariscope.models.protocol import AbstractModel


def add_evidence(
    results: CachedResults, rep: Representation, model: AbstractModel, seed: int
) -> Representation:
    """Return a representation with the decoder effect, the fit of the likelihood and the state of the training.

    Held-out observations are those of the validation and test splits together, because each of them can be very small,
    or all observations of data that the model was not trained on.

    :param results: cached results of the model's run.
    :param rep: codes of the model.
    :param model: the model.
    :param seed: seed of the effect.
    """
    from polariscope.analysis.regime.use import MAX_OBSERVATIONS, Effect

    run = results.run
    if run.has_its_own_data:
        split = run.split()
        held_out = np.concatenate([split.test, split.validation])
    else:
        held_out = np.arange(run.n_observations)
    settings = {"n_samples": min(len(held_out), MAX_OBSERVATIONS), "seed": seed}
    key = Key("effect", model.digest, run.fingerprint, "held-out", model.step, settings)

    def compute() -> Effect:
        from polariscope.models.effect import decoder_effect

        return decoder_effect(model, run.data(), held_out, seed)

    effect = results.read_or_compute(key, Effect, compute)
    fit = _likelihood_fit(results, model, held_out, seed)
    return dataclasses.replace(rep, **effect.as_fields(), training=run.training(model.step), fit=fit)


def _likelihood_fit(
    results: CachedResults, model: AbstractModel, indices: Int[np.ndarray, " sample"], seed: int
) -> LikelihoodFit:
    """Return the fit of a model's likelihood to residuals of held-out observations, cached with the run."""
    from polariscope.analysis.likelihood_fit import MAX_OBSERVATIONS, LikelihoodFit

    run = results.run
    is_held_out = not run.has_its_own_data or run.split().is_held_out
    settings = {"n_samples": min(len(indices), MAX_OBSERVATIONS), "seed": seed}
    key = Key("likelihood-fit", model.digest, run.fingerprint, "held-out", model.step, settings)

    def compute() -> LikelihoodFit:
        from polariscope.models.likelihood_residuals import likelihood_fit
        from polariscope.training.likelihood import natural_likelihood

        source: Source = "held-out" if is_held_out else "training"
        return likelihood_fit(model, run.data(), indices, seed, source, natural_likelihood(run.data()))

    return results.read_or_compute(key, LikelihoodFit, compute)
