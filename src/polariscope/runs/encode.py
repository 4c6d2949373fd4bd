"""Encoding of a dataset with a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from polariscope.analysis.code_view import CodeView, Per
from polariscope.analysis.representation import Representation
from polariscope.core.errors import Argument, InputError
from polariscope.core.paths import existing_path
from polariscope.data.data_like import DataLike
from polariscope.data.observations import Observations, Part, Subset
from polariscope.models.effect import decoder_effect
from polariscope.models.inference import represent
from polariscope.models.likelihood_residuals import likelihood_fit
from polariscope.models.open_model import is_openable, open_model
from polariscope.models.protocol import AbstractModel, ModelLike
from polariscope.runs.run import Run
from polariscope.training.likelihood import natural_likelihood


def encode(
    model: ModelLike,
    data: DataLike | None = None,
    n_samples: int | None = Observations.n_samples,
    seed: int = Observations.seed,
    *,
    part: Part = Observations.part,
    step: int | None = Observations.step,
    second: str = "log_variance",
    outputs: Sequence[str] | None = None,
    per: Per = CodeView.per,
) -> Representation:
    """Return mean, variance and sampled representation of observations drawn without replacement.

    The representation of a model that belongs to a run is cached with the run; the same call reads it back.

    :param model: a model, a run folder, an object of another library (``polariscope.models.adapters`` lists them), the
        path of an ONNX file or of a folder of a model, or any function or module that returns a posterior for a batch,
        in any of the usual forms (:func:`polariscope.wrap`).
    :param data: (default: the data of the run) a dataset or an array of observations.
    :param n_samples: (default 10,000) maximum number of observations; None for all, in their order.
    :param seed: (default 0) seed of the choice of observations and of posterior samples.
    :param part: (default "all") part of the run's split: "all", "train", "validation" or "test".
    :param step: (default None: the finished model) step of a checkpoint, for a run folder.
    :param second: (default "log_variance") meaning of the second array if a function returns a pair: "log_variance",
        "variance", "std" or "log_std".
    :param outputs: (default: inferred) meaning of each array that a function returns, as in :func:`polariscope.wrap`:
        ``("z", "mean", "log_variance")``.
    :param per: (default "channel") unit of a diagnosis of codes with several axes, (channel, height, width): "channel"
        pools the positions of each channel, "value" treats each value as a latent.
    """
    options = {"second": None if second == "log_variance" else second, "outputs": outputs}
    if isinstance(model, (str, Path)) and not is_openable(existing_path(model)):
        for name, value in options.items():
            if value is not None:
                raise InputError(
                    problem=(Argument(name), " is for functions and modules of other libraries"),
                    remedy="leave it out",
                )
        return Run(model, data).representation(n_samples, seed, part, step)
    subset = Subset(n_samples, seed, part)
    if step is not None:
        raise InputError(
            problem=(Argument("step"), " requires a run folder"),
            remedy="leave it out, or pass the folder of a run",
        )
    if isinstance(model, AbstractModel) and model.folder is not None and not any(options.values()):
        run = Run(model.folder, data)
        return run.with_evidence(run.representation_of(model, subset), model, seed)
    model, dataset = open_model(model, data, **options)
    if dataset is None:
        raise InputError("data", "be given for a model that does not belong to a run")
    indices = subset.choose(len(dataset), None)
    representation = represent(model, dataset, indices, seed, per=per)
    effect = decoder_effect(model, dataset, indices, seed, per)
    fit = likelihood_fit(model, dataset, indices, seed, "given", natural_likelihood(dataset))
    training = model.training_state or representation.training
    return dataclasses.replace(representation, **effect.as_fields(), training=training, fit=fit)
