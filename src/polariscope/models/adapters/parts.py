"""Objects that consist of an encoder and a decoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import nn

from polariscope.models.adapters import AbstractAdapter, Foreign, Opened, adapter
from polariscope.models.adapters.support.calls import type_name
from polariscope.models.adapters.wrapped import adapted

PAIRS = (("encode", "encoder"), ("decode", "decoder"))
"""Names of the function of each part: a method is preferred to a module, which might be followed by other layers."""


@adapter("parts", order=60)
class PartsAdapter(AbstractAdapter):
    """Anything with ``encode`` and ``decode``, or ``encoder`` and ``decoder``: modules, Lightning, hub mixins.

    If the encoder returns one array and all weights are used, the model is a deterministic autoencoder. If encoder and
    decoder do not fit together, or weights remain unused, the forward pass of a module must return the posterior.
    """

    def recognises(self, thing: object) -> bool:
        # A text has a method encode, too.
        return not isinstance(thing, str | bytes) and all(part is not None for part in parts_of(thing))

    def open(self, thing: Foreign, data: object, options: Mapping[str, object]) -> Opened:
        encoder, decoder = parts_of(thing)
        assert encoder is not None
        model = adapted(
            encoder,
            decoder,
            options,
            is_point=True,
            # Layers between encoder and decoder, such as fc_mu and fc_var, are used by the forward pass only.
            alternative=thing if isinstance(thing, nn.Module) else None,
            name=type_name(thing),
        )
        if isinstance(thing, nn.Module) and "outputs" not in options:
            model.must_use(thing)
        return Opened(model)


def parts_of(thing: object) -> tuple[Callable[..., object] | None, Callable[..., object] | None]:
    """Return the encoder and the decoder of an object; None for a part that it does not have.

    :param thing: the object.
    """
    encoder, decoder = (
        next((part for name in names if callable(part := getattr(thing, name, None))), None)
        for names in PAIRS
    )
    return encoder, decoder
