"""Models of pythae."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from polariscope.core.errors import InputError
from polariscope.models.adapters import AbstractAdapter, Foreign, Opened, adapter, is_from
from polariscope.models.adapters.support.calls import type_name
from polariscope.models.adapters.wrapped import Method, adapted

LIKELIHOODS = {"bce": "bernoulli", "mse": "gaussian"}
"""Likelihood of each reconstruction loss: half the squared error is that of a normal distribution of variance 1."""
NOT_NORMAL = ("SVAE", "PoincareVAE")
"""Models whose posterior is a distribution on a sphere or in hyperbolic space."""
FLOWS = ("VAE_IAF", "VAE_LinNF", "HVAE", "RHVAE")
"""Models that transform the draws of a normal posterior."""


@adapter("pythae", order=20)
class PythaeAdapter(AbstractAdapter):
    """Models of pythae: shape and likelihood are those of ``model_config``; codes of a VQ-VAE are quantised."""

    def recognises(self, thing: object) -> bool:
        return is_from(thing, "pythae") and isinstance(thing, nn.Module) and hasattr(thing, "model_config")

    def open(self, thing: Foreign, data: object, options: Mapping[str, object]) -> Opened:
        kind = type_name(thing)
        if kind in NOT_NORMAL:
            raise InputError(
                problem=f"the posterior of a {kind} of pythae is not normal",
                remedy="only normal posteriors and deterministic encoders are supported",
            )
        config, notes = thing.model_config, {}
        if kind in FLOWS:
            notes["flow"] = f"The posterior is that of the encoder; a {kind} transforms its draws further."
        if kind == "VAMP":
            notes["prior"] = "The KL is relative to the prior N(0, 1), not to the VampPrior of the model."
        loss = getattr(config, "reconstruction_loss", "mse")
        encoder = (
            Method(thing, lambda x: _quantised(thing, x)) if hasattr(thing, "quantizer") else thing.encoder
        )
        # A batch of zeros can be outside the range of the data, so the shape is only declared.
        model = adapted(
            encoder,
            thing.decoder,
            options,
            is_point=True,
            notes=notes,
            likelihood=LIKELIHOODS.get(loss, "auto"),
            name=f"{kind} (pythae)",
        )
        model.expects(config.input_dim)
        return Opened(model)


def _quantised(model: Any, x: Tensor) -> Tensor:
    """Return the quantised codes that the decoder of a VQ-VAE receives."""
    embedding = model.encoder(x).embedding
    maps = embedding if embedding.ndim == 4 else embedding.reshape(len(embedding), 1, 1, -1)
    quantised = model.quantizer(maps.permute(0, 2, 3, 1)).quantized_vector
    return quantised if embedding.ndim == 4 else quantised.reshape(len(embedding), -1)
