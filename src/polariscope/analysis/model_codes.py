"""Checked codes of several models on the same samples, the input of metrics that compare models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from jaxtyping import Float

from polariscope.analysis.code_checks import check_codes, check_variance
from polariscope.analysis.representation import Representation, check_same_samples
from polariscope.core.errors import InputError
from polariscope.core.types import ArrayInput


class Models:
    """Codes of several models, and their posterior variances if they are known.

    :param models: mean codes ``(sample, latent)`` of each model, of the same samples; or representations, which include
        variances and must have the same ids.
    :param variance: (default None) posterior variances σ² of each model, shaped like its codes.
    :param seed: (default 0) seed of every random choice.
    :param names: (default: their numbers) names of the models in messages.
    """

    def __init__(
        self,
        models: Sequence[ArrayInput | Representation],
        variance: Sequence[ArrayInput] | None = None,
        seed: int = 0,
        names: Sequence[str] | None = None,
    ) -> None:
        self.seed = seed
        labels = [f"model {name}" for name in (range(len(models)) if names is None else names)]
        if any(isinstance(model, Representation) for model in models):
            models, variance = _unpack(models, variance, labels)
        if len(models) < 2:
            raise InputError(
                "models", "contain at least two models, which are compared with each other", got=len(models)
            )
        self.codes: list[Float[np.ndarray, "sample _"]] = [
            check_codes(cast("ArrayInput", codes), f"codes of {label}")
            for label, codes in zip(labels, models, strict=True)
        ]
        lengths = sorted({len(codes) for codes in self.codes})
        if len(lengths) > 1:
            raise InputError(
                "all models", "encode the same samples", got=f"{lengths} rows", remedy="encode them again"
            )
        self.variance: list[Float[np.ndarray, "sample _"]] | None = None
        if variance is not None:
            if len(variance) != len(models):
                raise InputError(
                    "variance", f"have an array for each of the {len(models)} models", got=len(variance)
                )
            pairs = zip(variance, self.codes, strict=True)
            self.variance = [check_variance(variance_of_model, codes) for variance_of_model, codes in pairs]


def _unpack(
    models: Sequence[Any], variance: Sequence[Any] | None, labels: Sequence[str]
) -> tuple[list[Any], list[Any]]:
    """Return the means and variances of representations of the same samples."""
    if not all(isinstance(model, Representation) for model in models):
        raise InputError(
            "models",
            "be all representations or all arrays",
            got="some of each",
            remedy="make a polariscope.Representation(mean, variance, sampled) of each array",
        )
    if variance is not None:
        raise InputError("variance", "be omitted with representations, which include variances")
    check_same_samples({label: model.ids for label, model in zip(labels, models, strict=True)})
    return [model.mean for model in models], [model.variance for model in models]
